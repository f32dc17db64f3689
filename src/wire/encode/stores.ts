/**
 * Text forms that are written with stores of several bytes, for generated loops over rows. They may write three bytes behind the end that they
 * return. Rare values take the forms that are written byte by byte.
 */
import { civilOfDay, formatDate, formatNanos, formatTimestampMicros } from "../../types/format/mod.ts";
import { pgTimestamp } from "./types.ts";

const ZERO = 0x30, BLANK = 0x20, MINUS = 0x2d, POINT = 0x2e, COLON = 0x3a, UPPER_T = 0x54, UPPER_Z = 0x5a;
const DAY_SECONDS = 86_400, TWO_32 = 4294967296;

/** The characters of 00 … 99 and 000 … 999, the first one in the lowest byte. */
const PAIRS = Int32Array.from({ length: 100 }, (_, value) => charactersOf(value, 2));
const TRIPLES = Int32Array.from({ length: 1000 }, (_, value) => charactersOf(value, 3));

function charactersOf(value: number, width: number): number {
  let word = 0;
  for (let k = 0; k < width; k++, value = Math.floor(value / 10)) word = word << 8 | ZERO + value % 10;
  return word;
}

/**
 * The last day that was written, of instants in one unit: neighbouring rows are mostly of the same day. Numbers are in typed arrays, as in
 * properties they would be objects of their own.
 */
class KeptDay {
  /** Its first instant: high word, low word. */
  private readonly start = new Float64Array([NaN, NaN]);
  /** Its text: `yyyy`, `-MM-` and `dd`. */
  private readonly text = new Int32Array(3);

  constructor(private readonly unitsASecond: number) {}

  /**
   * Writes the 20 bytes of `yyyy-MM-ddTHH:mm:ss.` and returns what is left of the second. Returns -1 if the year does not have four digits.
   * `between`: the character in the place of the T.
   */
  put(low: number, high: number, between: number, view: DataView, at: number): number {
    const { start, text, unitsASecond } = this;
    // Exact within a day.
    let ofDay = (high - start[0]!) * TWO_32 + ((low >>> 0) - start[1]!);
    if (!(ofDay >= 0 && ofDay < DAY_SECONDS * unitsASecond)) {
      if (!this.keep(BigInt(high) << 32n | BigInt(low >>> 0))) return -1;
      ofDay = (high - start[0]!) * TWO_32 + ((low >>> 0) - start[1]!);
    }
    const second = (ofDay / unitsASecond) | 0;
    const hour = (second / 3600) | 0, ofHour = second - hour * 3600, minute = (ofHour / 60) | 0;
    const hours = PAIRS[hour]!;
    view.setInt32(at, text[0]!, true);
    view.setInt32(at + 4, text[1]!, true);
    view.setInt32(at + 8, text[2]! | between << 16 | hours << 24, true);
    view.setInt32(at + 12, hours >> 8 | COLON << 8 | PAIRS[minute]! << 16, true);
    view.setInt32(at + 16, COLON | PAIRS[ofHour - minute * 60]! << 8 | POINT << 24, true);
    return (ofDay - second * unitsASecond) | 0;
  }

  private keep(instant: bigint): boolean {
    const unitsADay = BigInt(DAY_SECONDS * this.unitsASecond), remainder = instant % unitsADay;
    const start = instant - remainder - (remainder < 0n ? unitsADay : 0n);
    const { year, month, day } = civilOfDay(Number(start / unitsADay));
    if (year < 0 || year > 9999) return false;
    this.start[0] = Number(start >> 32n);
    this.start[1] = Number(BigInt.asUintN(32, start));
    this.text[0] = PAIRS[Math.floor(year / 100)]! | PAIRS[year % 100]! << 16;
    this.text[1] = MINUS | PAIRS[month]! << 8 | MINUS << 24;
    this.text[2] = PAIRS[day]!;
    return true;
  }
}

const DATE_DAY = new KeptDay(1_000), MICROS_DAY = new KeptDay(1_000_000), NANOS_DAY = new KeptDay(1_000_000_000);

/** DATE: 2024-03-01T10:20:30.123Z */
export function putDate(low: number, high: number, bytes: Uint8Array, view: DataView, at: number): number {
  const rest = DATE_DAY.put(low, high, UPPER_T, view, at);
  if (rest < 0) return formatDate(low, high, bytes, at);
  view.setInt32(at + 20, TRIPLES[rest]! | UPPER_Z << 24, true);
  return at + 24;
}

/** TIMESTAMP: 2024-03-01T10:20:30.123456Z */
export function putMicros(low: number, high: number, bytes: Uint8Array, view: DataView, at: number): number {
  const rest = MICROS_DAY.put(low, high, UPPER_T, view, at);
  if (rest < 0) return formatTimestampMicros(low, high, bytes, at);
  putMillionths(rest, UPPER_Z, view, at + 20);
  return at + 27;
}

/** In PostgreSQL's form: 2024-03-01 10:20:30.123456 */
export function putPgMicros(low: number, high: number, bytes: Uint8Array, view: DataView, at: number): number {
  const rest = MICROS_DAY.put(low, high, BLANK, view, at);
  if (rest < 0) return pgTimestamp(low, high, bytes, at);
  putMillionths(rest, 0, view, at + 20);
  return at + 26;
}

/** TIMESTAMP_NS: 2024-03-01T10:20:30.123456789Z */
export function putNanos(low: number, high: number, bytes: Uint8Array, view: DataView, at: number): number {
  const rest = NANOS_DAY.put(low, high, UPPER_T, view, at);
  if (rest < 0) return formatNanos(low, high, bytes, at);
  const micros = (rest / 1000) | 0;
  putMillionths(micros, 0, view, at + 20);
  view.setInt32(at + 26, TRIPLES[rest - micros * 1000]! | UPPER_Z << 24, true);
  return at + 30;
}

/** Six digits and a character. */
function putMillionths(value: number, after: number, view: DataView, at: number): void {
  const thousandths = (value / 1000) | 0;
  view.setInt32(at, TRIPLES[thousandths]!, true);
  view.setInt32(at + 3, TRIPLES[value - thousandths * 1000]! | after << 24, true);
}

/** Longer texts are copied otherwise. */
export const PUT_TEXT_MAX = 64;

/** Copies a text of at most `PUT_TEXT_MAX` bytes. */
export function putText(from: DataView, address: number, length: number, to: DataView, at: number): number {
  if (length >= 4) {
    const last = length - 4;
    for (let k = 0; k < last; k += 4) to.setInt32(at + k, from.getInt32(address + k, true), true);
    to.setInt32(at + last, from.getInt32(address + last, true), true);
  } else for (let k = 0; k < length; k++) to.setUint8(at + k, from.getUint8(address + k));
  return at + length;
}

/** The same for JSON and CSV. Returns -1 if a byte has to be escaped. */
export function putUnescaped(from: DataView, address: number, length: number, to: DataView, at: number): number {
  if (length < 4) {
    for (let k = 0; k < length; k++) {
      const byte = from.getUint8(address + k);
      if (isEscaped(byte | LETTERS)) return -1;
      to.setUint8(at + k, byte);
    }
    return at + length;
  }
  const last = length - 4;
  for (let k = 0; k < last; k += 4) {
    const word = from.getInt32(address + k, true);
    if (isEscaped(word)) return -1;
    to.setInt32(at + k, word, true);
  }
  const word = from.getInt32(address + last, true);
  if (isEscaped(word)) return -1;
  to.setInt32(at + last, word, true);
  return at + length;
}

/** Three bytes that are not escaped, above another one. */
const LETTERS = 0x61616100;
const ONES = 0x01010101, TOPS = 0x80808080 | 0;

/** True if one of four bytes is a control character, a quotation mark or a backslash. */
function isEscaped(word: number): boolean {
  const quote = word ^ 0x22222222, backslash = word ^ 0x5c5c5c5c;
  return ((word - 0x20202020 & ~word | quote - ONES & ~quote | backslash - ONES & ~backslash) & TOPS) !== 0;
}
