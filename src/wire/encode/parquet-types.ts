/**
 * The form of each column type in Parquet: the same as QuestDB's, with the corresponding logical type if Parquet has
 * one. Types without one are recorded in QuestDB's metadata of the schema, so that both can read them back unchanged.
 */
import type { KeyValue, SchemaElement } from "hyparquet";
import type { ResultColumn } from "../../api.ts";
import type { Vector } from "../../engine/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import { arrayDimensions, decimalOf, geohashBits } from "../../types/wide.ts";
import { ByteSink } from "./sink.ts";
import { formsOf } from "./types.ts";

/** The value of a row, or null, as the library's writer expects it. */
type Reader = (row: number) => unknown;

/** How the values are in memory, and which of them is null. All but `other` are flat columns. */
export type Stored =
  | { kind: "number"; view: NumberView; isNull?: NullNumber }
  /** Numbers of several words, least significant first. They are bytes in the file, reversed or not. Null: `NULL_LONG` in all words. */
  | { kind: "words"; isReversed: boolean }
  /** Pairs of address and length. Null: a negative length. `isPlain`: never with a dictionary. */
  | { kind: "text"; isPlain?: boolean }
  /** Places in a dictionary of such pairs. Null: a negative one. */
  | { kind: "symbol" }
  | OtherStored;

export interface OtherStored {
  kind: "other";
  reader(heap: SharedHeap, vector: Vector): Reader;
}

export type NumberView = "i8" | "i16" | "u16" | "i32" | "i64" | "f32" | "f64";
export type NullNumber = "zero" | "least" | "notFinite";

export interface ParquetType {
  /** The stored type and its logical type. */
  element: Omit<SchemaElement, "name" | "repetition_type">;
  /** False if the type has no null. */
  optional: boolean;
  /** Number of lists around the element. */
  dimensions?: number;
  /** QuestDB's number of the type. */
  code: number;
  stored: Stored;
}

const LONG: Stored = { kind: "number", view: "i64", isNull: "least" };

const STRING: ParquetType["element"] = {
  type: "BYTE_ARRAY",
  converted_type: "UTF8",
  logical_type: { type: "STRING" },
};

function text(code: number): ParquetType {
  return { element: STRING, optional: true, code, stored: { kind: "text" } };
}

const VARCHAR_CODE = 26;

/** QuestDB does not read dictionaries of this type. */
const STRING_TYPE: ParquetType = { ...text(11), stored: { kind: "text", isPlain: true } };

type Integer = "INT_8" | "INT_16" | "INT_32" | "INT_64" | "UINT_16" | "UINT_32";

/**
 * An integer without the equivalent logical type, whose width the writer encodes in a form that other readers cannot
 * read.
 */
function integer(name: Integer): ParquetType["element"] {
  return { type: name === "INT_64" ? "INT64" : "INT32", converted_type: name };
}

function instant(unit: "MILLIS" | "MICROS" | "NANOS"): ParquetType["element"] {
  return {
    type: "INT64",
    // Converted types have no nanoseconds.
    converted_type: unit === "NANOS" ? undefined : `TIMESTAMP_${unit}`,
    // All times are UTC. DuckDB truncates nanoseconds that are marked as UTC to microseconds.
    logical_type: { type: "TIMESTAMP", isAdjustedToUTC: unit !== "NANOS", unit },
  };
}

const TYPES: Record<string, ParquetType> = {
  BOOLEAN: {
    element: { type: "BOOLEAN" },
    optional: false,
    code: 1,
    stored: { kind: "number", view: "i8" },
  },
  BYTE: {
    element: integer("INT_8"),
    optional: false,
    code: 2,
    stored: { kind: "number", view: "i8" },
  },
  SHORT: {
    element: integer("INT_16"),
    optional: false,
    code: 3,
    stored: { kind: "number", view: "i16" },
  },
  /** The UTF-16 code unit. */
  CHAR: {
    element: integer("UINT_16"),
    optional: true,
    code: 4,
    stored: { kind: "number", view: "u16", isNull: "zero" },
  },
  INT: {
    element: { type: "INT32" },
    optional: true,
    code: 5,
    stored: { kind: "number", view: "i32", isNull: "least" },
  },
  LONG: { element: { type: "INT64" }, optional: true, code: 6, stored: LONG },
  FLOAT: {
    element: { type: "FLOAT" },
    optional: true,
    code: 9,
    stored: { kind: "number", view: "f32", isNull: "notFinite" },
  },
  DOUBLE: {
    element: { type: "DOUBLE" },
    optional: true,
    code: 10,
    stored: { kind: "number", view: "f64", isNull: "notFinite" },
  },
  DATE: { element: instant("MILLIS"), optional: true, code: 7, stored: LONG },
  TIMESTAMP: { element: instant("MICROS"), optional: true, code: 8, stored: LONG },
  TIMESTAMP_NS: { element: instant("NANOS"), optional: true, code: 8 | (1 << 18), stored: LONG },
  SYMBOL: { element: STRING, optional: true, code: VARCHAR_CODE, stored: { kind: "symbol" } },
  SYMBOL_TEXT: text(VARCHAR_CODE),
  STRING: STRING_TYPE,
  VARCHAR: text(VARCHAR_CODE),
  NULL: STRING_TYPE,
  UUID: {
    element: { type: "FIXED_LEN_BYTE_ARRAY", type_length: 16, logical_type: { type: "UUID" } },
    optional: true,
    code: 19,
    stored: { kind: "words", isReversed: true },
  },
  /** The address as a number. */
  IPv4: {
    element: integer("UINT_32"),
    optional: true,
    code: 25,
    stored: { kind: "number", view: "i32", isNull: "zero" },
  },
  LONG256: {
    element: { type: "FIXED_LEN_BYTE_ARRAY", type_length: 32 },
    optional: true,
    code: 13,
    stored: { kind: "words", isReversed: false },
  },
  BINARY: {
    element: { type: "BYTE_ARRAY" },
    optional: true,
    code: 18,
    stored: { kind: "text" },
  },
};

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Types without a counterpart are written as their CSV text. */
function asText(type: string): ParquetType {
  const forms = formsOf(type);
  return {
    element: STRING,
    optional: true,
    code: VARCHAR_CODE,
    stored: {
      kind: "other",
      reader(heap, vector) {
        const sink = new ByteSink(forms.maxBytes + 64);
        const writer = forms.text.writer!(heap, sink, "none");
        writer.bind(vector);
        return (row) => {
          const end = writer.write(row, 0);
          return end < 0 ? null : decoder.decode(sink.bytes.subarray(0, end));
        };
      },
    },
  };
}

/** Uses the smallest storage that fits the digits. */
function decimalType(precision: number, scale: number): ParquetType {
  const meaning = {
    converted_type: "DECIMAL",
    precision,
    scale,
    logical_type: { type: "DECIMAL", precision, scale },
  } as const;
  // Type codes from 28, DECIMAL of one byte, to 33, of 32 bytes.
  const size = [2, 4, 9, 18, 38].findIndex((digits) => precision <= digits);
  const code = (28 + (size < 0 ? 5 : size)) | (precision << 8) | (scale << 18);
  if (precision <= 18) {
    return { element: { type: precision <= 9 ? "INT32" : "INT64", ...meaning }, optional: true, code, stored: LONG };
  }
  const width = precision <= 38 ? 16 : 32;
  const element = { type: "FIXED_LEN_BYTE_ARRAY", type_length: width, ...meaning } as const;
  return { element, optional: true, code, stored: { kind: "words", isReversed: true } };
}

/** A number of the smallest size that fits the bits. */
function geohashType(bits: number): ParquetType {
  const name = bits < 8 ? "INT_8" : bits < 16 ? "INT_16" : bits < 32 ? "INT_32" : "INT_64";
  const code = (bits < 8 ? 14 : bits < 16 ? 15 : bits < 32 ? 16 : 17) | (bits << 8) | (1 << 16);
  return { element: integer(name), optional: true, code, stored: LONG };
}

/** Nested lists of DOUBLE; null is NaN. */
function arrayType(dimensions: number): ParquetType {
  return {
    element: { type: "DOUBLE" },
    optional: true,
    dimensions,
    code: 27 | (10 << 8) | ((dimensions - 1) << 14),
    stored: {
      kind: "other",
      reader: (heap, { address }) => (row) => {
        const pair = address / 4 + 2 * row, start = heap.u32[pair], length = heap.i32[pair + 1];
        if (length < 0) return null;
        const view = new DataView(heap.u8.slice(start, start + length).buffer);
        let at = 4 + 4 * dimensions;
        const list = (depth: number): unknown[] =>
          Array.from({ length: view.getUint32(4 + 4 * depth, true) }, () => {
            if (depth < dimensions - 1) return list(depth + 1);
            const value = view.getFloat64(at, true);
            at += 8;
            return Number.isNaN(value) ? null : value;
          });
        return list(0);
      },
    },
  };
}

export function parquetType(type: string): ParquetType {
  const known = TYPES[type];
  if (known !== undefined) return known;
  const decimal = decimalOf(type), bits = geohashBits(type), dimensions = arrayDimensions(type);
  if (decimal !== undefined) return decimalType(decimal.precision, decimal.scale);
  if (bits !== undefined) return geohashType(bits);
  return dimensions > 0 ? arrayType(dimensions) : asText(type);
}

/** The schema of the file. */
export function parquetSchemaOf(columns: readonly ResultColumn[]): SchemaElement[] {
  return [
    { name: "schema", num_children: columns.length },
    ...columns.flatMap(({ name, type }) => elementsOf(name, parquetType(type))),
  ];
}

/**
 * The schema by which the library writes pages: values are already in their stored form, so that its writer converts
 * only texts.
 */
export function physicalSchemaOf(columns: readonly ResultColumn[]): SchemaElement[] {
  return parquetSchemaOf(columns).map(({ name, type, type_length, repetition_type, num_children, converted_type }) => ({
    name,
    type,
    type_length,
    repetition_type,
    num_children,
    converted_type: converted_type === "UTF8" || converted_type === "LIST" ? converted_type : undefined,
  }));
}

function elementsOf(name: string, { element, optional, dimensions = 0 }: ParquetType): SchemaElement[] {
  if (dimensions === 0) return [{ ...element, name, repetition_type: optional ? "OPTIONAL" : "REQUIRED" }];
  const lists = Array.from({ length: dimensions }, (_, depth): SchemaElement[] => [
    {
      name: depth === 0 ? name : "element",
      // Only the whole array may be null.
      repetition_type: depth === 0 ? "OPTIONAL" : "REQUIRED",
      num_children: 1,
      converted_type: "LIST",
      logical_type: { type: "LIST" },
    },
    { name: "list", repetition_type: "REPEATED", num_children: 1 },
  ]);
  return [...lists.flat(), { ...element, name: "element", repetition_type: "OPTIONAL" }];
}

/** The metadata that QuestDB stores beside the schema. */
export function questdbMetadata(columns: readonly ResultColumn[]): KeyValue[] {
  const schema = columns.map(({ type }) => ({ column_type: parquetType(type).code, column_top: 0 }));
  return [{ key: "questdb", value: JSON.stringify({ version: 1, schema }) }];
}
