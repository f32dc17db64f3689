/** `reload_config()`: reads the settings again. */
import type { Config } from "../config/mod.ts";
import { ConfigError } from "../errors.ts";
import { logger } from "../log/mod.ts";

/**
 * Logs only the names of changed settings, because a value may be secret. Returns true if a changed setting takes
 * effect immediately.
 */
export function reloadConfig(config: Config): boolean {
  const log = logger("server-main");
  let changes: ReturnType<Config["reload"]>;
  try {
    changes = config.reload();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.error(`the configuration was not reloaded: ${error.message.replaceAll("\n", "; ")}`);
    return false;
  }
  for (const key of changes.changed) log.advisory(`configuration: ${key} has changed and takes effect`);
  for (const key of changes.ignored) {
    log.advisory(`configuration: ${key} has changed and takes effect at the next start`);
  }
  return changes.changed.length > 0;
}
