/**
 * Plans that say now() and the like: known only when they run, but then for the whole run. Planned again at that moment, with
 * the clock, they prune by it.
 */
import { createRegistry } from "../functions/mod.ts";
import { childrenOf, type Expr, type Plan } from "../plan.ts";
import { mapNodeExpressions, visitPlan } from "./nodes.ts";

const registry = createRegistry();
/** Plans of prepared statements are asked about at every execution. */
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
