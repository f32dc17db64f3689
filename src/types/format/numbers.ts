/**
 * Formats numbers as ASCII into `bytes` at `at` and returns the end. The caller handles nulls and reserves space:
 * 11 bytes for an INT, 20 for a LONG, 26 for a DOUBLE, 36 for a UUID, 15 for an IPv4.
 * 64-bit integers are passed as two words, low (signed or unsigned) and high, to avoid a BigInt for each row.
 */

const ZERO = 48, MINUS = 45, POINT = 46, UPPER_E = 69;

/** "00" … "99" as two bytes each. */
const PAIRS = new Uint8Array(200);
for (let i = 0; i < 100; i++) {
  PAIRS[2 * i] = ZERO + Math.floor(i / 10);
  PAIRS[2 * i + 1] = ZERO + i % 10;
}

const HEX = new Uint8Array(512);
for (let i = 0; i < 256; i++) {
  HEX[2 * i] = "0123456789abcdef".charCodeAt(i >> 4);
  HEX[2 * i + 1] = "0123456789abcdef".charCodeAt(i & 15);
}

/** Two digits. */
export function formatPair(value: number, bytes: Uint8Array, at: number): number {
  bytes[at] = PAIRS[2 * value]!;
  bytes[at + 1] = PAIRS[2 * value + 1]!;
  return at + 2;
}

/** `value` below 2^31 with exactly `width` digits. */
export function formatPadded(value: number, width: number, bytes: Uint8Array, at: number): number {
  let i = at + width;
  for (; i > at + 1; i -= 2) {
    const hundredth = (value / 100) | 0, pair = 2 * (value - hundredth * 100);
    bytes[i - 2] = PAIRS[pair]!;
    bytes[i - 1] = PAIRS[pair + 1]!;
    value = hundredth;
  }
  if (i > at) bytes[at] = ZERO + value;
  return at + width;
}

/** 0 … 2^31 - 1. */
function formatSmall(value: number, bytes: Uint8Array, at: number): number {
  const width = value < 10
    ? 1
    : value < 100
    ? 2
    : value < 1000
    ? 3
    : value < 10000
    ? 4
    : value < 100000
    ? 5
    : value < 1000000
    ? 6
    : value < 10000000
    ? 7
    : value < 100000000
    ? 8
    : value < 1000000000
    ? 9
    : 10;
  let i = at + width;
  while (value >= 100) {
    const hundredth = (value / 100) | 0;
    const pair = 2 * (value - hundredth * 100);
    bytes[--i] = PAIRS[pair + 1]!;
    bytes[--i] = PAIRS[pair]!;
    value = hundredth;
  }
  if (value >= 10) {
    bytes[--i] = PAIRS[2 * value + 1]!;
    bytes[--i] = PAIRS[2 * value]!;
  } else {
    bytes[--i] = ZERO + value;
  }
  return at + width;
}

/** BYTE, SHORT, INT. */
export function formatInt(value: number, bytes: Uint8Array, at: number): number {
  if (value < 0) {
    bytes[at++] = MINUS;
    if (value === -2147483648) return formatUnsigned(2147483648, bytes, at);
    value = -value;
  }
  return formatSmall(value, bytes, at);
}

/** An integer of 0 … 2^53. */
function formatUnsigned(value: number, bytes: Uint8Array, at: number): number {
  if (value < 2147483648) return formatSmall(value, bytes, at);
  const billions = Math.floor(value / 1e9);
  return formatPadded(value - billions * 1e9, 9, bytes, formatUnsigned(billions, bytes, at));
}

/** `low`, `high`: the words of an i64. */
export function formatLong(low: number, high: number, bytes: Uint8Array, at: number): number {
  // Of 31 bits: most of them.
  if (high === 0 && (low | 0) >= 0) return formatSmall(low | 0, bytes, at);
  if (high < 0) {
    bytes[at++] = MINUS;
    low = -low | 0;
    high = (low === 0 ? -high : ~high) >>> 0;
  }
  low >>>= 0;
  if (high < 0x200000) return formatUnsigned(high * 4294967296 + low, bytes, at);
  // The quotient may be off by one, because the value is rounded to 53 bits. The remainder modulo 2^32 shows it.
  let billions = Math.floor((high * 4294967296 + low) / 1e9);
  let rest = (low - Math.imul(billions, 1000000000)) | 0;
  if (rest < 0) {
    rest += 1000000000;
    billions--;
  } else if (rest >= 1000000000) {
    rest -= 1000000000;
    billions++;
  }
  return formatPadded(rest, 9, bytes, formatUnsigned(billions, bytes, at));
}

const POWERS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6];

/**
 * Formats a finite double like Java: shortest digits; plain from 0.001 to below 10,000,000 with a digit after the point
 * ("100.0"), otherwise scientific ("1.0E7", "9.9E-4").
 */
export function formatDouble(value: number, bytes: Uint8Array, at: number): number {
  if (value < 0 || (value === 0 && 1 / value < 0)) {
    bytes[at++] = MINUS;
    value = -value;
  }
  // Few decimals: n / 10^6 is rounded correctly, so if it equals the value, the digits of n (at most 13) without the last zeros are the
  // shortest. If the value has such an n, the product is within 0.01 of it.
  if (value < 1e7 && value >= 1e-3) {
    const scaled = Math.floor(value * 1e6 + 0.5), whole = Math.floor(scaled / 1e6) | 0;
    if (scaled / 1e6 === value) return formatMillionths(whole, (scaled - whole * 1e6) | 0, bytes, at);
    return copyAscii(String(value), bytes, at); // plain and with a point
  }
  if (value === 0) return formatDecimals(0, 0, 0, bytes, at);
  if (value < 1e15 && value >= 1e7) {
    for (let k = 0; k <= 6; k++) {
      const scaled = Math.floor(value * POWERS[k]! + 0.5);
      if (scaled >= 1e15) break;
      if (scaled / POWERS[k]! === value) return formatScientific(String(scaled), k, bytes, at);
    }
  }
  return formatDigits(value.toExponential(), bytes, at);
}

/** `whole` and `millionths`, with one to six decimals. */
function formatMillionths(whole: number, millionths: number, bytes: Uint8Array, at: number): number {
  at = formatSmall(whole, bytes, at);
  bytes[at++] = POINT;
  const first = (millionths / 10_000) | 0, others = millionths - first * 10_000, second = (others / 100) | 0;
  let pair = 2 * first;
  bytes[at++] = PAIRS[pair]!;
  bytes[at++] = PAIRS[pair + 1]!;
  if (others !== 0) {
    pair = 2 * second;
    bytes[at++] = PAIRS[pair]!;
    bytes[at++] = PAIRS[pair + 1]!;
    if (others !== second * 100) {
      pair = 2 * (others - second * 100);
      bytes[at++] = PAIRS[pair]!;
      bytes[at++] = PAIRS[pair + 1]!;
    }
  }
  return PAIRS[pair + 1] === ZERO ? at - 1 : at;
}

/** `scaled` / 10^k in plain notation, with at least one decimal. */
function formatDecimals(value: number, scaled: number, k: number, bytes: Uint8Array, at: number): number {
  const whole = Math.floor(value);
  at = formatSmall(whole, bytes, at);
  bytes[at++] = POINT;
  if (k === 0) {
    bytes[at++] = ZERO;
    return at;
  }
  return formatPadded(scaled - whole * POWERS[k]!, k, bytes, at);
}

/** digits × 10^-k as d.dddEn. */
function formatScientific(digits: string, k: number, bytes: Uint8Array, at: number): number {
  const exponent = digits.length - 1 - k;
  let count = digits.length;
  while (count > 1 && digits.charCodeAt(count - 1) === ZERO) count--;
  bytes[at++] = digits.charCodeAt(0);
  bytes[at++] = POINT;
  if (count === 1) bytes[at++] = ZERO;
  for (let i = 1; i < count; i++) bytes[at++] = digits.charCodeAt(i);
  bytes[at++] = UPPER_E;
  return formatInt(exponent, bytes, at);
}

/** Converts JavaScript's "d.ddde±n" to Java's form, plain or scientific by magnitude. */
function formatDigits(exponential: string, bytes: Uint8Array, at: number): number {
  const e = exponential.indexOf("e");
  const digits = exponential[0] + exponential.slice(2, e);
  const exponent = Number(exponential.slice(e + 1));
  if (exponent < -3 || exponent >= 7) return formatScientific(digits, digits.length - 1 - exponent, bytes, at);
  if (exponent < 0) return copyAscii(`0.${"0".repeat(-1 - exponent)}${digits}`, bytes, at);
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return copyAscii(`${whole}.${digits.slice(exponent + 1) || "0"}`, bytes, at);
}

/**
 * A finite float (given as the double of the same value): like `formatDouble`, with the shortest digits that identify
 * the float. The last digit is even if two are equally near.
 */
export function formatFloat(value: number, bytes: Uint8Array, at: number): number {
  if (value < 0 || (value === 0 && 1 / value < 0)) {
    bytes[at++] = MINUS;
    value = -value;
  }
  if (value === 0) return formatDecimals(0, 0, 0, bytes, at);
  if (value < 1e7 && value >= 1e-3) {
    for (let k = 0; k <= 6; k++) {
      const power = POWERS[k]!;
      // Exact: a float has 24 bits.
      const product = value * power, half = Math.floor(product + 0.5);
      const scaled = half - product === 0.5 && half % 2 === 1 ? half - 1 : half;
      if (Math.fround(scaled / power) === value) return formatDecimals(scaled / power, scaled, k, bytes, at);
    }
  }
  // At least two digits are written, and two may be nearer than one to the smallest numbers: 1.4E-45, not 1.0E-45.
  for (let precision = 2; precision < 9; precision++) {
    const text = evenExponential(value, precision);
    if (Math.fround(Number(text)) === value) return formatDigits(text, bytes, at);
  }
  return formatDigits(value.toExponential(8), bytes, at);
}

/** `toExponential` with two digits or more, which rounds halves up, but halves become even. */
function evenExponential(value: number, digits: number): string {
  const text = value.toExponential(digits - 1), longer = value.toExponential(digits), e = longer.indexOf("e");
  if (longer[e - 1] !== "5" || Number(longer) !== value) return text;
  const cut = longer.slice(0, e - 1) + longer.slice(e);
  return Number(cut[digits]) % 2 === 0 ? cut : text;
}

/** Formats `words[index …]`: the two words of the low half, then those of the high half. */
export function formatUuid(words: Int32Array | Uint32Array, index: number, bytes: Uint8Array, at: number): number {
  for (let byte = 15; byte >= 0; byte--) {
    const pair = 2 * ((words[index + (byte >> 2)]! >>> (8 * (byte & 3))) & 255);
    bytes[at++] = HEX[pair]!;
    bytes[at++] = HEX[pair + 1]!;
    if (byte === 12 || byte === 10 || byte === 8 || byte === 6) bytes[at++] = MINUS;
  }
  return at;
}

/** The lowest `byteCount` bytes of a value of several words, the lowest first, as hexadecimal digits. */
export function formatHex(words: Int32Array, index: number, byteCount: number, bytes: Uint8Array, at: number): number {
  for (let byte = byteCount - 1; byte >= 0; byte--) {
    const pair = 2 * ((words[index + (byte >> 2)]! >>> (8 * (byte & 3))) & 255);
    bytes[at++] = HEX[pair]!;
    bytes[at++] = HEX[pair + 1]!;
  }
  return at;
}

/** An IPv4 address given as 32 bits. */
export function formatIPv4(value: number, bytes: Uint8Array, at: number): number {
  at = formatSmall(value >>> 24, bytes, at);
  bytes[at++] = POINT;
  at = formatSmall((value >>> 16) & 255, bytes, at);
  bytes[at++] = POINT;
  at = formatSmall((value >>> 8) & 255, bytes, at);
  bytes[at++] = POINT;
  return formatSmall(value & 255, bytes, at);
}

export function copyAscii(text: string, bytes: Uint8Array, at: number): number {
  for (let i = 0; i < text.length; i++) bytes[at + i] = text.charCodeAt(i);
  return at + text.length;
}
