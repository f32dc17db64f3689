/** Converts a column of fields to the values of a table's column. */
import { typeOf } from "../../types/mod.ts";
import { instant, parseInstant, parseInteger, readValue } from "../../types/parse/mod.ts";
import { PatternReader } from "../../types/format/fixed-pattern.ts";
import { parsedPattern, parsePattern } from "../../types/format/pattern.ts";
import { arrayDimensions } from "../../types/wide.ts";
import { readDouble, readLong } from "./numbers.ts";
import { FIELD, type Records } from "./records.ts";
import { SymbolTable } from "./symbols.ts";

export interface Column {
  values: Uint8Array;
  heap?: Uint8Array;
  symbols?: Int32Array;
}

/** Fields of one column, and the report of those that do not fit. */
export interface Fields {
  readonly bytes: Uint8Array;
  readonly records: Records;
  readonly field: number;
  /** Pattern of dates and times. Undefined: ISO 8601. */
  readonly pattern: string | undefined;
  /** Reports that the value of this row does not fit. Its value is null. */
  bad(row: number): void;
}

/** The values of a field's column in the type `tag`. Fields without a value are null. */
export function convert(fields: Fields, tag: string): Column {
  return (CONVERTERS[tag] ?? others)(fields, tag);
}

const BLANK = 0x20, TAB = 0x09, QUOTE = 0x22;

/**
 * Calls `take` for each row with a value, without surrounding blanks. `take` returns false if the value does not fit.
 */
function forEachValue(fields: Fields, take: (row: number, from: number, to: number) => boolean): void {
  const { bytes, records: { starts, ends, kinds, count, fieldCount }, field } = fields;
  for (let row = 0, at = field; row < count; row++, at += fieldCount) {
    if (kinds[at] === FIELD.missing) continue;
    let from = starts[at], to = ends[at];
    while (from < to && (bytes[from] === BLANK || bytes[from] === TAB)) from++;
    while (from < to && (bytes[to - 1] === BLANK || bytes[to - 1] === TAB)) to--;
    if (from < to && !isNullWord(bytes, from, to) && !take(row, from, to)) fields.bad(row);
  }
}

/** True for the word null in any case. */
function isNullWord(bytes: Uint8Array, from: number, to: number): boolean {
  return to - from === 4 && (bytes[from] | 0x20) === 0x6e && (bytes[from + 1] | 0x20) === 0x75 &&
    (bytes[from + 2] | 0x20) === 0x6c && (bytes[from + 3] | 0x20) === 0x6c;
}

const bytesOf = (values: ArrayBufferView<ArrayBuffer>): Uint8Array => new Uint8Array(values.buffer);

function integers(
  fields: Fields,
  values: Int32Array<ArrayBuffer> | Int16Array<ArrayBuffer> | Int8Array<ArrayBuffer>,
  limit: number,
): Column {
  const { bytes } = fields;
  forEachValue(fields, (row, from, to) => {
    const value = parseInteger(bytes, from, to, limit);
    if (value !== value) return false;
    values[row] = value;
    return true;
  });
  return { values: bytesOf(values) };
}

function doubles(fields: Fields, values: Float64Array<ArrayBuffer> | Float32Array<ArrayBuffer>): Column {
  const { bytes } = fields;
  forEachValue(fields, (row, from, to) => {
    const value = readDouble(bytes, from, to);
    if (value === undefined) return false;
    values[row] = value;
    if (!Number.isFinite(values[row])) values[row] = NaN;
    return true;
  });
  return { values: bytesOf(values) };
}

/** Writes a value at a row as two words; false if it does not fit. */
type IntoLong = (words: Int32Array, row: number, bytes: Uint8Array, from: number, to: number) => boolean;

/** High word of the null; the low word is 0. */
const NULL_HIGH = -2147483648;

function longs(fields: Fields, into: IntoLong): Column {
  const { bytes } = fields;
  const words = new Int32Array(2 * fields.records.count);
  for (let word = 1; word < words.length; word += 2) words[word] = NULL_HIGH;
  forEachValue(fields, (row, from, to) => into(words, row, bytes, from, to));
  return { values: bytesOf(words) };
}

/** `value` is a safe integer. */
function writeNumber(words: Int32Array, row: number, value: number): true {
  words[2 * row] = value | 0;
  words[2 * row + 1] = Math.floor(value / 4294967296);
  return true;
}

function writeBigInt(words: Int32Array, row: number, value: bigint): true {
  words[2 * row] = Number(BigInt.asIntN(32, value));
  words[2 * row + 1] = Number(BigInt.asIntN(32, value >> 32n));
  return true;
}

const longInto: IntoLong = (words, row, bytes, from, to) => {
  const value = to - from <= 15 ? parseInteger(bytes, from, to, 1e15) : NaN;
  if (value === value) return writeNumber(words, row, value);
  const long = readLong(bytes, from, to);
  return long !== undefined && writeBigInt(words, row, long);
};

/** Microseconds, from a date and time or from a number of microseconds. */
const microsInto: IntoLong = (words, row, bytes, from, to) => {
  if (!parseInstant(bytes, from, to)) return longInto(words, row, bytes, from, to);
  return writeNumber(words, row, instant.second * 1e6 + Math.floor(instant.nano / 1e3));
};

function instantInto(tag: string): IntoLong {
  return (words, row, bytes, from, to) => {
    if (!parseInstant(bytes, from, to)) return longInto(words, row, bytes, from, to);
    return writeInstant(words, row, tag, instant);
  };
}

const utf8 = new TextDecoder();

function patternInto(pattern: string, tag: string): IntoLong {
  const reader = PatternReader.of(pattern);
  return (words, row, bytes, from, to) =>
    (reader?.read(bytes, from, to) || parsePattern(pattern, utf8.decode(bytes.subarray(from, to)))) &&
    writeInstant(words, row, tag, parsedPattern);
}

function writeInstant(
  words: Int32Array,
  row: number,
  tag: string,
  { second, nano }: { second: number; nano: number },
): boolean {
  if (tag === "DATE") return writeNumber(words, row, second * 1000 + Math.floor(nano / 1e6));
  if (tag === "TIMESTAMP") return writeNumber(words, row, second * 1e6 + Math.floor(nano / 1e3));
  const value = BigInt(second) * 1_000_000_000n + BigInt(nano);
  return BigInt.asIntN(64, value) === value && writeBigInt(words, row, value);
}

function booleans(fields: Fields): Column {
  const { bytes } = fields;
  const values = new Uint8Array(fields.records.count);
  forEachValue(fields, (row, from, to) => {
    const text = utf8.decode(bytes.subarray(from, to)).toLowerCase();
    const isTrue = text === "true" || text === "t" || text === "1";
    values[row] = Number(isTrue);
    return isTrue || text === "false" || text === "f" || text === "0";
  });
  return { values };
}

const isNullText = (text: string) => text.trim().toLowerCase() === "null";

function characters(fields: Fields): Column {
  const values = new Uint16Array(fields.records.count);
  forEachText(fields, (row, bytes, from, to) => {
    const text = utf8.decode(bytes.subarray(from, to));
    if (text.length > 1) return isNullText(text);
    values[row] = text.length === 1 ? text.charCodeAt(0) : 0;
    return true;
  });
  return { values: bytesOf(values) };
}

/** Calls back for each row with a text, with doubled quotes unescaped. */
function forEachText(
  fields: Fields,
  take: (row: number, bytes: Uint8Array, from: number, to: number) => boolean,
): void {
  const { bytes, records: { starts, ends, kinds, count, fieldCount }, field } = fields;
  for (let row = 0, at = field; row < count; row++, at += fieldCount) {
    const kind = kinds[at], from = starts[at], to = ends[at];
    if (kind === FIELD.missing || kind === FIELD.plain && from === to) continue;
    if (kind !== FIELD.escaped) {
      if (!take(row, bytes, from, to)) fields.bad(row);
      continue;
    }
    const text = unescaped(bytes, from, to);
    if (!take(row, text, 0, text.length)) fields.bad(row);
  }
}

function unescaped(bytes: Uint8Array, from: number, to: number): Uint8Array {
  const text = new Uint8Array(to - from);
  let size = 0;
  for (let at = from; at < to; at++) {
    text[size++] = bytes[at];
    if (bytes[at] === QUOTE) at++;
  }
  return text.subarray(0, size);
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

function isUtf8(bytes: Uint8Array, from: number, to: number): boolean {
  try {
    strictUtf8.decode(bytes.subarray(from, to));
    return true;
  } catch {
    return false;
  }
}

function texts(fields: Fields): Column {
  const pairs = new Int32Array(2 * fields.records.count);
  for (let word = 1; word < pairs.length; word += 2) pairs[word] = -1;
  const heap = new Uint8Array(sizeOf(fields));
  let size = 0;
  forEachText(fields, (row, bytes, from, to) => {
    const start = size;
    let all = 0;
    for (let at = from; at < to; at++) all |= heap[size++] = bytes[at];
    if (all >= 0x80 && !isUtf8(heap, start, size)) {
      size = start;
      return false;
    }
    pairs[2 * row] = start;
    pairs[2 * row + 1] = size - start;
    return true;
  });
  return { values: bytesOf(pairs), heap: heap.subarray(0, size) };
}

/** Bytes of all fields of the column. */
function sizeOf({ records: { starts, ends, count, fieldCount }, field }: Fields): number {
  let size = 0;
  for (let row = 0, at = field; row < count; row++, at += fieldCount) size += ends[at] - starts[at];
  return size;
}

function symbols(fields: Fields): Column {
  const codes = new Int32Array(fields.records.count).fill(-1);
  const table = new SymbolTable();
  forEachText(fields, (row, bytes, from, to) => {
    const code = table.code(bytes, from, to, isUtf8);
    codes[row] = code;
    return code >= 0;
  });
  return { values: bytesOf(codes), heap: table.heap, symbols: table.pairs };
}

/** Types that are rare in files. Each value is parsed from its text. */
function others(fields: Fields, tag: string): Column {
  const { width, nullValue, layout } = typeOf(tag);
  const { count } = fields.records;
  const isList = layout === "text";
  const values = new Uint8Array(count * width), view = new DataView(values.buffer);
  const parts: Uint8Array[] = [];
  let heapSize = 0;
  const set = (row: number, value: number | bigint) => {
    if (width === 4) return view.setInt32(row * width, Number(value), true);
    for (let word = 0; word < width / 8; word++) {
      view.setBigInt64(row * width + 8 * word, BigInt.asIntN(64, BigInt(value) >> BigInt(64 * word)), true);
    }
  };
  for (let row = 0; row < count; row++) {
    if (isList) view.setInt32(row * 8 + 4, -1, true);
    else setNull(view, row * width, width, nullValue);
  }
  forEachText(fields, (row, bytes, from, to) => {
    const text = utf8.decode(bytes.subarray(from, to)).trim();
    if (text === "" || isNullText(text) && !isList) return true;
    const value = readValue(text, tag);
    if (value !== null && typeof value === "object") return false;
    if (value === null) return true;
    if (!isList) {
      set(row, value as number | bigint);
      return true;
    }
    const part = typeOf(tag).bytes.toBytes(String(value));
    if (arrayDimensions(tag) > 0 && heapSize % 8 !== 0) heapSize += 8 - heapSize % 8;
    view.setInt32(row * 8, heapSize, true);
    view.setInt32(row * 8 + 4, part.length, true);
    parts.push(part);
    heapSize += part.length;
    return true;
  });
  if (!isList) return { values };
  const heap = new Uint8Array(heapSize);
  let at = 0;
  for (const part of parts) {
    if (arrayDimensions(tag) > 0 && at % 8 !== 0) at += 8 - at % 8;
    heap.set(part, at);
    at += part.length;
  }
  return { values, heap };
}

function setNull(view: DataView, at: number, width: number, nullValue: number | bigint): void {
  if (width === 4) return view.setInt32(at, Number(nullValue), true);
  for (let word = 0; word < width; word += 8) view.setBigInt64(at + word, BigInt(nullValue), true);
}

type Converter = (fields: Fields, tag: string) => Column;

const times = (into: IntoLong): Converter => (fields, tag) =>
  longs(fields, fields.pattern === undefined ? into : patternInto(fields.pattern, tag));

/** By type, for types of which files have many values. */
const CONVERTERS: Readonly<Record<string, Converter>> = {
  INT: (fields) => integers(fields, new Int32Array(fields.records.count).fill(-2147483648), 2147483647),
  SHORT: (fields) => integers(fields, new Int16Array(fields.records.count), 32767),
  BYTE: (fields) => integers(fields, new Int8Array(fields.records.count), 127),
  DOUBLE: (fields) => doubles(fields, new Float64Array(fields.records.count).fill(NaN)),
  FLOAT: (fields) => doubles(fields, new Float32Array(fields.records.count).fill(NaN)),
  LONG: (fields) => longs(fields, longInto),
  TIMESTAMP: times(microsInto),
  TIMESTAMP_NS: times(instantInto("TIMESTAMP_NS")),
  DATE: times(instantInto("DATE")),
  BOOLEAN: booleans,
  CHAR: characters,
  VARCHAR: texts,
  STRING: texts,
  SYMBOL: symbols,
};
