/** For EXPLAIN ANALYZE: an additional aggregate counts the rows that reach the groups. */
import type { QueryContext } from "../contract.ts";
import type { GroupSpec } from "../physical/plan.ts";

/** True if the number of passed rows is needed. */
export function isCounted(reader: number | undefined, { analysis }: QueryContext): reader is number {
  return analysis !== undefined && reader !== undefined;
}

/** With the number of rows as the last aggregate, if it is needed. */
export function countedSpec(spec: GroupSpec, reader: number | undefined, context: QueryContext): GroupSpec {
  if (!isCounted(reader, context)) return spec;
  // Without groups nothing else is counted.
  context.analysis!.countPassed(reader, 0);
  return { ...spec, calls: [...spec.calls, { function: "count()", args: [], type: "LONG" }] };
}

/** Counts the rows of some groups. `address`: the values of the last aggregate. */
export function countPassed(reader: number, address: number, groups: number, { heap, analysis }: QueryContext): void {
  let rows = 0n;
  for (const count of heap.i64.subarray(address / 8, address / 8 + groups)) rows += count;
  analysis!.countPassed(reader, Number(rows));
}
