/**
 * Constants from one type to another, and expressions of constants to constants, while a statement is bound.
 */
import type { Value } from "../../types/mod.ts";
import { readValue } from "../../types/parse/mod.ts";
import { evaluate } from "../planner/evaluate.ts";
import type { Expr } from "../plan.ts";
import { type Binding } from "./context.ts";
import type { Constant } from "./literals.ts";
import { isInteger, isTextOrChar, isTime } from "./types.ts";

/** An implicit conversion of a constant that is not null; undefined when there is none or the value does not fit. */
export function convertConstant(value: Exclude<Value, null>, from: string, to: string): Value | undefined {
  if (from === to) return value;
  if (isTextOrChar(from)) {
    if (to === "CHAR") return (value as string).length === 1 ? value : undefined;
    if (isTextOrChar(to)) return value;
    const read = readValue(value as string, to);
    return read instanceof Object ? undefined : read;
  }
  if (isInteger(from)) {
    const whole = BigInt(value as number | bigint);
    if (to === "LONG" || isTime(to)) return whole;
    if (to === "INT") return BigInt.asIntN(32, whole) === whole ? Number(whole) : undefined;
    if (to === "DOUBLE") return Number(whole);
    if (to === "FLOAT") return Math.fround(Number(whole));
  }
  if (from === "FLOAT" && to === "DOUBLE") return value;
  return undefined;
}

/** The constant that a constant expression is; undefined when it is none. Clocks stand still only when the statement runs. */
export function fold(expr: Expr, binding: Binding): Constant | undefined {
  if (expr.kind === "constant") return expr;
  if (expr.kind === "call" && !expr.args.every((arg) => arg.kind === "constant")) return undefined;
  const value = evaluate(expr, { user: binding.context.user });
  return value === undefined ? undefined : binding.at(value, binding.positionOf(expr));
}

/** The same with clocks, for what a plan is made of: such statements are bound for each run. */
export function foldAtNow(expr: Expr, binding: Binding): Constant | undefined {
  const { user } = binding.context;
  const value = evaluate(expr, { user }) ?? evaluate(expr, { user, nowMicros: binding.now() });
  return value === undefined ? undefined : binding.at(value, binding.positionOf(expr));
}
