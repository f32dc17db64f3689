/** PostgreSQL's type modifiers: the sizes of types in descriptions of results and in the catalogue. */
import { typeOf } from "./mod.ts";
import { decimalOf } from "./wide.ts";

/** Modifiers of numeric and character are above this number. */
const OFFSET = 4;
const BPCHAR = 1042, NUMERIC = 1700;

/** -1: the type has no size. */
export function modifierOf(tag: string): number {
  if (typeOf(tag).pgOid === BPCHAR) return OFFSET + 1;
  const decimal = decimalOf(tag);
  return decimal === undefined ? -1 : OFFSET + ((decimal.precision << 16) | decimal.scale);
}

/** `(10,2)` of the modifier of numeric(10,2). Empty for types and modifiers without a size. */
export function sizeOfModifier(oid: number, modifier: number): string {
  const size = modifier - OFFSET;
  if (size < 0) return "";
  if (oid === BPCHAR) return `(${size})`;
  return oid === NUMERIC ? `(${size >> 16},${size & 0xffff})` : "";
}
