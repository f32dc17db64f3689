/**
 * Rule: a projection of a projection is one projection; one that changes nothing is none.
 */
import { rewrite } from "../binder/plans.ts";
import { childrenOf, type Expr, type Plan, type ProjectNode } from "../plan.ts";
import { mapPlan } from "./nodes.ts";
import { isVolatile } from "./push-filters.ts";

export function mergeProjections(plan: Plan): Plan {
  return mapPlan(plan, (node) => {
    if (node.node !== "project") return node;
    const merged = node.input.node === "project" ? merge(node, node.input) : node;
    return isIdentity(merged)
      ? { ...merged.input, columns: merged.columns, timestamp: merged.timestamp, order: merged.order } as Plan
      : merged;
  });
}

function isIdentity(node: ProjectNode): boolean {
  return node.expressions.length === node.input.columns.length &&
    node.expressions.every((e, i) => e.kind === "column" && e.index === i) &&
    // Names of the input are read by nobody but the answer; a node that names its own columns keeps them.
    node.columns.every((column, i) => column.name === node.input.columns[i].name);
}

/** What would be worked out more than once stays where it is. */
function merge(outer: ProjectNode, inner: ProjectNode): ProjectNode {
  const uses = new Map<number, number>();
  const count = (e: Expr): void => {
    if (e.kind === "column") uses.set(e.index, (uses.get(e.index) ?? 0) + 1);
    else childrenOf(e).forEach(count);
  };
  outer.expressions.forEach(count);
  for (const [index, times] of uses) {
    const e = inner.expressions[index];
    if (isVolatile(e) || (times > 1 && e.kind !== "column" && e.kind !== "constant")) return outer;
  }
  // A volatile expression that nobody reads may still move a generator on; it is left out all the same.
  const expressions = outer.expressions.map((e) =>
    rewrite(e, (x) => x.kind === "column" ? inner.expressions[x.index] : undefined)
  );
  return { ...outer, input: inner.input, expressions };
}
