/** Comparisons. Those with nulls, and of texts with numbers, times and addresses, are resolved while binding. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { geohashBits, parseGeohash } from "../../types/wide.ts";
import type { Expr } from "../plan.ts";
import { convertCompared, convertConstant } from "./convert.ts";
import type { ExpressionBinder } from "./expression-binder.ts";
import { constant, FALSE, TRUE } from "./literals.ts";
import { displayName, isInteger, isNumber, isText, isTextOrChar, isTime } from "./types.ts";
import { notOf } from "../../types/parse/values.ts";

const TURNED: Record<string, string> = { "=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=" };

export function bindComparison(
  expressions: ExpressionBinder,
  operator: string,
  first: Expr,
  second: Expr,
  at: number,
): Expr {
  const [left, right] = expressions.settleAlike([first, second]);
  const isNull = (side: Expr) =>
    side.type === "NULL" || (side.kind === "constant" && side.value === null && isText(side.type));
  const nullSide = isNull(left) ? right : isNull(right) ? left : undefined;
  if (nullSide !== undefined) return withNull(expressions, operator, nullSide, at);
  const byText = textConstant(expressions, operator, left, right, at) ??
    textConstant(expressions, TURNED[operator]!, right, left, at);
  if (byText !== undefined) return byText;
  const sides = [left, right].map((side, i) => {
    const other = (i === 0 ? right : left).type;
    // A DATE that is compared with a number counts as its milliseconds since 1970.
    if (side.type === "DATE" && isInteger(other)) return expressions.cast(side, "LONG", at);
    return isInteger(side.type) && other === "LONG256" ? expressions.cast(side, "LONG256", at) : side;
  });
  return expressions.operator(operator, sides, at);
}

/**
 * `x = null` finds nulls. `<` and `>` are never true. `<=` and `>=` are true only of nulls; but they are true of every
 * text and UUID, and false of every CHAR and LONG256. This is the dialect's behaviour.
 */
function withNull(expressions: ExpressionBinder, operator: string, operand: Expr, at: number): Expr {
  if (operator === "<" || operator === ">") return FALSE;
  if (operator === "<=" || operator === ">=") {
    if (isText(operand.type) || operand.type === "UUID") return TRUE;
    if (operand.type === "CHAR" || operand.type === "LONG256") return FALSE;
  }
  if (operand.type === "NULL") return operator === "!=" ? FALSE : TRUE;
  const test = expressions.isNull(operand, at);
  return operator === "!=" ? expressions.negate(test, at) : test;
}

/** A constant text compared with another type is parsed as a value of that type. */
function textConstant(
  expressions: ExpressionBinder,
  operator: string,
  side: Expr,
  other: Expr,
  at: number,
): Expr | undefined {
  if (other.kind !== "constant" || !isTextOrChar(other.type) || isTextOrChar(side.type) || other.value === null) {
    return charAgainstText(operator, side, other);
  }
  const position = expressions.binding.positionOf(other);
  if (side.type === "BOOLEAN" && other.type === "CHAR") {
    // PostgreSQL's words, which tools compare columns of pg_catalog with: `attnotnull = 't'`.
    const isTrue = other.value === "t";
    if (!isTrue && other.value !== "f") return undefined;
    return expressions.operator(operator, [side, expressions.binding.at(isTrue ? TRUE : FALSE, position)], at);
  }
  if (isNumber(side.type)) {
    const exact = convertConstant(other.value, other.type, side.type) ??
      convertConstant(other.value, other.type, "DOUBLE");
    if (exact === undefined) {
      // A narrow integer never equals a text that is not a number. In the other cases the dialect fails at run time.
      const isNarrow = isInteger(side.type) && (side.type !== "LONG" || other.type === "CHAR");
      if (isNarrow && operator === "!=") return TRUE;
      if (isNarrow && operator === "=") return FALSE;
      throw new SqlError(notOf(other.value, displayName(side.type)), 0, SQLSTATE.invalidText, {
        caret: position,
      });
    }
    const type = convertConstant(other.value, other.type, side.type) === undefined ? "DOUBLE" : side.type;
    return expressions.operator(operator, [side, expressions.binding.at(constant(exact, type), position)], at);
  }
  const bits = geohashBits(side.type);
  if (bits !== undefined && (operator === "=" || operator === "!=")) {
    const value = parseGeohash(String(other.value), bits);
    if (value === undefined) {
      throw new SqlError(notOf(other.value, displayName(side.type)), at, SQLSTATE.invalidText);
    }
    return expressions.operator(operator, [side, expressions.binding.at(constant(value, side.type), position)], at);
  }
  const isLong256 = side.type === "LONG256" && (operator === "=" || operator === "!=");
  if (isTime(side.type) || side.type === "UUID" || side.type === "IPv4" || isLong256) {
    const value = convertCompared(other.value, other.type, side.type);
    // A text that is not a UUID or a LONG256 matches nothing. A text that is not a time or an address is an error.
    if (value === undefined && side.type === "IPv4" && other.type !== "CHAR") {
      throw new SqlError(notOf(other.value, "IPv4"), 0, SQLSTATE.invalidText, { caret: position });
    }
    if (value === undefined && !isTime(side.type)) return operator === "!=" ? TRUE : FALSE;
    if (value === undefined) {
      throw new SqlError(notOf(other.value, displayName(side.type)), position, SQLSTATE.invalidText);
    }
    return expressions.operator(operator, [side, expressions.binding.at(constant(value, side.type), position)], at);
  }
  return undefined;
}

/** A CHAR never equals a text whose length is not 1. */
function charAgainstText(operator: string, side: Expr, other: Expr): Expr | undefined {
  if (side.type !== "CHAR" || other.kind !== "constant" || other.type === "CHAR" || typeof other.value !== "string") {
    return undefined;
  }
  if (other.value.length === 1) return undefined;
  if (operator === "=") return FALSE;
  if (operator === "!=") return TRUE;
  return undefined;
}
