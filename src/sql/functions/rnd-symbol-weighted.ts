import { batchEntry } from "./batch-entry.ts";
import type { FunctionEntry } from "./entry.ts";
import { isText } from "./nodes.ts";
import { setPicked, type WeightedTexts, weightedTexts } from "./weighted-texts.ts";

const encoder = new TextEncoder();

/** rnd_symbol_weighted(): symbols of given frequencies. */
export const rndSymbolWeighted: FunctionEntry[] = [
  batchEntry(
    "rnd_symbol_weighted",
    [{ name: "symbol, weight", type: "any", constant: true, variadic: true }],
    "SYMBOL_TEXT",
    "One of the symbols, each with a probability in proportion to its weight.",
    (columns, out, rowCount, context) => {
      let texts = context.state.get("texts") as WeightedTexts | undefined;
      if (texts === undefined) {
        const symbols = columns.filter((_, k) => k % 2 === 0).map((column) => encoder.encode(String(column.constant)));
        const weightOf = (k: number) => Number(columns[2 * k + 1].constant);
        context.state.set("texts", texts = weightedTexts(symbols.length, (k) => symbols[k], weightOf, context));
      }
      setPicked(texts, out, rowCount, context);
    },
    [["SELECT rnd_symbol_weighted('a', 0, 'b', 5) FROM long_sequence(1)", "b"]],
    {
      volatility: "volatile",
      check: (constants, types) => {
        if (constants.length % 2 !== 0) return { message: "expected pairs of a symbol and its weight" };
        for (let k = 0; k < constants.length; k += 2) {
          if (!isText(types[k]) && types[k] !== "CHAR" || constants[k] === null) {
            return { argument: k, message: "expected a symbol" };
          }
          const weight = constants[k + 1];
          if (typeof weight !== "number" && typeof weight !== "bigint" || !(Number(weight) >= 0)) {
            return { argument: k + 1, message: "expected a weight of 0 or more" };
          }
        }
        const total = constants.reduce<number>((sum, each, k) => k % 2 === 1 ? sum + Number(each) : sum, 0);
        return total > 0 && Number.isFinite(total) ? undefined : { message: "the sum of the weights must be above 0" };
      },
    },
  ),
];
