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
import { snappyCompress } from "hyparquet-writer/src/snappy.js";
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib";
import type { Encoding, ResultColumn } from "../../api.ts";
import { joinedBytes } from "../../bytes.ts";
import type { Vector } from "../../engine/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { Encoder } from "./encoder.ts";
import { lz4Compress } from "./lz4.ts";
import { encodeColumn, type EncodedColumn, isFlat, type PageOptions } from "./parquet-column.ts";
import { type OtherStored, parquetSchemaOf, parquetType, physicalSchemaOf, questdbMetadata } from "./parquet-types.ts";

export type ParquetEncoding = Extract<Encoding, { name: "parquet" }>;

/** "PAR1", before the first group. */
const MAGIC = new TextEncoder().encode("PAR1");

type Compress = PageOptions["compress"];

/** Compressors by codec name. Without a level, the library's default applies. */
const COMPRESSORS: Record<ParquetEncoding["codec"], (level: number | undefined) => Compress> = {
  UNCOMPRESSED: () => (input) => input,
  SNAPPY: () => snappyCompress,
  LZ4_RAW: () => lz4Compress,
  GZIP: (level) => (input) => gzipSync(input, { level, chunkSize: chunkSizeOf(input) }),
  BROTLI: (level) => (input) =>
    brotliCompressSync(input, {
      params: level === undefined ? {} : { [constants.BROTLI_PARAM_QUALITY]: level },
      chunkSize: chunkSizeOf(input),
    }),
  ZSTD: (level) => (input) =>
    zstdCompressSync(input, {
      params: level === undefined ? {} : { [constants.ZSTD_c_compressionLevel]: level },
      chunkSize: chunkSizeOf(input),
    }),
};

/** Zlib joins its output from chunks, by default of 16 KiB, which took as long as the compression of numbers. */
const chunkSizeOf = ({ length }: Uint8Array) => Math.min(length + 1024, 1 << 17);

const PAGE_SIZE_BYTES = 1 << 20;

export function createParquetEncoder(
  encoding: ParquetEncoding,
  columns: readonly ResultColumn[],
  heap: SharedHeap,
): Encoder {
  const types = columns.map(({ type }) => parquetType(type));
  const options: PageOptions = {
    codec: encoding.codec,
    compress: COMPRESSORS[encoding.codec](encoding.level),
    pageSizeBytes: encoding.pageSizeBytes ?? PAGE_SIZE_BYTES,
  };
  const encode: Encoder["encode"] = (batch, firstRow, rowCount) => {
    const parts: Uint8Array[] = [];
    const group: RowGroup = { columns: [], total_byte_size: 0n, num_rows: BigInt(rowCount), total_compressed_size: 0n };
    columns.forEach((column, index) => {
      const type = types[index], vector = batch.columns[index];
      const encoded = isFlat(type)
        ? encodeColumn(heap, column.name, type, vector, firstRow, rowCount, options)
        : encodeByLibrary(heap, column, type.stored as OtherStored, vector, firstRow, rowCount, options);
      parts.push(...encoded.parts);
      addColumn(group, encoded.chunk);
    });
    const description = new TextEncoder().encode(JSON.stringify(group, bigintsAsNumbers));
    const size = new Uint8Array(4);
    new DataView(size.buffer).setUint32(0, description.length, true);
    return joinedBytes<ArrayBufferLike>([size, description, ...parts]) as Uint8Array<ArrayBuffer>;
  };
  return { joinable: false, encode, lend: encode };
}

/** Adds a column after those that the group has. */
function addColumn(group: RowGroup, chunk: EncodedColumn["chunk"]): void {
  const { total_compressed_size, total_uncompressed_size } = chunk.meta_data!;
  moveColumn(chunk, group.total_compressed_size!);
  group.columns.push(chunk);
  group.total_byte_size += total_uncompressed_size;
  group.total_compressed_size! += total_compressed_size;
}

/** Encodes lists, and types that are written as their text. */
function encodeByLibrary(
  heap: SharedHeap,
  column: ResultColumn,
  stored: OtherStored,
  vector: Vector,
  firstRow: number,
  rowCount: number,
  { codec, compress, pageSizeBytes }: PageOptions,
): EncodedColumn {
  const writer = new ByteWriter(rowCount * 8 + 1024), schema = physicalSchemaOf([column]);
  const file = new ParquetWriter({ writer, schema, codec, compressors: { [codec]: compress }, statistics: false });
  const read = stored.reader(heap, vector);
  const data = Array.from({ length: rowCount }, (_, row) => read(firstRow + row));
  file.write({
    columnData: [{ name: column.name, data, offsetIndex: false }],
    rowGroupSize: rowCount,
    pageSize: pageSizeBytes,
  });
  const [chunk] = file.row_groups[0].columns;
  moveColumn(chunk, BigInt(-MAGIC.length));
  return { parts: [writer.getBytes().subarray(MAGIC.length)], chunk };
}

type FileOptions = Omit<ConstructorParameters<typeof ParquetWriter>[0], "writer">;

/** The end of a file with these groups. */
function endOf(options: FileOptions, rowCount: bigint, groups: RowGroup[]): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(), file = new ParquetWriter({ ...options, writer });
  writer.index = 0; // without the head
  file.num_rows = rowCount;
  file.row_groups.push(...groups);
  file.finish();
  return writer.getBytes();
}

/** What surrounds the list of groups in the end of a file. The head of an empty list is one byte. */
function frameOf(
  options: FileOptions,
  rowCount: bigint,
): { before: Uint8Array<ArrayBuffer>; after: Uint8Array<ArrayBuffer> } {
  const empty = endOf(options, rowCount, []);
  const other = endOf(options, rowCount, [{ columns: [], total_byte_size: 0n, num_rows: 0n }]);
  const at = empty.findIndex((byte, index) => byte !== other[index]);
  return { before: empty.subarray(0, at), after: empty.subarray(at + 1) };
}

/** Groups are written in files of no columns. */
const GROUP_OPTIONS: FileOptions = { schema: [{ name: "root", num_children: 0 }] };

/** Thrift's compact protocol: the head of a list of structures. */
function listHead(count: number): number[] {
  const type = 12, head: number[] = [];
  if (count < 15) return [(count << 4) | type];
  for (; count > 127; count >>>= 7) head.push((count & 127) | 128);
  return [0xf0 | type, ...head, count];
}

/** At the end of the file: u32 size of the footer, "PAR1". */
const TAIL_BYTES = 8;

/**
 * Assembles groups into a file: `head`, then `group` for each chunk, then `footer`. A group is kept as its bytes in the footer, some 80 for
 * each column: as objects, those of many columns and groups take ten times as much memory.
 */
export class ParquetAssembler {
  private readonly groups: Uint8Array<ArrayBuffer>[] = [];
  private readonly options: FileOptions;
  private readonly groupFrame = frameOf(GROUP_OPTIONS, 0n);
  private rowCount = 0n;
  private offset = MAGIC.length;

  constructor(columns: readonly ResultColumn[], createdBy: string) {
    this.options = { schema: parquetSchemaOf(columns), kvMetadata: questdbMetadata(columns), createdBy };
  }

  readonly head: Uint8Array<ArrayBuffer> = MAGIC.slice();

  /** Returns the group's bytes, a view of the chunk. */
  group(chunk: Uint8Array): Uint8Array {
    const size = new DataView(chunk.buffer, chunk.byteOffset).getUint32(0, true);
    const group = numbersAsBigints(JSON.parse(new TextDecoder().decode(chunk.subarray(4, 4 + size))));
    for (const column of group.columns) moveColumn(column, BigInt(this.offset));
    const { before, after } = this.groupFrame, end = endOf(GROUP_OPTIONS, 0n, [group]);
    this.groups.push(end.slice(before.length + 1, end.length - after.length));
    this.rowCount += group.num_rows;
    const body = chunk.subarray(4 + size);
    this.offset += body.length;
    return body;
  }

  footer(): Uint8Array<ArrayBuffer> {
    const { groups } = this, { before, after } = frameOf(this.options, this.rowCount);
    if (groups.length === 0) return joinedBytes([before, Uint8Array.of(0), after]);
    const footer = joinedBytes([before, Uint8Array.from(listHead(groups.length)), ...groups, after]);
    new DataView(footer.buffer).setUint32(footer.length - TAIL_BYTES, footer.length - TAIL_BYTES, true);
    return footer;
  }
}

/** Adds to the offsets. */
function moveColumn(column: EncodedColumn["chunk"], by: bigint): void {
  if (column.file_offset !== undefined) column.file_offset += by;
  const data = column.meta_data;
  if (data === undefined) return;
  data.data_page_offset += by;
  if (data.dictionary_page_offset !== undefined) data.dictionary_page_offset += by;
}

/** JSON has no 64-bit integers. Sizes and numbers of rows are below 2^53. */
const bigintsAsNumbers = (_key: string, value: unknown) => typeof value === "bigint" ? Number(value) : value;

const COLUMN_BIGINTS = [
  "num_values",
  "total_compressed_size",
  "total_uncompressed_size",
  "data_page_offset",
  "dictionary_page_offset",
] as const;

function numbersAsBigints(group: RowGroup): RowGroup {
  group.num_rows = BigInt(group.num_rows);
  group.total_byte_size = BigInt(group.total_byte_size);
  if (group.total_compressed_size !== undefined) group.total_compressed_size = BigInt(group.total_compressed_size);
  for (const column of group.columns) {
    if (column.file_offset !== undefined) column.file_offset = BigInt(column.file_offset);
    const data = column.meta_data;
    if (data === undefined) continue;
    for (const key of COLUMN_BIGINTS) if (data[key] !== undefined) data[key] = BigInt(data[key]);
  }
  return group;
}
