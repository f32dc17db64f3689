/** Assigns an id to each scan. This is the last rule, because rules and the binder may duplicate a scan. */
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
