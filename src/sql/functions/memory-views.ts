/**
 * Bytes of shared memory for loops. Addresses reach beyond 2^31, and an index that is no 32-bit integer makes V8 read a typed array
 * some fifty times as slowly (measured: 8 ns against 312 ns for the length of a short text). So the upper half has a view of its own.
 */
import type { BatchColumn } from "./entry.ts";

export interface MemoryViews {
  /** All of memory, indexed by addresses below 2^31. */
  low: Uint8Array;
  /** From 2^31 on. */
  high: Uint8Array;
}

const HALF = 0x80000000;
const known = new WeakMap<Uint8Array, MemoryViews>();

/** The views of a memory: asked for once a batch. */
export function viewsOf(memory: Uint8Array): MemoryViews {
  let found = known.get(memory);
  if (found === undefined) {
    const high = memory.length > HALF ? new Uint8Array(memory.buffer, memory.byteOffset + HALF) : memory.subarray(0, 0);
    known.set(memory, found = { low: memory, high });
  }
  return found;
}

/** The view in which the text of a row lies, at `offsetOf` it. */
export function viewOf(views: MemoryViews, column: BatchColumn, row: number): Uint8Array {
  return column.values[2 * row] < 0 ? views.high : views.low;
}

export function offsetOf(column: BatchColumn, row: number): number {
  return column.values[2 * row] & 0x7fffffff;
}

/** What to add to an offset to have the address again. */
export function baseOf(column: BatchColumn, row: number): number {
  return column.values[2 * row] < 0 ? HALF : 0;
}
