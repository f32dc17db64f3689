/**
 * Rows of a scan that are found by the postings of a symbol column: its conditions allow only few symbols. The other conditions are tested on
 * the rows that are found.
 */
import type { Expr } from "../../sql/plan.ts";
import type { Dictionary, ScanSource } from "../../storage/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { QueryContext } from "../contract.ts";
import { type AllowedSymbols, allowedSymbols } from "../physical/symbols.ts";
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
  const codes = new Set<number>();
  for (const value of best.values) {
    const code = value === null ? -1 : codeOf(context.heap, best.dictionary, value);
    if (code !== undefined) codes.add(code);
  }
  return { column: best.column, codes: [...codes].sort((a, b) => a - b) };
}

/** Codes that this thread has looked up: a dictionary is searched entry by entry. */
const known = new Map<string, number>();
const KNOWN_MAX = 4_096;

/** The code of a text, or undefined if the dictionary does not have it. */
function codeOf(heap: SharedHeap, { tableId, columnId, entries, count }: Dictionary, text: string): number | undefined {
  const bytes = new TextEncoder().encode(text), { i32, u32, u8 } = heap, first = entries / 4;
  const isAt = (code: number) => {
    if (i32[first + 2 * code + 1] !== bytes.length) return false;
    const at = u32[first + 2 * code];
    for (let k = 0; k < bytes.length; k++) if (u8[at + k] !== bytes[k]) return false;
    return true;
  };
  const key = `${tableId}.${columnId}.${text}`, before = known.get(key);
  if (before !== undefined && before < count && isAt(before)) return before;
  for (let code = 0; code < count; code++) {
    if (!isAt(code)) continue;
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(key, code);
    return code;
  }
  return undefined;
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
