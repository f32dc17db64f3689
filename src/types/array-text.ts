/**
 * Arrays of DOUBLE as bytes and as text, `[[1.0,null]]`.
 *
 * As bytes, in a column of layout text: the number of dimensions (u32), the length of each (u32), then the values (f64) in rows.
 */
import { formatDouble } from "./format/numbers.ts";

/** Callbacks of functions over arrays of any length. Both may throw to stop the function. */
export interface ArrayWork {
  /** Called before that many bytes are allocated. */
  need(sizeBytes: number): void;
  /** Called every few thousand elements. */
  poll(): void;
}

const FREE: ArrayWork = { need: () => {}, poll: () => {} };

/** Number of elements between two polls. */
const STEP_ELEMENTS = 16_384;

export interface ArrayMarks {
  open: number;
  close: number;
  null: Uint8Array;
}

const ascii = new TextEncoder();
const JSON_MARKS: ArrayMarks = { open: 0x5b, close: 0x5d, null: ascii.encode("null") };
/** `{1.0,NULL}`, as PostgreSQL prints arrays. */
export const PG_MARKS: ArrayMarks = { open: 0x7b, close: 0x7d, null: ascii.encode("NULL") };
const COMMA = 0x2c;

/** Maximum bytes of one element with its comma and brackets. */
const ELEMENT_BYTES_MAX = 128;
const PIECE_BYTES = 1 << 18;

/**
 * Writes the text of an array at `at` and returns its end. An array without elements is `[]`, whatever its dimensions.
 * `reserve(size)` is called before each piece. It returns a buffer of at least that size, with the previous bytes.
 */
export function writeArray(
  array: Uint8Array,
  reserve: (sizeBytes: number) => Uint8Array,
  at: number,
  marks: ArrayMarks = JSON_MARKS,
): number {
  const view = viewOf(array), start = array.byteOffset - view.byteOffset;
  const dimensions = view.getUint32(start, true);
  let limit = at + Math.min(PIECE_BYTES, 2 * ELEMENT_BYTES_MAX + 4 * array.length), bytes = reserve(limit);
  let from = start + 4 + 4 * dimensions;
  const hasNone = () => {
    for (let k = 0; k < dimensions; k++) if (view.getUint32(start + 4 + 4 * k, true) === 0) return true;
    return false;
  };
  const write = (depth: number) => {
    bytes[at++] = marks.open;
    const length = view.getUint32(start + 4 + 4 * depth, true);
    for (let i = 0; i < length; i++) {
      if (at + ELEMENT_BYTES_MAX > limit) bytes = reserve(limit = at + PIECE_BYTES);
      if (i > 0) bytes[at++] = COMMA;
      if (depth < dimensions - 1) write(depth + 1);
      else {
        const value = view.getFloat64(from, true);
        from += 8;
        if (!Number.isFinite(value)) {
          bytes.set(marks.null, at);
          at += marks.null.length;
        } else at = formatDouble(value, bytes, at);
      }
    }
    bytes[at++] = marks.close;
  };
  if (hasNone()) {
    bytes[at++] = marks.open;
    bytes[at++] = marks.close;
  } else write(0);
  return at;
}

let sharedView: DataView | undefined;

/** Of the array, or of all shared memory that it is in: to make a view takes as long as to write a number. */
function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  if (!(buffer instanceof SharedArrayBuffer)) return new DataView(buffer, byteOffset, byteLength);
  if (sharedView?.buffer !== buffer) sharedView = new DataView(buffer);
  return sharedView;
}

/** Of short texts, which are used again. */
let shortText = new Uint8Array(4096);
const SHORT_TEXT_MAX = 1 << 16;

/** The text as bytes, valid until the next call. */
export function arrayText(array: Uint8Array, work: ArrayWork = FREE): Uint8Array {
  let bytes = shortText;
  const end = writeArray(array, (sizeBytes) => {
    work.poll();
    bytes = grown(bytes, sizeBytes, work);
    if (bytes.length <= SHORT_TEXT_MAX) shortText = bytes;
    return bytes;
  }, 0);
  return bytes.subarray(0, end);
}

export function formatArray(array: Uint8Array, work: ArrayWork = FREE): string {
  return new TextDecoder().decode(arrayText(array, work));
}

function grown(bytes: Uint8Array<ArrayBuffer>, sizeBytes: number, work: ArrayWork): Uint8Array<ArrayBuffer> {
  if (sizeBytes <= bytes.length) return bytes;
  const size = Math.max(sizeBytes, 2 * bytes.length);
  work.need(size);
  const larger = new Uint8Array(size);
  larger.set(bytes);
  return larger;
}

export function hasElements(array: Uint8Array): boolean {
  return array.length > 4 + 4 * new DataView(array.buffer, array.byteOffset).getUint32(0, true);
}

export function encodeArray(lengths: readonly number[], values: Float64Array): Uint8Array {
  const start = 4 + 4 * lengths.length;
  const bytes = new Uint8Array(start + 8 * values.length);
  bytes.set(new Uint8Array(Uint32Array.of(lengths.length, ...lengths).buffer));
  bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), start);
  return bytes;
}

const OPEN = "[", CLOSE = "]";
const SPACE = /[ \t\n\r]*/y;
/** A JSON number. */
const VALUE = /null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

const QUOTED = /"([^"[\],]*)"/g;

/** The array `{1,2}` or `{"1","2"}` of PostgreSQL as `[1,2]`. Other texts stay the same. */
export function inBrackets(text: string): string {
  const list = text.replaceAll("{", "[").replaceAll("}", "]");
  return list.includes('"') ? list.replaceAll(QUOTED, "$1") : list;
}

/**
 * Parses an array such as `[[1.0,null],[2,3e4]]`. Undefined if the text is invalid, ragged or has other dimensions.
 * `JSON.parse` is not used, because it would build objects for any other text.
 */
export function parseArray(text: string, dimensions: number, work: ArrayWork = FREE): Uint8Array | undefined {
  const lengths = new Array<number | undefined>(dimensions).fill(undefined);
  const counts = new Array<number>(dimensions).fill(0);
  let values = new Float64Array(8), count = 0, at = 0, depth = 0;
  const space = () => {
    SPACE.lastIndex = at;
    SPACE.test(text);
    at = SPACE.lastIndex;
  };
  space();
  // Each round starts before an item: a list or a value.
  for (;;) {
    if (depth < dimensions) {
      if (text[at++] !== OPEN) return undefined;
      counts[depth++] = 0;
      space();
      if (text[at] !== CLOSE) continue;
    } else {
      VALUE.lastIndex = at;
      const found = VALUE.exec(text)?.[0];
      if (found === undefined) return undefined;
      at += found.length;
      if (count % STEP_ELEMENTS === 0) work.poll();
      if (count === values.length) {
        work.need(16 * count);
        const larger = new Float64Array(2 * count);
        larger.set(values);
        values = larger;
      }
      const value = found === "null" ? NaN : Number(found);
      values[count++] = Number.isFinite(value) ? value : NaN;
      counts[depth - 1]!++;
      space();
    }
    // After an item: ends of lists, then a comma before the next item, or the end of the text.
    while (text[at] === CLOSE) {
      depth--;
      lengths[depth] ??= counts[depth];
      if (lengths[depth] !== counts[depth]) return undefined;
      at++;
      space();
      if (depth === 0) {
        if (at < text.length) return undefined;
        work.need(8 * count);
        return encodeArray(lengths.map((length) => length ?? 0), values.subarray(0, count));
      }
      counts[depth - 1]!++;
    }
    if (text[at++] !== ",") return undefined;
    space();
    // A comma must be followed by an item.
    if (text[at] === CLOSE) return undefined;
  }
}
