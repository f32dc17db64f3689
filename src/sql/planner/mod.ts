/**
 * The planner: rules from plan to plan, one in each file, in an order in which each benefits from the previous ones.
 */
import { VERIFY } from "../../assert.ts";
import type { BoundStatement, Plan } from "../plan.ts";
import type { EvaluationContext } from "./evaluate.ts";
import { foldConstants } from "./fold-constants.ts";
import { extractIntervals } from "./intervals.ts";
import { mergeProjections } from "./merge-projections.ts";
import { mapStatement } from "./nodes.ts";
import { numberScans } from "./number-scans.ts";
import { pruneColumns } from "./prune-columns.ts";
import { pushFilters } from "./push-filters.ts";
import { pushLimits } from "./push-limits.ts";
import { shiftSums } from "./shift-sums.ts";
import { dropSorts, limitSorts } from "./sorts.ts";
import { verifyPlan, verifyScanIds } from "./verify.ts";

export { isImmutable, usesClock } from "./clock.ts";

/** With `context.nowMicros` the plan is for one execution only, so now() is a constant. */
export function optimize(plan: Plan, context: EvaluationContext = {}): Plan {
  const { columns } = plan;
  const folded = foldConstants(plan, context);
  const filtered = extractIntervals(pushFilters(shiftSums(mergeProjections(folded))));
  const sorted = limitSorts(dropSorts(pushLimits(filtered)));
  const pruned = numberScans(foldConstants(mergeProjections(pruneColumns(sorted)), context));
  if (VERIFY) {
    verifyPlan(pruned);
    verifyScanIds(pruned);
  }
  // The answer's column names are those of the statement, whichever node produces the columns.
  return pruned.columns === columns ? pruned : { ...pruned, columns };
}

/** Optimizes every plan of a statement. */
export function optimizeStatement(statement: BoundStatement, context: EvaluationContext = {}): BoundStatement {
  return mapStatement(statement, (plan) => optimize(plan, context));
}
