/** Binds calls of aggregates: `scope.aggregates` gets the call, and the expression a placeholder for its result. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { FunctionCall } from "../ast.ts";
import type { AggregateCall, Expr } from "../plan.ts";
import { resolveOverload } from "./calls.ts";
import { type ExpressionBinder, NO_CALLS_OF_ROWS, type Scope } from "./expression-binder.ts";
import { DISTINCT_FORMS } from "./text.ts";

export function bindAggregate(binder: ExpressionBinder, e: FunctionCall, name: string, scope: Scope): Expr {
  if (scope.aggregates === undefined) {
    const at = scope.isWindow ? 0 : e.at;
    throw new SqlError(`the aggregate ${e.name} is not allowed here`, at, SQLSTATE.grouping);
  }
  const call = aggregateCall(binder, e, name, scope);
  if (e.orderBy !== undefined) {
    if (scope.aggregateOrder === undefined) throw notSupported("ORDER BY in an aggregate here", e.orderBy[0]!.at);
    const inner: Scope = { ...scope, ...NO_CALLS_OF_ROWS, aliases: undefined };
    scope.aggregateOrder(e.orderBy.map((item) => binder.sortKey(item, inner)), call);
  }
  const index = scope.shareAggregates === false ? scope.aggregates.push(call) - 1 : sharedIndex(scope.aggregates, call);
  return { kind: "placeholder", of: "aggregate", index, type: call.type };
}

/** Binds an aggregate's call, with its arguments over the input. */
function aggregateCall(binder: ExpressionBinder, e: FunctionCall, name: string, scope: Scope): AggregateCall {
  const actual = e.distinct ? DISTINCT_FORMS[name] : name;
  if (actual === undefined) throw notSupported(`${e.name}(DISTINCT)`, e.args[0]?.at ?? e.at);
  const inner: Scope = { ...scope, ...NO_CALLS_OF_ROWS, windows: scope.windows, aliases: undefined };
  const star = e.args.length === 1 && e.args[0]!.kind === "star";
  if (star && name !== "count") {
    throw new SqlError(`${e.name} takes no star`, e.args[0]!.at, SQLSTATE.undefinedFunction);
  }
  const args = star ? [] : binder.args(e, inner).map((arg) => typedNull(binder, actual, arg));
  const resolved = resolveOverload(binder, actual, args, e.at, "function");
  if (resolved.isWindow) throw new SqlError(`${e.name} needs OVER`, e.at, SQLSTATE.grouping);
  return { function: resolved.id, args: resolved.args, distinct: false, type: resolved.type, at: e.at };
}

/** NULL as an argument of an aggregate becomes a number for sum and avg, and a text for min and max. */
function typedNull(binder: ExpressionBinder, aggregate: string, arg: Expr): Expr {
  if (arg.type !== "NULL") return arg;
  if (aggregate === "sum" || aggregate === "avg") return binder.nullOf("DOUBLE");
  return aggregate === "min" || aggregate === "max" ? binder.nullOf("STRING") : arg;
}

const indicesOf = new WeakMap<AggregateCall[], Map<string, number>>();

/** Returns the index of an equal call in `calls`, after adding the call if there is none. */
function sharedIndex(calls: AggregateCall[], call: AggregateCall): number {
  let indices = indicesOf.get(calls);
  if (indices === undefined) indicesOf.set(calls, indices = new Map());
  const key = textOf(call);
  let index = indices.get(key);
  if (index === undefined) indices.set(key, index = calls.push(call) - 1);
  return index;
}

/** The call as a text, without positions, which do not affect the result. */
function textOf(call: AggregateCall): string {
  return JSON.stringify([call.function, call.args], (key, value) => {
    if (key === "at") return undefined;
    if (typeof value === "bigint") return `${value}n`;
    return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  });
}
