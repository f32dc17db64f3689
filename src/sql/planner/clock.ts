/**
 * Plans that use now() and similar functions: the values are known only at execution, but constant for it. Such plans are planned again
 * at execution with the clock, so that they are pruned by it.
 */
import { createRegistry } from "../functions/mod.ts";
import { childrenOf, type Expr, type Plan } from "../plan.ts";
import { mapNodeExpressions, visitPlan } from "./nodes.ts";

const registry = createRegistry();
/** Cache, because executions of prepared statements ask each time. */
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

function isStable(e: Expr): boolean {
  if (e.kind === "call" && registry.resolve(e.function).entry.volatility === "stable") return true;
  return childrenOf(e).some(isStable);
}
