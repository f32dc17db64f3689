/** Properties of the functions in expressions and aggregates. */
import type { FunctionEntry, FusedAggregate } from "../../sql/functions/entry.ts";
import { type AggregateCall, childrenOf, type Expr } from "../../sql/plan.ts";
import { formOf } from "../compiler/expression.ts";
import type { PlanFacts } from "./facts.ts";

type Functions = Pick<PlanFacts, "functions">;

/** True if kernels compute the call. Otherwise it runs over batches. */
export function hasKernel({ function: id, type }: Expr & { kind: "call" }, { functions }: Functions): boolean {
  const { entry, types } = functions.resolve(id);
  return entry.emit !== undefined && [type, ...types].every((each) => formOf(each) !== undefined);
}

/** True if each evaluation may give a different value. */
export function isVolatile(expr: Expr, facts: Functions): boolean {
  if (expr.kind === "call" && facts.functions.resolve(expr.function).entry.volatility === "volatile") return true;
  return childrenOf(expr).some((child) => isVolatile(child, facts));
}

/** True if a plan has a volatile function anywhere. */
export function hasVolatile(plan: unknown, facts: Functions): boolean {
  if (typeof plan !== "object" || plan === null) return false;
  if ("kind" in plan && plan.kind === "call" && isVolatile(plan as Expr, facts)) return true;
  return Object.values(plan).some((value) => hasVolatile(value, facts));
}

/** True if the aggregate has a kernel form and is not DISTINCT. */
export function isFused({ function: id, distinct }: AggregateCall, { functions }: Functions): boolean {
  return !distinct && functions.resolve(id).entry.aggregate?.kind === "fused";
}

/** True if the state of the aggregate fits into the records of groups by keys. */
export function isInRecords(call: AggregateCall, facts: Functions): boolean {
  return isFused(call, facts) || (!call.distinct && keepsText(call, facts));
}

/** True if kernels compute the aggregate, by these keys or without any. */
export function isInKernel(call: AggregateCall, keys: readonly Expr[], facts: Functions): boolean {
  return keys.length > 0 ? isInRecords(call, facts) : isFused(call, facts);
}

/** True if it keeps one of the texts of its rows. */
export function keepsText({ function: id }: { function: string }, { functions }: Functions): boolean {
  return recordAggregate(functions.resolve(id).entry)?.replaces !== undefined;
}

/** The form of an aggregate for records of groups. */
export function recordAggregate({ aggregate }: FunctionEntry): FusedAggregate | undefined {
  return aggregate?.kind === "fused" ? aggregate : aggregate?.inRecords;
}

/** True if it counts the distinct values of one expression. */
export function isDistinctCount({ function: id, args, distinct }: AggregateCall, { functions }: Functions): boolean {
  if (args.length !== 1) return false;
  const { name } = functions.resolve(id).entry;
  return name === "count_distinct" || (name === "count" && distinct);
}
