/** Chooses how LIMIT finds its rows. Bounds of the same sign are swapped if they are reversed. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Expr, LimitNode, Plan } from "../../sql/plan.ts";
import type { PlanFacts } from "./facts.ts";
import { isVolatile } from "./functions.ts";
import type { LimitWay } from "./plan.ts";

/** The choice for any input. */
export function limitWay(node: LimitNode): LimitWay {
  let low = node.low === undefined ? undefined : bound(node.low);
  // A null, as of a parameter, is no limit.
  if (low === undefined && isNull(node.high)) return { kind: "first", from: 0, to: Number.MAX_SAFE_INTEGER };
  let high = bound(node.high);
  if (low === undefined) {
    if (high >= 0) return { kind: "first", from: 0, to: high };
    low = high;
    high = 0;
  }
  if (low >= 0 && high >= 0) return { kind: "first", from: Math.min(low, high), to: Math.max(low, high) };
  if (low >= 0) return { kind: "without ends", skip: low, without: -high };
  if (high > 0) {
    throw new SqlError(
      "A limit from a negative to a positive bound is not supported",
      0,
      SQLSTATE.invalidParameter,
    );
  }
  return { kind: "last", count: 0 - Math.min(low, high), without: 0 - Math.max(low, high) };
}

/**
 * The choice for this input, and how to read it: the last rows of a table are read from its end, and those of a Parquet file from its last
 * row groups.
 */
export function limitOver(node: LimitNode, facts: Pick<PlanFacts, "functions">): { way: LimitWay; input: Plan } {
  const way = limitWay(node);
  if (way.kind !== "last") return { way, input: node.input };
  const backwards = way.without === 0 ? reversed(node.input, facts) : undefined;
  if (backwards === undefined) return { way, input: endOf(node.input, way.count, facts) ?? node.input };
  return { way: { kind: "last of reversed", count: way.count }, input: backwards };
}

const isNull = (expression: Expr): boolean => expression.kind === "constant" && expression.value === null;

function bound(expression: Expr): number {
  if (
    expression.kind !== "constant" || expression.value === null || typeof expression.value === "string" ||
    typeof expression.value === "boolean"
  ) {
    throw new SqlError(
      "A limit must be a number",
      expression.kind === "parameter" || expression.kind === "call" ? expression.at : 0,
      SQLSTATE.invalidParameter,
    );
  }
  return Number(expression.value);
}

/** At least the last `count` rows, if the others need not be read: a Parquet file below projections. */
function endOf(plan: Plan, count: number, facts: Pick<PlanFacts, "functions">): Plan | undefined {
  if (plan.node === "parquet") return { ...plan, lastRows: count };
  if (plan.node !== "project" || plan.expressions.some((expression) => isVolatile(expression, facts))) return undefined;
  const input = endOf(plan.input, count, facts);
  return input && { ...plan, input };
}

/** The same rows in reverse order, if that is free: a scan below filters and projections. */
function reversed(plan: Plan, facts: Pick<PlanFacts, "functions">): Plan | undefined {
  if (plan.node === "scan") return { ...plan, reverse: !plan.reverse };
  if (plan.node !== "filter" && plan.node !== "project") return undefined;
  const expressions = plan.node === "filter" ? [plan.predicate] : plan.expressions;
  // Functions that depend on previous rows would give different values.
  if (expressions.some((expression) => isVolatile(expression, facts))) return undefined;
  const input = reversed(plan.input, facts);
  return input && { ...plan, input };
}
