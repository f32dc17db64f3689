/**
 * Literals as typed constants.
 */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import { formatArray, parseArray } from "../../types/array-text.ts";
import { LONG_MAX, typeOf, type Value } from "../../types/mod.ts";
import {
  arrayDimensions,
  DECIMAL_PRECISION_MAX,
  decimalOf,
  decimalTag,
  GEOHASH_BITS_MAX,
  geohashTag,
  movePoint,
  parseGeohash,
  parseLong256,
} from "../../types/wide.ts";
import type { Expr } from "../plan.ts";
import { isNumber } from "./types.ts";

export type Constant = Extract<Expr, { kind: "constant" }>;

export function constant(value: Value, type: string): Constant {
  return { kind: "constant", value, type };
}

export const NULL_CONSTANT = constant(null, "NULL");
export const TRUE = constant(true, "BOOLEAN");
export const FALSE = constant(false, "BOOLEAN");

const INT_MAX = 2147483647n;

/** `1` is INT; `3000000000` and `7L` are LONG; `1.5`, `1d` and integers beyond LONG are DOUBLE; `1.5f` is FLOAT. */
export function numberLiteral(text: string, at: number): Constant {
  const plain = text.replaceAll("_", "");
  if (/^0x/i.test(plain)) {
    const value = plain.length % 2 === 0 ? parseLong256(plain) : undefined;
    if (value === undefined) {
      throw new SqlError(`invalid LONG256 ${text}: expected an even number of up to 64 hexadecimal digits`, at);
    }
    return constant(value, "LONG256");
  }
  const suffix = plain.at(-1)!.toLowerCase();
  const digits = plain.slice(0, -1);
  if (suffix === "m") return decimalLiteral(digits, text, at);
  if (suffix === "f") return constant(Math.fround(finite(Number(digits), text, at)), "FLOAT");
  if (suffix === "d") return constant(finite(Number(digits), text, at), "DOUBLE");
  if (suffix === "l") {
    if (!/^\d+$/.test(digits)) throw new SqlError(`${text} is not a number`, at);
    const value = BigInt(digits);
    if (value > LONG_MAX) throw new SqlError(`${text} is out of the range of LONG`, at);
    return constant(value, "LONG");
  }
  if (/^\d+$/.test(plain)) {
    const value = BigInt(plain);
    if (value <= INT_MAX) return constant(Number(value), "INT");
    if (value <= LONG_MAX) return constant(value, "LONG");
    return constant(Number(plain), "DOUBLE");
  }
  return constant(finite(Number(plain), text, at), "DOUBLE");
}

/** `1.50m` and `0.05m` are DECIMAL(3,2), `100m` and `1e2m` are DECIMAL(3,0): the digits determine the type. */
function decimalLiteral(digits: string, text: string, at: number): Constant {
  const match = /^(\d*)\.?(\d*)(?:e([+-]?\d{1,4}))?$/i.exec(digits);
  if (!match || (match[1] === "" && match[2] === "")) throw new SqlError(`${text} is not a number`, at);
  const moved = movePoint(match[1]!, match[2]!, Number(match[3] ?? 0));
  const whole = moved.whole.replace(/^0+(?=\d)/, "") || "0", scale = moved.fraction.length;
  const precision = whole.length + scale;
  if (precision > DECIMAL_PRECISION_MAX) {
    throw new SqlError(`${text} has too many digits for DECIMAL: at most ${DECIMAL_PRECISION_MAX} are possible`, at);
  }
  return constant(BigInt(whole + moved.fraction), decimalTag(precision, scale));
}

/** An array of constants: `ARRAY[1.0, null]`, `ARRAY[[1, 2], [3, 4]]`. Its value is its text in results. */
export function arrayLiteral(items: readonly Expr[], positions: readonly number[], at: number): Constant {
  const parts: string[] = [];
  let inner: string | undefined;
  for (const [index, item] of items.entries()) {
    if (item.kind !== "constant") throw notSupported("an array of values that are not constants", at);
    const type = item.value === null || ["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "NULL"].includes(item.type)
      ? "DOUBLE"
      : item.type;
    if (arrayDimensions(type) === 0 && type !== "DOUBLE") {
      const position = item.type === "CHAR" || item.type === "STRING" ? 0 : at;
      throw new SqlError(
        "the items of an array must be numbers or arrays of numbers",
        position,
        SQLSTATE.datatypeMismatch,
      );
    }
    if (inner !== undefined && inner !== type) {
      throw new SqlError(
        "the items of an array must have the same type",
        positions[index] ?? at,
        SQLSTATE.datatypeMismatch,
      );
    }
    inner = type;
    parts.push(item.value === null ? "null" : String(item.value));
  }
  const type = `${inner ?? "DOUBLE"}[]`;
  const encoded = parseArray(`[${parts.join()}]`, arrayDimensions(type));
  if (encoded === undefined) {
    const lengths = parts.map((part) => JSON.stringify(JSON.parse(part), (_, item) => Array.isArray(item) ? item : 0));
    const ragged = lengths.findIndex((length) => length !== lengths[0]);
    throw new SqlError(
      "the rows of an array must have the same length",
      positions[ragged] ?? at,
      SQLSTATE.datatypeMismatch,
    );
  }
  return constant(formatArray(encoded), type);
}

/** `#u33d` has five bits for each character, `##0101` has bits; `#u33d/12` is truncated to 12 bits. */
export function geohashLiteral(text: string, at: number): Constant {
  const match = /^(##?)([0-9a-zA-Z]*)(?:\/(\d+))?$/.exec(text);
  const bits = match === null
    ? 0
    : match[3] !== undefined
    ? Number(match[3])
    : match[2]!.length * (match[1] === "#" ? 5 : 1);
  const isBits = match !== null && match[1] === "##";
  const value = bits < 1 || bits > GEOHASH_BITS_MAX
    ? undefined
    : isBits
    ? (/^[01]+$/.test(match![2]!) ? BigInt(`0b${match![2]}`) : undefined)
    : parseGeohash(match![2]!, bits);
  if (value === undefined) throw new SqlError(`${text} is not a geohash`, at);
  return constant(value, geohashTag(bits));
}

function finite(value: number, text: string, at: number): number {
  if (!Number.isFinite(value)) {
    throw new SqlError(Number.isNaN(value) ? `${text} is not a number` : `${text} is out of the range of DOUBLE`, at);
  }
  return value;
}

/** A text of one UTF-16 unit is a CHAR, except a single quote, which is written as two. */
export function textLiteral(value: string): Constant {
  return constant(value, value.length === 1 && value !== "'" ? "CHAR" : "STRING");
}

/** The negated constant, so that `-1` is a literal too. */
export function negated({ type, value }: Constant): Constant | undefined {
  const isDecimal = decimalOf(type) !== undefined;
  if (!isDecimal && !isNumber(type)) return undefined;
  if (value === null) return constant(null, type);
  if (typeof value === "bigint") return constant(isDecimal ? -value : BigInt.asIntN(64, -value), type);
  const negative = -(value as number);
  return constant(typeOf(type).order === "float" ? negative : negative | 0, type);
}
