/**
 * The planner: rules from plan to plan, each in its file, in the order that lets one feed the next.
 */
import type { Plan } from "../plan.ts";

export function optimize(plan: Plan): Plan {
  return plan;
}
