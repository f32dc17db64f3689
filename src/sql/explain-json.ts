/**
 * EXPLAIN (FORMAT JSON). Names are those of PostgreSQL where it has one, as its clients look for them.
 * Source: https://www.postgresql.org/docs/current/sql-explain.html
 */
import type { ExplainedNode, ExplainedPlan } from "../api.ts";

export function explainJson({ root, executionNanos, memoryPeakBytes, changedRows }: ExplainedPlan): string {
  const plan = {
    Plan: nodeOf(root),
    "Changed Rows": changedRows,
    "Execution Time": msOf(executionNanos),
    "Peak Memory Bytes": memoryPeakBytes,
  };
  return JSON.stringify([plan], null, 2);
}

/** Attributes without a value are left out. Times are in milliseconds. */
function nodeOf({ text, details, notes, measured, inputs }: ExplainedNode): Record<string, unknown> {
  return {
    "Node Type": text,
    Details: details.length === 0 ? undefined : details,
    Notes: notes.length === 0 ? undefined : notes,
    "Actual Rows": measured?.rows,
    "Actual Total Time": msOf(measured?.nanos),
    "Actual Own Time": msOf(measured?.ownNanos),
    "Output Bytes": measured?.bytes,
    "Read Rows": measured?.rowsRead,
    "Read Bytes": measured?.bytesRead,
    "Peak Memory Bytes": measured?.memoryPeakBytes,
    Plans: inputs.length === 0 ? undefined : inputs.map(nodeOf),
  };
}

function msOf(nanos: number | undefined): number | undefined {
  return nanos === undefined ? undefined : Math.round(nanos / 1e3) / 1e3;
}
