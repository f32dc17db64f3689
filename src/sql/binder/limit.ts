/** LIMIT and OFFSET. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Expression, Limit } from "../ast.ts";
import type { Expr, Plan } from "../plan.ts";
import { type Names, typeMismatch } from "./context.ts";
import { fold } from "./convert.ts";
import type { Expressions } from "./expressions.ts";
import { constant } from "./literals.ts";
import { columnsRead } from "./plans.ts";
import { isInteger } from "./types.ts";

const ROWS_MAX = BigInt(Number.MAX_SAFE_INTEGER);
/**
 * LIMIT n; n, ; , n; low, high. Negative bounds count from the end. Two bounds of the same sign may be in either order.
 */
export function bindLimit(
  expressions: Expressions,
  input: Plan,
  limit: Limit,
  names: Names,
): Plan {
  if (limit.offset !== undefined) return bindOffset(expressions, input, limit, limit.offset, names);
  if (limit.low === undefined && limit.high === undefined) return input;
  let low: Expr | undefined;
  let high: Expr;
  if (limit.low === undefined || limit.high === undefined) {
    high = limitBound(expressions, (limit.low ?? limit.high)!, names, limit.low !== undefined);
  } else {
    low = limitBound(expressions, limit.low, names);
    high = limitBound(expressions, limit.high, names);
    if (low.kind === "constant" && high.kind === "constant") {
      const a = low.value as bigint, b = high.value as bigint;
      if (a < 0n && b > 0n) {
        throw new SqlError(
          "LIMIT from a negative bound to a positive one is not supported",
          limit.low.at,
          SQLSTATE.invalidParameter,
        );
      }
      if (a < 0n && b === 0n) [low, high] = [undefined, low];
      else if (a < 0n === b < 0n && a > b) [low, high] = [high, low];
    }
  }
  return { node: "limit", input, low, high, columns: input.columns, timestamp: input.timestamp, order: input.order };
}

/** LIMIT count OFFSET n, as in PostgreSQL: null means no limit and no offset. */
function bindOffset(expressions: Expressions, input: Plan, limit: Limit, offset: Expression, names: Names): Plan {
  const wholeNumber = (e: Expression, what: string): bigint | undefined => {
    const bound = expressions.settle(expressions.bind(e, { columns: [], names }), "LONG");
    const value = expressions.constantOf(bound, constant(1n, "LONG"));
    if (value?.value === null) return undefined;
    if (value === undefined || !isInteger(value.type)) throw typeMismatch(`${what} needs a whole number`, e.at);
    const count = BigInt(value.value as number | bigint);
    if (count < 0n) throw new SqlError(`${what} must not be negative`, e.at, SQLSTATE.invalidParameter);
    return count;
  };
  const skipped = wholeNumber(offset, "OFFSET") ?? 0n;
  const count = limit.low === undefined ? undefined : wholeNumber(limit.low, "LIMIT beside OFFSET");
  const end = count === undefined || count > ROWS_MAX - skipped ? ROWS_MAX : skipped + count;
  return {
    node: "limit",
    input,
    low: constant(skipped, "LONG"),
    high: constant(end, "LONG"),
    columns: input.columns,
    timestamp: input.timestamp,
    order: input.order,
  };
}

function limitBound(expressions: Expressions, e: Expression, names: Names, nullIsNoLimit = false): Expr {
  const bound = expressions.settle(expressions.bind(e, { columns: [], names }), "LONG");
  if (bound.kind === "parameter") return bound.type === "LONG" ? bound : expressions.cast(bound, "LONG", e.at);
  const value = fold(bound, expressions.binding);
  if (
    value === undefined && bound.kind === "call" && ["INT", "LONG", "SHORT", "BYTE"].includes(bound.type) &&
    columnsRead(bound).size === 0
  ) {
    return expressions.cast(bound, "LONG", e.at);
  }
  // A null with a type, as of a parameter, is no limit.
  if (nullIsNoLimit && value?.value === null && isInteger(value.type)) return constant(ROWS_MAX, "LONG");
  if (value === undefined || value.value === null || !isInteger(value.type)) {
    throw typeMismatch("LIMIT needs a whole number", e.at);
  }
  return expressions.binding.at(constant(BigInt(value.value as number | bigint), "LONG"), e.at);
}
