/**
 * Plans with now() and similar functions. Their values are known only at execution, but constant during it. Such plans
 * are optimized again at execution with the clock, so that scans are pruned by it.
 */
import { registry } from "../functions/mod.ts";
import { childrenOf, type Expr, type Plan } from "../plan.ts";
import { mapNodeExpressions, visitPlan } from "./nodes.ts";

/** Cached, because each execution of a prepared statement asks for it. */
const known = new WeakMap<Plan, boolean>();

export function usesClock(plan: Plan): boolean {
  let answer = known.get(plan);
  if (answer === undefined) {
    answer = false;
    visitPlan(plan, (node) => {
      mapNodeExpressions(node, (e) => {
        if (isStable(e)) answer = true;
        return e;
      });
    });
    known.set(plan, answer);
  }
  return answer;
}

const unchanging = new WeakMap<Plan, boolean>();

/** True if the plan's functions give the same values in each run. */
export function isImmutable(plan: Plan): boolean {
  let answer = unchanging.get(plan);
  if (answer === undefined) {
    answer = true;
    visitPlan(plan, (node) => {
      mapNodeExpressions(node, (e) => {
        if (!hasImmutableCalls(e)) answer = false;
        return e;
      });
    });
    unchanging.set(plan, answer);
  }
  return answer;
}

function hasImmutableCalls(e: Expr): boolean {
  if (e.kind === "call" && registry.resolve(e.function).entry.volatility !== "immutable") return false;
  return childrenOf(e).every(hasImmutableCalls);
}

/** True if it calls a function whose value is constant during an execution only. */
export function isStable(e: Expr): boolean {
  if (e.kind === "call" && registry.resolve(e.function).entry.volatility === "stable") return true;
  return childrenOf(e).some(isStable);
}
