/**
 * Encodes rows as row groups of a Parquet file. Each call of the encoder makes one group, in the thread that has the rows. Head and
 * footer, which need all groups, are added where the groups are collected:
 *
 *     chunk   u32 size of the description, its JSON, the group's bytes
 *
 * Offsets in a description are relative to the start of the group's bytes.
 */
import type { RowGroup } from "hyparquet";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib";
import type { Encoding, ResultColumn } from "../../api.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { Encoder } from "./encoder.ts";
import { lz4Compress } from "./lz4.ts";
import { parquetSchemaOf, parquetType, physicalSchemaOf, questdbMetadata } from "./parquet-types.ts";

export type ParquetEncoding = Extract<Encoding, { name: "parquet" }>;

/** "PAR1", before the first group. */
const MAGIC = new TextEncoder().encode("PAR1");

/** Compressors by codec name. Without a level, the library's default applies. */
const COMPRESSORS: Record<
  ParquetEncoding["codec"],
  ((level: number | undefined) => (input: Uint8Array) => Uint8Array) | undefined
> = {
  UNCOMPRESSED: undefined,
  SNAPPY: undefined, // built into the writer
  LZ4_RAW: () => lz4Compress,
  GZIP: (level) => (input) => gzipSync(input, { level }),
  BROTLI: (level) => (input) =>
    brotliCompressSync(input, level === undefined ? {} : { params: { [constants.BROTLI_PARAM_QUALITY]: level } }),
  ZSTD: (level) => (input) =>
    zstdCompressSync(input, level === undefined ? {} : { params: { [constants.ZSTD_c_compressionLevel]: level } }),
};

export function createParquetEncoder(
  encoding: ParquetEncoding,
  columns: readonly ResultColumn[],
  heap: SharedHeap,
): Encoder {
  const schema = physicalSchemaOf(columns);
  const types = columns.map(({ type }) => parquetType(type));
  const compressor = COMPRESSORS[encoding.codec]?.(encoding.level);
  const compressors = compressor && { [encoding.codec]: compressor };
  const encode: Encoder["encode"] = (batch, firstRow, rowCount) => {
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
  };
  return { joinable: false, encode, lend: encode };
}

/** Assembles groups into a file: `head`, then `group` for each chunk, then `footer`. */
export class ParquetAssembler {
  private readonly writer = new ByteWriter();
  private readonly file: ParquetWriter;

  constructor(columns: readonly ResultColumn[], createdBy: string) {
    this.file = new ParquetWriter({
      writer: this.writer,
      schema: parquetSchemaOf(columns),
      kvMetadata: questdbMetadata(columns),
      createdBy,
    });
  }

  readonly head: Uint8Array<ArrayBuffer> = MAGIC.slice();

  /** Returns the group's bytes, a view of the chunk. */
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
    this.writer.index = 0; // the head was already returned
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
