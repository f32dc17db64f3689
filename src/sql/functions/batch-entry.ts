/** Entries of functions that run over whole columns in TypeScript. */
import type { BatchFunction, FunctionEntry } from "./entry.ts";

/** Immutable, and with its own rule for nulls, unless `more` says otherwise. `batch` is left out where `more` has another way. */
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
