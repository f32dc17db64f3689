/**
 * Rows of a scan that are found by the postings of a symbol column: its conditions allow only few symbols. The other conditions are tested on
 * the rows that are found.
 */
import type { Expr } from "../../sql/plan.ts";
import type { Dictionary, ScanSource } from "../../storage/contract.ts";
import type { QueryContext } from "../contract.ts";
import { allowedSymbols } from "../physical/symbols.ts";
import { type AllowedSymbols, codesOfValues } from "../symbol-codes.ts";
import { LOOKUP_SEGMENTS, LOOKUP_SYMBOLS_MAX } from "../physical/thresholds.ts";
import type { Codes, Morsel } from "./morsel.ts";

/** Undefined if the predicates do not restrict a symbol to few values. Of several columns, the one with the most symbols. */
export function codesOf(
  source: ScanSource,
  predicates: readonly Expr[],
  context: Pick<QueryContext, "heap" | "functions">,
): Codes | undefined {
  let best: AllowedSymbols & { dictionary: Dictionary } | undefined;
  for (const allowed of predicates.flatMap((predicate) => allowedSymbols(predicate, context))) {
    const dictionary = source.dictionaries[allowed.column];
    if (dictionary === undefined || allowed.values.length > LOOKUP_SYMBOLS_MAX) continue;
    if (best === undefined || dictionary.count > best.dictionary.count) best = { ...allowed, dictionary };
  }
  if (best === undefined) return undefined;
  return { column: best.column, codes: codesOfValues(context.heap, best.dictionary, best.values) };
}

/** Replaces morsels of neighbours that have postings by fewer ones that look them up. */
export function lookedUp(
  morsels: readonly Morsel[],
  { column, codes }: Codes,
  source: ScanSource,
  context: Pick<QueryContext, "pool">,
): Morsel[] {
  const result: Morsel[] = [], symbols = source.dictionaries[column]?.count ?? 1;
  for (const morsel of morsels) {
    if (!context.pool.isIndexed(source, morsel.segment, column)) {
      result.push(morsel);
      continue;
    }
    let last = result.at(-1);
    if (last?.lookup === undefined || last.lookup.pieces.length >= LOOKUP_SEGMENTS) {
      result.push(last = { segment: morsel.segment, start: 0, end: 0, lookup: { column, codes, pieces: [] } });
    }
    last.lookup!.pieces.push(morsel);
    // As many as there would be if all symbols were equally frequent.
    last.end += Math.ceil((morsel.end - morsel.start) * codes.length / symbols);
  }
  return result;
}
