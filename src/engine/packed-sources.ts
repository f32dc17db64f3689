/**
 * Scan sources as workers read them from shared memory. Descriptions of segments are written as numbers: those of a few segments
 * into the request, those of many once for each list into a block of their own, which a worker reads once.
 */
import { assert } from "../errors.ts";
import type { ColumnChunk, ScanSource, SegmentSource } from "../storage/contract.ts";
import { HeapFullError, type SharedHeap } from "../storage/heap.ts";

/** A source as JSON. */
export type PackedSource = Omit<ScanSource, "segments" | "dictionaries"> & {
  dictionaries: (ScanSource["dictionaries"][number] | null)[];
  columnCount: number;
  count: number;
  /** Where the segments are: of the request's words, or with a list an address. In bytes. */
  at: number;
  /** Equal ids mean equal segments and files. */
  list?: number;
};

/** Longer descriptions get a list of their own. */
const INLINE_BYTES_MAX = 16 << 10;
/** Lists that no query uses are kept up to so many bytes. */
const LISTS_BYTES_MAX = 8 << 20;
/** Maximum number of chunks whose descriptions a worker caches. */
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
 * A flag for the existence of the chunk, its numbers and the null count; then the kind and value of each of the other
 * statistics.
 */
const STATISTIC_WORDS = 3;
const CHUNK_WORDS = 1 + CHUNK_NUMBERS.length + 1 + STATISTIC_WORDS * STATS.length;
/** Sums of integers may need more than 64 bits. */
const NONE = 0, NUMBER = 1, INTEGER = 2, WIDE_INTEGER = 3;

function bytesOf(segments: readonly SegmentSource[]): number {
  return segments.length === 0 ? 0 : segments.length * (SEGMENT_WORDS + segments[0].chunks.length * CHUNK_WORDS) * 8;
}

/** A description in a block of shared memory. */
interface SegmentList {
  id: number;
  address: number;
  sizeBytes: number;
  files: string[];
  /** Number of queries that use it. */
  users: number;
  isFreed: boolean;
}

/** Sources that are ready to be written into a request. */
export interface PackedSources {
  sources: PackedSource[];
  /** Size of the words that `write` writes. */
  wordBytes: number;
  /** Writes the words at this address, a multiple of 8. */
  write(address: number): void;
  /** The query has ended: its lists may be freed. */
  release(): void;
}

/** Main's side: packs sources, and caches long lists. */
export class SourcePacker {
  private readonly byArray = new WeakMap<readonly SegmentSource[], SegmentList>();
  /** The most recently used one last. */
  private readonly lists = new Set<SegmentList>();
  private listBytes = 0;
  private nextId = 1;

  constructor(private readonly heap: SharedHeap) {}

  /** @throws {HeapFullError} */
  pack(sources: readonly ScanSource[]): PackedSources {
    const inline: { segments: SegmentSource[]; files: FileIndexes; at: number }[] = [], used: SegmentList[] = [];
    let wordBytes = 0;
    const release = () => used.splice(0).forEach((list) => this.leave(list));
    const packed = (source: ScanSource): PackedSource => {
      const { tableId, version, rowCount, sorted, segments } = source;
      const dictionaries = source.dictionaries.map((dictionary) => dictionary ?? null);
      const columnCount = segments[0]?.chunks.length ?? 0, count = segments.length, sizeBytes = bytesOf(segments);
      const common = { tableId, version, rowCount, sorted, dictionaries, columnCount, count };
      if (sizeBytes > INLINE_BYTES_MAX) {
        const list = this.listOf(source, sizeBytes);
        used.push(list);
        return { ...common, files: list.files, at: list.address, list: list.id };
      }
      const at = wordBytes, files = new FileIndexes(source);
      inline.push({ segments, files, at });
      wordBytes += sizeBytes;
      return { ...common, files: files.paths, at };
    };
    try {
      return {
        sources: sources.map(packed),
        wordBytes,
        write: (address) =>
          inline.forEach(({ segments, files, at }) => write(this.heap, address + at, segments, files)),
        release,
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  private listOf(source: ScanSource, sizeBytes: number): SegmentList {
    let list = this.byArray.get(source.segments);
    if (list === undefined || list.isFreed) {
      const files = new FileIndexes(source), address = this.allocate(sizeBytes);
      write(this.heap, address, source.segments, files);
      list = { id: this.nextId++, address, sizeBytes, files: files.paths, users: 0, isFreed: false };
      this.byArray.set(source.segments, list);
      this.listBytes += sizeBytes;
    }
    list.users++;
    this.lists.delete(list);
    this.lists.add(list);
    return list;
  }

  private allocate(sizeBytes: number): number {
    try {
      return this.heap.allocate(sizeBytes, "batch");
    } catch (error) {
      if (!(error instanceof HeapFullError)) throw error;
      this.freeUnused(0);
      return this.heap.allocate(sizeBytes, "batch");
    }
  }

  private leave(list: SegmentList): void {
    list.users--;
    this.freeUnused(LISTS_BYTES_MAX);
  }

  /** Frees the least recently used lists until at most this many bytes are left. */
  private freeUnused(bytesMax: number): void {
    for (const list of this.lists) {
      if (this.listBytes <= bytesMax) return;
      if (list.users > 0) continue;
      this.heap.free(list.address, list.sizeBytes, "batch");
      list.isFreed = true;
      this.lists.delete(list);
      this.listBytes -= list.sizeBytes;
    }
  }
}

/** Numbers the files that segments use, because a table can have thousands of others. */
class FileIndexes {
  readonly paths: string[] = [];
  private readonly indexes = new Map<number, number>();

  constructor({ files, segments }: ScanSource) {
    for (const { chunks } of segments) {
      for (const chunk of chunks) {
        if (chunk === undefined || this.indexes.has(chunk.file) || files[chunk.file] === undefined) continue;
        this.indexes.set(chunk.file, this.paths.push(files[chunk.file]) - 1);
      }
    }
  }

  of(file: number): number {
    return this.indexes.get(file) ?? 0;
  }
}

function write(
  { f64, i64 }: SharedHeap,
  address: number,
  segments: readonly SegmentSource[],
  files: FileIndexes,
): void {
  const columnCount = segments[0]?.chunks.length ?? 0;
  let at = address / 8;
  for (const { rowCount, timestampMin, timestampMax, ordinal, chunks } of segments) {
    assert(chunks.length === columnCount, "all segments of a source have the same columns");
    f64[at++] = rowCount;
    i64[at++] = timestampMin;
    i64[at++] = timestampMax;
    f64[at++] = ordinal;
    for (const chunk of chunks) {
      const next = at + CHUNK_WORDS;
      f64[at++] = chunk === undefined ? 0 : 1;
      if (chunk !== undefined) {
        for (const name of CHUNK_NUMBERS) f64[at++] = name === "file" ? files.of(chunk.file) : chunk[name];
        f64[at++] = chunk.stats.nullCount;
        for (const name of STATS) {
          const value = chunk.stats[name];
          if (typeof value === "bigint") {
            i64[at + 1] = value;
            i64[at + 2] = value >> 64n;
            f64[at] = i64[at + 1] === value ? INTEGER : WIDE_INTEGER;
          } else {
            f64[at] = value === undefined ? NONE : NUMBER;
            if (value !== undefined) f64[at + 1] = value;
          }
          at += STATISTIC_WORDS;
        }
      }
      at = next;
    }
  }
}

/** A worker's cache: by id, the most recently used one last. */
const kept = new Map<number, SegmentSource[]>();
let keptChunks = 0;

/** `wordsAt`: the address of the request's words. */
export function unpackSources(heap: SharedHeap, sources: readonly PackedSource[], wordsAt: number): ScanSource[] {
  return sources.map(({ columnCount, count, at, list, dictionaries, ...source }) => ({
    ...source,
    dictionaries: dictionaries.map((dictionary) => dictionary ?? undefined),
    segments: list === undefined
      ? read(heap, wordsAt + at, count, columnCount)
      : keptList(list, () => read(heap, at, count, columnCount)),
  }));
}

function keptList(id: number, read: () => SegmentSource[]): SegmentSource[] {
  const chunksOf = (segments: SegmentSource[]) => segments.length * (segments[0].chunks.length + 1);
  let segments = kept.get(id);
  if (segments !== undefined) kept.delete(id);
  else {
    segments = read();
    keptChunks += chunksOf(segments);
  }
  kept.set(id, segments);
  for (const [id, oldest] of kept) {
    if (keptChunks <= KEPT_CHUNKS_MAX) break;
    kept.delete(id);
    keptChunks -= chunksOf(oldest);
  }
  return segments;
}

function read({ f64, i64 }: SharedHeap, address: number, count: number, columnCount: number): SegmentSource[] {
  const statistic = (at: number) => {
    if (f64[at] === NONE) return undefined;
    if (f64[at] === NUMBER) return f64[at + 1];
    return f64[at] === INTEGER ? i64[at + 1] : (i64[at + 2] << 64n) | BigInt.asUintN(64, i64[at + 1]);
  };
  const chunk = (at: number): ColumnChunk | undefined =>
    f64[at] === 0 ? undefined : {
      address: f64[at + 1],
      file: f64[at + 2],
      offset: f64[at + 3],
      sizeBytes: f64[at + 4],
      crc: f64[at + 5],
      valueBytes: f64[at + 6],
      stats: { nullCount: f64[at + 7], min: statistic(at + 8), max: statistic(at + 11), sum: statistic(at + 14) },
    };
  const first = address / 8;
  return Array.from({ length: count }, (_, k) => {
    const at = first + k * (SEGMENT_WORDS + columnCount * CHUNK_WORDS);
    return {
      rowCount: f64[at],
      timestampMin: i64[at + 1],
      timestampMax: i64[at + 2],
      ordinal: f64[at + 3],
      chunks: Array.from({ length: columnCount }, (_, c) => chunk(at + SEGMENT_WORDS + c * CHUNK_WORDS)),
    };
  });
}
