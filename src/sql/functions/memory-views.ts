/**
 * Views of shared memory for loops. V8 reads a typed array some fifty times as slowly with an index that is not a
 * 32-bit integer (measured: 8 ns against 312 ns for the length of a short text), and addresses exceed 2^31. So the
 * upper half has its own view.
 */
import type { BatchColumn } from "./entry.ts";

export interface MemoryViews {
  /** All of memory, indexed by addresses below 2^31. */
  low: Uint8Array;
  /** Addresses from 2^31 on. */
  high: Uint8Array;
}

/** The address at which the upper half begins. */
export const HALF = 0x80000000;
const known = new WeakMap<Uint8Array, MemoryViews>();

/** Returns the views of a memory. Call it once for each batch. */
export function viewsOf(memory: Uint8Array): MemoryViews {
  let found = known.get(memory);
  if (found === undefined) {
    const high = memory.length > HALF ? new Uint8Array(memory.buffer, memory.byteOffset + HALF) : memory.subarray(0, 0);
    known.set(memory, found = { low: memory, high });
  }
  return found;
}

/** The view that contains the text of a row, at offset `offsetOf`. */
export function viewOf(views: MemoryViews, column: BatchColumn, row: number): Uint8Array {
  return column.values[2 * row] < 0 ? views.high : views.low;
}

export function offsetOf(column: BatchColumn, row: number): number {
  return column.values[2 * row] & 0x7fffffff;
}

/** The address of offset 0 in that view. */
export function baseOf(column: BatchColumn, row: number): number {
  return column.values[2 * row] < 0 ? HALF : 0;
}

/** The same for values of any alignment. `low` has all of memory, so that a value may lie across the border. */
export interface DataViews {
  low: DataView;
  high: DataView;
}

const knownData = new WeakMap<ArrayBufferLike, DataViews>();

export function dataViewsOf(buffer: ArrayBufferLike): DataViews {
  let found = knownData.get(buffer);
  if (found === undefined) {
    const low = new DataView(buffer);
    knownData.set(buffer, found = { low, high: buffer.byteLength > HALF ? new DataView(buffer, HALF) : low });
  }
  return found;
}
