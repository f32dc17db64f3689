import { join } from "node:path";
import { type Address, formatSize, parseAddress, parseDuration, parseSize } from "./units.ts";

/** The machine that defaults depend on. */
export interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
  /** The host name for other machines, in lower case. */
  readonly hostName: string;
}

/** The value of a setting that is declared before the one whose default depends on it. */
export type Given = <T>(setting: Setting<T>) => T;

/** A setting: its valid values and its documentation. It is declared in the file that reads it. */
export interface Setting<T> {
  /** The key in server.conf. */
  readonly key: string;
  /** A description for messages and the manual: "a size (bytes, k, m, g)". */
  readonly type: string;
  /** As written in server.conf. "" is an ordinary value, whose meaning the sentence explains. */
  readonly default: string | ((machine: Machine, given: Given) => string);
  /** Description of a default that depends on the machine. */
  readonly defaultSaid?: string;
  readonly sentence: string;
  /** Older or foreign spellings of the key, which are accepted silently. */
  readonly aliases: readonly string[];
  /** True if the value is never printed. */
  readonly secret: boolean;
  /** True if a reload applies the setting. */
  readonly reloadable: boolean;
  /** True if the setting is accepted without effect, because configurations of QuestDB contain it. */
  readonly isIgnored: boolean;
  /** Returns undefined if the text is invalid. `root`: the root directory, to which paths are relative. */
  parse(text: string, root: string): T | undefined;
}

/** Settings with the names under which code reads them: `config.of(group)` has the values under the same names. */
export interface Group {
  readonly [name: string]: Setting<unknown> | Group;
}

export interface SettingReader {
  get<T>(setting: Setting<T>): T;
}

/** The values in the result of `config.of(group)`. */
export type Values<G> = {
  readonly [N in keyof G]: G[N] extends Setting<infer T> ? T : G[N] extends Group ? Values<G[N]> : never;
};

/** The defaults of a group whose settings do not depend on the machine. */
export function defaultsOf<G extends Group>(group: G): Values<G> {
  const values = Object.entries(group).map(([name, entry]) => {
    if (!isSetting(entry)) return [name, defaultsOf(entry)];
    if (typeof entry.default !== "string") throw new TypeError(`the default of ${entry.key} depends on the machine`);
    return [name, entry.parse(entry.default, "")];
  });
  return Object.fromEntries(values);
}

export function isSetting(entry: object): entry is Setting<unknown> {
  return "key" in entry && typeof entry.key === "string";
}

export interface Options {
  isIgnored?: boolean;
  aliases?: string[];
  secret?: boolean;
  reloadable?: boolean;
  defaultSaid?: string;
}

type Default = Setting<unknown>["default"];

function setting<T>(
  key: string,
  type: string,
  byDefault: Default,
  sentence: string,
  options: Options | undefined,
  parse: Setting<T>["parse"],
): Setting<T> {
  const { aliases = [], secret = false, reloadable = false, isIgnored = false, defaultSaid } = options ?? {};
  return Object.freeze({
    key,
    type,
    default: byDefault,
    sentence,
    aliases,
    secret,
    reloadable,
    isIgnored,
    defaultSaid,
    parse,
  });
}

export const bool = (key: string, byDefault: boolean, sentence: string, options?: Options): Setting<boolean> =>
  setting(key, "true or false", String(byDefault), sentence, options, (text) => {
    const lower = text.toLowerCase();
    return lower === "true" ? true : lower === "false" ? false : undefined;
  });

/** A boolean, or null if empty, in which case another setting applies. */
export const optionalBool = (key: string, sentence: string, options?: Options): Setting<boolean | null> =>
  setting<boolean | null>(key, "empty, true or false", "", sentence, options, (text) => {
    const lower = text.toLowerCase();
    return lower === "" ? null : lower === "true" ? true : lower === "false" ? false : undefined;
  });

/** A whole number from `min` to `max`. */
export const int = (
  key: string,
  byDefault: number | ((machine: Machine) => string),
  sentence: string,
  options?: Options & { min?: number; max?: number },
): Setting<number> => {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = options ?? {};
  const type = max === Number.MAX_SAFE_INTEGER
    ? (min === 0 ? "a whole number" : `a whole number from ${min}`)
    : `a whole number from ${min} to ${max}`;
  return setting(
    key,
    type,
    typeof byDefault === "number" ? String(byDefault) : byDefault,
    sentence,
    options,
    (text) => wholeNumber(text, min, max),
  );
};

/** A whole number, or null if empty, in which case the program decides. */
export const optionalInt = (
  key: string,
  sentence: string,
  options?: Options & { min?: number; max?: number },
): Setting<number | null> => {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = options ?? {};
  const type = max === Number.MAX_SAFE_INTEGER
    ? `empty or a whole number from ${min}`
    : `empty or a whole number from ${min} to ${max}`;
  return setting<number | null>(
    key,
    type,
    "",
    sentence,
    options,
    (text) => text === "" ? null : wholeNumber(text, min, max),
  );
};

function wholeNumber(text: string, min: number, max: number): number | undefined {
  if (!/^[+-]?\d(?:_?\d)*$/.test(text)) return undefined;
  const value = Number(text.replaceAll("_", ""));
  // 2^63-1 means "no limit" in configurations; it becomes the largest safe integer.
  return value < min || value > Math.max(max, 0) && max !== Number.MAX_SAFE_INTEGER
    ? undefined
    : Math.min(value, Number.MAX_SAFE_INTEGER);
}

const MIB = 2 ** 20;

/** The default of a size: a part of the machine's memory, in whole MiB, within bounds in MiB. */
export const memoryShare = (divisor: number, { minMib = 64, maxMib = Infinity } = {}) => ({ memoryBytes }: Machine) =>
  formatSize(MIB * Math.max(minMib, Math.min(maxMib, Math.floor(memoryBytes / divisor / MIB))));

/** A size in bytes. */
export const size = (
  key: string,
  byDefault: Default,
  sentence: string,
  options?: Options & { min?: number; max?: number },
): Setting<number> => {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = options ?? {};
  const range = (min > 0 ? ` from ${formatSize(min)}` : "") +
    (max < Number.MAX_SAFE_INTEGER ? ` up to ${formatSize(max)}` : "");
  return setting(key, `a size${range} (bytes, or with k, m, g)`, byDefault, sentence, options, (text) => {
    const bytes = parseSize(text);
    return bytes === undefined || bytes < min || bytes > max ? undefined : bytes;
  });
};

/** A duration in milliseconds. A number without a unit is in milliseconds too. */
export const ms = (key: string, byDefault: string, sentence: string, options?: Options): Setting<number> =>
  setting(
    key,
    "a duration (milliseconds, or with us, ms, s, m, h, d)",
    byDefault,
    sentence,
    options,
    (text) => parseDuration(text, "ms"),
  );
/** A duration in milliseconds. A number without a unit is in seconds. */
export const seconds = (key: string, byDefault: string, sentence: string, options?: Options): Setting<number> =>
  setting(
    key,
    "a duration (seconds, or with us, ms, s, m, h, d)",
    byDefault,
    sentence,
    options,
    (text) => parseDuration(/^\d+$/.test(text) ? `${text}s` : text, "ms"),
  );

export const address = (key: string, byDefault: string, sentence: string, options?: Options): Setting<Address> =>
  setting(key, "an address (host:port; host 0 binds all adapters)", byDefault, sentence, options, parseAddress);

/** A file or directory as an absolute path. It may be written relative to the root. Empty stays empty. */
export const path = (key: string, byDefault: string, sentence: string, options?: Options): Setting<string> =>
  setting(
    key,
    "text",
    byDefault,
    sentence,
    options,
    (value, root) => value === "" || isAbsolutePath(value) ? value : join(root, value),
  );

function isAbsolutePath(path: string): boolean {
  return /^([/\\]|[A-Za-z]:[/\\])/.test(path);
}

export const text = (key: string, byDefault: string, sentence: string, options?: Options): Setting<string> =>
  setting(key, "text", byDefault, sentence, options, (value) => value);

/**
 * A key of QuestDB's server.conf that is accepted without effect. `why` continues the sentence after "without effect:".
 */
export const ignored = (key: string, byDefault: string, why: string, options?: Options): Setting<string> =>
  setting(
    key,
    "text",
    byDefault,
    `Accepted for compatibility, without effect: ${why}.`,
    { ...options, isIgnored: true },
    (value) => value,
  );

/** Comma-separated parts, trimmed, without empty ones. */
export const list = (
  key: string,
  byDefault: Default,
  sentence: string,
  options?: Options,
): Setting<readonly string[]> =>
  setting(
    key,
    "a list, separated by commas",
    byDefault,
    sentence,
    options,
    (value) => Object.freeze(value.split(",").map((part) => part.trim()).filter((part) => part !== "")),
  );

/** Origins in the form of browsers' Origin header. */
export const origins = (key: string, sentence: string, options?: Options): Setting<readonly string[]> =>
  setting(key, "origins (https://app.example.org), separated by commas", "", sentence, options, (value) => {
    const parts = value.split(",").map((part) => part.trim()).filter((part) => part !== "");
    const isOrigin = (part: string) => URL.canParse(part) && new URL(part).origin === part;
    return parts.every(isOrigin) ? Object.freeze(parts) : undefined;
  });

export interface Redirect {
  readonly from: string;
  readonly to: string;
}

/** `/from -> /to`. Empty means none. */
export const redirect = (
  key: string,
  byDefault: string,
  sentence: string,
  options?: Options,
): Setting<Redirect | null> =>
  setting<Redirect | null>(key, "a redirect (/from -> /to) or empty", byDefault, sentence, options, (value) => {
    if (value.trim() === "") return null;
    const [from, to, ...more] = value.split("->").map((path) => path.trim());
    // A path in a Location header must not contain control characters and blanks.
    const isPath = (path: string | undefined): path is string => path !== undefined && /^\/[\x21-\x7e]*$/.test(path);
    return isPath(from) && isPath(to) && more.length === 0 ? Object.freeze({ from, to }) : undefined;
  });

/** A DECIMAL with precision and scale. */
export const decimalType = (key: string, byDefault: string, sentence: string, options?: Options): Setting<string> =>
  setting(key, "a DECIMAL such as DECIMAL(18,3), of up to 76 digits", byDefault, sentence, options, (text) => {
    const match = /^DECIMAL\((\d{1,2}), *(\d{1,2})\)$/i.exec(text);
    const precision = Number(match?.[1]), scale = Number(match?.[2]);
    if (match === null || precision < 1 || precision > 76 || scale > precision) return undefined;
    return `DECIMAL(${precision},${scale})`;
  });

/** One of several words, ignoring case. */
export const oneOf = <const W extends string>(
  key: string,
  words: readonly W[],
  byDefault: W,
  sentence: string,
  options?: Options,
): Setting<W> =>
  setting(
    key,
    `one of ${words.join(", ")}`,
    byDefault,
    sentence,
    options,
    (value) => words.find((word) => word.toLowerCase() === value.toLowerCase()),
  );
