/** Function calls: overload resolution, the implicit casts of arguments, and the positions of errors. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Value } from "../../types/mod.ts";
import { findOverload, functionsNamed, isInternal, type OverloadFailure } from "../functions/mod.ts";
import type { FunctionCall } from "../ast.ts";
import type { Expr } from "../plan.ts";
import { UNTYPED } from "./context.ts";
import { fold } from "./convert.ts";
import type { ExpressionBinder } from "./expression-binder.ts";
import { hasParameter } from "./plans.ts";
import { isTextOrChar } from "./types.ts";

/** The kind of function that `name` is: "none" if it is unknown. */
export function aggregateKind(name: string): "aggregate" | "window" | "scalar" | "none" {
  if (isInternal(name)) return "none";
  const entries = functionsNamed(name).filter((entry) => !entry.table);
  if (entries.length === 0) return "none";
  if (entries.some((entry) => entry.aggregate !== undefined)) return "aggregate";
  return entries.some((entry) => entry.window) ? "window" : "scalar";
}

/** `value`: the value of a constant operand. Some targets refuse texts that they cannot read. */
export function castEntry(
  target: string,
  from: string,
  value?: Value,
): { id: string } | { problem: string } | undefined {
  const found = findOverload(`cast_${target}`, [from], [value]);
  if ("failure" in found && found.failure === "value") return { problem: found.message };
  return "entry" in found && found.types[0] === from ? { id: found.id } : undefined;
}

/** A call without arguments. */
export function bareCall(name: string, at: number): FunctionCall {
  return { kind: "call", at, name, args: [], distinct: false, ignoreNulls: false };
}

export interface ResolvedCall {
  id: string;
  args: Expr[];
  type: string;
  /** True if it needs OVER. */
  isWindow: boolean;
}

const CLASS_TYPES: Record<string, string> = { number: "DOUBLE", integer: "LONG", time: "TIMESTAMP" };

/** Classes of types with parameters. They do not determine the type of an untyped argument. */
const SHAPED_CLASSES = new Set(["wide", "decimal", "array"]);

/** Lower for types that hold more of what a client may send. */
const PARAMETER_RANKS: Record<string, number> = { DOUBLE: 0, STRING: 0, VARCHAR: 0, LONG: 1, INT: 2, TIMESTAMP: 2 };
const OTHER_RANK = 3;

/** The type of an untyped parameter beside a value of `type`. A CHAR would keep only the first character of a text. */
export function parameterType(type: string): string {
  return type === "CHAR" ? "STRING" : type;
}

/**
 * Gives types to untyped parameters: those of the overload that accepts the other arguments with the fewest conversions, and
 * of several such the one whose types for the parameters hold most.
 */
function settleParameters(expressions: ExpressionBinder, name: string, given: Expr[]): Expr[] {
  if (given.every((arg) => arg.type !== UNTYPED)) return given;
  const constants = given.map((arg) => arg.type === UNTYPED ? undefined : folding(expressions, arg)?.value);
  let chosen: string[] | undefined, least = Infinity;
  for (const entry of functionsNamed(name)) {
    const specs = given.map((_, i) => entry.args[Math.min(i, entry.args.length - 1)]?.type ?? "any");
    const alike = given.find((arg, i) => specs[i] === "same" && arg.type !== UNTYPED)?.type;
    const isOpen = given.map((arg) => arg.type === UNTYPED);
    if (isOpen.some((open, i) => open && SHAPED_CLASSES.has(specs[i]!))) continue;
    const types = given.map((arg, i) => {
      if (!isOpen[i]) return arg.type;
      if (specs[i] === "same" && alike !== undefined) return alike === "NULL" ? "STRING" : parameterType(alike);
      return CLASS_TYPES[specs[i]!] ??
        (specs[i] === "any" || specs[i] === "same" || specs[i] === "text" ? "STRING" : parameterType(specs[i]!));
    });
    const found = findOverload(name, types, constants);
    chosen ??= types;
    if (!("entry" in found) || found.entry !== entry) continue;
    let cost = 0;
    types.forEach((type, i) => {
      if (isOpen[i]) cost += PARAMETER_RANKS[type] ?? OTHER_RANK;
      else cost += conversionCost(type, found.types[i]!);
    });
    if (cost < least) [chosen, least] = [types, cost];
  }
  chosen ??= given.map((arg, i) => arg.type === UNTYPED && takesArray(name, i) ? "DOUBLE[]" : arg.type);
  return given.map((arg, i) => expressions.settle(arg, chosen![i] === UNTYPED ? "STRING" : chosen![i]!));
}

/** More than the ranks of all parameters of a call, so that conversions decide first. */
const CONVERSION_COST = 1000;

/** A text that is read as a number counts more than another conversion. */
function conversionCost(from: string, to: string): number {
  if (from === to || from === "NULL") return 0;
  return isTextOrChar(from) && !isTextOrChar(to) ? 2 * CONVERSION_COST : CONVERSION_COST;
}

function takesArray(name: string, argument: number): boolean {
  return functionsNamed(name).some(({ args }) => args[Math.min(argument, args.length - 1)]?.type === "array");
}

/**
 * @throws at the call, at the argument that does not fit, or at 0 where the dialect finds the error only at run time.
 */
export function resolveOverload(
  expressions: ExpressionBinder,
  name: string,
  given: Expr[],
  at: number,
  style: "operator" | "function",
): ResolvedCall {
  const args = settleParameters(expressions, name, given);
  const types = args.map((arg) => arg.type);
  const folded = args.map((arg) => folding(expressions, arg));
  const constants: (Value | undefined)[] = folded.map((arg) => arg?.value);
  const found = withStandIns(expressions, args, constants, () => findOverload(name, types, constants));
  if ("failure" in found) throw overloadError(expressions, name, found, args, at, style);
  if (found.entry.permission !== undefined) expressions.binding.requires.add(found.entry.permission, at);
  const indices = found.arguments ?? args.map((_, i) => i);
  const cast = indices.map((index, i) => {
    if (typeof index !== "number") return expressions.coerce({ kind: "constant", ...index }, found.types[i]!, at);
    // A constant argument written as an expression is replaced by its value.
    const spec = found.entry.args[Math.min(i, found.entry.args.length - 1)]!;
    const source = (spec.constant ? folded[index] : undefined) ?? args[index]!;
    return expressions.coerce(source, found.types[i]!, expressions.binding.positionOf(args[index]!));
  });
  return { id: found.id, args: cast, type: found.returns, isWindow: found.entry.window === true };
}

function folding(expressions: ExpressionBinder, arg: Expr) {
  return arg.kind === "constant" ? arg : fold(arg, expressions.binding);
}

/**
 * Stand-ins for a constant argument that is a parameter without a value yet: the first one that the function accepts is
 * used.
 */
const STAND_INS: Value[] = ["d", "day", "1d", "UTC", "", 1];

/** Resolves the overload. Parameters that must be constant get stand-ins in `constants`. */
function withStandIns(
  expressions: ExpressionBinder,
  args: Expr[],
  constants: (Value | undefined)[],
  find: () => ReturnType<typeof findOverload>,
): ReturnType<typeof findOverload> {
  const found = find();
  if (!("failure" in found) || found.failure !== "constant") return found;
  const open = found.argument!;
  if (!hasParameter(args[open]!)) return found;
  for (const standIn of STAND_INS) {
    constants[open] = standIn;
    const next = withStandIns(expressions, args, constants, find);
    if ("failure" in next) continue;
    expressions.binding.boundByValues = true;
    return next;
  }
  constants[open] = undefined;
  return found;
}

function overloadError(
  expressions: ExpressionBinder,
  name: string,
  failure: OverloadFailure,
  args: Expr[],
  at: number,
  style: "operator" | "function",
): SqlError {
  const state = failure.failure === "value" ? SQLSTATE.invalidText : SQLSTATE.undefinedFunction;
  const blamed = failure.argument === undefined ? undefined : args[failure.argument];
  if (failure.atStart) {
    const caret = blamed === undefined ? at : expressions.binding.positionOf(blamed);
    return new SqlError(failure.message, 0, state, { caret });
  }
  if (
    blamed === undefined ||
    (style === "operator" && failure.failure === "types" && args.length === 2 && !isTimeComparison(name, args))
  ) {
    return new SqlError(failure.message, at, state);
  }
  return new SqlError(failure.message, expressions.binding.positionOf(blamed) + (failure.offset ?? 0), state);
}

function isTimeComparison(name: string, args: Expr[]): boolean {
  return /^[!<>=]/.test(name) && (args[0]!.type.startsWith("TIMESTAMP") || args[0]!.type === "DATE");
}

export function bindFunction(
  expressions: ExpressionBinder,
  name: string,
  args: Expr[],
  at: number,
  style: "operator" | "function",
): Expr {
  const resolved = resolveOverload(expressions, name, args, at, style);
  const call: Expr = { kind: "call", function: resolved.id, args: resolved.args, type: resolved.type, at };
  return fold(call, expressions.binding) ?? call;
}
