import { join } from "node:path";
import { ConfigError, throwFaults } from "../errors.ts";
import { catalogue, type Key, type Settings } from "./catalogue.ts";
import { FOREIGN_KEYS } from "./foreign.ts";
import { didYouMean } from "../nearest.ts";
import { parseProperties } from "./properties.ts";
import type { Machine } from "./setting.ts";
import { formatAddress, formatSize } from "./units.ts";

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
  /** Returns undefined if the file does not exist. @throws other failures. */
  readFile(path: string): string | undefined;
  /** Collects faults instead of throwing them; settings at fault get their defaults. */
  faults?: ConfigError[];
}

/**
 * The settings of a running server. Immutable except for the keys that `reload()` may change, so read reloadable keys
 * on each use.
 */
export class Config {
  readonly root: string;
  readonly machine: Machine;
  /** Oddities that do not prevent the start, one sentence each. */
  readonly warnings: readonly string[];
  #entries: ReadonlyMap<Key, Entry>;
  #pending = new Map<Key, string>();
  readonly #sources: ConfigSources;

  constructor(sources: ConfigSources) {
    this.root = sources.root;
    this.machine = sources.machine;
    this.#sources = sources;
    const warnings: string[] = [];
    const faults: ConfigError[] = [];
    this.#entries = readEntries(sources, warnings, faults);
    this.warnings = Object.freeze(warnings);
    checkTogether(this, faults);
    if (sources.faults) sources.faults.push(...faults);
    else throwFaults(faults);
  }

  get<K extends Key>(key: K): Settings[K] {
    return this.#entries.get(key)!.value as Settings[K];
  }

  /** Where the value comes from: environment, file or default. */
  source(key: Key): ValueSource {
    return this.#entries.get(key)!.source;
  }

  /** A path setting as a path: relative values are relative to the root. */
  path(key: PathKey): string {
    const value = this.get(key);
    return isAbsolutePath(value) ? value : join(this.root, value);
  }

  parameters(): Parameter[] {
    return [...catalogue].map(([path, setting]) => {
      const { text, source } = this.#entries.get(path)!;
      const value = setting.secret && text !== "" ? "****" : text;
      return { path, envName: envName(path), value, source, sensitive: setting.secret, reloadable: setting.reloadable };
    });
  }

  /** Settings that had changed at the last reload but need a restart. */
  pending(): { path: Key; value: string; pendingValue: string }[] {
    const shown = (key: Key, text: string) => catalogue.get(key)!.secret && text !== "" ? "****" : text;
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
  reload(): { changed: Key[]; ignored: Key[] } {
    const faults: ConfigError[] = [];
    const fresh = readEntries(this.#sources, [], faults);
    throwFaults(faults);
    const entries = new Map(this.#entries);
    const changed: Key[] = [];
    const ignored: Key[] = [];
    for (const [key, entry] of fresh) {
      if (entry.text === entries.get(key)!.text) continue;
      if (!catalogue.get(key)!.reloadable) {
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

export type PathKey =
  | "cairo.root"
  | "cairo.sql.copy.root"
  | "cairo.sql.copy.export.root"
  | "cairo.backup.root"
  | "http.static.public.directory";

function isAbsolutePath(path: string): boolean {
  return /^([/\\]|[A-Za-z]:[/\\])/.test(path);
}

/** `http.keep-alive.max` → `SVC_HTTP_KEEP_ALIVE_MAX`. */
export function envName(key: string): string {
  return `SVC_${key.toUpperCase().replace(/[.-]/g, "_")}`;
}

/** Every spelling → its key. */
const KEY_BY_SPELLING = new Map<string, Key>(
  [...catalogue].flatMap(([key, setting]) => [key, ...setting.aliases].map((spelling) => [spelling, key] as const)),
);
const KEY_BY_ENV_NAME = new Map([...KEY_BY_SPELLING].map(([spelling, key]) => [envName(spelling), key]));

const FOREIGN_ENV_NAMES = new Set([...FOREIGN_KEYS].map(envName));

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

function readEntries(sources: ConfigSources, warnings: string[], faults: ConfigError[]): Map<Key, Entry> {
  const path = join(sources.root, "conf", "server.conf");
  const texts = new Map<Key, { text: string; source: ValueSource; where: string; spelling: string }>();
  const unknown: ConfigError[] = [], foreign: string[] = [];
  for (const { key: spelling, value, line } of parseProperties(readServerConf(sources, path, faults))) {
    const key = KEY_BY_SPELLING.get(spelling);
    if (key === undefined && FOREIGN_KEYS.has(spelling)) {
      foreign.push(spelling);
      continue;
    }
    if (key === undefined) {
      unknown.push(new ConfigError(spelling, unknownKey(`${path}:${line}`, spelling, KEY_BY_SPELLING.keys())));
      continue;
    }
    const before = texts.get(key);
    // The key's current spelling takes precedence over an older one, whatever their order in the file.
    if (before && before.spelling === key && spelling !== key) continue;
    texts.set(key, { text: value, source: "conf", where: `${path}:${line}`, spelling });
  }
  for (const name of Object.keys(sources.env).sort()) {
    if (!name.startsWith("SVC_") || isForeign(name)) continue;
    const key = KEY_BY_ENV_NAME.get(name);
    const fileKey = key === undefined && name.endsWith("_FILE") ? KEY_BY_ENV_NAME.get(name.slice(0, -5)) : undefined;
    if (key !== undefined) {
      texts.set(key, { text: sources.env[name].trim(), source: "env", where: name, spelling: key });
    } else if (fileKey !== undefined) {
      // A value in the environment itself takes precedence over one in a file.
      if (sources.env[name.slice(0, -5)] !== undefined) continue;
      const text = readValueFile(sources, fileKey, name, faults);
      if (text !== undefined) texts.set(fileKey, { text, source: "env", where: name, spelling: fileKey });
    } else if (FOREIGN_ENV_NAMES.has(name)) foreign.push(name);
    else warnings.push(unknownKey("the environment", name, KEY_BY_ENV_NAME.keys()));
  }
  if (foreign.length > 0) warnings.push(`keys of QuestDB that have no effect here: ${foreign.join(", ")}`);
  const entries = new Map<Key, Entry>();
  for (const [key, setting] of catalogue) {
    const given = texts.get(key);
    const value = given && setting.parse(given.text);
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
    const text = typeof setting.default === "function" ? setting.default(sources.machine) : setting.default;
    entries.set(key, { text, value: setting.parse(text), source: "default" });
  }
  if (entries.get("config.validation.strict")!.value === true) faults.unshift(...unknown);
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
function readValueFile(sources: ConfigSources, key: Key, name: string, faults: ConfigError[]): string | undefined {
  const path = sources.env[name];
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
function checkTogether(config: Config, faults: ConfigError[]): void {
  const faulty = new Set(faults.map(({ key }) => key));
  const check = (keys: Key[], holds: boolean, message: () => string) => {
    if (!holds && !keys.some((key) => faulty.has(key))) {
      faults.push(new ConfigError(keys[0], `${keys[0]}: ${message()}`));
    }
  };
  const [pool, memory] = [config.get("cairo.pool.size"), config.get("cairo.memory.size")];
  check(
    ["cairo.pool.size", "cairo.memory.size"],
    pool < memory,
    () => `found ${formatSize(pool)}, expected less than cairo.memory.size (${formatSize(memory)})`,
  );
  check(
    ["line.tcp.auth.db.path", "line.tcp.enabled"],
    config.get("line.tcp.auth.db.path") === "" || !config.get("line.tcp.enabled"),
    () => "line protocol over TCP has no log-in: set line.tcp.enabled=false, or take this key away",
  );
  checkListeners(config, check);
  const [user, password] = [config.get("http.user"), config.get("http.password")];
  check(
    ["http.password", "http.user"],
    user === "" || password !== "",
    () => "found nothing, expected a password, as http.user is set",
  );
  check(
    ["http.user", "http.password"],
    user !== "" || password === "",
    () => "found nothing, expected a name, as http.password is set",
  );
}

const LISTENERS = [
  ["http.net.bind.to", "http.enabled"],
  ["pg.net.bind.to", "pg.enabled"],
  ["line.tcp.net.bind.to", "line.tcp.enabled"],
  ["http.min.bind.to", "http.min.enabled"],
] as const;

/** Finds listeners on the same port. The system's error would only say that the port is in use. */
function checkListeners(config: Config, check: (keys: Key[], holds: boolean, message: () => string) => void): void {
  const isAny = (host: string) => host === "0.0.0.0" || host === "::";
  const on = LISTENERS.filter(([, enabled]) => config.get(enabled));
  on.forEach(([key, enabled], index) => {
    const { hostname, port } = config.get(key);
    for (const [otherKey, otherEnabled] of on.slice(0, index)) {
      const other = config.get(otherKey);
      const clash = port !== 0 && port === other.port &&
        (hostname === other.hostname || isAny(hostname) || isAny(other.hostname));
      check(
        [key, otherKey, enabled, otherEnabled],
        !clash,
        () => `found ${formatAddress({ hostname, port })}, expected another port than that of ${otherKey}`,
      );
    }
  });
}
