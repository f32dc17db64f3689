/** Picks texts at random by weights, for rnd_symbol_weighted() and rnd_symbol_zipf(). */
import type { BatchOut, FunctionContext } from "./entry.ts";
import { unit } from "./generators.ts";

export interface WeightedTexts {
  texts: readonly Uint8Array[];
  /** Sums of the weights up to and including each text. */
  sums: Float64Array;
}

const encoder = new TextEncoder();

export function weightedTexts(texts: readonly string[], weights: readonly number[]): WeightedTexts {
  let sum = 0;
  return { texts: texts.map((text) => encoder.encode(text)), sums: Float64Array.from(weights, (each) => sum += each) };
}

export function setPicked({ texts, sums }: WeightedTexts, out: BatchOut, rowCount: number, context: FunctionContext) {
  const total = sums[sums.length - 1];
  for (let row = 0; row < rowCount; row++) {
    const wanted = unit(context) * total;
    let low = 0, high = sums.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle] > wanted) high = middle;
      else low = middle + 1;
    }
    out.setText(row, texts[low]);
    if ((row & 4095) === 4095) context.poll();
  }
}
