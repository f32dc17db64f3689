/** For each column type: which literals of lines it accepts, and how they are stored. */
import { typeOf } from "../../../types/mod.ts";
import { parseIPv4, parseUuid } from "../../../types/parse/mod.ts";
import {
  arrayDimensions,
  decimalOf,
  type DecimalType,
  geohashBits,
  parseDecimal,
  parseGeohash,
  parseLong256,
} from "../../../types/wide.ts";
import { KIND } from "../columns.ts";
import { excerpt } from "../excerpts.ts";
import { boolean, double, float, instants, integers, long } from "./numbers.ts";
import { type Fit, type Fitted, nullPairs, type Source, words } from "./source.ts";
import { readTexts, symbol, symbolText, text, wideNull, writeValue } from "./texts.ts";

/** Undefined for a type that lines do not support. */
export function fitOf(type: string): Fit | undefined {
  return FITS[type] ?? parametrisedFit(type);
}

/** LONG256: accepts `0xffi` and texts. */
const long256 = (source: Source): Fitted =>
  readTexts(32, wideNull(32), (bytes) => parseLong256(new TextDecoder().decode(bytes)), KIND.long256)(source);

/** Types with parameters. Undefined for a type that lines do not support. */
function parametrisedFit(tag: string): Fit | undefined {
  const bits = geohashBits(tag);
  // A text that is not a geohash of enough characters becomes null.
  if (bits !== undefined) {
    return readTexts(8, wideNull(8), (bytes) => parseGeohash(new TextDecoder().decode(bytes), bits) ?? null);
  }
  const type = decimalOf(tag);
  if (type !== undefined) return (source) => decimal(source, typeOf(tag).width, type);
  const dimensions = arrayDimensions(tag);
  return dimensions > 0 ? (source) => array(source, dimensions) : undefined;
}

/** Accepts `1.25d`, texts, floats and integers that fit precision and scale. */
function decimal(source: Source, width: number, type: DecimalType): Fitted {
  const values = new Uint8Array(source.rowCount * width);
  const view = new DataView(values.buffer);
  for (let at = 0; at < values.length; at += width) writeValue(view, at, width, wideNull(width));
  source.forEach((row, kind) => {
    if (kind !== KIND.decimal && kind !== KIND.text && kind !== KIND.double && kind !== KIND.long) {
      throw source.refuse(row);
    }
    const text = kind === KIND.decimal ? source.text(row) : symbolText(source, row, kind);
    if (text === undefined) return;
    const value = parseDecimal(text, type);
    if (value === undefined) {
      throw source.refuse(row, `${excerpt(text)} does not fit DECIMAL(${type.precision},${type.scale})`);
    }
    writeValue(view, row * width, width, value);
  });
  return { values };
}

function array(source: Source, dimensions: number): Fitted {
  const { column } = source;
  source.forEach((row, kind) => {
    const found = kind === KIND.array ? column.heap[column.slots[2 * row]] : 0; // fewer than 256, so one byte suffices
    if (found !== dimensions) {
      throw source.refuse(
        row,
        found === 0 ? undefined : `an array of ${found} dimensions does not fit a column of ${dimensions}`,
      );
    }
  });
  return { values: words(column.slots.length > 0 ? column.slots : nullPairs(source.rowCount)), heap: column.heap };
}

const NULL_UUID = wideNull(16);

const FITS: Readonly<Record<string, Fit>> = {
  BOOLEAN: boolean,
  BYTE: integers((rowCount) => new Int8Array(rowCount), -128, 127, 0),
  SHORT: integers((rowCount) => new Int16Array(rowCount), -32768, 32767, 0),
  INT: integers((rowCount) => new Int32Array(rowCount), -2147483648, 2147483647, -2147483648),
  LONG: long,
  FLOAT: float,
  DOUBLE: double,
  DATE: instants(KIND.millis, 1_000_000n),
  TIMESTAMP: instants(KIND.micros, 1_000n),
  TIMESTAMP_NS: instants(KIND.nanos, 1n),
  STRING: text,
  VARCHAR: text,
  SYMBOL: symbol,
  CHAR: readTexts(2, 0n, (bytes) => {
    const characters = new TextDecoder().decode(bytes);
    return characters.length === 1 ? BigInt(characters.charCodeAt(0)) : undefined;
  }),
  LONG256: long256,
  UUID: readTexts(16, NULL_UUID, (bytes) => parseUuid(bytes, 0, bytes.length)),
  IPv4: readTexts(4, 0n, (bytes) => {
    const address = parseIPv4(bytes, 0, bytes.length);
    return address === undefined ? undefined : BigInt(address >>> 0);
  }),
};
