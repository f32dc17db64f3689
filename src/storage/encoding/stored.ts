/**
 * The form in which a chunk goes to a data file: encoded where that is smaller, otherwise as it is in memory. Texts have offsets there
 * instead of addresses. It is made in steps, so that a thread that has more urgent work can do that in between.
 */
import { LAYOUT_WIDTH, typeOf } from "../../types/mod.ts";
import type { SharedHeap } from "../heap.ts";
import type { Codecs, Stored } from "./codecs.ts";

/** The values of a column of a segment, in the shared memory. */
export interface ChunkValues {
  /** Name of the column's type. */
  readonly type: string;
  readonly address: number;
  readonly rowCount: number;
  /** Codes of symbols are followed by postings where they pay. */
  readonly isIndexed: boolean;
}

/** The result is valid until the next use of `codecs`, which is not used between two steps. `codecs` is undefined: nothing is encoded. */
export function* storedForm(
  heap: SharedHeap,
  codecs: Codecs | undefined,
  { type, address, rowCount, isIndexed }: ChunkValues,
): Generator<void, Stored> {
  const { layout, nullWords } = typeOf(type);
  const encoded = codecs && (yield* codecs.encodeSteps(layout, nullWords, address, rowCount, isIndexed));
  if (encoded !== undefined) return encoded;
  if (layout === "text") return { parts: compactTexts(heap, address, rowCount) };
  return { parts: [heap.u8.subarray(address, address + rowCount * LAYOUT_WIDTH[layout])] };
}

/** Runs all steps at once. */
export function atOnce<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value as T;
  }
}

/** Returns the pairs with offsets instead of addresses, and the texts, made contiguous. */
function compactTexts(heap: SharedHeap, address: number, rowCount: number): Uint8Array[] {
  const { i32, u8 } = heap;
  const pairs = new Int32Array(2 * rowCount);
  let bytes = 0;
  for (let row = 0, k = address / 4; row < rowCount; row++, k += 2) {
    const length = i32[k + 1];
    pairs[2 * row + 1] = length;
    if (length > 0) {
      pairs[2 * row] = bytes;
      bytes += length;
    }
  }
  const texts = new Uint8Array(bytes);
  let runStart = 0, runEnd = 0, at = 0;
  for (let row = 0, k = address / 4; row < rowCount; row++, k += 2) {
    const length = i32[k + 1];
    if (length <= 0) continue;
    const from = i32[k] >>> 0;
    if (from !== runEnd) {
      if (runEnd > runStart) texts.set(u8.subarray(runStart, runEnd), at - (runEnd - runStart));
      runStart = from;
    }
    runEnd = from + length;
    at += length;
  }
  if (runEnd > runStart) texts.set(u8.subarray(runStart, runEnd), at - (runEnd - runStart));
  return [new Uint8Array(pairs.buffer), texts];
}
