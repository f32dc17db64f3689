/** Parses numbers from ASCII, `bytes[from … to)`, as casts and INSERT do: no blanks, no suffix. */
import { decodeAscii } from "./ascii.ts";

const ZERO = 48, NINE = 57, PLUS = 43, MINUS = 45, UNDERSCORE = 95, POINT = 46;

/**
 * An integer in -limit-1 … limit with an optional sign and underscores between digits; NaN if invalid. `limit` is below
 * 2^53.
 */
export function parseInteger(bytes: Uint8Array, from: number, to: number, limit: number): number {
  const negative = bytes[from] === MINUS;
  if (from < to && (negative || bytes[from] === PLUS)) from++;
  if (from >= to) return NaN;
  let value = 0;
  for (let i = from; i < to; i++) {
    const byte = bytes[i]!;
    if (byte === UNDERSCORE && i > from && i < to - 1 && bytes[i - 1] !== UNDERSCORE) continue;
    if (byte < ZERO || byte > NINE) return NaN;
    value = value * 10 + (byte - ZERO);
    if (value > limit + 1) return NaN;
  }
  if (negative) return -value;
  return value > limit ? NaN : value;
}

/** A LONG; undefined if invalid. */
export function parseLong(bytes: Uint8Array, from: number, to: number): bigint | undefined {
  if (to - from <= 15) {
    const value = parseInteger(bytes, from, to, 1e15);
    return value === value ? BigInt(value) : undefined;
  }
  const start = bytes[from] === MINUS || bytes[from] === PLUS ? from + 1 : from;
  let digits = "";
  for (let i = start; i < to; i++) {
    const byte = bytes[i]!;
    if (byte === UNDERSCORE && i > start && i < to - 1 && bytes[i - 1] !== UNDERSCORE) continue;
    if (byte < ZERO || byte > NINE || digits.length === LONG_DIGITS) return undefined;
    if (byte !== ZERO || digits !== "") digits += byte - ZERO;
  }
  const value = BigInt(bytes[from] === MINUS ? `-${digits || "0"}` : digits || "0");
  return value === BigInt.asIntN(64, value) ? value : undefined;
}

/** Maximum digits of a LONG without leading zeros. Longer texts are out of range and are not converted. */
const LONG_DIGITS = 19;

const POWERS = Array.from({ length: 23 }, (_, k) => 10 ** k);

/**
 * A correctly rounded double; undefined if invalid. "NaN" and infinities give NaN, the null. Up to 15 digits with an
 * exact power of ten need only one division (Clinger's fast path).
 */
export function parseDouble(bytes: Uint8Array, from: number, to: number): number | undefined {
  let i = from;
  const negative = bytes[i] === MINUS;
  if (i < to && (negative || bytes[i] === PLUS)) i++;
  let digits = 0, value = 0, decimals = 0;
  let pointSeen = false;
  for (; i < to; i++) {
    const byte = bytes[i]!;
    if (byte >= ZERO && byte <= NINE) {
      value = value * 10 + (byte - ZERO);
      if (value !== 0) digits++;
      if (pointSeen) decimals++;
    } else if (byte === POINT && !pointSeen) pointSeen = true;
    else break;
  }
  const anyDigit = i - from - (negative || bytes[from] === PLUS ? 1 : 0) - (pointSeen ? 1 : 0) > 0;
  if (i === to && anyDigit && digits <= 15 && decimals <= 22) {
    const scaled = decimals === 0 ? value : value / POWERS[decimals]!;
    return negative ? -scaled : scaled;
  }
  if (to - from > 400) return undefined;
  const text = decodeAscii(bytes, from, to);
  if (!/^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/.test(text)) {
    return /^(NaN|[+-]?Infinity)$/.test(text) ? NaN : undefined;
  }
  const parsed = Number(text);
  return Number.isFinite(parsed) ? parsed : NaN;
}

const BLANK = 32;

/** A double as `parseDouble` reads it, between blanks, and with the letter of its type as in literals: 1.5f, 1.5d. */
export function parseFloating(bytes: Uint8Array, from: number, to: number, letter: "d" | "f"): number | undefined {
  while (from < to && bytes[from]! <= BLANK) from++;
  while (from < to && bytes[to - 1]! <= BLANK) to--;
  const hasLetter = to - from > 1 && (bytes[to - 1]! | 32) === letter.charCodeAt(0) && bytes[to - 2]! <= NINE;
  return parseDouble(bytes, from, hasLetter ? to - 1 : to);
}

/** A dotted address as 32 bits, signed; undefined if invalid. */
export function parseIPv4(bytes: Uint8Array, from: number, to: number): number | undefined {
  let value = 0, parts = 0, part = -1, width = 0;
  for (let i = from; i <= to; i++) {
    const byte = i < to ? bytes[i]! : POINT;
    if (byte === POINT) {
      if (part < 0 || part > 255 || width > 3 || ++parts > 4) return undefined;
      value = (value << 8) | part;
      part = -1;
      width = 0;
    } else if (byte >= ZERO && byte <= NINE) {
      part = (part < 0 ? 0 : part) * 10 + byte - ZERO;
      width++;
    } else {
      return undefined;
    }
  }
  return parts === 4 ? value : undefined;
}

/** The 128 bits of a UUID; undefined if invalid. */
export function parseUuid(bytes: Uint8Array, from: number, to: number): bigint | undefined {
  if (to - from !== 36) return undefined;
  const text = decodeAscii(bytes, from, to);
  return /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/.test(text)
    ? BigInt("0x" + text.replaceAll("-", ""))
    : undefined;
}
