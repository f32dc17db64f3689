/** Rule: merges a projection over a projection into one, and removes projections without effect. */
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
    // Only the answer uses the names of the input's columns; nodes that name their own columns keep them.
    node.columns.every((column, i) => column.name === node.input.columns[i]!.name);
}

/** Kinds of expressions that may be evaluated any number of times. */
const FREE: ReadonlySet<Expr["kind"]> = new Set(["column", "constant", "parameter"]);

/** Expressions that would then be evaluated more than once are not merged. */
function merge(outer: ProjectNode, inner: ProjectNode): ProjectNode {
  const uses = new Map<number, number>();
  const count = (e: Expr): void => {
    if (e.kind === "column") uses.set(e.index, (uses.get(e.index) ?? 0) + 1);
    else childrenOf(e).forEach(count);
  };
  outer.expressions.forEach(count);
  for (const [index, times] of uses) {
    const e = inner.expressions[index]!;
    if (isVolatile(e) || (times > 1 && !FREE.has(e.kind))) return outer;
  }
  // An unused volatile expression might advance a generator; it is removed nevertheless.
  const expressions = outer.expressions.map((e) =>
    rewrite(e, (x) => x.kind === "column" ? inner.expressions[x.index] : undefined)
  );
  return { ...outer, input: inner.input, expressions };
}
