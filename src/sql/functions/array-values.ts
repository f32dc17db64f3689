/** Values of arrays, and what the functions over them share. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { arrayDimensions } from "../../types/wide.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";
import { type DataViews, dataViewsOf, HALF } from "./memory-views.ts";
import { checkElements } from "./sizes.ts";

export interface Grid {
  shape: number[];
  values: Float64Array;
}

/** Of an address, its offset in the half of memory. */
const LOW_BITS = HALF - 1;

export const ARRAY = (name: string) => ({ name, type: "array" });
export const arrayTag = (dimensions: number): string => `DOUBLE${"[]".repeat(Math.max(1, dimensions))}`;
export const sizeOf = (shape: readonly number[]): number => shape.reduce((size, length) => size * length, 1);

/** Makes the elements of an array, which is valid until the next one is made. */
export function grid(shape: number[], value: (index: number) => number, context: FunctionContext): Grid {
  const size = sizeOf(shape);
  checkElements(size, context);
  const values = gridValues.of(size);
  for (let from = 0; from < size; from += POLL_ELEMENTS) {
    if (from > 0) context.poll();
    for (let i = from, to = Math.min(size, from + POLL_ELEMENTS); i < to; i++) values[i] = value(i);
  }
  return { shape, values };
}

export const POLL_ELEMENTS = 16_384;
const NO_VALUES = new Float64Array(0);
/** Of arrays that are used again whatever the lengths between. */
const FEW_ELEMENTS = 128;
/** Of the longest array that is kept. */
const MANY_ELEMENTS = 65_536;

/** Values of arrays that are used again: to allocate them takes longer than most functions. */
class Values {
  private readonly few: Float64Array<ArrayBuffer>[] = [];
  private last: Float64Array<ArrayBuffer> = NO_VALUES;

  /** So many values, which may be of a former array. */
  of(length: number): Float64Array<ArrayBuffer> {
    if (length <= FEW_ELEMENTS) return this.few[length] ??= new Float64Array(length);
    if (length > MANY_ELEMENTS) return new Float64Array(length);
    return this.last.length === length ? this.last : this.last = new Float64Array(length);
  }
}

/** Of `grid`. */
const gridValues = new Values();

/** Reads the arrays of a column, which are as `types/array-text.ts` describes. */
export class ArrayReader {
  /** Of the row that was opened last. */
  shape: number[] = [];
  /** The number of its elements. */
  length = 0;
  private view: DataView;
  private at = 0;
  /** Set by `grid`. */
  values = NO_VALUES;
  private readonly known = new Values();
  private readonly views: DataViews;

  constructor(private readonly column: BatchColumn, private readonly context: FunctionContext) {
    this.views = dataViewsOf(context.heap.buffer);
    this.view = this.views.low;
  }

  /** False if the array is NULL. */
  open(row: number): boolean {
    const { values } = this.column, sizeBytes = values[2 * row + 1];
    if (sizeBytes < 0) return false;
    const word = values[2 * row], view = this.view = word < 0 ? this.views.high : this.views.low, at = word & LOW_BITS;
    const dimensions = view.getUint32(at, true), { shape } = this;
    shape.length = dimensions;
    for (let k = 0; k < dimensions; k++) shape[k] = view.getUint32(at + 4 + 4 * k, true);
    this.at = at + 4 + 4 * dimensions;
    this.length = (sizeBytes - 4 - 4 * dimensions) / 8;
    if (this.length > POLL_ELEMENTS) this.context.poll();
    return true;
  }

  element(index: number): number {
    return this.view.getFloat64(this.at + 8 * index, true);
  }

  /** The array that was opened, valid until the next one is. */
  grid(): Grid {
    const { length, view, at } = this;
    if (length > FEW_ELEMENTS) this.context.memory.need(8 * length);
    const values = this.values = this.known.of(length);
    for (let k = 0; k < length; k++) values[k] = view.getFloat64(at + 8 * k, true);
    return this;
  }
}

const readers = new WeakMap<BatchColumn, ArrayReader>();

export function readerOf(column: BatchColumn, context: FunctionContext): ArrayReader {
  let reader = readers.get(column);
  if (reader === undefined) readers.set(column, reader = new ArrayReader(column, context));
  return reader;
}

/** The array of a row, valid until the column's next one is read. Undefined for null. */
export function read(column: BatchColumn, row: number, context: FunctionContext): Grid | undefined {
  const reader = readerOf(column, context);
  return reader.open(row) ? reader.grid() : undefined;
}

export function write(out: BatchOut, row: number, made: Grid | undefined): void {
  if (made === undefined) return out.setText(row, undefined);
  const { values } = made, { view, at } = writeShape(out, row, made.shape);
  for (let k = 0; k < values.length; k++) {
    const value = values[k];
    view.setFloat64(at + 8 * k, Number.isFinite(value) ? value : NaN, true);
  }
}

/** Begins an array. Its elements are to be written from `at` on. */
export function writeShape(out: BatchOut, row: number, shape: readonly number[]): { view: DataView; at: number } {
  const headBytes = 4 + 4 * shape.length, address = out.placeText(row, headBytes + 8 * sizeOf(shape));
  const { low, high } = dataViewsOf(out.values.buffer), isHigh = address >= HALF;
  const view = isHigh ? high : low, from = isHigh ? address - HALF : address;
  view.setUint32(from, shape.length, true);
  for (let k = 0; k < shape.length; k++) view.setUint32(from + 4 + 4 * k, shape[k], true);
  return { view, at: from + headBytes };
}

/** Calls `made` for each row, and polls for cancellation. */
export function each(
  made: (row: number, context: FunctionContext) => void,
  rowCount: number,
  context: FunctionContext,
): void {
  for (let row = 0; row < rowCount; row++) {
    made(row, context);
    if ((row & 255) === 255) context.poll();
  }
}

export function unfit(message: string, context: FunctionContext): SqlError {
  return new SqlError(message, context.at, SQLSTATE.invalidParameter);
}

/** Types of results by the types of the arguments. */
export const same = ([type]: string[]): string => type;
export const widest = (types: string[]): string => arrayTag(Math.max(...types.map(arrayDimensions)));
