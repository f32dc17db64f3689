/**
 * Types with parameters and wide values: LONG256, GEOHASH, DECIMAL, arrays of DOUBLE, BINARY. As `Value` they are
 * bigints (LONG256 unsigned; GEOHASH its bits; DECIMAL scaled by 10^scale) or texts (arrays: `[[1.0,null]]`; BINARY:
 * `\x00ff`).
 */

export interface DecimalType {
  precision: number;
  scale: number;
}

export const DECIMAL_PRECISION_MAX = 76;

/** The tag of DECIMAL(precision, scale). */
export function decimalTag(precision: number, scale: number): string {
  return `DECIMAL(${precision},${scale})`;
}

/** DECIMAL without parameters. */
export const DECIMAL_DEFAULT = decimalTag(18, 3);

/** The parameters of a DECIMAL tag; undefined for other types. */
export function decimalOf(tag: string): DecimalType | undefined {
  const match = /^DECIMAL\((\d+),(\d+)\)$/.exec(tag);
  return match ? { precision: Number(match[1]), scale: Number(match[2]) } : undefined;
}

/** Digits of integers as DECIMALs. */
const WHOLE_DIGITS: Record<string, number> = { BYTE: 3, SHORT: 5, INT: 10, LONG: 19 };

/** The DECIMAL that can represent all values of a DECIMAL or integer type. */
export function asDecimal(tag: string): DecimalType | undefined {
  const digits = WHOLE_DIGITS[tag];
  return digits === undefined ? decimalOf(tag) : { precision: digits, scale: 0 };
}

/**
 * The DECIMAL that can represent all values of a DECIMAL and of another DECIMAL or an integer. Undefined for other
 * types.
 */
export function commonDecimal(a: string, b: string): string | undefined {
  if (decimalOf(a) === undefined && decimalOf(b) === undefined) return undefined;
  const left = asDecimal(a), right = asDecimal(b);
  if (left === undefined || right === undefined) return undefined;
  const scale = Math.max(left.scale, right.scale);
  const whole = Math.max(left.precision - left.scale, right.precision - right.scale);
  return decimalTag(Math.min(DECIMAL_PRECISION_MAX, whole + scale), scale);
}

/** The tag of a GEOHASH with this many bits, 1 to 60: in characters if divisible by five. */
export function geohashTag(bits: number): string {
  return bits % 5 === 0 ? `GEOHASH(${bits / 5}c)` : `GEOHASH(${bits}b)`;
}

export const GEOHASH_BITS_MAX = 60;

/** Bits of a GEOHASH tag; undefined for other types. */
export function geohashBits(tag: string): number | undefined {
  const match = /^GEOHASH\((\d+)([cb])\)$/.exec(tag);
  return match ? Number(match[1]) * (match[2] === "c" ? 5 : 1) : undefined;
}

export const ARRAY_DIMENSIONS_MAX = 32;

/** Number of dimensions of an array's tag: 2 for DOUBLE[][]; 0 for other types. */
export function arrayDimensions(tag: string): number {
  if (!tag.startsWith("DOUBLE[")) return 0;
  let at = "DOUBLE".length;
  while (tag.startsWith("[]", at)) at += 2;
  return at === tag.length ? (at - "DOUBLE".length) / 2 : 0;
}

/** Parses `0x` and up to 64 hexadecimal digits. Undefined for other texts. */
export function parseLong256(text: string): bigint | undefined {
  return /^0x[0-9a-f]{1,64}$/i.test(text) ? BigInt(text) : undefined;
}

/** Lower-case hexadecimal, in whole bytes, without leading zero bytes. */
export function formatLong256(value: bigint): string {
  const digits = value.toString(16);
  return `0x${digits.length % 2 ? "0" : ""}${digits}`;
}

/** Source: Niemeyer's geohash, base 32 without a, i, l and o. */
const BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz";

/** The first `bits` bits of a geohash in characters. Undefined if these are too few, or others. */
export function parseGeohash(text: string, bits: number): bigint | undefined {
  const characters = Math.ceil(bits / 5);
  if (text.length < characters) return undefined;
  let value = 0n;
  for (let i = 0; i < characters; i++) {
    const digit = BASE32.indexOf(text[i]!.toLowerCase());
    if (digit < 0) return undefined;
    value = (value << 5n) | BigInt(digit);
  }
  return value >> BigInt(characters * 5 - bits);
}

/** In characters if `bits` is divisible by five, otherwise in bits. */
export function formatGeohash(value: bigint, bits: number): string {
  if (bits % 5 !== 0) return value.toString(2).padStart(bits, "0");
  let text = "";
  for (let shift = bits - 5; shift >= 0; shift -= 5) text += BASE32[Number((value >> BigInt(shift)) & 31n)];
  return text;
}

/** Parses a decimal into its scaled value. Undefined if the text is invalid or has too many digits for the type. */
export function parseDecimal(text: string, { precision, scale }: DecimalType): bigint | undefined {
  const digits = decimalDigits(text);
  // Checked first, because converting a number of millions of digits takes minutes.
  if (digits === undefined || digits.fraction.length > scale || digits.whole.length > precision - scale) {
    return undefined;
  }
  const value = BigInt(digits.whole + digits.fraction.padEnd(scale, "0") || "0");
  return digits.isNegative ? -value : value;
}

/** The smallest DECIMAL that can represent a number. Undefined if there is none, or the text is invalid. */
export function decimalOfText(text: string): DecimalType | undefined {
  const digits = decimalDigits(text);
  if (digits === undefined) return undefined;
  const { length: scale } = digits.fraction, precision = Math.max(1, digits.whole.length + scale);
  return precision > DECIMAL_PRECISION_MAX ? undefined : { precision, scale };
}

/** The digits of a number before and after the point, without zeros at both ends. */
function decimalDigits(text: string): { isNegative: boolean; whole: string; fraction: string } | undefined {
  const match = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d{1,4}))?m?$/i.exec(text.replaceAll("_", ""));
  if (!match || (match[2] === "" && match[3] === "")) return undefined;
  const { whole, fraction } = movePoint(match[2]!, match[3]!, Number(match[4] ?? 0));
  let end = fraction.length;
  while (end > 0 && fraction[end - 1] === "0") end--;
  return { isNegative: match[1] === "-", whole: whole.replace(/^0+/, ""), fraction: fraction.slice(0, end) };
}

/** The digits before and after the point of a number with an exponent. */
export function movePoint(whole: string, fraction: string, exponent: number): { whole: string; fraction: string } {
  if (exponent === 0) return { whole, fraction };
  const digits = whole + fraction, point = whole.length + exponent;
  return point < 0
    ? { whole: "", fraction: "0".repeat(-point) + digits }
    : { whole: digits.slice(0, point).padEnd(point, "0"), fraction: digits.slice(point) };
}

/** Prints all digits of the scale. */
export function formatDecimal(value: bigint, scale: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, "0");
  const sign = value < 0n ? "-" : "";
  return scale === 0 ? sign + digits : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

const utf8 = new TextEncoder();

/** Formats bytes as PostgreSQL's bytea: `\x00ff`. */
export function formatBinary(bytes: Uint8Array): string {
  return `\\x${bytes.toHex()}`;
}

/** Parses both text formats of bytea: hexadecimal, `\x00ff`, and escaped, `a\000\\`. Undefined for other texts. */
export function parseBinary(text: string): Uint8Array | undefined {
  if (!text.startsWith("\\x")) return parseEscaped(text);
  const digits = text.slice(2).replaceAll(/\s/g, "");
  if (digits.length % 2 === 1 || /[^0-9a-fA-F]/.test(digits)) return undefined;
  return Uint8Array.fromHex(digits);
}

function parseEscaped(text: string): Uint8Array | undefined {
  if (!text.includes("\\")) return utf8.encode(text);
  const bytes: number[] = [];
  for (const [piece, octal] of text.matchAll(/\\([0-3][0-7]{2}|\\)|[^\\]+|\\/g)) {
    if (piece === "\\") return undefined;
    if (octal === undefined) { for (const byte of utf8.encode(piece)) bytes.push(byte); }
    else bytes.push(octal === "\\" ? 0x5c : parseInt(octal, 8));
  }
  return Uint8Array.from(bytes);
}
