/** EXPLAIN ANALYZE: one more aggregate counts the rows that have reached the groups. */
import type { QueryContext } from "../contract.ts";
import type { GroupSpec } from "../physical/plan.ts";

/** Does anybody ask how many rows have passed? */
export function isCounted(reader: number | undefined, { analysis }: QueryContext): reader is number {
  return analysis !== undefined && reader !== undefined;
}

export function withRowCount(spec: GroupSpec): GroupSpec {
  return { ...spec, calls: [...spec.calls, { function: "count()", args: [], type: "LONG" }] };
}

/** Counts the rows of some groups: `address` is where the last aggregate's values are. */
export function countPassed(reader: number, address: number, groups: number, { heap, analysis }: QueryContext): void {
  let rows = 0n;
  for (const count of heap.i64.subarray(address / 8, address / 8 + groups)) rows += count;
  analysis!.countPassed(reader, Number(rows));
}
