/** Picks texts at random by weights, for rnd_symbol_weighted() and rnd_symbol_zipf(). */
import type { BatchOut, FunctionContext } from "./entry.ts";
import { unit } from "./generators.ts";

export interface WeightedTexts {
  textOf: (index: number) => string | Uint8Array;
  /** Sums of the weights up to and including each text. */
  sums: Float64Array;
}

const POLL_ROWS = 4_096;

/** `count` texts; `weightOf` gives the weight of each. */
export function weightedTexts(
  count: number,
  textOf: WeightedTexts["textOf"],
  weightOf: (index: number) => number,
  context: FunctionContext,
): WeightedTexts {
  context.memory.keep(count * Float64Array.BYTES_PER_ELEMENT);
  const sums = new Float64Array(count);
  for (let k = 0, sum = 0; k < count; k++) {
    sums[k] = sum += weightOf(k);
    if (k % POLL_ROWS === 0) context.poll();
  }
  return { textOf, sums };
}

export function setPicked({ textOf, sums }: WeightedTexts, out: BatchOut, rowCount: number, context: FunctionContext) {
  const total = sums[sums.length - 1];
  for (let row = 0; row < rowCount; row++) {
    const wanted = unit(context) * total;
    let low = 0, high = sums.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle] > wanted) high = middle;
      else low = middle + 1;
    }
    out.setText(row, textOf(low));
    if (row % POLL_ROWS === 0) context.poll();
  }
}
