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

/** The value of a row, or null. */
type Reader = (row: number) => unknown;

interface ParquetType {
  /** The stored type and its logical type. */
  element: Omit<SchemaElement, "name" | "repetition_type">;
  /** False if the type has no null. */
  optional: boolean;
  /** Number of lists around the element. */
  dimensions?: number;
  /** QuestDB's number of the type. */
  code: number;
  /** Returns values as the writer expects them for `physical`. */
  reader(heap: SharedHeap, vector: Vector): Reader;
}

const NULL_LONG = -9223372036854775808n;

const long = (heap: SharedHeap, { address }: Vector): Reader => (row) => {
  const value = heap.i64[address / 8 + row];
  return value === NULL_LONG ? null : value;
};

const finite = (value: number) => Number.isFinite(value) ? value : null;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

function utf8(heap: SharedHeap, address: number, length: number): string {
  return decoder.decode(heap.u8.slice(address, address + length));
}

const RECENT_TEXTS = 1024, RECENT_BYTES_MAX = 32;

/** ASCII texts by a hash of their bytes, because decoding a short one takes longer than comparing it. */
class RecentTexts {
  private readonly texts: string[] = new Array(RECENT_TEXTS).fill("");

  at(heap: SharedHeap, address: number, length: number): string {
    if (length > RECENT_BYTES_MAX) return utf8(heap, address, length);
    const { u8 } = heap;
    let hash = length;
    for (let k = address; k < address + length; k++) hash = Math.imul(hash ^ u8[k], 0x01000193);
    const place = (hash ^ (hash >>> 15)) & (RECENT_TEXTS - 1), known = this.texts[place];
    if (known.length === length) {
      let same = 0;
      while (same < length && known.charCodeAt(same) === u8[address + same]) same++;
      if (same === length) return known;
    }
    const text = utf8(heap, address, length);
    if (text.length === length) this.texts[place] = text; // it is ASCII
    return text;
  }
}

const STRING: ParquetType["element"] = {
  type: "BYTE_ARRAY",
  converted_type: "UTF8",
  logical_type: { type: "STRING" },
};

function text(code: number): ParquetType {
  return {
    element: STRING,
    optional: true,
    code,
    reader: (heap, vector) => {
      const recent = new RecentTexts();
      return (row) => {
        const pair = vector.address / 4 + 2 * row;
        return heap.i32[pair + 1] < 0 ? null : recent.at(heap, heap.u32[pair], heap.i32[pair + 1]);
      };
    },
  };
}

const VARCHAR_CODE = 26;

const symbol: ParquetType = {
  element: STRING,
  optional: true,
  code: VARCHAR_CODE,
  reader(heap, vector) {
    const entries = (vector.dictionary?.entries ?? 0) / 4;
    const known: string[] = [];
    return (row) => {
      const code = heap.i32[vector.address / 4 + row];
      return code < 0
        ? null
        : known[code] ??= utf8(heap, heap.u32[entries + 2 * code], heap.i32[entries + 2 * code + 1]);
    };
  },
};

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
    reader: (heap, { address }) => (row) => heap.i8[address + row] !== 0,
  },
  BYTE: {
    element: integer("INT_8"),
    optional: false,
    code: 2,
    reader: (heap, { address }) => (row) => heap.i8[address + row],
  },
  SHORT: {
    element: integer("INT_16"),
    optional: false,
    code: 3,
    reader: (heap, { address }) => (row) => heap.i16[address / 2 + row],
  },
  /** The UTF-16 code unit. */
  CHAR: {
    element: integer("UINT_16"),
    optional: true,
    code: 4,
    reader: (heap, { address }) => (row) => heap.u16[address / 2 + row] || null,
  },
  INT: {
    element: { type: "INT32" },
    optional: true,
    code: 5,
    reader: (heap, { address }) => (row) => {
      const value = heap.i32[address / 4 + row];
      return value === -2147483648 ? null : value;
    },
  },
  LONG: { element: { type: "INT64" }, optional: true, code: 6, reader: long },
  FLOAT: {
    element: { type: "FLOAT" },
    optional: true,
    code: 9,
    reader: (heap, { address }) => (row) => finite(heap.f32[address / 4 + row]),
  },
  DOUBLE: {
    element: { type: "DOUBLE" },
    optional: true,
    code: 10,
    reader: (heap, { address }) => (row) => finite(heap.f64[address / 8 + row]),
  },
  DATE: { element: instant("MILLIS"), optional: true, code: 7, reader: long },
  TIMESTAMP: { element: instant("MICROS"), optional: true, code: 8, reader: long },
  TIMESTAMP_NS: { element: instant("NANOS"), optional: true, code: 8 | (1 << 18), reader: long },
  SYMBOL: symbol,
  SYMBOL_TEXT: text(VARCHAR_CODE),
  STRING: text(11),
  VARCHAR: text(VARCHAR_CODE),
  NULL: text(11),
  UUID: {
    element: { type: "FIXED_LEN_BYTE_ARRAY", type_length: 16, logical_type: { type: "UUID" } },
    optional: true,
    code: 19,
    reader: wideReader(16, true),
  },
  /** The address as a number. */
  IPv4: {
    element: integer("UINT_32"),
    optional: true,
    code: 25,
    reader: (heap, { address }) => (row) => heap.i32[address / 4 + row] || null,
  },
  LONG256: {
    element: { type: "FIXED_LEN_BYTE_ARRAY", type_length: 32 },
    optional: true,
    code: 13,
    reader: wideReader(32, false),
  },
  BINARY: {
    element: { type: "BYTE_ARRAY" },
    optional: true,
    code: 18,
    reader: (heap, { address }) => (row) => {
      const pair = address / 4 + 2 * row, at = heap.u32[pair], length = heap.i32[pair + 1];
      return length < 0 ? null : heap.u8.slice(at, at + length);
    },
  },
};

/** Returns the bytes of a value of two or four words, least significant first, or reversed. */
function wideReader(width: number, isReversed: boolean): ParquetType["reader"] {
  return (heap, { address }) => (row) => {
    let isNull = true;
    for (let word = 0; word < width / 8; word++) {
      if (heap.i64[(address + row * width) / 8 + word] !== NULL_LONG) isNull = false;
    }
    if (isNull) return null;
    const bytes = heap.u8.slice(address + row * width, address + (row + 1) * width);
    return isReversed ? bytes.reverse() : bytes;
  };
}

/** Types without a counterpart are written as their CSV text. */
function asText(type: string): ParquetType {
  const forms = formsOf(type);
  return {
    element: STRING,
    optional: true,
    code: VARCHAR_CODE,
    reader(heap, vector) {
      const sink = new ByteSink(forms.maxBytes + 64);
      const writer = forms.text.writer!(heap, sink, "none");
      writer.bind(vector);
      return (row) => {
        const end = writer.write(row, 0);
        return end < 0 ? null : decoder.decode(sink.bytes.subarray(0, end));
      };
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
  if (precision <= 9) {
    const reader: ParquetType["reader"] = (heap, vector) => {
      const read = long(heap, vector);
      return (row) => {
        const value = read(row);
        return value === null ? null : Number(value);
      };
    };
    return { element: { type: "INT32", ...meaning }, optional: true, code, reader };
  }
  if (precision <= 18) return { element: { type: "INT64", ...meaning }, optional: true, code, reader: long };
  const width = precision <= 38 ? 16 : 32;
  const element = { type: "FIXED_LEN_BYTE_ARRAY", type_length: width, ...meaning } as const;
  return { element, optional: true, code, reader: wideReader(width, true) };
}

/** A number of the smallest size that fits the bits. */
function geohashType(bits: number): ParquetType {
  const name = bits < 8 ? "INT_8" : bits < 16 ? "INT_16" : bits < 32 ? "INT_32" : "INT_64";
  const code = (bits < 8 ? 14 : bits < 16 ? 15 : bits < 32 ? 16 : 17) | (bits << 8) | (1 << 16);
  const reader: ParquetType["reader"] = (heap, vector) => {
    const read = long(heap, vector);
    if (name === "INT_64") return read;
    return (row) => {
      const value = read(row);
      return value === null ? null : Number(value);
    };
  };
  return { element: integer(name), optional: true, code, reader };
}

/** Nested lists of DOUBLE; null is NaN. */
function arrayType(dimensions: number): ParquetType {
  return {
    element: { type: "DOUBLE" },
    optional: true,
    dimensions,
    code: 27 | (10 << 8) | ((dimensions - 1) << 14),
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
 * The schema by which pages are written: values are already in their stored form, so that the writer converts only
 * texts.
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
