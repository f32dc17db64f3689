/**
 * Plans of which something becomes known at execution only: the values of parameters, and now(). The rules run once for all executions.
 * Each execution then changes the nodes with such expressions, as the rules would have with these values.
 */
import type { Value } from "../../types/mod.ts";
import { and, columnsRead, conjuncts, rewrite } from "../binder/plans.ts";
import { parameterValue, substituteParameters } from "../parameters.ts";
import { childrenOf, type Expr, type FilterNode, inputsOf, type Interval, type Plan } from "../plan.ts";
import { remembered } from "../remembered.ts";
import { isStable } from "./clock.ts";
import type { EvaluationContext } from "./evaluate.ts";
import { foldExpr } from "./fold-constants.ts";
import { intersect, intervalsOf } from "./intervals.ts";
import { optimize } from "./mod.ts";
import { mapNodeExpressions, nodeExpressions, withInputs } from "./nodes.ts";
import { limitSorts } from "./sorts.ts";

/** The plan for one execution. `context` has the clock if the plan uses it. */
export function completePlan(plan: Plan, values: readonly Value[], context: EvaluationContext): Plan {
  const template = templateOf(plan);
  try {
    return completed(template, (e) => knownExpr(e, values, context));
  } catch (error) {
    if (!(error instanceof OtherShape)) throw error;
    return optimize(substituteParameters(plan, values), context);
  }
}

/** What the rules make of the plan without the values. */
const templateOf = remembered((plan: Plan) => optimize(plan));

/** With these values, the rules would make a plan of other nodes, columns or conditions: one always holds, never, or reaches the rows of buckets. */
class OtherShape extends Error {}

function completed(plan: Plan, known: (e: Expr) => Expr): Plan {
  if (!isOpenBelow(plan)) return plan;
  const given = withInputs(plan, inputsOf(plan).map((input) => completed(input, known)));
  if (!isOpenItself(plan)) return given;
  const node = mapNodeExpressions(given, (e) => isOpen(e) ? known(e) : e);
  switch (node.node) {
    case "scan":
      return withIntervals(node);
    case "filter":
      refuseConstants(node.predicate);
      if (asksForBuckets(node)) throw new OtherShape();
      return node;
    case "join":
      if (node.residual !== undefined) refuseConstants(node.residual);
      return node;
    case "limit":
      return limitSorts(node);
    default:
      return node;
  }
}

function knownExpr(e: Expr, values: readonly Value[], context: EvaluationContext): Expr {
  if (e.kind === "parameter") return parameterValue(e, values)!;
  const known = foldExpr(rewrite(e, (inner) => parameterValue(inner, values)), context);
  // Other columns may be read then.
  if (canShrink(e) && columnsRead(known).size !== columnCountOf(e)) throw new OtherShape();
  return known;
}

function withIntervals(node: Extract<Plan, { node: "scan" }>): Plan {
  const { predicate, timestamp } = node, rest: Expr[] = [];
  if (predicate === undefined) return node;
  let intervals: Interval[] | undefined = node.intervals;
  for (const part of conjuncts(predicate)) {
    if (part.kind === "constant") throw new OtherShape();
    const found = timestamp < 0 ? undefined : intervalsOf(part, timestamp);
    if (found === undefined) rest.push(part);
    else intervals = intervals === undefined ? found : intersect(intervals, found);
  }
  return { ...node, predicate: and(rest), intervals };
}

/** The rule for filters leaves out rows of other buckets. */
function asksForBuckets({ input, predicate }: FilterNode): boolean {
  return input.node === "sample" && conjuncts(predicate).some((part) => intervalsOf(part, 0) !== undefined);
}

function refuseConstants(predicate: Expr): void {
  if (conjuncts(predicate).some(({ kind }) => kind === "constant")) throw new OtherShape();
}

/** True if its value depends on parameters or the clock. */
function isOpen(e: Expr): boolean {
  if (e.kind === "constant" || e.kind === "column") return false;
  return e.kind === "parameter" || hasOpen(e);
}

const hasOpen = remembered((e: Expr) => isStable(e) || childrenOf(e).some(isOpen));

/** True if some of its columns may be without effect, depending on values. */
const canShrink: (e: Expr) => boolean = remembered((e) =>
  e.kind === "case" || (e.kind === "call" && /^(and|or)\(/.test(e.function)) || childrenOf(e).some(canShrink)
);

const columnCountOf = remembered((e: Expr) => columnsRead(e).size);

const isOpenItself = remembered((node: Plan) => nodeExpressions(node).some(isOpen));
const isOpenBelow: (plan: Plan) => boolean = remembered((plan) =>
  isOpenItself(plan) || inputsOf(plan).some(isOpenBelow)
);
