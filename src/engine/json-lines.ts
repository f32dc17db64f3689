/**
 * Reads rows as the encoder of JSON prints them in lines, `[…]`, straight from the bytes: JSON.parse() would make an
 * object of each row and value, which takes ten times as long.
 */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { SharedHeap } from "../storage/heap.ts";
import { fillNull, putValue, typeOf, type Value } from "../types/mod.ts";
import { instantAs, parseDouble, parseInstant, parseInteger, type TimeUnit } from "../types/parse/mod.ts";
import { geohashBits } from "../types/wide.ts";
import { setValue, type TextArena } from "./columns.ts";
import type { Vector } from "./contract.ts";

/** Writes a value to a row. The text of a string is without its quotes and escapes. */
type Write = (row: number, bytes: Uint8Array, from: number, to: number) => void;

export interface JsonColumn {
  write: Write;
  writeNull(row: number): void;
}

const QUOTE = 0x22, COMMA = 0x2c, OPEN = 0x5b, BACKSLASH = 0x5c, CLOSE = 0x5d, LETTER_N = 0x6e;
const decoder = new TextDecoder(), encoder = new TextEncoder();

/** Writes the values of the line at `at` to a row. Returns the start of the next line. */
export function readJsonLine(bytes: Uint8Array, at: number, columns: readonly JsonColumn[], row: number): number {
  for (const column of columns) {
    const from = ++at; // after the bracket or the comma
    if (bytes[from] === QUOTE) at = readString(bytes, from + 1, column, row);
    else {
      at = endOfValue(bytes, from);
      if (bytes[from] === LETTER_N) column.writeNull(row);
      else column.write(row, bytes, from, at);
    }
  }
  return at + "],\n".length;
}

/** Returns the end, after the quote. */
function readString(bytes: Uint8Array, from: number, { write }: JsonColumn, row: number): number {
  let end = from, isEscaped = false;
  for (; bytes[end] !== QUOTE; end++) {
    if (bytes[end] !== BACKSLASH) continue;
    isEscaped = true;
    end++;
  }
  if (isEscaped) {
    const text = encoder.encode(JSON.parse(decoder.decode(bytes.subarray(from - 1, end + 1))));
    write(row, text, 0, text.length);
  } else write(row, bytes, from, end);
  return end + 1;
}

/** The end of a number, a word or an array of these. */
function endOfValue(bytes: Uint8Array, from: number): number {
  for (let at = from, depth = 0;; at++) {
    const byte = bytes[at];
    if (byte === OPEN) depth++;
    else if (depth > 0) depth -= byte === CLOSE ? 1 : 0;
    else if (byte === COMMA || byte === CLOSE) return at;
  }
}

/** Texts go to the arena. BINARY becomes NULL, because the lines do not have its bytes. */
export function jsonColumn(heap: SharedHeap, { type, address }: Vector, arena: TextArena): JsonColumn {
  const { layout, order, timeUnit } = typeOf(type);
  const writeNull = (row: number) => fillNull(heap, type, address, row, 1);
  if (type === "BINARY") return { writeNull, write: writeNull };
  if (layout === "text" && order === "text") return { writeNull, write: textWriter(heap, address, arena) };
  const write = layout === "f64"
    ? doubleWriter(heap, address)
    : timeUnit !== undefined
    ? instantWriter(heap, type, address, timeUnit)
    : type === "LONG"
    ? longWriter(heap, type, address, arena)
    : valueWriter(heap, type, address, arena);
  return {
    writeNull,
    // The empty text is the NULL of CHAR and LONG256.
    write: (row, bytes, from, to) => from === to ? writeNull(row) : write(row, bytes, from, to),
  };
}

/** Shorter texts are copied byte by byte, which is faster than making a view. */
const VIEWED_BYTES_MIN = 48;

function textWriter({ u8, u32, i32 }: SharedHeap, address: number, arena: TextArena): Write {
  return (row, bytes, from, to) => {
    const length = to - from, at = arena.reserve(length), pair = (address >>> 2) + 2 * row;
    if (length >= VIEWED_BYTES_MIN) u8.set(bytes.subarray(from, to), at);
    else for (let k = 0; k < length; k++) u8[at + k] = bytes[from + k];
    u32[pair] = at;
    i32[pair + 1] = length;
  };
}

function doubleWriter({ f64 }: SharedHeap, address: number): Write {
  const base = address >>> 3;
  return (row, bytes, from, to) => {
    f64[base + row] = parseDouble(bytes, from, to) ?? NaN;
  };
}

/** Up to 15 digits, without a sign, are written as two words, because numbers of 64 bits are objects. */
function longWriter(heap: SharedHeap, type: string, address: number, arena: TextArena): Write {
  const write = valueWriter(heap, type, address, arena), { u32 } = heap, base = address >>> 2;
  return (row, bytes, from, to) => {
    const value = to - from <= 15 ? parseInteger(bytes, from, to, 1e15) : NaN;
    if (!(value >= 0)) return write(row, bytes, from, to);
    u32[base + 2 * row] = value;
    u32[base + 2 * row + 1] = value / 4_294_967_296;
  };
}

function instantWriter({ i64 }: SharedHeap, type: string, address: number, unit: TimeUnit): Write {
  const base = address >>> 3;
  return (row, bytes, from, to) => {
    const value = parseInstant(bytes, from, to) ? instantAs(unit) : undefined;
    if (value === undefined) throw unreadable(type, bytes, from, to);
    i64[base + row] = value;
  };
}

/** Any type, by its text. */
function valueWriter(heap: SharedHeap, type: string, address: number, arena: TextArena): Write {
  const { layout, text } = typeOf(type);
  // Without whole characters a geohash is printed as bits, which its text form does not read.
  const isBits = (geohashBits(type) ?? 0) % 5 !== 0;
  return (row, bytes, from, to) => {
    const printed = decoder.decode(bytes.subarray(from, to));
    const value = isBits ? BigInt(`0b${printed}`) : text.parse(printed);
    if (value === undefined || value !== null && typeof value === "object") throw unreadable(type, bytes, from, to);
    if (layout === "text") setValue(heap, type, address, row, value as Value, arena);
    else putValue(heap, type, address, row, value);
  };
}

function unreadable(type: string, bytes: Uint8Array, from: number, to: number): SqlError {
  const printed = decoder.decode(bytes.subarray(from, to));
  return new SqlError(
    `the value ${printed} of ${typeOf(type).name} cannot be read again`,
    0,
    SQLSTATE.invalidParameter,
  );
}
