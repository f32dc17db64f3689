/**
 * Literals as typed constants.
 */
import { notSupported, SqlError } from "../../errors.ts";
import type { Value } from "../../types/mod.ts";
import type { Expr } from "../plan.ts";

export type Constant = Extract<Expr, { kind: "constant" }>;

export function constant(value: Value, type: string): Constant {
  return { kind: "constant", value, type };
}

export const NULL_CONSTANT = constant(null, "NULL");
export const TRUE = constant(true, "BOOLEAN");
export const FALSE = constant(false, "BOOLEAN");

const INT_MAX = 2147483647n;
const LONG_MAX = 9223372036854775807n;

/** `1` INT, `3000000000` and `7L` LONG, `1.5`, `1d` and what LONG cannot hold DOUBLE, `1.5f` FLOAT. */
export function numberLiteral(text: string, at: number): Constant {
  const plain = text.replaceAll("_", "");
  if (/^0x/i.test(plain)) throw notSupported("a LONG256 literal", at);
  const suffix = plain.at(-1)!.toLowerCase();
  const digits = plain.slice(0, -1);
  if (suffix === "m") throw notSupported("a DECIMAL literal", at);
  if (suffix === "f") return constant(Math.fround(finite(Number(digits), text, at)), "FLOAT");
  if (suffix === "d") return constant(finite(Number(digits), text, at), "DOUBLE");
  if (suffix === "l") {
    if (!/^\d+$/.test(digits)) throw new SqlError(`${text} is no number`, at);
    return constant(BigInt(digits), "LONG");
  }
  if (/^\d+$/.test(plain)) {
    const value = BigInt(plain);
    if (value <= INT_MAX) return constant(Number(value), "INT");
    if (value <= LONG_MAX) return constant(value, "LONG");
    return constant(Number(plain), "DOUBLE");
  }
  return constant(finite(Number(plain), text, at), "DOUBLE");
}

function finite(value: number, text: string, at: number): number {
  if (Number.isNaN(value)) throw new SqlError(`${text} is no number`, at);
  return value;
}

/** A text of one UTF-16 unit is a CHAR; a lone quote is not, as it is written with two. */
export function textLiteral(value: string): Constant {
  return constant(value, value.length === 1 && value !== "'" ? "CHAR" : "STRING");
}

/** The constant with its sign turned: folds `-1`, so that literals stay literals. */
export function negated(literal: Constant): Constant | undefined {
  switch (literal.type) {
    case "INT":
      return constant(literal.value === null ? null : (-(literal.value as number)) | 0, "INT");
    case "LONG":
      return constant(literal.value === null ? null : BigInt.asIntN(64, -(literal.value as bigint)), "LONG");
    case "FLOAT":
    case "DOUBLE":
      return constant(literal.value === null ? null : -(literal.value as number), literal.type);
    default:
      return undefined;
  }
}
