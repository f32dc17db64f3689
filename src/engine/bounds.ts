/** Bounds of columns that follow from conditions. */
import type { Expr } from "../sql/plan.ts";
import { layoutOf, LONG_MAX, type Value } from "../types/mod.ts";
import { decimalOf } from "../types/wide.ts";
import type { QueryContext } from "./contract.ts";
import { conjuncts } from "./expressions.ts";

/** Bounds of a column's values for which a predicate can be true; nulls are excluded. */
export interface Bound {
  column: number;
  low?: number | bigint;
  high?: number | bigint;
}

/** More than the tolerance of `=` between doubles. */
const DOUBLE_SLACK = 1e-9;
/** Types whose values are signed integers in memory, of which a comparison with a constant passes some ranges. */
export const INTEGERS: ReadonlySet<string> = new Set([
  "BYTE",
  "SHORT",
  "INT",
  "LONG",
  "DATE",
  "TIMESTAMP",
  "TIMESTAMP_NS",
]);
export const BOUNDED: ReadonlySet<string> = new Set([...INTEGERS, "DOUBLE"]);
/** Casts that change no value: NULL stays NULL, and each FLOAT is a DOUBLE, and they are compared as such. */
const WIDENED: Readonly<Record<string, readonly string[]>> = {
  SHORT: ["BYTE"],
  INT: ["BYTE", "SHORT"],
  LONG: ["BYTE", "SHORT", "INT"],
  DOUBLE: ["FLOAT"],
};

/** True if values are signed integers in memory: of `INTEGERS`, or of a short DECIMAL. */
export function hasIntegers(type: string): boolean {
  return INTEGERS.has(type) || isShortDecimal(type);
}

/** A DECIMAL whose values are integers of 64 bits. */
function isShortDecimal(type: string): boolean {
  return layoutOf(type) === "i64" && decimalOf(type) !== undefined;
}

/** The integers with `to` decimals next to one with `from` decimals, below and above it. */
function rescaled(value: bigint, from: number, to: number): [below: bigint, above: bigint] {
  if (to >= from) return [value * 10n ** BigInt(to - from), value * 10n ** BigInt(to - from)];
  const divisor = 10n ** BigInt(from - to), quotient = value / divisor, rest = value % divisor;
  return [rest < 0n ? quotient - 1n : quotient, rest > 0n ? quotient + 1n : quotient];
}

const isBounded = (type: string) => BOUNDED.has(type) || isShortDecimal(type);

/** The column of which a side of a comparison has the values. */
export function comparedColumn(
  side: Expr,
  context: Pick<QueryContext, "functions">,
): { index: number; type: string } | undefined {
  if (side.kind === "column") return isBounded(side.type) || side.type === "FLOAT" ? side : undefined;
  if (side.kind !== "call" || side.args.length !== 1) return undefined;
  const arg = side.args[0]!, isWidened = WIDENED[side.type]?.includes(arg.type) === true;
  if (!isWidened || context.functions.resolve(side.function).entry.name !== `cast_${side.type}`) return undefined;
  return comparedColumn(arg, context);
}

/** A bound of integers has no slack: they are compared exactly. */
function makeBound(
  side: Expr,
  low: number | bigint | undefined,
  high: number | bigint | undefined,
  context: Pick<QueryContext, "functions">,
): Bound | undefined {
  const column = comparedColumn(side, context);
  // A FLOAT that is compared as such has another tolerance.
  if (column === undefined || !isBounded(side.type)) return undefined;
  const slack = (value: number | bigint, sign: number) =>
    typeof value === "number" && !INTEGERS.has(column.type)
      ? value + sign * (DOUBLE_SLACK + Math.abs(value) * 1e-15)
      : value;
  return {
    column: column.index,
    low: low === undefined ? undefined : slack(low, -1),
    high: high === undefined ? undefined : slack(high, 1),
  };
}

/** The bound that follows from comparing a column with a constant, or from a list that has its value. */
function boundOf(part: Expr, context: Pick<QueryContext, "functions">): Bound | undefined {
  if (part.kind === "in") {
    const column = comparedColumn(part.operand, context), values = part.values.filter(isNumber);
    if (column === undefined || !INTEGERS.has(column.type) || values.length < Math.max(1, part.values.length)) {
      return undefined;
    }
    const [low, high] = [values.reduce((a, b) => b < a ? b : a), values.reduce((a, b) => b > a ? b : a)];
    return makeBound(part.operand, low, high, context);
  }
  if (part.kind !== "call") return undefined;
  const { name } = context.functions.resolve(part.function).entry;
  const [left, right, third] = part.args;
  const valueOf = (expr: Expr) => expr.kind === "constant" && isNumber(expr.value) ? expr.value : undefined;
  const make = (side: Expr, low: number | bigint | undefined, high: number | bigint | undefined) =>
    makeBound(side, low, high, context);
  if (name === "between" && third !== undefined) {
    const a = valueOf(right), b = valueOf(third);
    if (a === undefined || b === undefined) return undefined;
    return a < b ? make(left, a, b) : make(left, b, a); // the bounds may be reversed
  }
  if (part.args.length !== 2) return undefined;
  const swapped = left.kind === "constant";
  const column = swapped ? right : left, constant = swapped ? left : right, given = valueOf(constant);
  if (given === undefined) return undefined;
  const [value, above] = isShortDecimal(column.type)
    ? rescaled(BigInt(given), decimalOf(constant.type)!.scale, decimalOf(column.type)!.scale)
    : [given, given];
  if (typeof value === "bigint" && (value < -LONG_MAX || value >= LONG_MAX)) return undefined;
  if (name === "=") return make(column, value, above);
  if (name === "<" || name === "<=") return swapped ? make(column, value, undefined) : make(column, undefined, above);
  if (name === ">" || name === ">=") return swapped ? make(column, undefined, above) : make(column, value, undefined);
  return undefined;
}

function isNumber(value: Value): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

/** The bounds of conditions that were asked for: a statement that is run again has the same ones. */
const boundsOfConditions = new WeakMap<Expr, readonly Bound[]>();

/** The bounds of columns that follow from conditions. */
export function boundsOf(predicates: readonly Expr[], context: Pick<QueryContext, "functions">): Bound[] {
  return predicates.flatMap((predicate) => {
    const known = boundsOfConditions.get(predicate);
    if (known !== undefined) return known;
    const bounds = conjuncts(predicate, context).flatMap((part) => boundOf(part, context) ?? []);
    boundsOfConditions.set(predicate, bounds);
    return bounds;
  });
}
