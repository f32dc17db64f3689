/** What the functions of expressions and aggregates allow. */
import { type AggregateCall, childrenOf, type Expr } from "../../sql/plan.ts";
import type { PlanFacts } from "./facts.ts";

type Functions = Pick<PlanFacts, "functions">;

/** Does it give another value each time? */
export function isVolatile(expr: Expr, facts: Functions): boolean {
  if (expr.kind === "call" && facts.functions.resolve(expr.function).entry.volatility === "volatile") return true;
  return childrenOf(expr).some((child) => isVolatile(child, facts));
}

/** Has the aggregate a kernel form that takes all values? */
export function isFused({ function: id, distinct }: AggregateCall, { functions }: Functions): boolean {
  return !distinct && functions.resolve(id).entry.aggregate?.kind === "fused";
}

/** Does it count the distinct values of one expression? */
export function isDistinctCount({ function: id, args, distinct }: AggregateCall, { functions }: Functions): boolean {
  if (args.length !== 1) return false;
  const { name } = functions.resolve(id).entry;
  return name === "count_distinct" || (name === "count" && distinct);
}
