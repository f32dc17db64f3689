/**
 * Parameters: converts PostgreSQL's type OIDs to tags, and the bytes of an argument to a value.
 *
 * A parameter has two types. The protocol's type (the OID, specified by the client or announced by the server)
 * determines how the bytes are read; the SQL type (the tag) determines the value that they are converted to. The OID of
 * a text leaves the tag to the statement, so that `ts > $1` accepts '2024-01-01' from drivers that declare every string
 * as varchar.
 */
import { notSupported, ProtocolError, SqlError, SQLSTATE } from "../../errors.ts";
import { TIME_NANOS } from "../../types/calendar.ts";
import { ANY_NUMBER, typeOf, type Value } from "../../types/mod.ts";
import { formatValue } from "../../types/format/mod.ts";
import {
  ARRAY_DIMENSIONS_MAX,
  arrayDimensions,
  decimalOf,
  decimalOfText,
  decimalTag,
  formatBinary,
  parseDecimal,
} from "../../types/wide.ts";
import { arrayOfText, numericText, readArray, readTextArray } from "./composites.ts";
import { textParameter } from "../text-parameter.ts";
import { PG_SQLSTATE } from "./failure.ts";
import type { Format } from "./messages.ts";
import { decodeText } from "./reader.ts";

interface WireType {
  /** The type of its binary format. Undefined: text. */
  tag: string | undefined;
  /** Bytes of the binary format. */
  size: number;
  /** Absent if texts are parsed as the statement's type. */
  binary?: (view: DataView) => Value;
}

const EPOCH_2000_MICROS = 946_684_800_000_000n;
const DAY_MICROS = 86_400_000_000n;

const finite = (value: number): Value => value - value === 0 ? value : null;
const long = (value: bigint): Value => value === -9223372036854775808n ? null : value;
const micros = (view: DataView): Value => view.getBigInt64(0) + EPOCH_2000_MICROS;

const bytesOf = (view: DataView) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

const TEXT: WireType = { tag: undefined, size: -1 };
const NUMERIC = 1700;
const BPCHAR = 1042, VARCHAR = 1043;

/** int2[], int4[], int8[], float4[], float8[], numeric[] */
const ARRAYS = [1005, 1007, 1016, 1021, 1022, 1231];

/** Arrays of texts are texts in this database: `{a,b}`, as in the catalogues. */
const TEXT_ARRAYS: Readonly<Record<string, number>> = {
  char: 1002,
  name: 1003,
  text: 1009,
  bpchar: 1014,
  varchar: 1015,
};
const OID_ARRAY = 1028;

function oidText(bytes: Uint8Array): string {
  if (bytes.length !== 4) {
    throw new ProtocolError(`found ${bytes.length} bytes, expected 4 for an oid`, PG_SQLSTATE.invalidBinary);
  }
  return String(new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0));
}

const textArray = (view: DataView): Value => readTextArray(view, decodeText);

const WIRE_TYPES = new Map<number, WireType>([
  [16, { tag: "BOOLEAN", size: 1, binary: (view) => view.getUint8(0) !== 0 }],
  [21, { tag: "SHORT", size: 2, binary: (view) => view.getInt16(0) }],
  [23, { tag: "INT", size: 4, binary: (view) => view.getInt32(0) === -2147483648 ? null : view.getInt32(0) }],
  [17, { tag: "BINARY", size: -1, binary: (view) => formatBinary(bytesOf(view)) }],
  [20, { tag: "LONG", size: 8, binary: (view) => long(view.getBigInt64(0)) }],
  [26, { tag: "LONG", size: 4, binary: (view) => BigInt(view.getUint32(0)) }],
  [700, { tag: "FLOAT", size: 4, binary: (view) => finite(view.getFloat32(0)) }],
  [701, { tag: "DOUBLE", size: 8, binary: (view) => finite(view.getFloat64(0)) }],
  [1114, { tag: "TIMESTAMP", size: 8, binary: micros }],
  [1184, { tag: "TIMESTAMP", size: 8, binary: micros }],
  [1082, { tag: "TIMESTAMP", size: 4, binary: (view) => BigInt(view.getInt32(0)) * DAY_MICROS + EPOCH_2000_MICROS }],
  [2950, { tag: "UUID", size: 16, binary: (view) => (view.getBigUint64(0) << 64n) | view.getBigUint64(8) }],
  [NUMERIC, { tag: ANY_NUMBER, size: -1, binary: numericText }],
  // The statement may require more dimensions. See `isLoose`.
  ...ARRAYS.map((oid) => [oid, { tag: "DOUBLE[]", size: -1, binary: readArray }] as const),
  ...Object.values(TEXT_ARRAYS).map((oid) => [oid, { tag: "STRING", size: -1, binary: textArray }] as const),
  [OID_ARRAY, {
    tag: "STRING",
    size: -1,
    binary: (view) => readTextArray(view, oidText),
  }],
  // char, name, text, unknown, bpchar, varchar
  ...[18, 19, 25, 705, BPCHAR, VARCHAR].map((oid) => [oid, TEXT] as const),
]);

const REFUSED = new Map([
  [1083, "time"],
  [1186, "interval"],
  [1266, "timetz"],
  [3802, "jsonb"],
  ...[1000, 1001, 1115, 1182, 1185, 2951]
    .map((oid) => [oid, "an array"] as const),
]);

/** True if the OID determines the type only if the statement does not require another one. */
export function isLoose(oid: number): boolean {
  return oid === NUMERIC || ARRAYS.includes(oid);
}

/**
 * The tag for an OID of Parse; undefined leaves it to the statement. @throws {SqlError} 0A000 for unsupported types.
 */
export function tagOfOid(oid: number): string | undefined {
  const refused = REFUSED.get(oid);
  if (refused !== undefined) throw notSupported(`a parameter of type ${refused} (OID ${oid})`, 0);
  return WIRE_TYPES.get(oid)?.tag;
}

/** The OID in ParameterDescription: the client's own, or that of the inferred type. `arrayOf`: see `Prepared`. */
export function announcedOid(given: number | undefined, tag: string, arrayOf?: string): number {
  if (given) return given;
  if (arrayOf === undefined) return typeOf(tag).pgOid;
  return arrayOf === "oid" ? OID_ARRAY : TEXT_ARRAYS[arrayOf]!;
}

/**
 * The value of parameter `number` (from 1). @throws {SqlError} 22P02 and 22003 if the bytes are not a value of the
 * type; ProtocolError 22P03 if their size is wrong.
 */
export function decodeParameter(
  bytes: Uint8Array | null,
  format: Format,
  oid: number,
  tag: string,
  number: number,
): Value {
  if (bytes === null) return null;
  const type = WIRE_TYPES.get(oid);
  if (format === 0 || type === TEXT) {
    const text = decodeText(bytes);
    return readText(oid === NUMERIC ? asWhole(text, tag) : text, tag, number);
  }
  if (type?.binary === undefined) throw notSupported(`the binary form of parameter $${number} (type OID ${oid})`, 0);
  if (type.size >= 0 && bytes.length !== type.size) {
    throw new ProtocolError(
      `parameter $${number} has ${bytes.length} bytes: expected ${type.size} for its type (OID ${oid})`,
      PG_SQLSTATE.invalidBinary,
    );
  }
  return convert(type.binary(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)), type.tag, tag, number);
}

/** The tag of an array argument, by its dimensions; undefined for empty arrays and other types. */
export function arrayTagOf(bytes: Uint8Array | null, format: Format, oid: number): string | undefined {
  if (bytes === null || !ARRAYS.includes(oid)) return undefined;
  if (format === 0) {
    const braces = /^\s*[[{][\s[{]*/.exec(decodeText(bytes.subarray(0, 256)))?.[0].replaceAll(/\s/g, "") ?? "";
    return isEmptyArray(bytes) ? undefined : "DOUBLE" + "[]".repeat(braces.length);
  }
  const dimensions = bytes.length < 4 ? 0 : new DataView(bytes.buffer, bytes.byteOffset, 4).getInt32(0);
  return dimensions > 0 && dimensions <= ARRAY_DIMENSIONS_MAX ? "DOUBLE" + "[]".repeat(dimensions) : undefined;
}

/**
 * The tag of a number that has more digits than the DECIMAL of the statement, which is that of the value beside the parameter: as of a constant,
 * its digits determine its type. Undefined for others.
 */
export function decimalTagOf(bytes: Uint8Array | null, format: Format, oid: number, tag: string): string | undefined {
  const type = decimalOf(tag);
  if (bytes === null || type === undefined || (format === 1 && oid !== NUMERIC)) return undefined;
  const text = format === 0
    ? decodeText(bytes)
    : numericText(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  if (text === null || parseDecimal(text, type) !== undefined) return undefined;
  const own = decimalOfText(text);
  return own && decimalTag(own.precision, own.scale);
}

function isEmptyArray(text: Uint8Array): boolean {
  return text.length < 64 && /^[\s[\]{}]*$/.test(decodeText(text));
}

const WHOLE = new Set(["BYTE", "SHORT", "INT", "LONG"]);

/** Clients write whole numbers of type numeric as `2.00`, too. */
function asWhole(text: string, tag: string): string {
  return WHOLE.has(tag) ? text.replace(/^(\s*[+-]?\d+)\.0*(\s*)$/, "$1$2") : text;
}

function readText(text: string, tag: string, number: number): Value {
  return textParameter(arrayDimensions(tag) > 0 ? arrayOfText(text) : text, tag, number);
}

const INTEGER_MAX: Record<string, number> = { BYTE: 127, SHORT: 32767, INT: 2147483647 };

/** Converts a value of type `from` to type `to`. */
function convert(value: Value, from: string | undefined, to: string, number: number): Value {
  if (value === null) return value;
  if (typeof value === "string" || from === undefined) {
    const text = String(value);
    return readText(from === ANY_NUMBER ? asWhole(text, to) : text, to, number);
  }
  if (from === to) return value;
  const { layout } = typeOf(to);
  if (layout === "text" || layout === "symbol") return formatValue(value, from);
  const fromNanos = TIME_NANOS[from], toNanos = TIME_NANOS[to];
  if (fromNanos !== undefined && toNanos !== undefined) return rescale(value as bigint, fromNanos, toNanos);
  if (typeof value !== "boolean" && from !== "UUID") {
    const max = INTEGER_MAX[to];
    if (max !== undefined) {
      const whole = Math.round(Number(value));
      if (Math.abs(whole) <= max || whole === -max - 1) return whole;
      throw new SqlError(
        `parameter $${number}: ${value} is out of the range of ${typeOf(to).name}`,
        0,
        SQLSTATE.outOfRange,
      );
    }
    if (to === "FLOAT" || to === "DOUBLE") return finite(to === "FLOAT" ? Math.fround(Number(value)) : Number(value));
    if (to === "LONG" || to in TIME_NANOS) return typeof value === "bigint" ? value : BigInt(Math.round(value));
  }
  throw new SqlError(
    `parameter $${number} is of type ${from}: the statement needs ${typeOf(to).name}`,
    0,
    SQLSTATE.datatypeMismatch,
  );
}

function rescale(value: bigint, from: bigint, to: bigint): bigint {
  if (from >= to) return value * (from / to);
  const divisor = to / from;
  const quotient = value / divisor;
  return value < 0n && quotient * divisor !== value ? quotient - 1n : quotient;
}
