/** The commands by their names. */
import { checkConfig } from "./check-config.ts";
import type { Command } from "./command-line.ts";
import { help, version } from "./help.ts";
import { resetAdminPassword } from "./reset-admin-password.ts";
import { health, status, stop } from "./running.ts";
import { service } from "./service.ts";
import { start } from "./start.ts";

export const COMMANDS: Readonly<Record<string, Command>> = {
  start,
  stop,
  status,
  health,
  "check-config": checkConfig,
  service,
  "reset-admin-password": resetAdminPassword,
  version,
  help,
};
