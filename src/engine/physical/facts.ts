/** The input of the physical pass besides the plan. */
import type { ScanNode } from "../../sql/plan.ts";
import type { Dictionary, ScanSource, SegmentList } from "../../storage/contract.ts";
import { assert } from "../../assert.ts";
import { NO_DICTIONARY } from "../columns.ts";
import type { FunctionRegistry } from "../contract.ts";
import type { AheadLimits } from "./plan.ts";

export interface PlanFacts {
  functions: FunctionRegistry;
  /** By scan id. */
  sources: readonly ScanSource[];
  /** True if operators may write to disk. */
  spills?: boolean;
  /** Tests lower these to choose the algorithms for many rows. */
  thresholds?: { distinctRowsMin?: number; helpFromRows?: number; ahead?: AheadLimits };
}

export function sourceOf({ id }: ScanNode, { sources }: Pick<PlanFacts, "sources">): ScanSource {
  const source = sources[id];
  assert(source !== undefined, "every scan of a plan has a source");
  return source;
}

/** By the scan's columns. */
export function scanDictionaries(node: ScanNode, source: ScanSource): (Dictionary | undefined)[] {
  return node.columns.map(({ type }, k) => type === "SYMBOL" ? source.dictionaries[k] ?? NO_DICTIONARY : undefined);
}

/** By the statistics: true if the column may have nulls. */
export function hasNulls(segments: SegmentList, column: number): boolean {
  return segments.hasNulls?.(column) ??
    Iterator.from(segments).some(({ chunks }) => (chunks[column]?.stats.nullCount ?? 1) > 0);
}
