import { batchEntry } from "./batch-entry.ts";
import type { FunctionEntry } from "./entry.ts";
import { isText } from "./nodes.ts";
import { setPicked, type WeightedTexts, weightedTexts } from "./weighted-texts.ts";

const COUNT_MAX = 1_000_000;

const encoder = new TextEncoder();

/** rnd_symbol_zipf(): symbols whose frequencies fall by Zipf's law. */
export const rndSymbolZipf: FunctionEntry[] = [
  batchEntry(
    "rnd_symbol_zipf",
    [{ name: "symbol, …, alpha", type: "any", constant: true, variadic: true }],
    "SYMBOL_TEXT",
    "One of the symbols, the k-th with a probability in proportion to 1 / k^alpha. With a count in place of the symbols: sym0, sym1 ….",
    (columns, out, rowCount, context) => {
      let texts = context.state.get("texts") as WeightedTexts | undefined;
      if (texts === undefined) {
        const alpha = Number(columns.at(-1)!.constant);
        const isCounted = typeof columns[0].constant !== "string";
        const symbols = isCounted ? [] : columns.slice(0, -1).map((column) => encoder.encode(String(column.constant)));
        const count = isCounted ? Number(columns[0].constant) : symbols.length;
        const textOf = isCounted ? (k: number) => `sym${k}` : (k: number) => symbols[k];
        context.state.set("texts", texts = weightedTexts(count, textOf, (k) => (k + 1) ** -alpha, context));
      }
      setPicked(texts, out, rowCount, context);
    },
    [["SELECT rnd_symbol_zipf('a', 2.0) FROM long_sequence(1)", "a"]],
    {
      volatility: "volatile",
      check: (constants, types) => {
        if (constants.length < 2) return { message: "expected symbols, or a count of them, and alpha" };
        const last = constants.length - 1, alpha = constants[last];
        if (typeof alpha !== "number" && typeof alpha !== "bigint" || !(Number(alpha) > 0)) {
          return { argument: last, message: "alpha must be above 0" };
        }
        const isSymbol = (k: number) => (isText(types[k]) || types[k] === "CHAR") && constants[k] !== null;
        if (last === 1 && !isSymbol(0)) {
          const count = constants[0], isCount = typeof count === "number" || typeof count === "bigint";
          return isCount && Number(count) >= 1 && Number(count) <= COUNT_MAX
            ? undefined
            : { argument: 0, message: `expected a symbol, or a count from 1 to ${COUNT_MAX}` };
        }
        const other = constants.findIndex((_, k) => k < last && !isSymbol(k));
        return other < 0 ? undefined : { argument: other, message: "expected a symbol" };
      },
    },
  ),
];
