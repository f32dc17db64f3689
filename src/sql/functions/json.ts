/**
 * json_extract(document, path): one value of a JSON text. A cast directly after it reads the value as that type. The
 * binder turns it into a call of "json_extract_<TYPE>".
 */
import { NULL_I32, NULL_I64, type Value } from "../../types/mod.ts";
import { readValue } from "../../types/parse/mod.ts";
import { batchEntry } from "./batch-entry.ts";
import type { BatchColumn, BatchFunction, BatchOut, FunctionEntry } from "./entry.ts";
import { JsonReader, type Step, unquoted } from "./json-text.ts";
import { baseOf, offsetOf, viewOf, viewsOf } from "./memory-views.ts";

/** Parses `$.a[0].b`, also without the dollar. Undefined if the path is invalid. */
function readPath(text: string): Step[] | undefined {
  const steps: Step[] = [];
  const pattern = /\.([^.[\]]+)|\[(\d+)\]/y;
  pattern.lastIndex = text.startsWith("$") ? 1 : 0;
  while (pattern.lastIndex < text.length) {
    const match = pattern.exec(text);
    if (match === null) return undefined;
    steps.push(match[1] ?? Number(match[2]));
  }
  return steps;
}

/** A value as text: strings without quotes and escapes, everything else as written. Undefined for null. */
function asText(raw: string): string | undefined {
  return raw === "null" ? undefined : raw[0] === '"' ? unquoted(raw) : raw;
}

const TRUTH: Record<string, number> = { true: 1, false: 0 };

/** The value as a number, with its fraction. Numbers may be written as text. */
function asNumber(raw: string): number {
  if (raw in TRUTH) return TRUTH[raw];
  const text = asText(raw);
  return text === undefined || !/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text) ? NaN : Number(text);
}

/** A value as an integer, truncated. Undefined if it has more than `bits` bits. */
function asWhole(raw: string, bits: number): bigint | undefined {
  const text = asText(raw);
  const number = asNumber(raw);
  if (!Number.isFinite(number)) return undefined;
  if (Math.abs(number) >= 2 ** 64) return undefined;
  const value = text !== undefined && /^-?\d+$/.test(text) ? BigInt(text) : BigInt(Math.trunc(number));
  return BigInt.asIntN(bits, value) === value ? value : undefined;
}

/** A value that is written as text, or, for times, as a number in their unit. */
function asValue(raw: string, type: string): Value | undefined {
  const text = asText(raw);
  if (text === undefined) return undefined;
  if (raw[0] !== '"') return type === "UUID" || type === "IPv4" ? undefined : asWhole(raw, 64);
  const read = readValue(text, type);
  return read instanceof Object ? undefined : read ?? undefined;
}

/** Writes a value of a row; undefined if there is none. */
type Put = (out: BatchOut, row: number, value: JsonReader | undefined) => void;

const putTime = (type: string): Put => (out, row, value) => {
  out.values[row] = (value === undefined ? undefined : asValue(value.raw(), type)) ?? NULL_I64;
};

/** `none`: for what is no such number. */
const putWhole = (bits: number, none: number): Put => (out, row, value) => {
  const number = value === undefined ? NaN : Math.trunc(value.number());
  if (number === number && Math.abs(number) < 2 ** (bits - 1)) out.values[row] = number;
  else out.values[row] = Number((value === undefined ? undefined : asWhole(value.raw(), bits)) ?? none);
};

const putNumber: Put = (out, row, value) => {
  const number = value === undefined ? NaN : value.number();
  out.values[row] = number !== number && value !== undefined ? asNumber(value.raw()) : number;
};

const PUT: Record<string, Put> = {
  BOOLEAN: (out, row, value) => out.values[row] = value?.is("true") ? 1 : 0,
  SHORT: putWhole(16, 0),
  INT: putWhole(32, NULL_I32),
  LONG: (out, row, value) => {
    const number = value === undefined ? NaN : Math.trunc(value.number());
    if (number === number) out.values[row] = BigInt(number);
    else out.values[row] = (value === undefined ? undefined : asWhole(value.raw(), 64)) ?? NULL_I64;
  },
  FLOAT: putNumber,
  DOUBLE: putNumber,
  DATE: putTime("DATE"),
  TIMESTAMP: putTime("TIMESTAMP"),
  TIMESTAMP_NS: putTime("TIMESTAMP_NS"),
  UUID: (out, row, found) => {
    const value = found === undefined ? undefined : asValue(found.raw(), "UUID");
    if (typeof value !== "bigint") out.setNull(row);
    else {
      out.values[2 * row] = BigInt.asIntN(64, value);
      out.values[2 * row + 1] = BigInt.asIntN(64, value >> 64n);
    }
  },
  IPv4: (out, row, found) => {
    const value = found === undefined ? undefined : asValue(found.raw(), "IPv4");
    out.values[row] = typeof value === "number" ? value : 0;
  },
};

/** A null in the document is an empty text, to distinguish it from a missing value. */
const putText: Put = (out, row, value) => {
  if (value === undefined) return out.setText(row, undefined);
  const length = value.plainLength();
  if (length >= 0) out.setView(row, value.plainAddress(), length);
  else out.setText(row, value.is("null") ? "" : asText(value.raw()));
};

/** Types for which a cast after json_extract() reads the document itself. */
export const JSON_TYPES: ReadonlySet<string> = new Set(Object.keys(PUT));

const ARGS = [{ name: "document", type: "text" }, { name: "path", type: "STRING", constant: true }];

/** Reading a longer text as a string tests whether it is too long. */
const CERTAIN_BYTES = 1 << 20;

function extracted(put: Put): BatchFunction {
  return ([documents, path]: BatchColumn[], out, rowCount, context) => {
    const written = path.text(0);
    const steps = written === undefined ? undefined : readPath(written);
    const reader = new JsonReader(context, steps ?? []), views = viewsOf(context.heap.u8);
    for (let row = 0; row < rowCount; row++) {
      const length = documents.values[2 * row + 1], from = offsetOf(documents, row);
      if (length > CERTAIN_BYTES && steps !== undefined) documents.text(row);
      const isFound = steps !== undefined && length >= 0 &&
        reader.find(viewOf(views, documents, row), from, from + length, baseOf(documents, row));
      put(out, row, isFound ? reader : undefined);
    }
  };
}

const entries: FunctionEntry[] = [
  batchEntry(
    "json_extract",
    ARGS,
    "VARCHAR",
    "The value at a path such as `$.a[0].b` in a JSON text. A cast of the call reads the value as that type.",
    extracted(putText),
    [[`json_extract('{"a":[1,2]}', '$.a[1]')`, "2"], [`json_extract('{"a":"7"}', '.a')::int`, 7]],
  ),
  ...Object.entries(PUT).map(([type, put]) =>
    batchEntry(`json_extract_${type}`, ARGS, type, `json_extract() as ${type}.`, extracted(put))
  ),
];

export const jsonFunctions = entries;
