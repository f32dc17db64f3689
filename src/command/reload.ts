/** `reload_config()`: reads the settings again. */
import type { Config } from "../config/mod.ts";
import { ConfigError } from "../errors.ts";
import { logger } from "../log/mod.ts";

/**
 * Logs only names, because a value may be a secret. Returns true if a setting has changed that takes effect at once.
 */
export function reloadConfig(config: Config): boolean {
  const log = logger("server-main");
  let changes: ReturnType<Config["reload"]>;
  try {
    changes = config.reload();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.error(`configuration was not read again: ${error.message.replaceAll("\n", "; ")}`);
    return false;
  }
  for (const key of changes.changed) log.advisory(`configuration: ${key} has changed and takes effect`);
  for (const key of changes.ignored) {
    log.advisory(`configuration: ${key} has changed and takes effect at the next start`);
  }
  return changes.changed.length > 0;
}
