/** Text form of each type's values, for literals, parameters and metadata. Never used in loops over rows. */
import { formatArray, inBrackets, parseArray } from "./array-text.ts";
import type { Value } from "./layout.ts";
import { formatDouble, formatFloat, formatIPv4, formatUuid } from "./format/numbers.ts";
import { formatDate, formatNanos, formatTimestampMicros } from "./format/time.ts";
import { encodeAscii } from "./parse/ascii.ts";
import { parseFloating, parseInteger, parseIPv4, parseLong, parseUuid } from "./parse/numbers.ts";
import { instantAs, parseInstant, type TimeUnit } from "./parse/time.ts";
import {
  type DecimalType,
  formatBinary,
  formatDecimal,
  formatGeohash,
  formatLong256,
  parseBinary,
  parseDecimal,
  parseGeohash,
  parseLong256,
} from "./wide.ts";

export interface ReadFailure {
  problem: string;
}

type Known = Exclude<Value, null>;

export interface TextForm {
  /** Returns the result of a cast to STRING, or null for null values, including infinities. */
  format(value: Known): string | null;
  /** Returns the value of a text, or undefined if it is invalid. */
  parse(text: string): Value | undefined | ReadFailure;
}

const scratch = new Uint8Array(64);
const words = new Int32Array(4);

function ascii(end: number): string {
  return String.fromCharCode(...scratch.subarray(0, end));
}

function wordsOf(value: Known): void {
  for (let i = 0; i < 4; i++) words[i] = Number(BigInt.asIntN(32, BigInt(value) >> BigInt(32 * i)));
}

/** Parses bytes 0 … length-1. Returns undefined for texts with other than ASCII letters. */
function fromAscii<T>(text: string, read: (bytes: Uint8Array, length: number) => T): T {
  const bytes = encodeAscii(text);
  return bytes === undefined ? read(new Uint8Array(0), 0) : read(bytes, text.length);
}

export const TEXT: TextForm = { format: String, parse: (text) => text };

export const BOOLEAN: TextForm = {
  format: (value) => value ? "true" : "false",
  parse: (text) => /^(true|t|1)$/i.test(text),
};

export const CHAR: TextForm = { format: String, parse: (text) => text.slice(0, 1) };

/** Integers from -limit - 1 to limit. `least` is the one that represents null. */
export function integer(limit: number, least?: number): TextForm {
  return {
    format: String,
    parse: (text) => {
      const value = fromAscii(text, (bytes, length) => parseInteger(bytes, 0, length, limit));
      return value !== value ? undefined : value === least ? null : value;
    },
  };
}

export function long(least: bigint): TextForm {
  return {
    format: String,
    parse: (text) => {
      const value = fromAscii(text, (bytes, length) => parseLong(bytes, 0, length));
      return value === least ? null : value;
    },
  };
}

function fraction(
  format: (value: number, bytes: Uint8Array, at: number) => number,
  round: (value: number) => number,
  letter: "d" | "f",
): TextForm {
  return {
    format: (value) => Number.isFinite(value) ? ascii(format(Number(value), scratch, 0)) : null,
    parse: (text) => {
      const value = fromAscii(text, (bytes, length) => parseFloating(bytes, 0, length, letter));
      return value === undefined ? undefined : Number.isFinite(round(value)) ? round(value) : null;
    },
  };
}
export const FLOAT = fraction(formatFloat, Math.fround, "f"), DOUBLE = fraction(formatDouble, (value) => value, "d");

function instant(
  unit: TimeUnit,
  format: (low: number, high: number, bytes: Uint8Array, at: number) => number,
): TextForm {
  return {
    format: (value) => {
      wordsOf(value);
      return ascii(format(words[0]!, words[1]!, scratch, 0));
    },
    parse: (text) => fromAscii(text, (bytes, length) => parseInstant(bytes, 0, length) ? instantAs(unit) : undefined),
  };
}
export const DATE = instant("ms", formatDate),
  TIMESTAMP = instant("us", formatTimestampMicros),
  TIMESTAMP_NS = instant("ns", formatNanos);

export const UUID: TextForm = {
  format: (value) => {
    wordsOf(value);
    return ascii(formatUuid(words, 0, scratch, 0));
  },
  parse: (text) => fromAscii(text, (bytes, length) => parseUuid(bytes, 0, length)),
};

export const IPV4: TextForm = {
  format: (value) => ascii(formatIPv4(Number(value), scratch, 0)),
  parse: (text) => {
    if (text === "") return null;
    const value = fromAscii(text, (bytes, length) => parseIPv4(bytes, 0, length));
    return value === undefined ? undefined : value === 0 ? null : value >>> 0;
  },
};

export const LONG256: TextForm = {
  format: (value) => formatLong256(BigInt(value)),
  parse: (text) => text === "" ? null : parseLong256(text),
};

export const BINARY: TextForm = {
  format: String,
  parse: (text) => {
    const bytes = parseBinary(text);
    return bytes === undefined ? { problem: "the text is not a BINARY: found a broken escape" } : formatBinary(bytes);
  },
};

/** ('2024-01-01T00:00:00.000Z', '2024-01-02T00:00:00.000Z'), from microseconds. */
export function intervalText(low: bigint, high: bigint): string {
  const milliseconds = (micros: bigint) => DATE.format((micros - (((micros % 1000n) + 1000n) % 1000n)) / 1000n);
  return `('${milliseconds(low)}', '${milliseconds(high)}')`;
}

export const INTERVAL: TextForm = {
  format: (value) => intervalText(BigInt.asIntN(64, BigInt(value)), BigInt.asIntN(64, BigInt(value) >> 64n)),
  parse: () => undefined,
};

export function decimal(type: DecimalType): TextForm {
  return {
    format: (value) => formatDecimal(BigInt(value), type.scale),
    parse: (text) => {
      const number = text.trim();
      return NO_NUMBER.test(number) ? null : parseDecimal(number, type);
    },
  };
}

const NO_NUMBER = /^(?:NaN|[+-]?Infinity)$/;

export function geohash(bits: number): TextForm {
  return {
    format: (value) => formatGeohash(BigInt(value), bits),
    parse: (text) => text === "" ? null : parseGeohash(text, bits),
  };
}

export function array(dimensions: number): TextForm {
  return {
    format: String,
    parse: (text) => {
      const list = inBrackets(text);
      return parseArray(list, dimensions) === undefined ? undefined : list;
    },
  };
}

/** Conversion between texts and the bytes of a column of layout text. */
export interface ByteForm {
  toBytes(text: string): Uint8Array;
  fromBytes(bytes: Uint8Array): string;
}

const encoder = new TextEncoder(), decoder = new TextDecoder("utf-8", { ignoreBOM: true });
export const UTF8: ByteForm = { toBytes: (text) => encoder.encode(text), fromBytes: (bytes) => decoder.decode(bytes) };
export const BINARY_BYTES: ByteForm = { toBytes: (text) => parseBinary(text)!, fromBytes: formatBinary };
export const arrayBytes = (dimensions: number): ByteForm => ({
  toBytes: (text) => parseArray(text, dimensions)!,
  fromBytes: (bytes) => formatArray(bytes),
});
