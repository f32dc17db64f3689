import {
  type Address,
  formatAddress,
  formatSize,
  parseAddress,
  parseDuration,
  parseSize,
  type TimeUnit,
} from "./units.ts";

/** The machine that defaults depend on. */
export interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
  /** As other machines call it, in lower case. */
  readonly hostName: string;
}

/** A setting: what its text may be, and all that is said about it anywhere. */
export interface Setting<T> {
  /** In words, for messages and the manual: "a size (bytes, k, m, g)". */
  readonly type: string;
  /** As it would be written. "" is a value like any other: it means what the sentence says. */
  readonly default: string | ((machine: Machine) => string);
  /** What the default is called where it depends on the machine. */
  readonly defaultSaid?: string;
  readonly sentence: string;
  /** Older or foreign spellings of the key; taken silently. */
  readonly aliases: readonly string[];
  /** Never printed. */
  readonly secret: boolean;
  /** Takes effect without a restart. */
  readonly reloadable: boolean;
  /** Taken, because files of other servers have it, and read by nobody. */
  readonly isTaken: boolean;
  /** Undefined: not a value of this type. */
  parse(text: string): T | undefined;
}

export interface Options {
  isTaken?: boolean;
  aliases?: string[];
  secret?: boolean;
  reloadable?: boolean;
  defaultSaid?: string;
}

type Default = Setting<unknown>["default"];

function setting<T>(
  type: string,
  byDefault: Default,
  sentence: string,
  options: Options | undefined,
  parse: (text: string) => T | undefined,
): Setting<T> {
  const { aliases = [], secret = false, reloadable = false, isTaken = false, defaultSaid } = options ?? {};
  return Object.freeze({
    type,
    default: byDefault,
    sentence,
    aliases,
    secret,
    reloadable,
    isTaken,
    defaultSaid,
    parse,
  });
}

export const bool = (byDefault: boolean, sentence: string, options?: Options): Setting<boolean> =>
  setting("true or false", String(byDefault), sentence, options, (text) => {
    const lower = text.toLowerCase();
    return lower === "true" ? true : lower === "false" ? false : undefined;
  });

/** Empty (null) means: as another setting says. */
export const optionalBool = (sentence: string, options?: Options): Setting<boolean | null> =>
  setting<boolean | null>("empty, true or false", "", sentence, options, (text) => {
    const lower = text.toLowerCase();
    return lower === "" ? null : lower === "true" ? true : lower === "false" ? false : undefined;
  });

/** A whole number from `min` to `max`. */
export const int = (
  byDefault: number | ((machine: Machine) => string),
  sentence: string,
  options?: Options & { min?: number; max?: number },
): Setting<number> => {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = options ?? {};
  const type = max === Number.MAX_SAFE_INTEGER
    ? (min === 0 ? "a whole number" : `a whole number from ${min}`)
    : `a whole number from ${min} to ${max}`;
  return setting(
    type,
    typeof byDefault === "number" ? String(byDefault) : byDefault,
    sentence,
    options,
    (text) => wholeNumber(text, min, max),
  );
};

/** Empty (undefined) means: decided by the program. */
export const optionalInt = (
  sentence: string,
  options?: Options & { min?: number; max?: number },
): Setting<number | null> => {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = options ?? {};
  const type = max === Number.MAX_SAFE_INTEGER
    ? `empty or a whole number from ${min}`
    : `empty or a whole number from ${min} to ${max}`;
  return setting<number | null>(
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
  // 2^63-1 is written for "no limit": it is kept as the largest whole number a double holds.
  return value < min || value > Math.max(max, 0) && max !== Number.MAX_SAFE_INTEGER
    ? undefined
    : Math.min(value, Number.MAX_SAFE_INTEGER);
}

/** Bytes. */
export const size = (
  byDefault: Default,
  sentence: string,
  options?: Options & { min?: number; max?: number },
): Setting<number> => {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = options ?? {};
  const range = (min > 0 ? ` from ${formatSize(min)}` : "") +
    (max < Number.MAX_SAFE_INTEGER ? ` up to ${formatSize(max)}` : "");
  return setting(`a size${range} (bytes, or with k, m, g)`, byDefault, sentence, options, (text) => {
    const bytes = parseSize(text);
    return bytes === undefined || bytes < min || bytes > max ? undefined : bytes;
  });
};

const TIME_WORDS: Record<TimeUnit, string> = { us: "microseconds", ms: "milliseconds", s: "seconds" };

/** Its value is in `unit`, and so is a bare number. */
const duration = (unit: TimeUnit) => (byDefault: string, sentence: string, options?: Options): Setting<number> =>
  setting(
    `a duration (${TIME_WORDS[unit]}, or with us, ms, s, m, h, d)`,
    byDefault,
    sentence,
    options,
    (text) => parseDuration(text, unit),
  );
export const ms = duration("ms");
export const us = duration("us");
export const seconds = duration("s");

export const address = (byDefault: string, sentence: string, options?: Options): Setting<Address> =>
  setting("an address (host:port; host 0 binds all adapters)", byDefault, sentence, options, parseAddress);

export const text = (byDefault: string, sentence: string, options?: Options): Setting<string> =>
  setting("text", byDefault, sentence, options, (value) => value);

/**
 * A key of QuestDB's server.conf that means nothing here: it is no unknown key, and whatever it is set to has no effect.
 * `why` goes on after "without effect:".
 */
export const taken = (byDefault: string, why: string, options?: Options): Setting<string> =>
  setting(
    "text",
    byDefault,
    `Taken for compatibility, without effect: ${why}.`,
    { ...options, isTaken: true },
    (value) => value,
  );

/** Parts between commas, trimmed; empty ones are left out. */
export const list = (byDefault: Default, sentence: string, options?: Options): Setting<readonly string[]> =>
  setting(
    "a list, divided by commas",
    byDefault,
    sentence,
    options,
    (value) => Object.freeze(value.split(",").map((part) => part.trim()).filter((part) => part !== "")),
  );

/** As in the Origin header of browsers. */
export const origins = (sentence: string, options?: Options): Setting<readonly string[]> =>
  setting("origins (https://app.example.org), divided by commas", "", sentence, options, (value) => {
    const parts = value.split(",").map((part) => part.trim()).filter((part) => part !== "");
    const isOrigin = (part: string) => URL.canParse(part) && new URL(part).origin === part;
    return parts.every(isOrigin) ? Object.freeze(parts) : undefined;
  });

export interface Redirect {
  readonly from: string;
  readonly to: string;
}

/** `/from -> /to`; empty: none. */
export const redirect = (byDefault: string, sentence: string, options?: Options): Setting<Redirect | null> =>
  setting<Redirect | null>("a redirect (/from -> /to) or empty", byDefault, sentence, options, (value) => {
    if (value.trim() === "") return null;
    const [from, to, ...more] = value.split("->").map((path) => path.trim());
    // What stands in a Location header has no controls and no blanks.
    const isPath = (path: string | undefined) => path !== undefined && /^\/[\x21-\x7e]*$/.test(path);
    return isPath(from) && isPath(to) && more.length === 0 ? Object.freeze({ from, to }) : undefined;
  });

/** One of the words, without case. */
/** A DECIMAL with precision and scale. */
export const decimalType = (byDefault: string, sentence: string, options?: Options): Setting<string> =>
  setting("a DECIMAL such as DECIMAL(18,3), of up to 76 digits", byDefault, sentence, options, (text) => {
    const match = /^DECIMAL\((\d{1,2}), *(\d{1,2})\)$/i.exec(text);
    const precision = Number(match?.[1]), scale = Number(match?.[2]);
    if (match === null || precision < 1 || precision > 76 || scale > precision) return undefined;
    return `DECIMAL(${precision},${scale})`;
  });

export const oneOf = <const W extends string>(
  words: readonly W[],
  byDefault: W,
  sentence: string,
  options?: Options,
): Setting<W> =>
  setting(
    `one of ${words.join(", ")}`,
    byDefault,
    sentence,
    options,
    (value) => words.find((word) => word.toLowerCase() === value.toLowerCase()),
  );

/** What was written, for messages: an address as it is listened on. */
export { formatAddress };
