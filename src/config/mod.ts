/** Settings: server.conf and the environment → one typed Config. Imports no other room. */
import type { ConfigError } from "../errors.ts";
import { Config } from "./config.ts";
import { thisMachine } from "./machine.ts";
import type { Machine } from "./setting.ts";

export { catalogue, type Key, sections, type Settings } from "./catalogue.ts";
export { Config, type ConfigSources, envName, type Parameter, type ValueSource } from "./config.ts";
export { askToStop, onAskedToStop, runningPid, type RunningServer, runningServer } from "./lock.ts";
export { openRoot, type Root, shippedFile } from "./root.ts";
export { checkTag, DEFAULT_TAG, Tags } from "./tags.ts";
export { manualPage, serverConf } from "./reference.ts";
export { thisMachine } from "./machine.ts";
export { exposure } from "./exposure.ts";
export { parseProperties, type Property } from "./properties.ts";
export type { Machine, Setting } from "./setting.ts";
export { type Address, formatAddress, formatSize, parseAddress, parseDuration, parseSize } from "./units.ts";

/** Returns undefined if the file does not exist. */
export function readFileIfThere(path: string): string | undefined {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/**
 * @throws {ConfigError} with the key, what was found and what was expected. With `faults`, errors are collected there
 * instead.
 */
export function loadConfig(
  options: { root: string; env?: Record<string, string>; machine?: Machine; faults?: ConfigError[] },
): Config {
  const { root, env = {}, machine = thisMachine(), faults } = options;
  return new Config({ root, env, machine, readFile: readFileIfThere, faults });
}

/** The defaults with `texts` in place of server.conf, for tests and tools without a root. */
export function configOf(texts: Record<string, string> = {}, root = "."): Config {
  const file = Object.entries(texts).map(([key, text]) => `${key}=${text.replaceAll("\\", "\\\\")}`).join("\n");
  return new Config({
    root,
    env: {},
    machine: { cores: 2, memoryBytes: 4 * 2 ** 30, hostName: "box" },
    readFile: () => file,
  });
}
