/** Gives each scan its id. It is the last rule, as rules and the binder may put one scan into several places. */
import type { Plan } from "../plan.ts";
import { mapPlan } from "./nodes.ts";

export function numberScans(plan: Plan): Plan {
  let next = 0;
  return mapPlan(plan, (node) => {
    if (node.node !== "scan") return node;
    const id = next++;
    return node.id === id ? node : { ...node, id };
  });
}
