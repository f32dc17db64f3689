/** Converts arrays and numerics of PostgreSQL to the text formats of this database. */
import { notSupported, ProtocolError } from "../../errors.ts";
import { quotedElement } from "../../types/pg-arrays.ts";
import { PG_SQLSTATE } from "./failure.ts";

/** Numbers that are NULL here, as psycopg and PostgreSQL write them. */
const NO_NUMBER = /\bnull\b|[-+]?\b(?:nan|inf(?:inity)?)\b/gi;

/** `{{1,2},{NaN,NULL}}` → `[[1,2],[null,null]]`. Other texts are returned unchanged. */
export function arrayOfText(text: string): string {
  if (!text.trimStart().startsWith("{")) return text;
  // Arrays with explicit bounds, `[1:2]={1,2}`, do not begin with a brace. Some drivers quote all elements.
  return text.replaceAll("{", "[").replaceAll("}", "]").replaceAll('"', "").replaceAll(NO_NUMBER, "null");
}

const ELEMENTS: Record<number, { size: number; read(view: DataView, at: number): string }> = {
  21: { size: 2, read: (view, at) => String(view.getInt16(at)) },
  23: { size: 4, read: (view, at) => String(view.getInt32(at)) },
  20: { size: 8, read: (view, at) => String(view.getBigInt64(at)) },
  700: { size: 4, read: (view, at) => finite(view.getFloat32(at)) },
  701: { size: 8, read: (view, at) => finite(view.getFloat64(at)) },
};

const finite = (value: number) => Number.isFinite(value) ? String(value) : "null";

/**
 *     dimensions   int32          0: an empty array
 *     flags        int32
 *     element      int32          its OID
 *     dimensions × (int32 length, int32 lower bound)
 *     elements     int32 size (-1: null), its bytes
 *
 * @throws {ProtocolError} 22P03
 */
export function readArray(view: DataView): string {
  const broken = (why: string) => new ProtocolError(`malformed binary array: ${why}`, PG_SQLSTATE.invalidBinary);
  if (view.byteLength < 12) throw broken("it is incomplete");
  const dimensions = view.getInt32(0), oid = view.getInt32(8);
  if (dimensions === 0) return "[]";
  if (dimensions < 0 || dimensions > 32) throw broken(`it has ${dimensions} dimensions`);
  const element = ELEMENTS[oid];
  if (element === undefined && oid !== 1700) throw broken(`unsupported element type, OID ${oid}`);
  let at = 12 + 8 * dimensions;
  if (at > view.byteLength) throw broken("it is incomplete");
  const next = (): string => {
    if (at + 4 > view.byteLength) throw broken("it is incomplete");
    const size = view.getInt32(at);
    at += 4;
    if (size === -1) return "null";
    if (size < 0 || at + size > view.byteLength) throw broken("it is incomplete");
    if (element !== undefined && size !== element.size) throw broken(`an element of ${size} bytes`);
    const from = at;
    at += size;
    if (element !== undefined) return element.read(view, from);
    return numericText(new DataView(view.buffer, view.byteOffset + from, size)) ?? "null";
  };
  const level = (dimension: number): string => {
    if (dimension === dimensions) return next();
    const length = view.getInt32(12 + 8 * dimension);
    if (length < 0 || length > view.byteLength) throw broken(`a dimension of length ${length}`);
    return `[${Array.from({ length }, () => level(dimension + 1)).join(",")}]`;
  };
  const text = level(0);
  if (at !== view.byteLength) throw broken("it has excess bytes");
  return text;
}

const POSITIVE = 0x0000, NEGATIVE = 0x4000;

/**
 * Digits of a numeric. Null for NaN and the infinities.
 *
 *     count    int16, of groups of four digits
 *     weight   int16, power of 10000 of the first group
 *     sign     uint16
 *     scale    int16, digits after the point
 *     groups   int16 each
 */
export function numericText(view: DataView): string | null {
  const broken = () => new ProtocolError("malformed binary numeric", PG_SQLSTATE.invalidBinary);
  if (view.byteLength < 8) throw broken();
  const count = view.getInt16(0), weight = view.getInt16(2), sign = view.getUint16(4), scale = view.getInt16(6);
  if (count < 0 || scale < 0 || view.byteLength !== 8 + 2 * count) throw broken();
  if (sign !== POSITIVE && sign !== NEGATIVE) return null;
  const group = (power: number) => {
    const index = weight - power;
    const digits = index >= 0 && index < count ? view.getInt16(8 + 2 * index) : 0;
    if (digits < 0 || digits > 9999) throw broken();
    return String(digits).padStart(4, "0");
  };
  let whole = "", fraction = "";
  for (let power = weight; power >= 0; power--) whole += group(power);
  for (let power = -1; fraction.length < scale; power--) fraction += group(power);
  const digits = whole.replace(/^0+(?=\d)/, "") || "0";
  return `${sign === NEGATIVE ? "-" : ""}${digits}${scale === 0 ? "" : `.${fraction.slice(0, scale)}`}`;
}

/**
 * Converts the binary format of a one-dimensional array to its text: `{a,"b c",NULL}`. `read` returns an element's
 * text. @throws {ProtocolError} 22P03 if the bytes are not such an array.
 */
export function readTextArray(view: DataView, read: (bytes: Uint8Array) => string): string {
  const broken = (why: string) => new ProtocolError(`malformed binary array: ${why}`, PG_SQLSTATE.invalidBinary);
  if (view.byteLength < 12) throw broken("it is incomplete");
  const dimensions = view.getInt32(0);
  if (dimensions === 0) return "{}";
  if (dimensions !== 1) throw notSupported(`an array of texts with ${dimensions} dimensions`, 0);
  if (view.byteLength < 20) throw broken("it is incomplete");
  const length = view.getInt32(12), elements: string[] = [];
  let at = 20;
  for (let i = 0; i < length; i++) {
    if (at + 4 > view.byteLength) throw broken("it is incomplete");
    const size = view.getInt32(at);
    at += 4;
    if (size < -1 || at + Math.max(0, size) > view.byteLength) throw broken("it is incomplete");
    const text = size < 0 ? undefined : read(new Uint8Array(view.buffer, view.byteOffset + at, size));
    elements.push(quotedElement(text));
    at += Math.max(0, size);
  }
  if (length < 0 || at !== view.byteLength) {
    throw broken(length < 0 ? `it has ${length} elements` : "it has excess bytes");
  }
  return `{${elements.join(",")}}`;
}
