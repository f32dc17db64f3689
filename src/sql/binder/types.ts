/** Common types of two expressions, and names of types in statements. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import { didYouMean } from "../../nearest.ts";
import { typeHint } from "../other-dialects.ts";
import { tagOfName, typeOf, typeSpellings } from "../../types/mod.ts";
import {
  ARRAY_DIMENSIONS_MAX,
  arrayDimensions,
  commonDecimal,
  DECIMAL_DEFAULT,
  DECIMAL_PRECISION_MAX,
  decimalOf,
  decimalTag,
  GEOHASH_BITS_MAX,
  geohashBits,
  geohashTag,
} from "../../types/wide.ts";
import type { TypeName } from "../ast.ts";

const NUMBERS = ["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"];
const TIMES = ["DATE", "TIMESTAMP", "TIMESTAMP_NS"];
const TEXTS = ["CHAR", "SYMBOL", "SYMBOL_TEXT", "STRING", "VARCHAR"];

export const isNumber = (type: string): boolean => NUMBERS.includes(type);
export const isInteger = (type: string): boolean => NUMBERS.indexOf(type) >= 0 && NUMBERS.indexOf(type) < 4;
export const isTime = (type: string): boolean => TIMES.includes(type);
export const isTimestamp = (type: string): boolean => type === "TIMESTAMP" || type === "TIMESTAMP_NS";
/** CHAR is excluded: joins and set operations treat it differently. */
export const isText = (type: string): boolean => type !== "CHAR" && TEXTS.includes(type);
export const isTextOrChar = (type: string): boolean => TEXTS.includes(type);

const wider = (order: string[], a: string, b: string): string => order[Math.max(order.indexOf(a), order.indexOf(b))]!;

/** The common type of two branches of a CASE; undefined if there is none. */
export function branchType(a: string, b: string): string | undefined {
  if (a === b) return a === "SYMBOL" ? "STRING" : a;
  if (a === "NULL") return b === "SYMBOL" ? "STRING" : b;
  if (b === "NULL") return a === "SYMBOL" ? "STRING" : a;
  const decimal = commonDecimal(a, b);
  if (decimal !== undefined) return decimal;
  if (isNumber(a) && isNumber(b)) return wider(NUMBERS, a, b);
  if (isTime(a) && isTime(b)) return wider(TIMES, a, b);
  if (isTextOrChar(a) && isTextOrChar(b)) return a === "VARCHAR" || b === "VARCHAR" ? "VARCHAR" : "STRING";
  return undefined;
}

/** True for types without a text form. */
function lacksText(type: string): boolean {
  return type === "BINARY" || type === "INTERVAL" || arrayDimensions(type) > 0;
}

/** The type of a set operation's column; undefined if there is none. */
export function setType(a: string, b: string): string | undefined {
  if (a === b) return a === "SYMBOL" || a === "SYMBOL_TEXT" ? "STRING" : a;
  if (a === "NULL") return b === "SYMBOL" || b === "CHAR" ? "STRING" : b;
  if (b === "NULL") return a === "SYMBOL" || a === "CHAR" ? "STRING" : a;
  const decimal = commonDecimal(a, b);
  if (decimal !== undefined) return decimal;
  const isArray = arrayDimensions(a) > 0 || arrayDimensions(b) > 0;
  if (!isArray && (decimalOf(a) !== undefined || decimalOf(b) !== undefined)) return "STRING";
  if (isNumber(a) && isNumber(b)) return wider(NUMBERS, a, b);
  if (isTime(a) && isTime(b)) return wider(TIMES, a, b);
  if (isTextOrChar(a) && isTextOrChar(b)) {
    const isVarchar = (a === "VARCHAR" || b === "VARCHAR") && a !== "STRING" && b !== "STRING";
    return isVarchar ? "VARCHAR" : "STRING";
  }
  const bits = geohashBits(a), other = geohashBits(b);
  if (bits !== undefined && other !== undefined) return bits < other ? a : b;
  const dimensions = arrayDimensions(a), others = arrayDimensions(b);
  if (dimensions > 0 && others > 0) return dimensions < others ? b : a;
  if (dimensions > 0 || others > 0) {
    const [array, value] = dimensions > 0 ? [a, b] : [b, a];
    if (value === "DOUBLE") return array;
    if (value === "STRING") return value;
    return lacksText(value) ? undefined : "VARCHAR";
  }
  const text = isTextOrChar(a) ? a : isTextOrChar(b) ? b : undefined;
  if (text !== undefined) return text === "VARCHAR" ? "VARCHAR" : "STRING";
  // Kinds that can only be converted to texts.
  const kinds = ["BOOLEAN", "UUID", "IPv4", "LONG256"];
  const isOfKind = kinds.includes(a) || kinds.includes(b) || bits !== undefined || other !== undefined;
  return isOfKind && ![a, b].some(lacksText) ? "STRING" : undefined;
}

/** Types of the dialect that are not implemented. */
const LATER = new Set(["long128"]);

/** In casts to NUMERIC without parameters. */
const NUMERIC_SIZE = ["76", "38"];

/** `decimal`, `decimal(p)`, `decimal(p, s)`: precision 1 to 76, scale at most the precision. */
function decimalType({ parameters, at, name }: TypeName, inCast: boolean): string {
  const [precision, scale] = parameters.map(Number);
  if (precision === undefined) return DECIMAL_DEFAULT;
  const isValid = parameters.length <= 2 && Number.isInteger(precision) && precision >= 1 &&
    precision <= DECIMAL_PRECISION_MAX &&
    (scale === undefined || (Number.isInteger(scale) && scale >= 0 && scale <= precision));
  if (!isValid) {
    throw new SqlError(
      `invalid type DECIMAL(${
        parameters.join(", ")
      }): expected a precision of 1 to ${DECIMAL_PRECISION_MAX} and a scale of at most the precision`,
      inCast ? at : at + name.length,
      SQLSTATE.invalidParameter,
    );
  }
  return decimalTag(precision, scale ?? 0);
}

/** `geohash(4c)`, `geohash(20b)`: 1 to 60 bits. */
function geohashType({ parameters, at, name }: TypeName): string {
  const size = /^(\d+)([cb])$/i.exec(parameters[0] ?? "");
  const bits = size === null ? 0 : Number(size[1]) * (size[2]!.toLowerCase() === "c" ? 5 : 1);
  if (parameters.length !== 1 || bits < 1 || bits > GEOHASH_BITS_MAX) {
    throw new SqlError(
      "GEOHASH needs a size from 1c to 12c or from 1b to 60b",
      at + name.length,
      SQLSTATE.invalidParameter,
    );
  }
  return geohashTag(bits);
}

/** Names of DOUBLE that PostgreSQL's clients use in casts. */
const DOUBLES = new Set(["float8", "double precision"]);

/** The tag of `float(53)`, of SQL's binary digits, and in casts of `varchar(255)`, whose length cuts nothing. Undefined for others. */
function typeWithSize(tag: string, { name, parameters }: TypeName, inCast: boolean): string | undefined {
  const size = parameters.length === 1 && /^\d{1,9}$/.test(parameters[0]!) ? Number(parameters[0]) : 0;
  if (tag === "VARCHAR" && inCast && size > 0) return "STRING";
  return name === "float" && size >= 1 && size <= 53 ? size <= 24 ? "FLOAT" : "DOUBLE" : undefined;
}

/** The tag of a type name. @throws at its position if there is no such type. */
export function tagOfType(type: TypeName, inCast = false): string {
  const tag = tagOfName(type.name);
  if (type.name === "decimal" && type.dimensions === 0) return decimalType(type, inCast);
  if (inCast && type.name === "numeric" && type.dimensions === 0) {
    return decimalType(type.parameters.length === 0 ? { ...type, parameters: NUMERIC_SIZE } : type, inCast);
  }
  if (type.name === "geohash" && type.dimensions === 0) return geohashType(type);
  const isDouble = type.name === "double" || (inCast && DOUBLES.has(type.name));
  if (isDouble && type.dimensions > 0 && type.dimensions <= ARRAY_DIMENSIONS_MAX) {
    return `DOUBLE${"[]".repeat(type.dimensions)}`;
  }
  if (LATER.has(type.name)) throw notSupported(`the type ${type.name}${"[]".repeat(type.dimensions)}`, type.at);
  if (tag === undefined || type.dimensions > 0) {
    throw new SqlError(
      `there is no type ${type.name}${"[]".repeat(type.dimensions)}${
        typeHint(type.name) ?? didYouMean(type.name, typeSpellings())
      }`,
      type.at,
      SQLSTATE.undefinedFunction,
    );
  }
  if (type.parameters.length > 0) {
    const withSize = typeWithSize(tag, type, inCast);
    if (withSize !== undefined) return withSize;
    throw new SqlError(
      `type ${type.name} has no length or precision: write ${type.name}`,
      type.at + type.name.length,
      SQLSTATE.syntax,
    );
  }
  return tag;
}

/** The tag of a computed value of column type `tag`: symbols lose their dictionary. */
export function computedTag(tag: string): string {
  return tag === "SYMBOL" ? "SYMBOL_TEXT" : tag;
}

const CASTS_OF_LONG = new Set(["BOOLEAN", "CHAR", "SYMBOL_TEXT"]);

/** Types that a LONG256 becomes by way of LONG. It has casts of its own to numbers and to other texts. */
export function isCastOfLong(tag: string): boolean {
  return CASTS_OF_LONG.has(tag) || decimalOf(tag) !== undefined || geohashBits(tag) !== undefined;
}

export function displayName(tag: string): string {
  return tag === UNKNOWN ? "unknown" : arrayDimensions(tag) > 0 ? tag : typeOf(tag).name;
}

const UNKNOWN = "UNTYPED";
