/** `sundial check-config`: reports faults of the configuration. Opens no file of the root for writing. */
import { join } from "node:path";
import { oidcSettings } from "../auth/oidc/settings.ts";
import { type ConfigError, throwFaults } from "../errors.ts";
import { Log } from "../log/mod.ts";
import { healthFault } from "../wire/health/mod.ts";
import { healthSettings } from "../wire/health/settings.ts";
import type { Command, CommandLine } from "./command-line.ts";
import { addressFaults } from "./listeners.ts";
import { logOptions } from "./log-options.ts";
import { print } from "./print.ts";
import { loadSettings } from "./settings.ts";

export const checkConfig: Command = { run: check };

async function check(line: CommandLine): Promise<number> {
  const faults: ConfigError[] = [];
  const config = loadSettings(line.root, faults);
  const log = Log.check(logOptions(line, config));
  faults.push(...log.faults, ...addressFaults(config));
  if (config.get(healthSettings.enabled)) faults.push(...[healthFault(config) ?? []].flat());
  const { authoritiesFault } = await import("../auth/oidc/http.ts");
  faults.push(...[authoritiesFault(config.of(oidcSettings)) ?? []].flat());
  const { certificateFaults } = await import("../wire/tls/mod.ts");
  faults.push(...certificateFaults(config));
  // Print all faults together: an unknown key often explains a missing one.
  if (faults.length > 0) { for (const warning of config.warnings) console.error(`sundial: warning: ${warning}`); }
  throwFaults(faults);
  for (const warning of config.warnings) console.log(`warning: ${warning}`);
  if (line.logConf !== undefined) console.log(log.origin);
  for (const { path, value, source } of config.parameters()) {
    if (source !== "default") console.log(`${path}=${value} (${source})`);
  }
  return print(`the configuration of ${join(line.root, "conf")} is valid`);
}
