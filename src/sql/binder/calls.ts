/**
 * Calls: which overload is meant, the implicit casts of its arguments, and where to put the blame when there is none.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Value } from "../../types/mod.ts";
import { findOverload, functionsNamed, type OverloadFailure } from "../functions/mod.ts";
import type { Expr } from "../plan.ts";
import { UNTYPED } from "./context.ts";
import { fold } from "./convert.ts";
import type { Expressions } from "./expressions.ts";

/** Is `name` an aggregate, a window function, a plain one, or nothing known? */
export function aggregateKind(name: string): "aggregate" | "window" | "scalar" | "none" {
  const entries = functionsNamed(name).filter((entry) => !entry.table);
  if (entries.length === 0) return "none";
  if (entries.some((entry) => entry.aggregate !== undefined)) return "aggregate";
  return entries.some((entry) => entry.window) ? "window" : "scalar";
}

/** `value` is a constant operand's: some targets refuse what does not read as one. */
export function castEntry(
  target: string,
  from: string,
  value?: Value,
): { id: string } | { problem: string } | undefined {
  const found = findOverload(`cast_${target}`, [from], [value]);
  if ("failure" in found && found.failure === "value") return { problem: found.message };
  return "entry" in found && found.types[0] === from ? { id: found.id } : undefined;
}

export interface ResolvedCall {
  id: string;
  args: Expr[];
  type: string;
}

function typeForParameter(name: string, index: number, count: number): string {
  for (const entry of functionsNamed(name)) {
    const last = entry.args.at(-1);
    if (entry.args.length < count && !last?.variadic) continue;
    const spec = entry.args[Math.min(index, entry.args.length - 1)].type;
    if (spec === "number") return "DOUBLE";
    if (spec === "integer") return "LONG";
    if (spec === "time") return "TIMESTAMP";
    if (spec === "any" || spec === "same" || spec === "text") return "STRING";
    return spec;
  }
  return "STRING";
}

/** @throws at the call, at the argument that does not fit, or at 0 where the dialect finds the fault only when it runs. */
export function resolveOverload(
  expressions: Expressions,
  name: string,
  given: Expr[],
  at: number,
  style: "operator" | "function",
): ResolvedCall {
  const args = given.map((arg, i) =>
    arg.type === UNTYPED ? expressions.settle(arg, typeForParameter(name, i, given.length)) : arg
  );
  const types = args.map((arg) => arg.type);
  const folded = args.map((arg) => arg.kind === "constant" ? arg : fold(arg, expressions.binding));
  const constants: (Value | undefined)[] = folded.map((arg) => arg?.value);
  const found = findOverload(name, types, constants);
  if ("failure" in found) throw overloadError(expressions, found, args, at, style);
  const places = found.arguments ?? args.map((_, i) => i);
  const cast = places.map((place, i) => {
    if (typeof place !== "number") return expressions.coerce({ kind: "constant", ...place }, found.types[i], at);
    // A constant argument that was written as an expression is given as its value.
    const spec = found.entry.args[Math.min(i, found.entry.args.length - 1)];
    const source = spec.constant && folded[place] !== undefined ? folded[place]! : args[place];
    return expressions.coerce(source, found.types[i], expressions.binding.positionOf(args[place]));
  });
  return { id: found.id, args: cast, type: found.returns };
}

function overloadError(
  expressions: Expressions,
  failure: OverloadFailure,
  args: Expr[],
  at: number,
  style: "operator" | "function",
): SqlError {
  const state = failure.failure === "value" ? SQLSTATE.invalidText : SQLSTATE.undefinedFunction;
  if (failure.atStart) return new SqlError(failure.message, 0, state);
  const blamed = failure.argument === undefined ? undefined : args[failure.argument];
  if (
    blamed === undefined ||
    (style === "operator" && failure.failure === "types" && args.length === 2 && !isTimeFirst(args))
  ) {
    return new SqlError(failure.message, at, state);
  }
  return new SqlError(failure.message, expressions.binding.positionOf(blamed) + (failure.offset ?? 0), state);
}

function isTimeFirst(args: Expr[]): boolean {
  return args[0].type.startsWith("TIMESTAMP") || args[0].type === "DATE";
}

export function bindFunction(
  expressions: Expressions,
  name: string,
  args: Expr[],
  at: number,
  style: "operator" | "function",
): Expr {
  const resolved = resolveOverload(expressions, name, args, at, style);
  const call: Expr = { kind: "call", function: resolved.id, args: resolved.args, type: resolved.type, at };
  return fold(call, expressions.binding) ?? call;
}
