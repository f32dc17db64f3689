import { Config } from "../config/mod.ts";
import { SECTIONS } from "./settings.ts";

/** The defaults with `texts` instead of server.conf. */
export function configOf(texts: Record<string, string> = {}, root = "."): Config {
  const file = Object.entries(texts).map(([key, text]) => `${key}=${text.replaceAll("\\", "\\\\")}`).join("\n");
  return new Config({
    root,
    sections: SECTIONS,
    env: {},
    machine: { cores: 2, memoryBytes: 4 * 2 ** 30, hostName: "box" },
    readFile: () => file,
  });
}
