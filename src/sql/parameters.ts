/** Substitutes values for $1, $2 … */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { Value } from "../types/mod.ts";
import { convertConstant } from "./binder/convert.ts";
import { nullValue } from "./binder/expressions.ts";
import { rewrite } from "./binder/plans.ts";
import { mapExpressions } from "./planner/nodes.ts";
import type { Plan } from "./plan.ts";

/** `values` are of the parameters' types. */
export function substituteParameters(plan: Plan, values: readonly Value[]): Plan {
  return mapExpressions(plan, (expr) =>
    rewrite(expr, (e) => {
      if (e.kind !== "parameter") return undefined;
      if (e.index >= values.length) {
        throw new SqlError(`there is no value for $${e.index + 1}`, e.at, SQLSTATE.invalidParameter);
      }
      return { kind: "constant", value: valueAs(values[e.index], e.type), type: e.type };
    }));
}

/** Functions that the server evaluates before the engine runs. */
const SERVER_CALLS: ReadonlySet<string> = new Set(["reload_config()", "reload_tls()"]);

export function callsServer(plan: Plan): boolean {
  let found = false;
  mapExpressions(plan, (expr) =>
    rewrite(expr, (e) => {
      if (e.kind === "call" && SERVER_CALLS.has(e.function)) found = true;
      return undefined;
    }));
  return found;
}

/**
 * Substitutes values for calls that the engine cannot evaluate, such as `reload_config()`. Each is evaluated once for
 * each statement.
 */
export function substituteCalls(plan: Plan, answer: (name: string) => Value): Plan {
  const known = new Map<string, Value>();
  return mapExpressions(plan, (expr) =>
    rewrite(expr, (e) => {
      if (e.kind !== "call" || !SERVER_CALLS.has(e.function)) return undefined;
      if (!known.has(e.function)) known.set(e.function, answer(e.function));
      return { kind: "constant", value: known.get(e.function)!, type: e.type };
    }));
}

function valueAs(value: Value, type: string): Value {
  if (value === null) return nullValue(type);
  if (typeof value === "number" && ["LONG", "TIMESTAMP", "TIMESTAMP_NS", "DATE"].includes(type)) {
    return convertConstant(value, "INT", type) ?? value;
  }
  return value;
}
