/** Texts of columns, which are pairs of an address and a length, and of symbols, whose dictionaries have the pairs. */
import type { SharedHeap } from "../../storage/heap.ts";
import { layoutOf } from "../../types/mod.ts";
import type { Vector } from "../contract.ts";
import { pollLongText } from "../long-texts.ts";

/** Compares bytes, which is the order of code points. Null (length -1) is first. */
export function compareText(u8: Uint8Array, a: number, aLength: number, b: number, bLength: number): number {
  const n = aLength < bLength ? aLength : bLength;
  pollLongText(n);
  for (let i = 0; i < n; i++) {
    const difference = u8[a + i] - u8[b + i];
    if (difference !== 0) return difference;
  }
  return aLength - bLength;
}

/** Address and length of a row of a text or symbol column; the length of null is -1. */
export function textPair(heap: SharedHeap, vector: Vector, row: number): [address: number, length: number] {
  let at = (vector.address >>> 2) + row * 2;
  if (layoutOf(vector.type) === "symbol") {
    const code = heap.i32[(vector.address >>> 2) + row];
    if (code < 0) return [0, -1];
    at = (vector.dictionary!.entries >>> 2) + code * 2;
  }
  return [heap.u32[at], heap.i32[at + 1]];
}

/** The first row whose texts, added from `from` on, exceed the limit; at least `from` + 1. */
export function endOfTexts(
  { i32 }: SharedHeap,
  vectors: readonly Vector[],
  from: number,
  rowCount: number,
  bytesMax: number,
): number {
  let end = rowCount;
  for (const { type, address, dictionary } of vectors) {
    const layout = layoutOf(type);
    if (layout !== "text" && layout !== "symbol") continue;
    const words = address >>> 2, entries = (dictionary?.entries ?? 0) >>> 2;
    let bytes = 0;
    for (let row = from; row < end; row++) {
      if (layout === "text") bytes += i32[words + 2 * row + 1];
      else if (i32[words + row] >= 0) bytes += i32[entries + 2 * i32[words + row] + 1];
      if (bytes > bytesMax) end = row + 1;
    }
  }
  return end;
}

/** The same for rows `indices[from … to-1]`, and columns of texts. */
export function endOfPickedTexts(
  { i32 }: SharedHeap,
  texts: readonly Vector[],
  indices: Int32Array,
  from: number,
  to: number,
  bytesMax: number,
): number {
  if (texts.length === 0) return to;
  for (let at = from, bytes = 0; at < to; at++) {
    for (const { address } of texts) bytes += Math.max(0, i32[(address >>> 2) + 2 * indices[at] + 1]);
    if (bytes > bytesMax) return at + 1;
  }
  return to;
}
