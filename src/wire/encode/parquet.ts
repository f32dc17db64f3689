/**
 * Rows as row groups of a Parquet file. Each call of the encoder makes one group, so that groups are made where their rows
 * are; the head and the footer, which need all groups, are added where they come together:
 *
 *     chunk   u32 size of the description, its JSON, the group's bytes
 *
 * Offsets in a description count from where the group's bytes begin.
 */
import type { RowGroup, SchemaElement } from "hyparquet";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib";
import type { Encoding, ResultColumn } from "../../door.ts";
import type { Vector } from "../../engine/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { Encoder } from "./encoder.ts";
import { ByteSink } from "./sink.ts";
import { formsOf } from "./types.ts";

export type ParquetEncoding = Extract<Encoding, { name: "parquet" }>;

/** "PAR1", before the first group. */
const MAGIC = new TextEncoder().encode("PAR1");

/** By the codec's name: the level that is used when none is given is the library's. */
const COMPRESSORS: Record<
  ParquetEncoding["codec"],
  ((level: number | undefined) => (input: Uint8Array) => Uint8Array) | undefined
> = {
  UNCOMPRESSED: undefined,
  SNAPPY: undefined, // built into the writer
  GZIP: (level) => (input) => gzipSync(input, { level }),
  BROTLI: (level) => (input) =>
    brotliCompressSync(input, level === undefined ? {} : { params: { [constants.BROTLI_PARAM_QUALITY]: level } }),
  ZSTD: (level) => (input) =>
    zstdCompressSync(input, level === undefined ? {} : { params: { [constants.ZSTD_c_compressionLevel]: level } }),
};

type Reader = (row: number) => unknown;

interface ParquetType {
  element: Omit<SchemaElement, "name" | "repetition_type">;
  /** False where the type has no null. */
  optional: boolean;
  reader(heap: SharedHeap, vector: Vector): Reader;
}

const NULL_LONG = -9223372036854775808n;

const long = (heap: SharedHeap, vector: Vector): Reader => (row) => {
  const value = heap.i64[vector.address / 8 + row];
  return value === NULL_LONG ? null : value;
};

const finite = (value: number) => Number.isFinite(value) ? value : null;
const UTF8 = { type: "BYTE_ARRAY", converted_type: "UTF8" } as const;

function utf8(heap: SharedHeap, address: number, length: number): string {
  return decoder.decode(heap.u8.slice(address, address + length));
}

const decoder = new TextDecoder();

const text: ParquetType = {
  element: UTF8,
  optional: true,
  reader: (heap, vector) => (row) => {
    const pair = vector.address / 4 + 2 * row;
    return heap.i32[pair + 1] < 0 ? null : utf8(heap, heap.u32[pair], heap.i32[pair + 1]);
  },
};

const symbol: ParquetType = {
  element: UTF8,
  optional: true,
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

const TYPES: Record<string, ParquetType> = {
  BOOLEAN: {
    element: { type: "BOOLEAN" },
    optional: false,
    reader: (heap, { address }) => (row) => heap.i8[address + row] !== 0,
  },
  BYTE: {
    element: { type: "INT32", converted_type: "INT_8" },
    optional: false,
    reader: (heap, { address }) => (row) => heap.i8[address + row],
  },
  SHORT: {
    element: { type: "INT32", converted_type: "INT_16" },
    optional: false,
    reader: (heap, { address }) => (row) => heap.i16[address / 2 + row],
  },
  INT: {
    element: { type: "INT32" },
    optional: true,
    reader: (heap, { address }) => (row) => {
      const value = heap.i32[address / 4 + row];
      return value === -2147483648 ? null : value;
    },
  },
  LONG: { element: { type: "INT64" }, optional: true, reader: long },
  FLOAT: {
    element: { type: "FLOAT" },
    optional: true,
    reader: (heap, { address }) => (row) => finite(heap.f32[address / 4 + row]),
  },
  DOUBLE: {
    element: { type: "DOUBLE" },
    optional: true,
    reader: (heap, { address }) => (row) => finite(heap.f64[address / 8 + row]),
  },
  DATE: { element: { type: "INT64", converted_type: "TIMESTAMP_MILLIS" }, optional: true, reader: long },
  TIMESTAMP: { element: { type: "INT64", converted_type: "TIMESTAMP_MICROS" }, optional: true, reader: long },
  TIMESTAMP_NS: {
    element: { type: "INT64", logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "NANOS" } },
    optional: true,
    reader: long,
  },
  SYMBOL: symbol,
  SYMBOL_TEXT: text,
  STRING: text,
  VARCHAR: text,
  NULL: text,
};

/** Types without a counterpart go as the text that CSV has for them. */
function asText(type: string): ParquetType {
  const forms = formsOf(type);
  return {
    element: UTF8,
    optional: true,
    reader(heap, vector) {
      const sink = new ByteSink(forms.maxBytes + 64);
      const writer = forms.text(heap, sink, "none");
      writer.bind(vector);
      return (row) => {
        const end = writer.write(row, 0);
        return end < 0 ? null : decoder.decode(sink.bytes.subarray(0, end));
      };
    },
  };
}

const typeFor = (type: string): ParquetType => TYPES[type] ?? asText(type);

function schemaOf(columns: readonly ResultColumn[]): SchemaElement[] {
  const leaves = columns.map(({ name, type }): SchemaElement => {
    const { element, optional } = typeFor(type);
    return { ...element, name, repetition_type: optional ? "OPTIONAL" : "REQUIRED" };
  });
  return [{ name: "schema", num_children: leaves.length }, ...leaves];
}

export function createParquetEncoder(
  encoding: ParquetEncoding,
  columns: readonly ResultColumn[],
  heap: SharedHeap,
): Encoder {
  const schema = schemaOf(columns);
  const types = columns.map(({ type }) => typeFor(type));
  const compressor = COMPRESSORS[encoding.codec]?.(encoding.level);
  const compressors = compressor && { [encoding.codec]: compressor };
  return {
    encode(batch, firstRow, rowCount) {
      const writer = new ByteWriter(rowCount * columns.length * 8 + 1024);
      const file = new ParquetWriter({ writer, schema, codec: encoding.codec, compressors, statistics: false });
      const columnData = columns.map(({ name }, index) => {
        const read = types[index].reader(heap, batch.columns[index]);
        return { name, data: Array.from({ length: rowCount }, (_, row) => read(firstRow + row)), offsetIndex: false };
      });
      file.write({ columnData, rowGroupSize: rowCount, pageSize: encoding.pageSizeBytes });
      moveOffsets(file.row_groups[0], -MAGIC.length);
      const description = new TextEncoder().encode(JSON.stringify(file.row_groups[0], bigintsAsText));
      const body = writer.getBytes().subarray(MAGIC.length);
      const chunk = new Uint8Array(4 + description.length + body.length);
      new DataView(chunk.buffer).setUint32(0, description.length, true);
      chunk.set(description, 4);
      chunk.set(body, 4 + description.length);
      return chunk;
    },
  };
}

/** Puts groups together to a file: `head`, then `group` of each chunk, then `footer`. */
export class ParquetAssembler {
  private readonly writer = new ByteWriter();
  private readonly file: ParquetWriter;

  constructor(columns: readonly ResultColumn[], createdBy: string) {
    this.file = new ParquetWriter({ writer: this.writer, schema: schemaOf(columns), createdBy });
  }

  readonly head: Uint8Array<ArrayBuffer> = MAGIC.slice();

  /** The group's bytes, a view of the chunk. */
  group(chunk: Uint8Array): Uint8Array {
    const size = new DataView(chunk.buffer, chunk.byteOffset).getUint32(0, true);
    const group: RowGroup = JSON.parse(new TextDecoder().decode(chunk.subarray(4, 4 + size)), textAsBigints);
    moveOffsets(group, this.writer.offset);
    this.file.row_groups.push(group);
    this.file.num_rows += group.num_rows;
    const body = chunk.subarray(4 + size);
    this.writer.offset += body.length;
    return body;
  }

  footer(): Uint8Array<ArrayBuffer> {
    this.writer.index = 0; // the head was given already
    this.file.finish();
    return this.writer.getBytes().slice();
  }
}

function moveOffsets(group: RowGroup, by: number): void {
  const shift = BigInt(by);
  for (const column of group.columns) {
    if (column.file_offset !== undefined) column.file_offset += shift;
    const data = column.meta_data;
    if (data === undefined) continue;
    data.data_page_offset += shift;
    if (data.dictionary_page_offset !== undefined) data.dictionary_page_offset += shift;
  }
}

/** JSON has no 64-bit integers. */
function bigintsAsText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? { bigint: String(value) } : value;
}

function textAsBigints(_key: string, value: unknown): unknown {
  return typeof value === "object" && value !== null && "bigint" in value ? BigInt(value.bigint as string) : value;
}
