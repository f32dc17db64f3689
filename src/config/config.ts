import assert from "node:assert/strict";
import { join } from "node:path";
import { ConfigError, throwFaults } from "../errors.ts";
import { Catalogue, envName, type Section } from "./catalogue.ts";
import { IGNORED_KEYS } from "./ignored-keys.ts";
import { didYouMean } from "../nearest.ts";
import { parseProperties } from "./properties.ts";
import { type Given, type Group, isSetting, type Machine, type Setting, type Values } from "./setting.ts";
import { generalSettings } from "./settings.ts";

export type ValueSource = "default" | "conf" | "env";

/** A row of SHOW PARAMETERS. */
export interface Parameter {
  path: string;
  envName: string;
  /** As written; "****" for a secret that is set or has a default. */
  value: string;
  source: ValueSource;
  sensitive: boolean;
  reloadable: boolean;
}

interface Entry {
  text: string;
  value: unknown;
  source: ValueSource;
}

export interface ConfigSources {
  /** The root directory; it contains `conf/server.conf`. */
  root: string;
  env: Record<string, string>;
  machine: Machine;
  /** The sections of all settings. */
  sections: readonly Section[];
  /** Returns undefined if the file does not exist. @throws for other failures. */
  readFile(path: string): string | undefined;
  /** Collects faults instead of throwing them. Settings with faults get their defaults. */
  faults?: ConfigError[];
}

/**
 * The settings of a running server. Immutable except for the settings that `reload()` may change, so read reloadable
 * settings on each use.
 */
export class Config {
  readonly root: string;
  readonly machine: Machine;
  /** Problems that do not prevent the start, one sentence each. */
  readonly warnings: readonly string[];
  #entries: ReadonlyMap<string, Entry>;
  #pending = new Map<string, string>();
  readonly #catalogue: Catalogue;
  readonly #sources: ConfigSources;
  readonly #views = new WeakMap<Group, unknown>();

  constructor(sources: ConfigSources) {
    this.root = sources.root;
    this.machine = sources.machine;
    this.#sources = sources;
    this.#catalogue = new Catalogue(sources.sections);
    const warnings: string[] = [];
    const faults: ConfigError[] = [];
    this.#entries = readEntries(this.#catalogue, sources, warnings, faults);
    this.warnings = Object.freeze(warnings);
    checkTogether(this, sources.sections, faults);
    if (sources.faults) sources.faults.push(...faults);
    else throwFaults(faults);
  }

  get<T>(setting: Setting<T>): T {
    return this.#entry(setting).value as T;
  }

  /** The source of the value: environment, file or default. */
  source(setting: Setting<unknown>): ValueSource {
    return this.#entry(setting).source;
  }

  /** The values of a group under its names. Each value is read when it is used, so that a reload takes effect. */
  of<G extends Group>(group: G): Values<G> {
    let view = this.#views.get(group);
    if (view === undefined) this.#views.set(group, view = Object.freeze(this.view(group)));
    return view as Values<G>;
  }

  /** Like `of`, but returns an object to which the caller may add properties. */
  view<G extends Group>(group: G): Values<G> {
    const view = {};
    for (const [name, entry] of Object.entries(group)) {
      const get = isSetting(entry) ? () => this.get(entry) : () => this.of(entry);
      Object.defineProperty(view, name, { get, enumerable: true, configurable: true });
    }
    return view as Values<G>;
  }

  #entry(setting: Setting<unknown>): Entry {
    const entry = this.#entries.get(setting.key);
    // Settings are read many times for a request, so the message is only made if it is needed.
    if (entry === undefined || this.#catalogue.settings.get(setting.key) !== setting) {
      assert.fail(`${setting.key} is declared`);
    }
    return entry;
  }

  parameters(): Parameter[] {
    return [...this.#catalogue.settings].map(([path, setting]) => {
      const { text, source } = this.#entries.get(path)!;
      const value = setting.secret && text !== "" ? "****" : text;
      return { path, envName: envName(path), value, source, sensitive: setting.secret, reloadable: setting.reloadable };
    });
  }

  /** Settings that had changed at the last reload but need a restart. */
  pending(): { path: string; value: string; pendingValue: string }[] {
    const shown = (key: string, text: string) =>
      this.#catalogue.settings.get(key)!.secret && text !== "" ? "****" : text;
    return [...this.#pending].map(([path, text]) => ({
      path,
      value: shown(path, this.#entries.get(path)!.text),
      pendingValue: shown(path, text),
    }));
  }

  /**
   * Reads server.conf again and applies the reloadable keys. `ignored`: keys that changed in the file but need a
   * restart.
   * @throws {ConfigError} and changes nothing.
   */
  reload(): { changed: string[]; ignored: string[] } {
    const faults: ConfigError[] = [];
    const fresh = readEntries(this.#catalogue, this.#sources, [], faults);
    throwFaults(faults);
    const entries = new Map(this.#entries);
    const changed: string[] = [];
    const ignored: string[] = [];
    for (const [key, entry] of fresh) {
      if (entry.text === entries.get(key)!.text) continue;
      if (!this.#catalogue.settings.get(key)!.reloadable) {
        ignored.push(key);
        continue;
      }
      changed.push(key);
      entries.set(key, entry);
    }
    this.#entries = entries;
    this.#pending = new Map(ignored.map((key) => [key, fresh.get(key)!.text]));
    return { changed, ignored };
  }
}

const IGNORED_ENV_NAMES = new Set([...IGNORED_KEYS].map(envName));

/** Environment names that begin with SVC_ but belong to the log (see `src/log/`). */
const LOG_ENV_NAMES = [
  "SVC_LOG_WRITERS",
  "SVC_LOG_LOG_DIR",
  "SVC_LOG_QUEUEDEPTH",
  "SVC_LOG_RECORDLENGTH",
  "SVC_DEBUG",
  "SVC_VERSION",
];
const isForeign = (name: string) => name.startsWith("SVC_LOG_W_") || LOG_ENV_NAMES.includes(name);

function readEntries(
  { settings, byKey, byEnvName }: Catalogue,
  sources: ConfigSources,
  warnings: string[],
  faults: ConfigError[],
): Map<string, Entry> {
  const path = join(sources.root, "conf", "server.conf");
  const texts = new Map<string, { text: string; source: ValueSource; where: string; spelling: string }>();
  const unknown: ConfigError[] = [], foreign: string[] = [];
  for (const { key: spelling, value, line } of parseProperties(readServerConf(sources, path, faults))) {
    const key = byKey.get(spelling);
    if (key === undefined && IGNORED_KEYS.has(spelling)) {
      foreign.push(spelling);
      continue;
    }
    if (key === undefined) {
      unknown.push(new ConfigError(spelling, unknownKey(`${path}:${line}`, spelling, byKey.keys())));
      continue;
    }
    const before = texts.get(key);
    // The current spelling of a key takes precedence over an older one, regardless of their order in the file.
    if (before && before.spelling === key && spelling !== key) continue;
    texts.set(key, { text: value, source: "conf", where: `${path}:${line}`, spelling });
  }
  for (const name of Object.keys(sources.env).sort()) {
    if (!name.startsWith("SVC_") || isForeign(name)) continue;
    const key = byEnvName.get(name);
    const fileKey = key === undefined && name.endsWith("_FILE") ? byEnvName.get(name.slice(0, -5)) : undefined;
    if (key !== undefined) {
      texts.set(key, { text: sources.env[name]!.trim(), source: "env", where: name, spelling: key });
    } else if (fileKey !== undefined) {
      // A value in the environment takes precedence over one in a file.
      if (sources.env[name.slice(0, -5)] !== undefined) continue;
      const text = readValueFile(sources, fileKey, name, faults);
      if (text !== undefined) texts.set(fileKey, { text, source: "env", where: name, spelling: fileKey });
    } else if (IGNORED_ENV_NAMES.has(name)) foreign.push(name);
    else warnings.push(unknownKey("the environment", name, byEnvName.keys()));
  }
  if (foreign.length > 0) warnings.push(`keys of QuestDB that have no effect here: ${foreign.join(", ")}`);
  const entries = new Map<string, Entry>();
  const valueOf: Given = <T>({ key }: Setting<T>) => {
    const entry = entries.get(key);
    assert(entry !== undefined, `${key} is declared before what depends on it`);
    return entry.value as T;
  };
  for (const [key, setting] of settings) {
    const given = texts.get(key);
    const value = given && setting.parse(given.text, sources.root);
    if (given && value !== undefined) {
      entries.set(key, { text: given.text, value, source: given.source });
      continue;
    }
    if (given) {
      const found = setting.secret ? "what is written" : `"${given.text}"`;
      faults.push(
        new ConfigError(key, `${given.where}: ${given.spelling}: found ${found}, expected ${setting.type}`),
      );
    }
    const text = typeof setting.default === "function" ? setting.default(sources.machine, valueOf) : setting.default;
    entries.set(key, { text, value: setting.parse(text, sources.root), source: "default" });
  }
  if (entries.get(generalSettings.validationStrict.key)!.value === true) faults.unshift(...unknown);
  else warnings.unshift(...unknown.map((fault) => fault.message));
  return entries;
}

function readServerConf(sources: ConfigSources, path: string, faults: ConfigError[]): string {
  try {
    return sources.readFile(path) ?? "";
  } catch (error) {
    faults.push(new ConfigError("server.conf", `cannot read ${path}: ${(error as Error).message}`));
    return "";
  }
}

/** Returns undefined after a fault. */
function readValueFile(sources: ConfigSources, key: string, name: string, faults: ConfigError[]): string | undefined {
  const path = sources.env[name]!;
  let text: string | undefined;
  try {
    text = sources.readFile(path);
  } catch (error) {
    faults.push(new ConfigError(key, `${name}: cannot read ${path}: ${(error as Error).message}`));
    return undefined;
  }
  if (text === undefined) faults.push(new ConfigError(key, `${name}: ${path} does not exist`));
  // Editors end a file with a line end, which is not part of a password.
  return text?.replace(/\r?\n$/, "");
}

function unknownKey(where: string, found: string, known: Iterable<string>): string {
  return `${where}: unknown key ${found}${didYouMean(found, known)}`;
}

/** Checks rules between several settings. Skips rules about settings that have a fault of their own. */
function checkTogether(config: Config, sections: readonly Section[], faults: ConfigError[]): void {
  const faulty = new Set(faults.map(({ key }) => key));
  for (const { check } of sections) {
    check?.(config, (settings, message) => {
      const { key } = settings[0]!;
      if (!settings.some((setting) => faulty.has(setting.key))) faults.push(new ConfigError(key, `${key}: ${message}`));
    });
  }
}
