/** Generates documents from the catalogue: the shipped server.conf and the manual's page. */
import assert from "node:assert/strict";
import { envName, type Section, settingsOf } from "./catalogue.ts";
import type { Setting } from "./setting.ts";

function said({ key, default: byDefault, defaultSaid }: Setting<unknown>): string {
  if (defaultSaid !== undefined) return defaultSaid;
  assert(typeof byDefault === "string", `${key} says what its default depends on`);
  return byDefault;
}

/** server.conf: every key with its sentence, commented out, so that changed defaults apply to keys that are not set. */
export function serverConf(sections: readonly Section[]): string {
  const lines = [
    "# Settings of Sundial. A line that begins with # is a comment: remove the # to set a key.",
    "# The environment has precedence over this file: SVC_ and the key in upper case, dots and dashes as underscores",
    "# (SVC_HTTP_NET_BIND_TO=127.0.0.1:9000); SVC_…_FILE names a file that contains the value.",
    "# Sizes accept k, m, g; times accept us, ms, s, m, h, d. `check-config` reports errors in this file without starting.",
  ];
  for (const section of sections) {
    lines.push("", `################ ${section.title}`);
    for (const setting of settingsOf(section)) {
      const special = setting.defaultSaid === undefined ? "" : ` Default: ${setting.defaultSaid}.`;
      lines.push("", ...wrap(`${setting.sentence} (${setting.type})${special}`, 118).map((line) => `# ${line}`));
      lines.push(`#${setting.key}=${setting.defaultSaid === undefined ? said(setting) : ""}`);
    }
  }
  return lines.join("\n") + "\n";
}

/** docs/configuration.md */
export function manualPage(sections: readonly Section[]): string {
  const lines = [
    "# Configuration",
    "",
    "<!-- Made by `deno task docs` from the settings that the layers of src/ declare: change it there. -->",
    "",
    "Settings are read from `conf/server.conf` under the root, a Java properties file, and from the environment, which has precedence:",
    "`SVC_` and the key in upper case with dots and dashes as underscores. `SVC_…_FILE` names a file that contains the value, which",
    "is how containers get secrets. `check-config` reports every fault without starting. An unknown key is a warning that",
    "names the nearest known one; with `config.validation.strict=true` it prevents the start. An invalid value always prevents",
    "the start. Keys of QuestDB for parts that do not exist here, such as pools and queues, are not faults: the log lists those that were found.",
    "",
    "Sizes are in bytes, or have a suffix `k`, `m`, `g` (times 1024). Durations are in the key's unit, or have a suffix `us`, `ms`, `s`, `m`, `h`, `d`.",
    "*Reloadable* keys take effect with `select reload_config()`.",
  ];
  for (const section of sections) {
    lines.push("", `## ${section.title}`, "", "| Key | Default | Meaning |", "|---|---|---|");
    for (const setting of settingsOf(section)) {
      const byDefault = said(setting);
      const notes = [
        setting.type === "text" ? "" : ` Takes ${setting.type}.`,
        setting.reloadable ? " *Reloadable.*" : "",
        setting.aliases.length > 0 ? ` Also spelled ${setting.aliases.map((alias) => `\`${alias}\``).join(", ")}.` : "",
        setting.secret ? ` Never shown; \`${envName(setting.key)}_FILE\` reads it from a file.` : "",
      ];
      const shownDefault = byDefault === "" ? "" : setting.defaultSaid === undefined ? `\`${byDefault}\`` : byDefault;
      lines.push(
        `| \`${setting.key}\` | ${shownDefault} | ${(setting.sentence + notes.join("")).replaceAll("|", "\\|")} |`,
      );
    }
  }
  return lines.join("\n") + "\n";
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
