/**
 * Types that two expressions share, and names of types as statements spell them.
 */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import { tagOfName, typeOf } from "../../types/mod.ts";
import type { TypeName } from "../ast.ts";

const NUMBERS = ["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"];
const TIMES = ["DATE", "TIMESTAMP", "TIMESTAMP_NS"];
const TEXTS = ["CHAR", "SYMBOL", "SYMBOL_TEXT", "STRING", "VARCHAR"];

export const isNumber = (type: string): boolean => NUMBERS.includes(type);
export const isInteger = (type: string): boolean => NUMBERS.indexOf(type) >= 0 && NUMBERS.indexOf(type) < 4;
export const isTime = (type: string): boolean => TIMES.includes(type);
export const isTimestamp = (type: string): boolean => type === "TIMESTAMP" || type === "TIMESTAMP_NS";
/** CHAR is not among them: joins and sets keep it apart. */
export const isText = (type: string): boolean => type !== "CHAR" && TEXTS.includes(type);
export const isTextOrChar = (type: string): boolean => TEXTS.includes(type);

const wider = (order: string[], a: string, b: string): string => order[Math.max(order.indexOf(a), order.indexOf(b))];

/** The type of a CASE's branches; undefined when there is none. */
export function branchType(a: string, b: string): string | undefined {
  if (a === b) return a === "SYMBOL" ? "STRING" : a;
  if (a === "NULL") return b === "SYMBOL" ? "STRING" : b;
  if (b === "NULL") return a === "SYMBOL" ? "STRING" : a;
  if (isNumber(a) && isNumber(b)) return (a === "FLOAT" && b === "LONG") || (a === "LONG" && b === "FLOAT") ? "DOUBLE" : wider(NUMBERS, a, b);
  if (isTime(a) && isTime(b)) return wider(TIMES, a, b);
  if (isTextOrChar(a) && isTextOrChar(b)) return a === "VARCHAR" || b === "VARCHAR" ? "VARCHAR" : "STRING";
  return undefined;
}

/** The type of a set operation's column; undefined when the two do not go together. */
export function setType(a: string, b: string): string | undefined {
  if (a === b) return a === "SYMBOL" || a === "SYMBOL_TEXT" ? "STRING" : a;
  if (a === "NULL") return b === "SYMBOL" ? "STRING" : b;
  if (b === "NULL") return a === "SYMBOL" ? "STRING" : a;
  if (isNumber(a) && isNumber(b)) return wider(NUMBERS, a, b);
  if (isTime(a) && isTime(b)) return wider(TIMES, a, b);
  if (isTextOrChar(a) && isTextOrChar(b)) return a === "VARCHAR" && b === "VARCHAR" ? "VARCHAR" : "STRING";
  const text = isTextOrChar(a) ? a : isTextOrChar(b) ? b : undefined;
  if (text !== undefined) return text === "VARCHAR" ? "VARCHAR" : "STRING";
  return undefined;
}

/** What is known to the dialect, but not built yet. */
const LATER = new Set(["binary", "long256", "decimal", "geohash", "long128"]);

/** The tag of a type as written. @throws at its place when there is no such type. */
export function tagOfType(type: TypeName): string {
  const tag = tagOfName(type.name);
  if (LATER.has(type.name) || (type.dimensions > 0 && type.name === "double")) throw notSupported(`the type ${type.name}${"[]".repeat(type.dimensions)}`, type.at);
  if (tag === undefined || type.dimensions > 0) {
    throw new SqlError(`there is no type ${type.name}${"[]".repeat(type.dimensions)}`, type.at, SQLSTATE.undefinedFunction);
  }
  if (type.parameters.length > 0) {
    throw new SqlError(`the type ${type.name} takes no length or precision`, type.at + type.name.length, SQLSTATE.syntax);
  }
  return tag;
}

/** The tag that a value of column type `tag` has once it was computed: symbols lose their dictionary. */
export function computedTag(tag: string): string {
  return tag === "SYMBOL" ? "SYMBOL_TEXT" : tag;
}

export function displayName(tag: string): string {
  return tag === UNKNOWN ? "unknown" : typeOf(tag).name;
}

const UNKNOWN = "UNTYPED";
