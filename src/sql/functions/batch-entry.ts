/** Entries of functions that process whole columns in TypeScript. */
import type { BatchFunction, FunctionEntry } from "./entry.ts";

/** By default immutable, with its own rule for nulls. `batch` is omitted if `more` has another implementation. */
export function batchEntry(
  name: string,
  args: FunctionEntry["args"],
  returns: FunctionEntry["returns"],
  summary: string,
  batch: BatchFunction | undefined,
  examples: [sql: string, gives: unknown][] = [],
  more: Partial<FunctionEntry> = {},
): FunctionEntry {
  return {
    name,
    args,
    returns,
    nulls: "custom",
    volatility: "immutable",
    summary,
    examples: examples.map(([sql, gives]) => ({ sql, gives })),
    ...(batch === undefined ? {} : { batch }),
    ...more,
  };
}
