/**
 * Scan sources as posted to workers. A table has thousands of chunks, and cloning their descriptions for every query and helper took
 * longer than many queries. Instead they are written as numbers to shared memory, once for each list of segments, and a worker
 * caches the lists that it has read.
 */
import { assert } from "../errors.ts";
import type { ColumnChunk, ScanSource, SegmentSource } from "../storage/contract.ts";
import type { QueryRequest } from "./contract.ts";

/** A list of segments; equal ids mean equal lists. */
interface PackedSegments {
  id: number;
  columnCount: number;
  count: number;
  words: SharedArrayBuffer;
}

export type PackedSource = Omit<ScanSource, "segments"> & { segments: SegmentSource[] | PackedSegments };

/** A query as posted. */
export type PostedRequest = Omit<QueryRequest, "sources"> & { sources: PackedSource[] };

/** Shorter lists are cloned. */
const PACKED_MIN = 4;
/** Maximum number of chunks whose descriptions a thread caches. */
const KEPT_CHUNKS_MAX = 50_000;

/** Words of 8 bytes: numbers as f64, BigInts as i64. */
const SEGMENT_WORDS = 4;
const CHUNK_NUMBERS = [
  "address",
  "file",
  "offset",
  "sizeBytes",
  "crc",
  "valueBytes",
] as const satisfies readonly (keyof ColumnChunk)[];
const STATS = ["min", "max", "sum"] as const;
/**
 * A flag for the existence of the chunk, its numbers, the null count; then kind and value of each of the other
 * statistics.
 */
const STATISTIC_WORDS = 3;
const CHUNK_WORDS = 1 + CHUNK_NUMBERS.length + 1 + STATISTIC_WORDS * STATS.length;
/** Sums of integers may need more than 64 bits. */
const NONE = 0, NUMBER = 1, INTEGER = 2, WIDE_INTEGER = 3;

const packed = new WeakMap<readonly SegmentSource[], PackedSegments>();
let lists = 0;

export function packSources(sources: readonly ScanSource[]): PackedSource[] {
  return sources.map((source) => {
    const { segments } = source;
    if (segments.length < PACKED_MIN) return source;
    let list = packed.get(segments);
    if (list === undefined) packed.set(segments, list = pack(segments));
    return { ...source, segments: list };
  });
}

function pack(segments: readonly SegmentSource[]): PackedSegments {
  const columnCount = segments[0].chunks.length;
  const words = new SharedArrayBuffer(segments.length * (SEGMENT_WORDS + columnCount * CHUNK_WORDS) * 8);
  const numbers = new Float64Array(words), integers = new BigInt64Array(words);
  let at = 0;
  for (const { rowCount, timestampMin, timestampMax, ordinal, chunks } of segments) {
    assert(chunks.length === columnCount, "all segments of a source have the same columns");
    numbers[at++] = rowCount;
    integers[at++] = timestampMin;
    integers[at++] = timestampMax;
    numbers[at++] = ordinal;
    for (const chunk of chunks) {
      const next = at + CHUNK_WORDS;
      if (chunk !== undefined) {
        numbers[at++] = 1;
        for (const name of CHUNK_NUMBERS) numbers[at++] = chunk[name];
        numbers[at++] = chunk.stats.nullCount;
        for (const name of STATS) {
          const value = chunk.stats[name];
          if (typeof value === "bigint") {
            integers[at + 1] = value;
            integers[at + 2] = value >> 64n;
            numbers[at] = integers[at + 1] === value ? INTEGER : WIDE_INTEGER;
          } else if (value !== undefined) {
            numbers[at] = NUMBER;
            numbers[at + 1] = value;
          }
          at += STATISTIC_WORDS;
        }
      }
      at = next;
    }
  }
  return { id: ++lists, columnCount, count: segments.length, words };
}

/** By id, the most recently used one last. */
const kept = new Map<number, SegmentSource[]>();
let keptChunks = 0;

export function unpackSources(sources: readonly PackedSource[]): ScanSource[] {
  return sources.map((source) => ({
    ...source,
    segments: Array.isArray(source.segments) ? source.segments : segmentsOf(source.segments),
  }));
}

function segmentsOf(list: PackedSegments): SegmentSource[] {
  const chunksOf = (segments: SegmentSource[]) => segments.length * (segments[0].chunks.length + 1);
  let segments = kept.get(list.id);
  if (segments !== undefined) kept.delete(list.id);
  else {
    segments = unpack(list);
    keptChunks += chunksOf(segments);
  }
  kept.set(list.id, segments);
  for (const [id, oldest] of kept) {
    if (keptChunks <= KEPT_CHUNKS_MAX) break;
    kept.delete(id);
    keptChunks -= chunksOf(oldest);
  }
  return segments;
}

function unpack({ columnCount, count, words }: PackedSegments): SegmentSource[] {
  const numbers = new Float64Array(words), integers = new BigInt64Array(words);
  const statistic = (at: number) => {
    if (numbers[at] === NONE) return undefined;
    if (numbers[at] === NUMBER) return numbers[at + 1];
    return numbers[at] === INTEGER
      ? integers[at + 1]
      : (integers[at + 2] << 64n) | BigInt.asUintN(64, integers[at + 1]);
  };
  const chunk = (at: number): ColumnChunk | undefined =>
    numbers[at] === 0 ? undefined : {
      address: numbers[at + 1],
      file: numbers[at + 2],
      offset: numbers[at + 3],
      sizeBytes: numbers[at + 4],
      crc: numbers[at + 5],
      valueBytes: numbers[at + 6],
      stats: { nullCount: numbers[at + 7], min: statistic(at + 8), max: statistic(at + 11), sum: statistic(at + 14) },
    };
  return Array.from({ length: count }, (_, k) => {
    const at = k * (SEGMENT_WORDS + columnCount * CHUNK_WORDS);
    return {
      rowCount: numbers[at],
      timestampMin: integers[at + 1],
      timestampMax: integers[at + 2],
      ordinal: numbers[at + 3],
      chunks: Array.from({ length: columnCount }, (_, c) => chunk(at + SEGMENT_WORDS + c * CHUNK_WORDS)),
    };
  });
}
