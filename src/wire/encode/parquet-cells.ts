/**
 * Gathers the values of a flat column for a row group: cells of whole words, of the rows that have a value. A cell is a number in its
 * physical form, or what finds a text: its address and length, or its place in a dictionary.
 */
import type { Vector } from "../../engine/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { NullNumber, NumberView, ParquetType, Stored } from "./parquet-types.ts";

export interface Cells {
  rowCount: number;
  /** 1 for each row with a value, 0 for others. Undefined if all rows have values. */
  present: Uint8Array<ArrayBuffer> | undefined;
  /** Number of values. */
  count: number;
  wordsPerCell: number;
  words: Int32Array<ArrayBuffer>;
}

type Flat = Exclude<Stored, { kind: "other" }>;

/** Where the words of cells are: `at` is the index of the first one, `stride` that from one row to the next. */
interface Source {
  view: Int8Array | Int16Array | Uint16Array | Int32Array;
  at: number;
  stride: number;
  wordsPerCell: number;
}

const LEAST = -2147483648;

export function gatherCells(
  heap: SharedHeap,
  { address }: Vector,
  firstRow: number,
  rowCount: number,
  { element, stored }: ParquetType & { stored: Flat },
): Cells {
  const source = sourceOf(heap, address, firstRow, stored, element);
  const marks = new Uint8Array(rowCount);
  const count = markPresent(heap, source, rowCount, stored, marks);
  const present = count === rowCount ? undefined : marks;
  const words = new Int32Array(rowCount * source.wordsPerCell);
  if (present !== undefined) copyPresent(source, rowCount, present, words);
  else copyAll(source, rowCount, words);
  return { rowCount, present, count, wordsPerCell: source.wordsPerCell, words };
}

const BYTE_SHIFTS: Record<NumberView, number> = { i8: 0, i16: 1, u16: 1, i32: 2, f32: 2, i64: 3, f64: 3 };

function sourceOf(
  heap: SharedHeap,
  address: number,
  firstRow: number,
  stored: Flat,
  { type, type_length }: ParquetType["element"],
): Source {
  const words = (stride: number, wordsPerCell = stride): Source => ({
    view: heap.i32,
    at: (address >>> 2) + firstRow * stride,
    stride,
    wordsPerCell,
  });
  switch (stored.kind) {
    case "text":
      return words(2);
    case "symbol":
      return words(1);
    case "words":
      return words(type_length! / 4);
    case "number": {
      const { view } = stored, shift = BYTE_SHIFTS[view];
      if (view === "i8" || view === "i16" || view === "u16") {
        return { view: heap[view], at: (address >>> shift) + firstRow, stride: 1, wordsPerCell: 1 };
      }
      // The low word is enough for numbers that the file has in 32 bits.
      return words(1 << (shift - 2), type === "INT64" || type === "DOUBLE" ? 2 : 1);
    }
  }
}

/** Sets `present` to 1 for the rows with a value, and returns their number. */
function markPresent(heap: SharedHeap, source: Source, rowCount: number, stored: Flat, present: Uint8Array): number {
  switch (stored.kind) {
    case "text":
      return markNotNegative(heap.i32, source.at + 1, 2, rowCount, present);
    case "symbol":
      return markNotNegative(heap.i32, source.at, 1, rowCount, present);
    case "words":
      return markWords(heap.i32, source, rowCount, present);
    case "number":
      return stored.isNull === undefined
        ? rowCount
        : markNumbers(heap, source, rowCount, stored.view, stored.isNull, present);
  }
}

function markNotNegative(view: Int32Array, at: number, stride: number, rowCount: number, present: Uint8Array): number {
  let count = 0;
  for (let row = 0; row < rowCount; row++) {
    const has = view[at + row * stride] < 0 ? 0 : 1;
    present[row] = has;
    count += has;
  }
  return count;
}

function markNumbers(
  heap: SharedHeap,
  { view, at, stride }: Source,
  rowCount: number,
  name: NumberView,
  isNull: NullNumber,
  present: Uint8Array,
): number {
  if (isNull === "notFinite") {
    return name === "f32"
      ? markFinite(heap.f32, at, rowCount, present)
      : markFinite(heap.f64, at / 2, rowCount, present);
  }
  let count = 0;
  if (name === "i64") {
    for (let row = 0; row < rowCount; row++) {
      const has = view[at + row * stride + 1] === LEAST && view[at + row * stride] === 0 ? 0 : 1;
      present[row] = has;
      count += has;
    }
    return count;
  }
  const none = isNull === "zero" ? 0 : LEAST;
  for (let row = 0; row < rowCount; row++) {
    const has = view[at + row] === none ? 0 : 1;
    present[row] = has;
    count += has;
  }
  return count;
}

function markFinite(view: Float32Array | Float64Array, at: number, rowCount: number, present: Uint8Array): number {
  let count = 0;
  for (let row = 0; row < rowCount; row++) {
    const value = view[at + row], has = value - value === 0 ? 1 : 0;
    present[row] = has;
    count += has;
  }
  return count;
}

function markWords(view: Int32Array, { at, wordsPerCell }: Source, rowCount: number, present: Uint8Array): number {
  let count = 0;
  for (let row = 0; row < rowCount; row++) {
    let has = 0;
    for (let word = at + row * wordsPerCell, end = word + wordsPerCell; word < end; word += 2) {
      if (view[word + 1] !== LEAST || view[word] !== 0) has = 1;
    }
    present[row] = has;
    count += has;
  }
  return count;
}

function copyAll({ view, at, stride, wordsPerCell }: Source, rowCount: number, words: Int32Array): void {
  if (stride === wordsPerCell) words.set(view.subarray(at, at + rowCount * stride));
  else for (let row = 0; row < rowCount; row++) words[row] = view[at + row * stride];
}

/** Stores each row's cell and steps over those of rows with a value only, so that there is no branch. */
function copyPresent(
  { view, at, stride, wordsPerCell }: Source,
  rowCount: number,
  present: Uint8Array,
  words: Int32Array,
): void {
  let to = 0;
  if (wordsPerCell === 1) {
    for (let row = 0; row < rowCount; row++) {
      words[to] = view[at + row * stride];
      to += present[row];
    }
  } else if (wordsPerCell === 2) {
    for (let row = 0; row < rowCount; row++) {
      const from = at + row * 2;
      words[to] = view[from];
      words[to + 1] = view[from + 1];
      to += present[row] << 1;
    }
  } else {
    for (let row = 0; row < rowCount; row++) {
      for (let word = 0; word < wordsPerCell; word++) words[to + word] = view[at + row * wordsPerCell + word];
      to += present[row] * wordsPerCell;
    }
  }
}
