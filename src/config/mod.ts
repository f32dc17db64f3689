/**
 * Settings: server.conf and the environment → one typed Config. This layer imports no other layer: other layers declare
 * their settings.
 */
import type { ConfigError } from "../errors.ts";
import { unlessMissing } from "../paths.ts";
import { Config } from "./config.ts";
import { thisMachine } from "./machine.ts";
import type { Section } from "./catalogue.ts";
import type { Machine } from "./setting.ts";

export { Catalogue, type Section, settingsOf } from "./catalogue.ts";
export { generalSection, generalSettings } from "./settings.ts";
export * from "./setting.ts";
export { Config, type ConfigSources } from "./config.ts";
export { askToStop, onAskedToStop, runningPid, type RunningServer, runningServer } from "./lock.ts";
export { openRoot, type Root, shippedFile } from "./root.ts";
export { checkTag, DEFAULT_TAG, Tags } from "./tags.ts";
export { manualPage, serverConf } from "./reference.ts";
export { parseProperties } from "./properties.ts";
export {
  type Address,
  formatAddress,
  formatSize,
  isLoopback,
  parseAddress,
  parseDuration,
  parseSize,
} from "./units.ts";

/** Returns undefined if the file does not exist. */
export function readFileIfThere(path: string): string | undefined {
  return unlessMissing(() => Deno.readTextFileSync(path));
}

/**
 * @throws {ConfigError} with the key, what was found and what was expected. With `faults`, errors are collected there
 * instead.
 */
export function loadConfig(
  options: {
    root: string;
    sections: readonly Section[];
    env?: Record<string, string>;
    machine?: Machine;
    faults?: ConfigError[];
  },
): Config {
  const { root, sections, env = {}, machine = thisMachine(), faults } = options;
  return new Config({ root, sections, env, machine, readFile: readFileIfThere, faults });
}
