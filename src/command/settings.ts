/** All settings: the sections that the layers declare, in the order of server.conf and of the manual. */
import { Config, generalSection, loadConfig, type Section } from "../config/mod.ts";
import { accessSection } from "../access/settings.ts";
import { oidcSection } from "../auth/oidc/settings.ts";
import { databaseSections } from "../database/settings.ts";
import type { ConfigError } from "../errors.ts";
import { logSection } from "../log/settings.ts";
import { metricsSection } from "../metrics/settings.ts";
import { healthSection } from "../wire/health/settings.ts";
import { httpSection } from "../wire/http/section.ts";
import { lineSection } from "../wire/line-tcp/settings.ts";
import { pgSection } from "../wire/pg/settings.ts";
import { tlsSection } from "../wire/tls/settings.ts";
import { checkListeners } from "./listeners.ts";

export const SECTIONS: readonly Section[] = [
  { ...generalSection, check: checkListeners },
  httpSection,
  healthSection,
  tlsSection,
  metricsSection,
  ...databaseSections,
  accessSection,
  oidcSection,
  pgSection,
  lineSection,
  logSection,
];

/**
 * Loads the settings of a root and of the environment. `faults`: collects faults instead of throwing them. @throws
 * {ConfigError}
 */
export function loadSettings(root: string, faults?: ConfigError[]): Config {
  return loadConfig({ root, sections: SECTIONS, env: Deno.env.toObject(), faults });
}
