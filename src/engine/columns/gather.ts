/** Rows of a column by their numbers, moved together. */
import type { SharedHeap } from "../../storage/heap.ts";
import { typeOf } from "../../types/mod.ts";
import { gatherOf } from "../wasm/gather.ts";

/** Eight bytes of null, repeated for wider types. */
function nullWord(type: string): bigint {
  const [low, high] = typeOf(type).nullWords;
  return high === undefined ? BigInt(low) : BigInt.asUintN(32, BigInt(low)) | BigInt(high) << 32n;
}

/**
 * Copies rows `indices[0 … n-1]` of the column at `source` to `target`. With `nulls`, index -1 gives the type's null.
 */
export function gather(
  heap: SharedHeap,
  type: string,
  source: number,
  indices: Int32Array,
  n: number,
  target: number,
  nulls: boolean,
): void {
  const width = typeOf(type).width;
  if (indices.buffer === heap.buffer) {
    gatherOf(heap.memory, width, nulls)(source, indices.byteOffset, n, target, nulls ? nullWord(type) : 0n);
    return;
  }
  if (nulls) return gatherWithNulls(heap, type, source, indices, n, target);
  if (width === 8) {
    const i32 = heap.i32, from = source >>> 2;
    let to = target >>> 2;
    for (let i = 0; i < n; i++, to += 2) {
      const at = from + indices[i] * 2;
      i32[to] = i32[at];
      i32[to + 1] = i32[at + 1];
    }
  } else if (width === 4) {
    const i32 = heap.i32, from = source >>> 2, to = target >>> 2;
    for (let i = 0; i < n; i++) i32[to + i] = i32[from + indices[i]];
  } else if (width === 1) {
    const i8 = heap.i8;
    for (let i = 0; i < n; i++) i8[target + i] = i8[source + indices[i]];
  } else if (width === 2) {
    const i16 = heap.i16, from = source >>> 1, to = target >>> 1;
    for (let i = 0; i < n; i++) i16[to + i] = i16[from + indices[i]];
  } else {
    const i32 = heap.i32, from = source >>> 2, words = width >>> 2;
    let to = target >>> 2;
    for (let i = 0; i < n; i++) {
      for (let k = 0, at = from + indices[i] * words; k < words; k++) i32[to++] = i32[at++];
    }
  }
}

function gatherWithNulls(
  heap: SharedHeap,
  type: string,
  source: number,
  indices: Int32Array,
  n: number,
  target: number,
): void {
  const width = typeOf(type).width;
  if (width <= 2) {
    const view = width === 1 ? heap.i8 : heap.i16, shift = width - 1;
    const from = source >>> shift, to = target >>> shift;
    for (let i = 0; i < n; i++) view[to + i] = indices[i] < 0 ? 0 : view[from + indices[i]];
    return;
  }
  const i32 = heap.i32, from = source >>> 2, words = width >>> 2, none = typeOf(type).nullWords;
  let to = target >>> 2;
  for (let i = 0; i < n; i++) {
    const row = indices[i];
    if (row < 0) { for (let k = 0; k < words; k++) i32[to++] = none[k]; }
    else for (let k = 0, at = from + row * words; k < words; k++) i32[to++] = i32[at++];
  }
}
