/** Substitutes values for $1, $2 … */
import { notSupported, SqlError, SQLSTATE } from "../errors.ts";
import type { Value } from "../types/mod.ts";
import { convertConstant } from "./binder/convert.ts";
import { nullValue } from "./binder/expressions.ts";
import { rewrite } from "./binder/plans.ts";
import type { ServerFacts } from "./functions/entry.ts";
export type { ServerFacts } from "./functions/entry.ts";
import { FUNCTIONS } from "./functions/mod.ts";
import { mapExpressions } from "./planner/nodes.ts";
import type { Expr, Plan } from "./plan.ts";

/** `values` are of the parameters' types. */
export function substituteParameters(plan: Plan, values: readonly Value[]): Plan {
  return mapExpressions(plan, (expr) => rewrite(expr, (e) => parameterValue(e, values)));
}

/** Undefined if the expression is no parameter. @throws {SqlError} if there is no value for it */
export function parameterValue(e: Expr, values: readonly Value[]): Expr | undefined {
  if (e.kind !== "parameter") return undefined;
  if (e.index >= values.length) {
    throw new SqlError(`there is no value for $${e.index + 1}`, e.at, SQLSTATE.invalidParameter);
  }
  return { kind: "constant", value: valueAs(values[e.index]!, e.type), type: e.type };
}

/** Functions that the server evaluates before the engine runs, by name. */
const SERVED = new Map(FUNCTIONS.flatMap(({ name, served }) => served === undefined ? [] : [[name, served]]));

export function servedName(id: string): string | undefined {
  const name = id.slice(0, id.indexOf("("));
  return SERVED.has(name) ? name : undefined;
}

/** The name of a function that the server evaluates, if this is a call of it with an argument that is not constant. */
export function callOfRow(e: Expr): string | undefined {
  return e.kind === "call" && e.args.some((arg) => arg.kind !== "constant") ? servedName(e.function) : undefined;
}

/** A call of a function that the server evaluates. */
export interface ServerCall {
  name: string;
  args: Value[];
  /** Position of the call in the statement. */
  at: number;
}

export function answerCall({ name, args, at }: ServerCall, server: ServerFacts): Value {
  return SERVED.get(name)!(server, args, at);
}

export function callsServer(plan: Plan): boolean {
  let found = false;
  mapExpressions(plan, (expr) =>
    rewrite(expr, (e) => {
      if (e.kind === "call" && servedName(e.function) !== undefined) found = true;
      return undefined;
    }));
  return found;
}

/** Substitutes values for calls that the server evaluates, such as `reload_config()`. Equal calls share one evaluation. */
export function substituteCalls(plan: Plan, answer: (call: ServerCall) => Value): Plan {
  const known = new Map<string, Value>();
  return mapExpressions(plan, (expr) =>
    rewrite(expr, (e) => {
      const name = e.kind === "call" ? servedName(e.function) : undefined;
      if (e.kind !== "call" || name === undefined) return undefined;
      const args = e.args.map((arg) => {
        if (arg.kind === "constant") return arg.value;
        throw notSupported(`${name}() of a column, except in the select list of a short query`, e.at);
      });
      const key = JSON.stringify([e.function, args], (_, value) => typeof value === "bigint" ? `${value}n` : value);
      if (!known.has(key)) known.set(key, answer({ name, args, at: e.at }));
      return { kind: "constant", value: known.get(key)!, type: e.type };
    }));
}

function valueAs(value: Value, type: string): Value {
  if (value === null) return nullValue(type);
  if (typeof value === "number" && ["LONG", "TIMESTAMP", "TIMESTAMP_NS", "DATE"].includes(type)) {
    return convertConstant(value, "INT", type) ?? value;
  }
  return value;
}
