/** Bytes for `Code.shuffle`. Lanes of the second vector follow those of the first. */

/** Lanes of this many bytes. */
export function lanesOf(width: number, lanes: readonly number[]): number[] {
  return lanes.flatMap((lane) => Array.from({ length: width }, (_, byte) => width * lane + byte));
}

/** Lanes of 32 bits of two vectors in turn: the first two of each, and the last two. */
export const FIRST_PAIRS = lanesOf(4, [0, 4, 1, 5]), LAST_PAIRS = lanesOf(4, [2, 6, 3, 7]);
