/** Rule: LIMIT goes below projections that can fail, also with a sort between, so that they fail for rows of the result only. */
import { registry } from "../functions/mod.ts";
import { childrenOf, type Expr, type LimitNode, type Plan, type ProjectNode } from "../plan.ts";
import { mapPlan } from "./nodes.ts";
import { isVolatile, substitute } from "./push-filters.ts";

export function pushLimits(plan: Plan): Plan {
  return mapPlan(plan, (node) => node.node === "limit" ? pushed(node) : node);
}

function pushed(limit: LimitNode): Plan {
  const project = projectFails(limit.input) ? lifted(limit.input) : undefined;
  if (project === undefined || project.expressions.some(isVolatile)) return limit;
  const { input } = project, { columns, timestamp, order } = input;
  return { ...project, columns: limit.columns, input: pushed({ ...limit, input, columns, timestamp, order }) };
}

/** True if a projection below can fail, with nothing but projections and sorts above it. */
function projectFails(plan: Plan): boolean {
  if (plan.node === "project" && plan.expressions.some(canFail)) return true;
  return (plan.node === "project" || plan.node === "sort") && projectFails(plan.input);
}

/** The projection, above the sort if it is below one whose keys cannot fail. */
function lifted(plan: Plan): ProjectNode | undefined {
  if (plan.node === "project") return plan;
  const project = plan.node === "sort" ? lifted(plan.input) : undefined;
  if (plan.node !== "sort" || project === undefined) return undefined;
  const keys = plan.keys.map((key) => ({ ...key, expression: substitute(key.expression, project.expressions) }));
  if (keys.some(({ expression }) => canFail(expression) || isVolatile(expression))) return undefined;
  const { input } = project, { columns, timestamp } = input;
  const { timestamp: ofSorted, order } = plan;
  const sort: Plan = { ...plan, keys, input, columns, timestamp };
  return { ...project, columns: plan.columns, timestamp: ofSorted, order, input: sort };
}

function canFail(e: Expr): boolean {
  if (e.kind === "call" && registry.resolve(e.function).entry.fallible !== undefined) return true;
  return childrenOf(e).some(canFail);
}
