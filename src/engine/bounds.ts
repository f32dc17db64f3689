/** Bounds of columns that follow from conditions. */
import type { Expr } from "../sql/plan.ts";
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
export const BOUNDED: ReadonlySet<string> = new Set(["INT", "LONG", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NS"]);

/** The column of which a side of a comparison has the values. Each FLOAT is a DOUBLE, and they are compared as such. */
function columnOf(side: Expr, { functions }: Pick<QueryContext, "functions">): number | undefined {
  if (side.kind === "column") return BOUNDED.has(side.type) ? side.index : undefined;
  if (side.kind !== "call" || side.type !== "DOUBLE" || side.args.length !== 1) return undefined;
  const [arg] = side.args;
  const isWidened = arg!.kind === "column" && arg!.type === "FLOAT" &&
    functions.resolve(side.function).entry.name === "cast_DOUBLE";
  return isWidened ? arg!.index : undefined;
}

/** The bound that follows from comparing a column with a constant. */
function boundOf(part: Expr, context: Pick<QueryContext, "functions">): Bound | undefined {
  if (part.kind !== "call") return undefined;
  const { name } = context.functions.resolve(part.function).entry;
  const [left, right, third] = part.args;
  const valueOf = (expr: Expr) =>
    expr.kind === "constant" && (typeof expr.value === "number" || typeof expr.value === "bigint")
      ? expr.value
      : undefined;
  const slack = (value: number | bigint, sign: number) =>
    typeof value === "number" ? value + sign * (DOUBLE_SLACK + Math.abs(value) * 1e-15) : value;
  const make = (side: Expr, low: number | bigint | undefined, high: number | bigint | undefined): Bound | undefined => {
    const column = columnOf(side, context);
    return column === undefined ? undefined : {
      column,
      low: low === undefined ? undefined : slack(low, -1),
      high: high === undefined ? undefined : slack(high, 1),
    };
  };
  if (name === "between" && third !== undefined) {
    const a = valueOf(right), b = valueOf(third);
    if (a === undefined || b === undefined) return undefined;
    return a < b ? make(left, a, b) : make(left, b, a); // the bounds may be reversed
  }
  if (part.args.length !== 2) return undefined;
  const swapped = left.kind === "constant";
  const column = swapped ? right : left, value = valueOf(swapped ? left : right);
  if (value === undefined) return undefined;
  if (name === "=") return make(column, value, value);
  if (name === "<" || name === "<=") return swapped ? make(column, value, undefined) : make(column, undefined, value);
  if (name === ">" || name === ">=") return swapped ? make(column, undefined, value) : make(column, value, undefined);
  return undefined;
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
