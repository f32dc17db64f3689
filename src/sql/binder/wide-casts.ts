/** Casts to DECIMAL, geohashes and arrays, whose types have parameters, so that there is no entry for each of them. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { notOf } from "../../types/parse/values.ts";
import { arrayDimensions, decimalOf, geohashBits, parseGeohash } from "../../types/wide.ts";
import type { Expression } from "../ast.ts";
import { DECIMAL_TARGETS, scaledText } from "../functions/decimal.ts";
import type { Expr } from "../plan.ts";
import type { ExpressionBinder } from "./expression-binder.ts";
import { type Constant, constant } from "./literals.ts";
import { displayName, isInteger, isNumber, isText, isTextOrChar, isTime } from "./types.ts";

/** A cast to DECIMAL, or from DECIMAL to a number. Undefined for other casts. */
export function decimalCast(binder: ExpressionBinder, expr: Expr, tag: string, at: number): Expr | undefined {
  const { type } = expr;
  if (decimalOf(tag) !== undefined) {
    if (!isNumber(type) && !isTime(type) && !isTextOrChar(type) && decimalOf(type) === undefined) return undefined;
    const position = decimalOf(type) === undefined ? binder.binding.positionOf(expr) : at;
    return { kind: "call", function: `cast_DECIMAL(${type})`, args: [expr], type: tag, at: position };
  }
  if (decimalOf(type) === undefined || !DECIMAL_TARGETS.has(tag)) return undefined;
  return { kind: "call", function: `decimal_${tag}(${type})`, args: [expr], type: tag, at };
}

/** A cast to a geohash or an array. Undefined for other casts. */
export function shapedCast(binder: ExpressionBinder, expr: Expr, tag: string, at: number): Expr | undefined {
  const { type } = expr, bits = geohashBits(tag);
  if (bits !== undefined) {
    const value = expr.kind === "constant" ? expr.value : undefined;
    if (typeof value === "string" && value !== "" && parseGeohash(value, bits) === undefined) {
      throw new SqlError(notOf(value, displayName(tag)), binder.binding.positionOf(expr), SQLSTATE.invalidText);
    }
    const isLonger = (geohashBits(type) ?? 0) >= bits;
    if (!isLonger && !isText(type) && type !== "CHAR" && !isInteger(type)) return undefined;
    const source = type === "CHAR"
      ? binder.cast(expr, "STRING", at)
      : isInteger(type)
      ? binder.cast(expr, "LONG", at)
      : expr;
    return { kind: "call", function: `cast_GEOHASH(${source.type})`, args: [source], type: tag, at };
  }
  const dimensions = arrayDimensions(tag);
  const from = arrayDimensions(type), isWidened = from > 0 && from < dimensions;
  if (dimensions === 0 || !(isTextOrChar(type) || isNumber(type) || isWidened)) return undefined;
  const source = isText(type) || isWidened ? expr : binder.cast(expr, type === "CHAR" ? "STRING" : "DOUBLE", at);
  return { kind: "call", function: `cast_ARRAY(${source.type})`, args: [source], type: tag, at };
}

/** Without a letter for its type. */
const PLAIN_NUMBER = /^[\d_]*\.?[\d_]*(?:e[+-]?\d+)?$/i;

/**
 * A number as it is written, with all of its digits, for a cast to DECIMAL. Undefined for others.
 * @throws if it does not fit; further decimals of a negative number are left out.
 */
export function exactDecimal(written: Expression, tag: string): Constant | undefined {
  const decimal = decimalOf(tag), isNegative = written.kind === "unary" && written.operator === "-";
  const number = isNegative ? written.operand : written;
  if (decimal === undefined || number.kind !== "number" || !PLAIN_NUMBER.test(number.text)) return undefined;
  const value = scaledText(number.text.replaceAll("_", ""), decimal, isNegative);
  if (value !== undefined) return constant(isNegative ? -value : value, tag);
  throw new SqlError(`${number.text} does not fit ${displayName(tag)}`, number.at, SQLSTATE.outOfRange);
}
