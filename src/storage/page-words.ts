/**
 * The words of a page: segments that lie one after the other in a table, in one block of bytes that never changes. The same block is
 * read from shared memory and from a data file, by every thread.
 *
 *     page      id f64 (0 in a file)   number of segments u32   number of columns u32, bit 31 set
 *               number of partitions u32   bytes of the partitions u32   ids of the columns, u32 each   padding to 8 bytes
 *               then the partitions (`page-partitions.ts`) and the segments
 *     segment   uid f64   partition i64   rows f64   least and greatest timestamp, i64 each
 *               then a chunk for each column of the page
 *     chunk     kind u32   address u32   file u32 (0: none)   offset / 64 u32   size u32   crc u32   bytes of values u32   nulls u32
 *               min, max (8 bytes each)   sum (16 bytes)
 *
 * The kind of a chunk is 0 if there is none. Otherwise bit 0 is set, two bits for each of min, max and sum say what it is, bit 7 says
 * that instead of min and max there are the bytes of the entries and of the texts (encoded texts; f64 each), and from bit 8 on are its encodings (`encoding/encodings.ts`). Before format 7 there were none; an encoded chunk is smaller than its values there.
 *
 * Before format 9 there were no partitions: bit 31 is not set, and the ids of the columns come at once. They are added up from the segments,
 * in version 0.
 */
import { assert } from "../assert.ts";
import type { Chunk } from "./chunks.ts";
import { align } from "./bytes.ts";
import type { ColumnChunk, ColumnStats, SegmentSource } from "./contract.ts";
import { EXTENT_ALIGN } from "./datafile.ts";
import { UNKNOWN_ENCODING } from "./encoding/encodings.ts";
import {
  type PartitionPart,
  partitionsOf,
  readPartitions,
  sizeOfPartitions,
  writePartitions,
} from "./page-partitions.ts";
import type { Segment, SegmentWords } from "./segment.ts";

const HEAD_BYTES = 24;
/** Before format 9. */
const OLD_HEAD_BYTES = 16;
const HAS_PARTITIONS = 2 ** 31;
const SEGMENT_BYTES = 40;
const CHUNK_BYTES = 64;
const STATS_MASK = 63, HAS_TEXT_SIZES = 128, ENCODINGS_SHIFT = 8;
/** Kinds of a statistic: none, a number, an integer of 64 bits, an integer of 128 bits. */
const NONE = 0, NUMBER = 1, INTEGER = 2, WIDE_INTEGER = 3;

/** Views of the memory that has the words: the shared heap, or a copy of a page of a file. */
export interface WordViews {
  readonly u32: Uint32Array;
  readonly f64: Float64Array;
  readonly i64: BigInt64Array;
}

/** The same, to be written to. */
export interface Views extends WordViews {
  readonly u8: Uint8Array;
}

function viewsOf(bytes: Uint8Array): Views {
  const { buffer, byteOffset, length } = bytes;
  assert(byteOffset % 8 === 0 && length % 8 === 0, "the words of a page begin at a multiple of 8");
  return {
    u8: bytes,
    u32: new Uint32Array(buffer, byteOffset, length >> 2),
    f64: new Float64Array(buffer, byteOffset, length >> 3),
    i64: new BigInt64Array(buffer, byteOffset, length >> 3),
  };
}

/** The words of a page, ready to be written somewhere. */
export interface PageWords {
  readonly sizeBytes: number;
  /** `address`: a multiple of 8. */
  write(into: Views, address: number): void;
}

interface WrittenPage {
  readonly id: number;
  readonly segments: readonly Segment[];
  readonly partitions: readonly PartitionPart[];
}

/** The words of a page for a file. */
export function storedPage(page: WrittenPage): Uint8Array {
  const words = pageWords(page, true), bytes = new Uint8Array(words.sizeBytes);
  words.write(viewsOf(bytes), 0);
  return bytes;
}

/** `isStored`: without addresses and id. */
export function pageWords({ id, segments, partitions }: WrittenPage, isStored = false): PageWords {
  const all = segments.map((segment) => isStored ? storedWords(segment) : wordsOf(segment));
  const columnIds = unionOf(all);
  const stride = SEGMENT_BYTES + CHUNK_BYTES * columnIds.length;
  const partitionsStart = align(HEAD_BYTES + 4 * columnIds.length, 8), partitionsSize = sizeOfPartitions(partitions);
  const start = partitionsStart + partitionsSize;
  return {
    sizeBytes: start + stride * segments.length,
    write(into, address) {
      assert(address % 8 === 0, "the words of a page begin at a multiple of 8");
      const { u32, f64 } = into, at = address >>> 2, idsAt = at + (HEAD_BYTES >> 2);
      f64[address / 8] = isStored ? 0 : id;
      u32[at + 2] = segments.length;
      u32[at + 3] = HAS_PARTITIONS + columnIds.length;
      u32[at + 4] = partitions.length;
      u32[at + 5] = partitionsSize;
      for (let k = 0; k < columnIds.length; k++) u32[idsAt + k] = columnIds[k];
      if (columnIds.length % 2 === 1) u32[idsAt + columnIds.length] = 0;
      writePartitions(partitions, into, (address + partitionsStart) / 8);
      for (let k = 0; k < all.length; k++) place(all[k], columnIds, into.u8, address + start + k * stride);
    },
  };
}

/** Writes a segment of a page with the columns `all`. */
function place({ columnIds, bytes }: SegmentWords, all: readonly number[], into: Uint8Array, address: number): void {
  if (isSame(columnIds, all)) return into.set(bytes, address);
  into.fill(0, address, address + SEGMENT_BYTES + CHUNK_BYTES * all.length);
  into.set(bytes.subarray(0, SEGMENT_BYTES), address);
  let position = 0;
  columnIds.forEach((id, k) => {
    while (all[position] !== id) position++; // both are ascending
    const from = SEGMENT_BYTES + CHUNK_BYTES * k, to = SEGMENT_BYTES + CHUNK_BYTES * position;
    into.set(bytes.subarray(from, from + CHUNK_BYTES), address + to);
  });
}

function unionOf(all: readonly SegmentWords[]): readonly number[] {
  const first = all[0].columnIds;
  if (all.every(({ columnIds }) => isSame(columnIds, first))) return first;
  return [...new Set(all.flatMap(({ columnIds }) => columnIds))].sort((a, b) => a - b);
}

function isSame(a: readonly number[], b: readonly number[]): boolean {
  return a === b || (a.length === b.length && a.every((id, k) => id === b[k]));
}

function wordsOf(segment: Segment): SegmentWords {
  return segment.words ??= encodeSegment(segment, (chunk) => chunk.address);
}

function storedWords(segment: Segment): SegmentWords {
  assert(segment.chunks.every((chunk) => chunk === undefined || chunk.plain.file > 0), "all chunks are on disk");
  return segment.chunks.some((chunk) => chunk !== undefined && chunk.plain.address !== 0)
    ? encodeSegment(segment, () => 0)
    : wordsOf(segment);
}

/** A segment is encoded here: views of bytes of its own would take as long as the rest. */
let scratch = viewsOf(new Uint8Array(4096));

function encodeSegment(
  { uid, partition, rowCount, timestampMin, timestampMax, chunks }: Segment,
  addressOf: (chunk: ColumnChunk) => number,
): SegmentWords {
  const columnIds: number[] = [];
  for (let id = 0; id < chunks.length; id++) if (chunks[id] !== undefined) columnIds.push(id);
  const sizeBytes = SEGMENT_BYTES + CHUNK_BYTES * columnIds.length;
  if (sizeBytes > scratch.u8.length) scratch = viewsOf(new Uint8Array(2 * sizeBytes));
  const { u8, u32, f64, i64 } = scratch;
  u8.fill(0, 0, sizeBytes);
  f64[0] = uid;
  i64[1] = partition;
  f64[2] = rowCount;
  i64[3] = timestampMin;
  i64[4] = timestampMax;
  for (let k = 0; k < columnIds.length; k++) {
    const { plain } = chunks[columnIds[k]]!;
    const at = (SEGMENT_BYTES + CHUNK_BYTES * k) >> 2;
    assert(plain.offset % EXTENT_ALIGN === 0, "extents begin at multiples");
    u32[at + 1] = addressOf(plain);
    u32[at + 2] = Math.max(0, plain.file);
    u32[at + 3] = plain.offset / EXTENT_ALIGN;
    u32[at + 4] = plain.sizeBytes;
    u32[at + 5] = plain.crc;
    u32[at + 6] = plain.valueBytes;
    u32[at + 7] = plain.stats.nullCount;
    u32[at] = 1 | encodeStats(scratch, (at >> 1) + 4, plain.stats) | (plain.encodings ?? 0) << ENCODINGS_SHIFT;
    if (plain.entryBytes === undefined) continue;
    u32[at] |= HAS_TEXT_SIZES;
    f64[(at >> 1) + 4] = plain.entryBytes;
    f64[(at >> 1) + 5] = plain.textBytes ?? 0;
  }
  return { columnIds, bytes: u8.slice(0, sizeBytes) };
}

/** Returns the kinds of the statistics. */
function encodeStats({ f64, i64 }: WordViews, at: number, { min, max, sum }: ColumnStats): number {
  let kinds = encodeStat(f64, i64, at, min) | encodeStat(f64, i64, at + 1, max) << 2;
  if (sum === undefined) return kinds << 1;
  i64[at + 2] = sum;
  // The sum of 65,536 64-bit integers needs 80 bits.
  i64[at + 3] = sum >> 64n;
  kinds |= (i64[at + 2] === sum ? INTEGER : WIDE_INTEGER) << 4;
  return kinds << 1;
}

function encodeStat(f64: Float64Array, i64: BigInt64Array, at: number, value: number | bigint | undefined): number {
  if (value === undefined) return NONE;
  if (typeof value === "number") {
    f64[at] = value;
    return NUMBER;
  }
  i64[at] = value;
  return INTEGER;
}

export interface PageContents {
  readonly segments: readonly Segment[];
  /** By segment: the last change of rows there, or a later one of the same partition. */
  readonly versions: readonly number[];
  readonly partitions: readonly PartitionPart[];
}

/** The contents of a page that was read from a file. */
export function contentsOf(bytes: Uint8Array): PageContents {
  const page = new PageView(viewsOf(bytes), 0);
  const segments = Array.from({ length: page.count }, (_, k): Segment => {
    const { partition, uid, rowCount, timestampMin, timestampMax, chunks } = page.segment(k, page.positions);
    const known: (Chunk | undefined)[] = [];
    chunks.forEach((plain, c) => {
      if (plain !== undefined) known[page.columnIds[c]] = { plain, capacity: 0, texts: [], textBytes: 0 };
    });
    const words = { columnIds: page.columnIds, bytes: page.bytesOf(k, bytes) };
    return { uid, partition, rowCount, timestampMin, timestampMax, chunks: known, words };
  });
  const partitions = page.partitions();
  const versions = partitions.flatMap(({ version, segmentCount }) => new Array<number>(segmentCount).fill(version));
  return { segments, versions, partitions };
}

/** The partitions of a page that was read from a file. */
export function partitionsIn(bytes: Uint8Array): PartitionPart[] {
  return new PageView(viewsOf(bytes), 0).partitions();
}

/** Reads the words of a page at a byte address of some memory. */
export class PageView {
  readonly count: number;
  readonly columnIds: number[];
  /** Of all columns. */
  readonly positions: number[];
  /** Number of partitions in the words; 0 before format 9. */
  private readonly partitionCount: number;
  private readonly partitionsStart: number;
  private readonly start: number;
  private readonly stride: number;

  constructor(private readonly views: WordViews, private readonly address: number) {
    const { u32 } = views, at = address >>> 2;
    this.count = u32[at + 2];
    const hasPartitions = u32[at + 3] >= HAS_PARTITIONS, columnCount = u32[at + 3] % HAS_PARTITIONS;
    const headBytes = hasPartitions ? HEAD_BYTES : OLD_HEAD_BYTES, ids = at + headBytes / 4;
    this.columnIds = Array.from(u32.subarray(ids, ids + columnCount));
    this.positions = this.columnIds.map((_, k) => k);
    this.partitionsStart = align(headBytes + 4 * columnCount, 8);
    this.partitionCount = hasPartitions ? u32[at + 4] : 0;
    this.start = this.partitionsStart + (hasPartitions ? u32[at + 5] : 0);
    this.stride = SEGMENT_BYTES + CHUNK_BYTES * columnCount;
  }

  /** Where the chunks of these columns are in each segment, or -1. */
  positionsOf(columnIds: readonly number[]): number[] {
    return columnIds.map((id) => this.positionOf(id));
  }

  /** A binary search, because the ids are ascending. */
  private positionOf(columnId: number): number {
    const { columnIds } = this;
    let from = 0, to = columnIds.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (columnIds[middle] < columnId) from = middle + 1;
      else to = middle;
    }
    return columnIds[from] === columnId ? from : -1;
  }

  timestampMinOf(k: number): bigint {
    return this.views.i64[this.at(k) + 3];
  }

  timestampMaxOf(k: number): bigint {
    return this.views.i64[this.at(k) + 4];
  }

  rowCountOf(k: number): number {
    return this.views.f64[this.at(k) + 2];
  }

  /** Where a segment begins, in words of 8 bytes. */
  private at(k: number): number {
    return (this.address + this.start + k * this.stride) / 8;
  }

  /** True if a segment has nulls in the column, or has it not at all. */
  hasNulls(columnId: number): boolean {
    const position = this.positionOf(columnId), { u32 } = this.views;
    for (let k = 0; k < this.count; k++) {
      if (position < 0) return true;
      const chunk = 2 * this.at(k) + (SEGMENT_BYTES + CHUNK_BYTES * position) / 4;
      if (u32[chunk] === 0 || u32[chunk + 7] > 0) return true;
    }
    return false;
  }

  /** The partitions that the segments belong to. */
  partitions(): PartitionPart[] {
    const { views, address, partitionCount, partitionsStart, positions, count } = this;
    if (partitionCount > 0) return readPartitions(views, (address + partitionsStart) / 8, partitionCount);
    const segments = Array.from({ length: count }, (_, k) => this.segment(k, positions));
    return partitionsOf(segments, new Array<number>(count).fill(0));
  }

  bytesOf(k: number, bytes: Uint8Array): Uint8Array {
    return bytes.subarray(this.start + k * this.stride, this.start + (k + 1) * this.stride);
  }

  segment(k: number, positions: readonly number[]): SegmentSource {
    const { f64, i64 } = this.views;
    const at = this.at(k), from = 8 * at;
    return {
      uid: f64[at],
      partition: i64[at + 1],
      rowCount: f64[at + 2],
      timestampMin: i64[at + 3],
      timestampMax: i64[at + 4],
      chunks: positions.map((position) =>
        position < 0 ? undefined : this.chunkAt(from + SEGMENT_BYTES + CHUNK_BYTES * position)
      ),
    };
  }

  private chunkAt(address: number): ColumnChunk | undefined {
    const { u32 } = this.views, at = address / 4, kinds = u32[at];
    if (kinds === 0) return undefined;
    const file = u32[at + 2], sizeBytes = u32[at + 4], valueBytes = u32[at + 6];
    let encodings = kinds >>> ENCODINGS_SHIFT;
    if (encodings === 0 && file !== 0 && sizeBytes < valueBytes) encodings = UNKNOWN_ENCODING;
    const hasTextSizes = (kinds & HAS_TEXT_SIZES) !== 0, statsAt = address / 8 + 4;
    return {
      address: u32[at + 1],
      file: file === 0 ? -1 : file,
      offset: u32[at + 3] * EXTENT_ALIGN,
      sizeBytes,
      crc: u32[at + 5],
      encodings,
      valueBytes,
      entryBytes: hasTextSizes ? this.views.f64[statsAt] : undefined,
      textBytes: hasTextSizes ? this.views.f64[statsAt + 1] : undefined,
      stats: this.statsAt(statsAt, (kinds >> 1) & STATS_MASK, u32[at + 7]),
    };
  }

  private statsAt(at: number, kinds: number, nullCount: number): ColumnStats {
    if (kinds === 0) return { nullCount };
    const stats: ColumnStats = {
      nullCount,
      min: this.valueAt(at, kinds & 3),
      max: this.valueAt(at + 1, (kinds >> 2) & 3),
    };
    // Pages of older versions have sums of floats, which nothing used.
    const sum = this.valueAt(at + 2, kinds >> 4);
    if (typeof sum === "bigint") stats.sum = sum;
    return stats;
  }

  private valueAt(at: number, kind: number): number | bigint | undefined {
    const { f64, i64 } = this.views;
    if (kind === NONE) return undefined;
    if (kind === NUMBER) return f64[at];
    return kind === INTEGER ? i64[at] : (i64[at + 1] << 64n) | BigInt.asUintN(64, i64[at]);
  }
}
