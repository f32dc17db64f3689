/** Times as pairs of words, low and high, because a BigInt for each row takes more time than all else. */
import type { BatchColumn, BatchOut } from "./entry.ts";

/** High word of the null; the low word is 0. */
export const NULL_HIGH = -2147483648;
const WORD = 4294967296;

/** The words of a column of 64-bit values. */
export function wordsOf({ values }: BatchColumn | BatchOut): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, 2 * values.length);
}

/** Writes `low` and `high` plus `more`, which is a safe integer, at a row. */
export function writeSum(words: Int32Array, row: number, low: number, high: number, more: number): void {
  const sum = (low >>> 0) + (more - Math.floor(more / WORD) * WORD);
  words[2 * row] = sum;
  words[2 * row + 1] = high + Math.floor(more / WORD) + (sum >= WORD ? 1 : 0);
}

/** Writes a safe integer at a row. */
export function writeNumber(words: Int32Array, row: number, value: number): void {
  words[2 * row] = value;
  words[2 * row + 1] = Math.floor(value / WORD);
}
