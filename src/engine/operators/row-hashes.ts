/**
 * Hashes of rows by some columns. Rows with equal keys have equal hashes, also if one side has symbols and the other texts: null equals
 * null, -0 equals 0, and there is one NaN.
 */
import type { SharedHeap } from "../../storage/heap.ts";
import { type Layout, layoutOf, typeOf } from "../../types/mod.ts";
import type { Vector } from "../contract.ts";
import { mix } from "../../types/hash.ts";
import { pollLongText } from "../long-texts.ts";

const NULL_HASH = 0x2f0b4c4d;

function textHash(u8: Uint8Array, address: number, length: number): number {
  if (length < 0) return NULL_HASH;
  pollLongText(length);
  let hash = length;
  for (let i = 0; i < length; i++) hash = Math.imul(hash ^ u8[address + i], 0x01000193);
  return mix(hash);
}

const add = (hash: number, word: number) => Math.imul(hash, 0x9e3779b1) ^ mix(word);

/** Writes the hash of each row to `out`. */
export function hashRows(heap: SharedHeap, columns: readonly Vector[], rowCount: number, out: Int32Array): void {
  out.fill(0, 0, rowCount);
  for (const vector of columns) addColumn(heap, vector, layoutOf(vector.type), rowCount, out);
  for (let row = 0; row < rowCount; row++) out[row] = mix(out[row]);
}

function addColumn(
  heap: SharedHeap,
  { type, address, dictionary }: Vector,
  layout: Layout,
  n: number,
  out: Int32Array,
): void {
  const { i8, i16, i32, u32, u8 } = heap;
  switch (layout) {
    case "i8":
      for (let row = 0; row < n; row++) out[row] = add(out[row], i8[address + row]);
      break;
    case "i16":
      for (let row = 0, at = address >>> 1; row < n; row++) out[row] = add(out[row], i16[at + row]);
      break;
    case "f32":
      for (let row = 0, at = address >>> 2; row < n; row++) {
        const bits = i32[at + row], magnitude = bits & 0x7fffffff;
        out[row] = add(out[row], magnitude === 0 ? 0 : magnitude > 0x7f800000 ? 0x7fc00000 : bits);
      }
      break;
    case "f64":
      for (let row = 0, at = address >>> 2; row < n; row++, at += 2) {
        const low = i32[at], high = i32[at + 1], magnitude = high & 0x7fffffff;
        if (magnitude > 0x7ff00000 || (magnitude === 0x7ff00000 && low !== 0)) out[row] = add(out[row], 0x7ff80000);
        else out[row] = add(add(out[row], low), magnitude === 0 && low === 0 ? 0 : high);
      }
      break;
    case "text":
      for (let row = 0, at = address >>> 2; row < n; row++, at += 2) {
        out[row] = add(out[row], textHash(u8, u32[at], i32[at + 1]));
      }
      break;
    case "symbol": {
      const entries = (dictionary?.entries ?? 0) >>> 2, known = new Map<number, number>();
      for (let row = 0, at = address >>> 2; row < n; row++) {
        const code = i32[at + row];
        let hash = code < 0 ? NULL_HASH : known.get(code);
        if (hash === undefined) {
          known.set(code, hash = textHash(u8, u32[entries + 2 * code], i32[entries + 2 * code + 1]));
        }
        out[row] = add(out[row], hash);
      }
      break;
    }
    default: {
      const words = typeOf(type).width >>> 2;
      for (let row = 0, at = address >>> 2; row < n; row++) {
        for (let k = 0; k < words; k++) out[row] = add(out[row], i32[at++]);
      }
    }
  }
}
