import { batchEntry } from "./batch-entry.ts";
import type { FunctionEntry } from "./entry.ts";

/** txid_current(): for clients of PostgreSQL that tell transactions apart by it. */
export const txidCurrent: FunctionEntry[] = [
  batchEntry(
    "txid_current",
    [],
    "LONG",
    "A number of the statement that grows with time: its start in microseconds since 1970.",
    (_, out, rowCount, context) => out.values.fill(context.nowMicros, 0, rowCount),
    [["txid_current()", 1_700_000_000_000_000]],
    { volatility: "stable" },
  ),
];
