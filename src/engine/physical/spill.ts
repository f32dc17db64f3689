/** Chooses how operators that keep rows or groups continue on disk when their memory is short. */
import type { PlanFacts } from "./facts.ts";
import type { SpillWay } from "./plan.ts";

type Spills = Pick<PlanFacts, "spills">;

/** For operators that sort. */
export function sortedRuns({ spills }: Spills): SpillWay | undefined {
  return spills ? "sorted runs" : undefined;
}

/** For operators that bring rows with equal keys together. Without keys every row may belong to every other. */
export function hashPartitions(keys: readonly unknown[], { spills }: Spills): SpillWay | undefined {
  return spills && keys.length > 0 ? "hash partitions" : undefined;
}
