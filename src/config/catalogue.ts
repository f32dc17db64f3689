/**
 * All settings by their keys. The layers declare them, and `src/command/settings.ts` lists the sections of all layers.
 */
import assert from "node:assert/strict";
import { type Group, isSetting, type Setting, type SettingReader } from "./setting.ts";

/** A heading of server.conf and of the manual with its settings. */
export interface Section {
  readonly title: string;
  /** In the order of server.conf. */
  readonly settings: readonly (Group | readonly Setting<unknown>[])[];
  /** Reports invalid combinations of values. The message continues after the first setting's key. */
  check?(config: SettingReader, refuse: (settings: readonly Setting<unknown>[], message: string) => void): void;
}

/** Every setting of a section, without duplicates, because groups may share settings. */
export function settingsOf({ settings }: Section): Setting<unknown>[] {
  const found = new Set<Setting<unknown>>();
  const add = (group: Group | readonly Setting<unknown>[]) => {
    for (const entry of Object.values(group)) {
      if (isSetting(entry)) found.add(entry);
      else add(entry);
    }
  };
  settings.forEach(add);
  return [...found];
}

/** `http.keep-alive.max` → `SVC_HTTP_KEEP_ALIVE_MAX`. */
export function envName(key: string): string {
  return `SVC_${key.toUpperCase().replace(/[.-]/g, "_")}`;
}

export class Catalogue {
  readonly settings = new Map<string, Setting<unknown>>();
  /** The key of each spelling. */
  readonly byKey = new Map<string, string>();
  readonly byEnvName = new Map<string, string>();

  constructor(sections: readonly Section[]) {
    for (const setting of new Set(sections.flatMap(settingsOf))) {
      for (const spelling of [setting.key, ...setting.aliases]) {
        assert(!this.byKey.has(spelling), `${spelling} is declared once`);
        this.byKey.set(spelling, setting.key);
        this.byEnvName.set(envName(spelling), setting.key);
      }
      this.settings.set(setting.key, setting);
    }
  }
}
