import { batchEntry } from "./batch-entry.ts";
import type { FunctionEntry } from "./entry.ts";

/** txid_current(), for PostgreSQL clients that distinguish transactions by it. */
export const txidCurrent: FunctionEntry[] = [
  batchEntry(
    "txid_current",
    [],
    "LONG",
    "A number that increases with each statement: its start in microseconds since 1970.",
    (_, out, rowCount, context) => out.values.fill(context.nowMicros, 0, rowCount),
    [["txid_current()", 1_700_000_000_000_000]],
    { volatility: "stable" },
  ),
];
