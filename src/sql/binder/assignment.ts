/** Conversion of values to the types of columns: which ones INSERT and UPDATE do implicitly, and which they refuse. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { TIME_NANOS } from "../../types/calendar.ts";
import { formatValue } from "../../types/format/mod.ts";
import { typeOf, type Value } from "../../types/mod.ts";
import { notOf, readValue } from "../../types/parse/mod.ts";
import { arrayDimensions, decimalOf, formatDecimal, geohashBits, parseDecimal } from "../../types/wide.ts";
import { findOverload } from "../functions/mod.ts";
import type { Expr } from "../plan.ts";
import { UNTYPED } from "./context.ts";
import { fold } from "./convert.ts";
import { nullValue } from "./expressions.ts";
import { type Constant, constant } from "./literals.ts";
import type { Queries } from "./query.ts";
import { displayName, isInteger, isNumber, isText, isTextOrChar, isTime, isTimestamp } from "./types.ts";

/** Values for a SYMBOL column are still texts, without codes. */
export function storedTag(type: string): string {
  return type === "SYMBOL" ? "SYMBOL_TEXT" : type;
}

/** Converts an expression to the type of the column `target`, as INSERT and UPDATE do implicitly. */
export function assign(queries: Queries, bound: Expr, target: string, at: number): Expr {
  const settled = queries.expressions.settle(bound, target === "SYMBOL_TEXT" ? "STRING" : target, true);
  const folded = fold(settled, queries.binding);
  if (folded !== undefined) return assigned(folded.value, folded.type, target, at);
  if (settled.kind === "parameter" && settled.type === UNTYPED) return settled;
  if (settled.type === target) return settled;
  if (!isAssignable(settled.type, target)) throw notAssignable(settled.type, target, at);
  if (settled.type === "SYMBOL" && target === "SYMBOL_TEXT") return settled;
  return assignCall(queries, settled, target, at);
}

/** Uses the function `assign_<TYPE>` if there is one: it fails for values that do not fit, where a cast gives null. */
function assignCall(queries: Queries, expr: Expr, target: string, at: number): Expr {
  const strict = findOverload(`assign_${target}`, [expr.type]);
  const fits = "entry" in strict && strict.types[0] === expr.type;
  return fits
    ? queries.expressions.operator(`assign_${target}`, [expr], at)
    : queries.expressions.cast(expr, target, at);
}

export function notAssignable(from: string, to: string, at: number): SqlError {
  // The dialect finds out whether the number of a time fits only when it writes the row.
  const position = isTime(from) && isInteger(to) ? 0 : at;
  const message = `a column of type ${displayName(to)} does not accept ${displayName(from)}`;
  return new SqlError(message, position, SQLSTATE.datatypeMismatch, { caret: at });
}

/**
 * True if INSERT accepts the type for the column without a cast: texts for all types but BOOLEAN; no numbers, booleans
 * and times for texts.
 */
function isAssignable(from: string, to: string): boolean {
  if (from === to || from === "NULL") return true;
  if (isTextOrChar(to)) {
    if (to === "CHAR") return isTextOrChar(from) && from !== "SYMBOL" && from !== "SYMBOL_TEXT";
    if (isTextOrChar(from)) return true;
    return (from === "UUID" || from === "IPv4") && to !== "SYMBOL_TEXT" && to !== "SYMBOL";
  }
  if (from === "SYMBOL" || from === "SYMBOL_TEXT") return isTimestamp(to) || to === "UUID";
  if (from === "CHAR" && ["UUID", "IPv4", "LONG256", "BINARY"].includes(to)) return false;
  if (isTextOrChar(from)) return to !== "BOOLEAN" && to !== "BINARY";
  if (to === "BOOLEAN" || from === "BOOLEAN") return false;
  if (decimalOf(to)) return decimalOf(from) !== undefined || isInteger(from);
  const fromBits = geohashBits(from), toBits = geohashBits(to);
  if (fromBits !== undefined && toBits !== undefined) return fromBits >= toBits;
  if (isNumber(from)) return isNumber(to) || (isTime(to) && isInteger(from));
  if (isTime(from)) return isTime(to) || to === "LONG" || to === "FLOAT" || to === "DOUBLE";
  return false;
}

const NO_ELEMENTS = "[]";

export const INTEGER_BITS: Record<string, number> = { BYTE: 8, SHORT: 16, INT: 32, LONG: 64 };

/**
 * A constant as the value of a column. @throws at the value if its type is not accepted, at 0 if its value does not
 * fit.
 */
export function assigned(value: Value, from: string, to: string, at: number): Constant {
  if (value === null && isAssignable(from, to)) return constant(nullValue(to), to);
  if (from === to) return constant(value, to);
  // An array without elements has any number of dimensions.
  if (value === NO_ELEMENTS && arrayDimensions(from) === 1 && arrayDimensions(to) > 0) return constant(value, to);
  if (value === null || !isAssignable(from, to)) throw notAssignable(from, to, at);
  const decimal = decimalOf(to);
  if (decimal && !isTextOrChar(from)) {
    const read = parseDecimal(formatDecimal(BigInt(value as number | bigint), decimalOf(from)?.scale ?? 0), decimal);
    if (read === undefined) {
      throw new SqlError(
        `${formatDecimal(BigInt(value as number | bigint), decimalOf(from)?.scale ?? 0)} does not fit ${to}`,
        0,
        SQLSTATE.outOfRange,
        { caret: at },
      );
    }
    return constant(read, to);
  }
  const fromBits = geohashBits(from), toBits = geohashBits(to);
  if (fromBits !== undefined && toBits !== undefined) {
    return constant((value as bigint) >> BigInt(fromBits - toBits), to);
  }
  if (isTextOrChar(from)) return fromText(value as string, to, at);
  const bits = INTEGER_BITS[to];
  if (isNumber(from) && bits !== undefined) return constant(wholeValue(value as number | bigint, to, bits, at), to);
  if (isNumber(from) && isNumber(to)) {
    const number = Number(value);
    if (to !== "FLOAT") return constant(number, to);
    const single = Math.fround(number);
    if (Number.isFinite(number) && !Number.isFinite(single)) {
      throw new SqlError(`${value} is out of the range of FLOAT`, 0, SQLSTATE.outOfRange, { caret: at });
    }
    return constant(single, to);
  }
  if (isNumber(from)) return constant(BigInt(value as number | bigint), to);
  if (isTime(from) && isTime(to)) {
    const scaled = scaleTime(value as bigint, from, to);
    if (scaled !== BigInt.asIntN(64, scaled)) {
      const message = `${formatValue(value, from)} is out of the range of ${displayName(to)}`;
      throw new SqlError(message, 0, SQLSTATE.outOfRange, { caret: at });
    }
    return constant(scaled, to);
  }
  if (isTime(from)) return constant(to === "LONG" ? value : Number(value), to);
  if (from === "UUID") return constant(uuidText(value as bigint), to);
  if (from === "IPv4") return constant(ipText(value as number), to);
  throw notAssignable(from, to, at);
}

/** A LONG256 may lack its prefix. */
const HEXADECIMAL = /^[0-9a-f]{1,64}$/i;

/** `isInstant`: accept the text only as a time. */
export function fromText(value: string, to: string, at: number, isInstant = false): Constant {
  if (isText(to)) return constant(value, to);
  if (to === "CHAR") {
    if (value.length > 1) {
      throw new SqlError(notOf(value, "CHAR"), 0, SQLSTATE.invalidText, { caret: at });
    }
    return constant(value === "" ? null : value, to);
  }
  if (to === "UUID" && value === "") return constant(null, to);
  // Except for instants, a text of digits is a number of the column's units, not a year.
  const units = isTime(to) && !isInstant ? readValue(value, "LONG") : undefined;
  const digits = to === "LONG256" && HEXADECIMAL.test(value) ? `0x${value}` : value;
  const read = typeof units === "bigint" ? units : readValue(digits, to);
  if (read instanceof Object) {
    // A time out of the range of nanoseconds is reported at the text, an invalid text at the start of the statement.
    const isTooFar = to === "TIMESTAMP_NS" && typeof readValue(value, "TIMESTAMP") === "bigint";
    throw new SqlError(read.problem, isTooFar ? at : 0, SQLSTATE.invalidText, { caret: at });
  }
  return constant(read ?? nullValue(to), to);
}

/** Fractions are truncated. A value out of range fails when the row is written. */
function wholeValue(value: number | bigint, to: string, bits: number, at: number): Value {
  if (typeof value === "number" && !Number.isFinite(value)) return nullValue(to);
  const whole = typeof value === "bigint" ? value : BigInt(Math.trunc(value));
  const lowest = -(1n << BigInt(bits - 1));
  if (whole === lowest && typeOf(to).nullable) return null;
  if (BigInt.asIntN(bits, whole) !== whole) {
    throw new SqlError(`${value} is out of the range of ${displayName(to)}`, 0, SQLSTATE.outOfRange, { caret: at });
  }
  return to === "LONG" ? whole : Number(whole);
}

function scaleTime(value: bigint, from: string, to: string): bigint {
  const nanos = value * TIME_NANOS[from]!;
  const scale = TIME_NANOS[to]!;
  return nanos >= 0n ? nanos / scale : -((-nanos + scale - 1n) / scale);
}

function uuidText(value: bigint): string {
  const hex = BigInt.asUintN(128, value).toString(16).padStart(32, "0");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

function ipText(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");
}
