/**
 * Values of a column in another type, for ALTER COLUMN TYPE. What does not fit becomes null, or 0 or false where there is none: integers drop
 * high bits, fractions are cut, numbers that are out of range and texts that are none of the type are null. Integers and DECIMALs become only
 * DECIMALs that represent all their values. Casts differ in details: a fraction beyond the range of BYTE and SHORT is 0 here, as in QuestDB,
 * and only "true" is true.
 */
import { assert } from "../assert.ts";
import { TIME_NANOS } from "./calendar.ts";
import {
  formatDate,
  formatDouble,
  formatFloat,
  formatInt,
  formatIPv4,
  formatLong,
  formatNanos,
  formatTimestampMicros,
  formatUuid,
} from "./format/mod.ts";
import { ARRAY_CONSTRUCTOR, LONG_MAX, NULL_I32, NULL_I64 } from "./layout.ts";
import { instantAs, parseFloating, parseInstant, parseInteger, parseIPv4, parseLong, parseUuid } from "./parse/mod.ts";
import { typeOf } from "./registry.ts";
import { asDecimal, decimalOf } from "./wide.ts";

/** Values of a column. Texts are pairs of an offset into `bytes` and a length. */
export interface ColumnValues {
  /** In the layout of the type. */
  readonly values: Uint8Array;
  readonly rowCount: number;
  /** Of texts. */
  readonly bytes?: Uint8Array;
  /** Of symbols: the pairs of their texts, by their codes. */
  readonly symbols?: Int32Array;
}

/** Converted values. Those for SYMBOL are texts: their codes are for the caller to find. */
export interface ConvertedValues {
  readonly values: Uint8Array;
  readonly heap?: Uint8Array;
}

const INTEGERS = ["BOOLEAN", "BYTE", "SHORT", "INT"];
const LONGS = ["LONG", "DATE", "TIMESTAMP", "TIMESTAMP_NS"];
const FRACTIONS = ["FLOAT", "DOUBLE"];
const TEXTS = ["STRING", "VARCHAR", "SYMBOL"];
const NUMBERS = [...INTEGERS, ...LONGS, ...FRACTIONS];

/** True if there is a conversion between the types, which are different. */
export function isConvertible(from: string, to: string): boolean {
  if (decimalOf(to) !== undefined) return isWiderDecimal(from, to);
  if (TEXTS.includes(from)) return TEXTS.includes(to) || to in READERS;
  return TEXTS.includes(to) ? from in WRITERS : NUMBERS.includes(from) && NUMBERS.includes(to);
}

/** True if the DECIMAL `to` represents all values of another DECIMAL or of an integer type. */
function isWiderDecimal(from: string, to: string): boolean {
  const given = asDecimal(from), wider = decimalOf(to)!;
  return given !== undefined && given.scale <= wider.scale &&
    given.precision - given.scale <= wider.precision - wider.scale;
}

export function convertValues(from: string, to: string, column: ColumnValues): ConvertedValues {
  assert(isConvertible(from, to), `${from} can become ${to}`);
  if (decimalOf(to) !== undefined) return { values: widerDecimals(from, to, column) };
  if (TEXTS.includes(from)) return TEXTS.includes(to) ? sameTexts(column) : { values: readTexts(to, column) };
  if (TEXTS.includes(to)) return writeTexts(from, column);
  const { rowCount } = column, values = new Uint8Array(rowCount * typeOf(to).width);
  const source = viewOf(from, column.values), out = viewOf(to, values);
  if (FRACTIONS.includes(from)) fromFractions(source as Float64Array, out, to, rowCount);
  else if (INTEGERS.includes(from)) fromIntegers(source as Int32Array, out, from, to, rowCount);
  else if (LONGS.includes(to)) longToLong(source as BigInt64Array, out as BigInt64Array, from, to, rowCount);
  else fromLongs(source as BigInt64Array, out as Int32Array | Float64Array, to, rowCount);
  return { values };
}

type Numbers = Int8Array | Int16Array | Int32Array | Float32Array | Float64Array;
type View = Numbers | BigInt64Array;

function viewOf(tag: string, { buffer, byteOffset, byteLength }: Uint8Array): View {
  const View = ARRAY_CONSTRUCTOR[typeOf(tag).layout];
  return new View(buffer as ArrayBuffer, byteOffset, byteLength / View.BYTES_PER_ELEMENT);
}

/** The halves of 64-bit values: the low ones have even indexes. */
function halvesOf({ buffer, byteOffset, length }: BigInt64Array): Int32Array {
  return new Int32Array(buffer, byteOffset, 2 * length);
}

function fromIntegers(source: Numbers, out: View, from: string, to: string, rowCount: number): void {
  const none = from === "INT" ? NULL_I32 : NaN;
  if (out instanceof BigInt64Array) {
    const words = halvesOf(out);
    for (let row = 0; row < rowCount; row++) {
      const value = source[row]!, isNull = value === none;
      words[2 * row] = isNull ? 0 : value;
      words[2 * row + 1] = isNull ? NULL_I32 : value >> 31;
    }
  } else if (to === "BOOLEAN") {
    for (let row = 0; row < rowCount; row++) out[row] = source[row] !== 0 && source[row] !== none ? 1 : 0;
  } else if (FRACTIONS.includes(to)) {
    for (let row = 0; row < rowCount; row++) out[row] = source[row] === none ? NaN : source[row]!;
  } else for (let row = 0; row < rowCount; row++) out[row] = source[row]!; // The low bits of the null of INT are 0.
}

function fromLongs(source: BigInt64Array, out: Numbers, to: string, rowCount: number): void {
  const words = halvesOf(source), none = to === "INT" ? NULL_I32 : FRACTIONS.includes(to) ? NaN : 0;
  for (let row = 0; row < rowCount; row++) {
    const low = words[2 * row]!, high = words[2 * row + 1]!;
    if (low === 0 && high === NULL_I32) out[row] = none;
    else if (to === "BOOLEAN") out[row] = (low | high) !== 0 ? 1 : 0;
    else if (FRACTIONS.includes(to)) out[row] = high * 4294967296 + (low >>> 0);
    else out[row] = low;
  }
}

/** Values of a DECIMAL are words of 64 bits, the lowest first. Those of null are all the null of LONG. */
function widerDecimals(from: string, to: string, column: ColumnValues): Uint8Array {
  const { rowCount } = column, values = new Uint8Array(rowCount * typeOf(to).width);
  const source = viewOf(from, column.values), out = viewOf(to, values) as BigInt64Array;
  const wordsBefore = source instanceof BigInt64Array ? typeOf(from).width / 8 : 1, words = typeOf(to).width / 8;
  const none = from === "INT" ? NULL_I32 : source instanceof BigInt64Array ? NULL_I64 : undefined;
  const factor = 10n ** BigInt(decimalOf(to)!.scale - asDecimal(from)!.scale);
  for (let row = 0; row < rowCount; row++) {
    let value = 0n, isNull = true;
    for (let word = wordsBefore - 1; word >= 0; word--) {
      const bits = source[wordsBefore * row + word]!;
      isNull &&= bits === none;
      value = word === wordsBefore - 1 ? BigInt(bits) : value << 64n | BigInt.asUintN(64, bits as bigint);
    }
    value *= factor;
    for (let word = 0; word < words; word++) {
      out[words * row + word] = isNull ? NULL_I64 : value >> BigInt(64 * word);
    }
  }
  return values;
}

function longToLong(source: BigInt64Array, out: BigInt64Array, from: string, to: string, rowCount: number): void {
  const before = TIME_NANOS[from], after = TIME_NANOS[to];
  if (before === undefined || after === undefined) return void out.set(source.subarray(0, rowCount));
  const isFiner = before > after, factor = isFiner ? before / after : after / before;
  // The null of the source is beyond the range, too.
  const last = LONG_MAX / factor;
  for (let row = 0; row < rowCount; row++) {
    const value = source[row]!;
    if (isFiner) out[row] = value > last || value < -last ? NULL_I64 : value * factor;
    else out[row] = value === NULL_I64 ? NULL_I64 : value / factor;
  }
}

/** The greatest value of each type; the least one is one below its negative. */
const GREATEST: Record<string, number> = { BYTE: 127, SHORT: 32767, INT: 2147483647 };

function fromFractions(source: Numbers, out: View, to: string, rowCount: number): void {
  if (out instanceof BigInt64Array) {
    for (let row = 0; row < rowCount; row++) {
      const value = source[row]!;
      out[row] = value > -9223372036854775808 && value < 9223372036854775808 ? BigInt(Math.trunc(value)) : NULL_I64;
    }
  } else if (to === "BOOLEAN") {
    for (let row = 0; row < rowCount; row++) out[row] = Number.isFinite(source[row]) && source[row] !== 0 ? 1 : 0;
  } else if (FRACTIONS.includes(to)) {
    for (let row = 0; row < rowCount; row++) {
      out[row] = source[row]!;
      if (!Number.isFinite(out[row])) out[row] = NaN;
    }
  } else {
    const greatest = GREATEST[to]!, none = to === "INT" ? NULL_I32 : 0;
    for (let row = 0; row < rowCount; row++) {
      const value = source[row]!;
      out[row] = value >= -greatest - 1 && value <= greatest ? Math.trunc(value) : none;
    }
  }
}

/** Writes row `row` as ASCII or UTF-8 at `at`, and returns the end; -1 for null. A value has `TEXT_BYTES_MAX` bytes at most. */
type Writer = (source: View, row: number, bytes: Uint8Array, at: number) => number;

const TEXT_BYTES_MAX = 64;
const TRUE = new TextEncoder().encode("true"), FALSE = new TextEncoder().encode("false");
const encoder = new TextEncoder();

function ofHalves(format: (low: number, high: number, bytes: Uint8Array, at: number) => number): Writer {
  return (words, row, bytes, at) => {
    const low = words[2 * row] as number, high = words[2 * row + 1] as number;
    return low === 0 && high === NULL_I32 ? -1 : format(low, high, bytes, at);
  };
}

const integer: Writer = (source, row, bytes, at) => formatInt(source[row] as number, bytes, at);

/** Longs, dates and UUIDs are given as words of 32 bits. */
const WRITERS: Record<string, Writer> = {
  BOOLEAN: (source, row, bytes, at) => {
    const text = source[row] ? TRUE : FALSE;
    bytes.set(text, at);
    return at + text.length;
  },
  BYTE: integer,
  SHORT: integer,
  INT: (source, row, bytes, at) => source[row] === NULL_I32 ? -1 : formatInt(source[row] as number, bytes, at),
  LONG: ofHalves(formatLong),
  DATE: ofHalves(formatDate),
  TIMESTAMP: ofHalves(formatTimestampMicros),
  TIMESTAMP_NS: ofHalves(formatNanos),
  FLOAT: (source, row, bytes, at) => Number.isFinite(source[row]) ? formatFloat(source[row] as number, bytes, at) : -1,
  DOUBLE: (source, row, bytes, at) =>
    Number.isFinite(source[row]) ? formatDouble(source[row] as number, bytes, at) : -1,
  IPv4: (source, row, bytes, at) => source[row] === 0 ? -1 : formatIPv4(source[row] as number, bytes, at),
  UUID: (words, row, bytes, at) => {
    const word = 4 * row;
    const isNull = words[word] === 0 && words[word + 1] === NULL_I32 && words[word + 2] === 0 &&
      words[word + 3] === NULL_I32;
    return isNull ? -1 : formatUuid(words as Int32Array, word, bytes, at);
  },
  CHAR: (source, row, bytes, at) => {
    const unit = (source[row] as number) & 0xffff;
    return unit === 0 ? -1 : at + encoder.encodeInto(String.fromCharCode(unit), bytes.subarray(at)).written;
  },
};

function writeTexts(from: string, { values, rowCount }: ColumnValues): ConvertedValues {
  const write = WRITERS[from]!, pairs = new Int32Array(2 * rowCount);
  const view = viewOf(from, values), source = view instanceof BigInt64Array ? halvesOf(view) : view;
  let heap = new Uint8Array(Math.max(TEXT_BYTES_MAX, 8 * rowCount)), at = 0;
  for (let row = 0; row < rowCount; row++) {
    if (at + TEXT_BYTES_MAX > heap.length) {
      const larger = new Uint8Array(2 * heap.length);
      larger.set(heap);
      heap = larger;
    }
    const end = write(source, row, heap, at);
    pairs[2 * row] = at;
    pairs[2 * row + 1] = end < 0 ? -1 : end - at;
    if (end > at) at = end;
  }
  return { values: bytesOf(pairs), heap: heap.subarray(0, at) };
}

/** Reads bytes[from … to) into row `row`. Returns false if they are no value of the type. */
type Reader = (bytes: Uint8Array, from: number, to: number, out: View, row: number) => boolean;

const READ_INTEGER: Reader = (bytes, from, to, out, row) => {
  const value = parseInteger(bytes, from, to, GREATEST.INT!);
  if (value !== value) return false;
  out[row] = value; // A narrower type gets the low bits.
  return true;
};
const readFraction = (letter: "d" | "f"): Reader => (bytes, from, to, out, row) => {
  const value = parseFloating(bytes, from, to, letter);
  if (value === undefined) return false;
  out[row] = value;
  return Number.isFinite(out[row]);
};
const readTime = (tag: string): Reader => {
  const unit = typeOf(tag).timeUnit!;
  return (bytes, from, to, out, row) => {
    const value = parseInstant(bytes, from, to) ? instantAs(unit) : undefined;
    if (value === undefined) return false;
    out[row] = value;
    return true;
  };
};
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

const READERS: Record<string, Reader> = {
  BOOLEAN: (bytes, from, to, out, row) => {
    const isTrue = to - from === 4 && (bytes[from]! | 32) === 116 && (bytes[from + 1]! | 32) === 114 &&
      (bytes[from + 2]! | 32) === 117 && (bytes[from + 3]! | 32) === 101;
    out[row] = isTrue ? 1 : 0;
    return true;
  },
  BYTE: READ_INTEGER,
  SHORT: READ_INTEGER,
  INT: READ_INTEGER,
  LONG: (bytes, from, to, out, row) => {
    const value = parseLong(bytes, from, to);
    if (value === undefined) return false;
    out[row] = value;
    return true;
  },
  FLOAT: readFraction("f"),
  DOUBLE: readFraction("d"),
  DATE: readTime("DATE"),
  TIMESTAMP: readTime("TIMESTAMP"),
  TIMESTAMP_NS: readTime("TIMESTAMP_NS"),
  CHAR: (bytes, from, to, out, row) => {
    // Four bytes are enough for the first character. Decoders refuse views of shared memory.
    out[row] = to > from ? decoder.decode(bytes.slice(from, Math.min(to, from + 4))).charCodeAt(0) : 0;
    return true;
  },
  IPv4: (bytes, from, to, out, row) => {
    const value = parseIPv4(bytes, from, to);
    if (value === undefined) return false;
    out[row] = value;
    return true;
  },
  UUID: (bytes, from, to, out, row) => {
    const value = parseUuid(bytes, from, to);
    if (value === undefined) return false;
    out[2 * row] = BigInt.asIntN(64, value);
    out[2 * row + 1] = BigInt.asIntN(64, value >> 64n);
    return true;
  },
};

function readTexts(to: string, column: ColumnValues): Uint8Array {
  const read = READERS[to]!, { nullValue, width, layout } = typeOf(to);
  const { rowCount, bytes = new Uint8Array(0) } = column;
  const values = new Uint8Array(rowCount * width), out = viewOf(to, values), { pairs, codes } = textsOf(column);
  for (let row = 0; row < rowCount; row++) {
    const text = codes === undefined ? row : codes[row]!, length = text < 0 ? -1 : pairs[2 * text + 1]!;
    if (length >= 0) {
      const from = pairs[2 * text]! >>> 0;
      if (read(bytes, from, from + length, out, row)) continue;
    }
    if (layout === "i128") out[2 * row] = out[2 * row + 1] = NULL_I64;
    else out[row] = nullValue;
  }
  return values;
}

/** The pairs of texts, and of symbols the codes of the rows, by which their pairs are found. */
function textsOf({ values, symbols }: ColumnValues): { pairs: Int32Array; codes: Int32Array | undefined } {
  const words = new Int32Array(values.buffer as ArrayBuffer, values.byteOffset, values.byteLength / 4);
  return symbols === undefined ? { pairs: words, codes: undefined } : { pairs: symbols, codes: words };
}

function sameTexts(column: ColumnValues): ConvertedValues {
  const { rowCount, bytes = new Uint8Array(0) } = column, { pairs, codes } = textsOf(column);
  const out = new Int32Array(2 * rowCount);
  let size = 0;
  for (let row = 0; row < rowCount; row++) {
    const text = codes === undefined ? row : codes[row]!, length = text < 0 ? -1 : pairs[2 * text + 1]!;
    out[2 * row] = size;
    out[2 * row + 1] = length;
    if (length > 0) size += length;
  }
  const heap = new Uint8Array(size);
  for (let row = 0; row < rowCount; row++) {
    const length = out[2 * row + 1]!;
    if (length <= 0) continue;
    const from = pairs[2 * (codes === undefined ? row : codes[row]!)]! >>> 0, at = out[2 * row]!;
    for (let k = 0; k < length; k++) heap[at + k] = bytes[from + k]!;
  }
  return { values: bytesOf(out), heap };
}

function bytesOf({ buffer, byteOffset, byteLength }: Int32Array): Uint8Array {
  return new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
}
