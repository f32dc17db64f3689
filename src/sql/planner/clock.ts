/**
 * Plans with now() and similar functions. Their values are known only at execution, but constant during it. Each execution completes
 * such plans with the clock (`complete.ts`), so that scans are pruned by it.
 */
import { registry } from "../functions/mod.ts";
import { childrenOf, type Expr, inputsOf, type Plan } from "../plan.ts";
import { remembered } from "../remembered.ts";
import { nodeExpressions } from "./nodes.ts";

export const usesClock: (plan: Plan) => boolean = remembered((plan) =>
  nodeExpressions(plan).some(isStable) || inputsOf(plan).some(usesClock)
);

/** True if the plan's functions give the same values in each run. */
export const isImmutable: (plan: Plan) => boolean = remembered((plan) =>
  nodeExpressions(plan).every(hasImmutableCalls) && inputsOf(plan).every(isImmutable)
);

function hasImmutableCalls(e: Expr): boolean {
  if (e.kind === "call" && registry.resolve(e.function).entry.volatility !== "immutable") return false;
  return childrenOf(e).every(hasImmutableCalls);
}

/** True if it calls a function whose value is constant during an execution only. */
export function isStable(e: Expr): boolean {
  if (e.kind === "call" && registry.resolve(e.function).entry.volatility === "stable") return true;
  return childrenOf(e).some(isStable);
}
