/** Converts constants between types, and evaluates constant expressions, while a statement is bound. */
import { LONG_MAX, type Value } from "../../types/mod.ts";
import { readValue } from "../../types/parse/mod.ts";
import { evaluate } from "../planner/evaluate.ts";
import type { Expr } from "../plan.ts";
import { type Binding } from "./context.ts";
import type { Constant } from "./literals.ts";
import { isInteger, isTextOrChar, isTime } from "./types.ts";

/**
 * Implicitly converts a constant that is not null. Returns undefined if there is no such conversion or the value does
 * not fit.
 */
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

/**
 * As `convertConstant`, for a value that is compared with others of type `to`. A time that nanoseconds cannot represent becomes
 * their first or last one.
 */
export function convertCompared(value: Exclude<Value, null>, from: string, to: string): Value | undefined {
  const converted = convertConstant(value, from, to);
  if (converted !== undefined || to !== "TIMESTAMP_NS") return converted;
  const micros = convertConstant(value, from, "TIMESTAMP");
  if (typeof micros !== "bigint") return undefined;
  return micros < 0n ? -LONG_MAX : LONG_MAX;
}

/**
 * Returns the value of a constant expression, or undefined if it is not constant. Functions of the clock are not
 * constant until the statement runs.
 */
export function fold(expr: Expr, binding: Binding): Constant | undefined {
  if (expr.kind === "constant") return expr;
  if (expr.kind === "call" && !expr.args.every((arg) => arg.kind === "constant")) return undefined;
  const value = evaluate(expr, { user: binding.context.user });
  return value === undefined ? undefined : binding.at(value, binding.positionOf(expr));
}

/**
 * As `fold`, but also evaluates functions of the clock, for values that determine the plan. Such statements are bound
 * again for each run.
 */
export function foldAtNow(expr: Expr, binding: Binding): Constant | undefined {
  const { user } = binding.context;
  const value = evaluate(expr, { user }) ?? evaluate(expr, { user, nowMicros: binding.now() });
  return value === undefined ? undefined : binding.at(value, binding.positionOf(expr));
}
