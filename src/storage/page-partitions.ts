/**
 * The partitions of a page, in its words. A page has whole partitions, or a part of one. The sums of a partition are those of its parts,
 * added up in order.
 *
 *     partition   start i64   version f64   rows f64   least and greatest timestamp, i64 each
 *                 number of segments u32   format u32   number of data files u32   0 u32
 *                 then for each file: id u32   0 u32   bytes of the chunks f64
 *
 * File 0 is the memory. The partition ends where the unit of the table says, so only its start is written. An index of a column is a part of its chunks.
 */
import { extentBytes } from "./datafile.ts";
import type { Chunk } from "./chunks.ts";
import { type ColumnChunk, PARTITION_FORMAT, type PartitionSums } from "./contract.ts";

/** What a page has of a partition. */
export interface PartitionPart {
  readonly start: bigint;
  /** Greatest version of its segments here. */
  readonly version: number;
  readonly rowCount: number;
  readonly timestampMin: bigint;
  readonly timestampMax: bigint;
  readonly segmentCount: number;
  readonly format: number;
  /** Bytes of the chunks by data file; 0: in memory. */
  readonly files: readonly (readonly [file: number, bytes: number])[];
}

const FIXED_BYTES = 56, FILE_BYTES = 16;

/** Views of the memory that has the words. */
interface WordViews {
  readonly u32: Uint32Array;
  readonly f64: Float64Array;
  readonly i64: BigInt64Array;
}

/** A segment of the writer or of a reader. */
interface SegmentPlaces {
  readonly partition: bigint;
  readonly rowCount: number;
  readonly timestampMin: bigint;
  readonly timestampMax: bigint;
  readonly chunks: readonly (Chunk | ColumnChunk | undefined)[];
}

/** `versions`: by segment. */
export function partitionsOf(segments: readonly SegmentPlaces[], versions: readonly number[]): PartitionPart[] {
  const parts: PartitionPart[] = [];
  for (let from = 0, to = 0; from < segments.length; from = to) {
    while (to < segments.length && segments[to].partition === segments[from].partition) to++;
    parts.push(partOf(segments, versions, from, to));
  }
  return parts;
}

/** The partitions after segment `k` was replaced by one of the same partition. */
export function partitionsAfter(
  parts: readonly PartitionPart[],
  segments: readonly SegmentPlaces[],
  versions: readonly number[],
  k: number,
): PartitionPart[] {
  let from = 0, changed = 0;
  while (from + parts[changed].segmentCount <= k) from += parts[changed++].segmentCount;
  return parts.with(changed, partOf(segments, versions, from, from + parts[changed].segmentCount));
}

/** The partition of segments `from` … `to`-1. */
function partOf(
  segments: readonly SegmentPlaces[],
  versions: readonly number[],
  from: number,
  to: number,
): PartitionPart {
  const { partition: start, timestampMin } = segments[from], { timestampMax } = segments[to - 1];
  const files: [number, number][] = [];
  let version = 0, rowCount = 0;
  for (let k = from; k < to; k++) {
    version = Math.max(version, versions[k]);
    rowCount += segments[k].rowCount;
    for (const chunk of segments[k].chunks) {
      if (chunk === undefined) continue;
      const { file, sizeBytes, valueBytes } = "plain" in chunk ? chunk.plain : chunk;
      if (file < 0) addBytes(files, 0, valueBytes);
      else addBytes(files, file, extentBytes(sizeBytes));
    }
  }
  const segmentCount = to - from, format = PARTITION_FORMAT.native;
  return { start, version, rowCount, timestampMin, timestampMax, segmentCount, format, files };
}

/** Adds to the bytes of a file. A partition has few files, and a map of them takes longer. */
function addBytes(files: [file: number, bytes: number][], file: number, bytes: number): void {
  for (const entry of files) {
    if (entry[0] !== file) continue;
    entry[1] += bytes;
    return;
  }
  files.push([file, bytes]);
}

export function sizeOfPartitions(parts: readonly PartitionPart[]): number {
  return parts.reduce((sum, { files }) => sum + FIXED_BYTES + FILE_BYTES * files.length, 0);
}

/** `at`: in words of 8 bytes. */
export function writePartitions(parts: readonly PartitionPart[], { u32, f64, i64 }: WordViews, at: number): void {
  for (const { start, version, rowCount, timestampMin, timestampMax, segmentCount, format, files } of parts) {
    i64[at] = start;
    f64[at + 1] = version;
    f64[at + 2] = rowCount;
    i64[at + 3] = timestampMin;
    i64[at + 4] = timestampMax;
    u32[2 * at + 10] = segmentCount;
    u32[2 * at + 11] = format;
    u32[2 * at + 12] = files.length;
    u32[2 * at + 13] = 0;
    at += FIXED_BYTES / 8;
    for (const [file, bytes] of files) {
      u32[2 * at] = file;
      u32[2 * at + 1] = 0;
      f64[at + 1] = bytes;
      at += FILE_BYTES / 8;
    }
  }
}

/** `at`: in words of 8 bytes. */
export function readPartitions({ u32, f64, i64 }: WordViews, at: number, count: number): PartitionPart[] {
  return Array.from({ length: count }, () => {
    const part = at, fileCount = u32[2 * at + 12];
    at += FIXED_BYTES / 8;
    const files = Array.from({ length: fileCount }, (_, k) => {
      const file = at + k * FILE_BYTES / 8;
      return [u32[2 * file], f64[file + 1]] as const;
    });
    at += fileCount * FILE_BYTES / 8;
    return {
      start: i64[part],
      version: f64[part + 1],
      rowCount: f64[part + 2],
      timestampMin: i64[part + 3],
      timestampMax: i64[part + 4],
      segmentCount: u32[2 * part + 10],
      format: u32[2 * part + 11],
      files,
    };
  });
}

export function sumsOf(
  { start, version, rowCount, timestampMin, timestampMax, format, files }: PartitionPart,
): PartitionSums {
  const diskSizeBytes = files.reduce((sum, [, bytes]) => sum + bytes, 0);
  return { start, version, format, rowCount, timestampMin, timestampMax, diskSizeBytes };
}

/** Adds what follows in the table to sums of partitions. */
export function addSums(found: PartitionSums[], next: PartitionSums): void {
  const last = found.at(-1);
  if (last?.start !== next.start) {
    found.push({ ...next });
    return;
  }
  last.version = Math.max(last.version, next.version);
  last.rowCount += next.rowCount;
  last.diskSizeBytes += next.diskSizeBytes;
  last.timestampMax = next.timestampMax;
}
