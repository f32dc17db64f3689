/** The segments of a snapshot, or some of them, as readers see them: read from the words of their pages when they are needed. */
import { assert } from "../assert.ts";
import type { Interval } from "../sql/plan.ts";
import { ByteReader } from "./bytes.ts";
import type { PageRef, PartitionSums, PartRef, PostedSegments, SegmentList, SegmentSource } from "./contract.ts";
import type { SharedHeap } from "./heap.ts";
import { decodePages } from "./page-records.ts";
import { formatOf, type PageRecord } from "./page.ts";
import { sumsOf } from "./page-partitions.ts";
import { PageView } from "./page-words.ts";

/** Chunks and segments that a thread keeps as objects: between one and two times as many. */
const KEPT_CHUNKS = 25_000;
/** Numbers of a run as it is posted. */
const RUN_NUMBERS = 8;

/** The part of a page's reference that reading it needs. */
export type PageLocation = Pick<PageRef, "id" | "address" | "file" | "offset" | "sizeBytes" | "crc">;

/** Segments `from` … `to`-1 of a page. */
export interface Run {
  readonly page: PageLocation;
  readonly from: number;
  readonly to: number;
}

/** Brings words of data files into shared memory. */
export interface PageFrames {
  /** Address of the words until `use` returns. */
  withPage<T>(directory: string, page: PageLocation, use: (address: number) => T): T;
}

/** Binary search: the first index in [from, to) for which `holds` is true, or `to`. It must hold for all later ones, too. */
export function firstOf(from: number, to: number, holds: (index: number) => boolean): number {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (holds(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}

function storedRef(record: PageRecord): PageRef {
  const { file, offset, sizeBytes, crc, count, rowCount, first, last, fileBytes, version, formats } = record;
  return {
    id: 0,
    address: 0,
    file,
    offset,
    sizeBytes,
    crc,
    count,
    rowCount,
    timestampMin: first.timestampMin,
    timestampMax: last.timestampMax,
    partitionMin: first.partition,
    partitionMax: last.partition,
    chunkBytes: fileBytes.reduce((sum, [, bytes]) => sum + bytes, 0),
    version,
    formats,
  };
}

/** Segments of a page by their ordinals, as far as they were read. */
type Kept = (SegmentSource | undefined)[];

/** Reads pages in one thread, and keeps the segments that were read last. */
export class PageReader {
  private young = new Map<string, Kept>();
  private old = this.young;
  private youngChunks = 0;

  constructor(private readonly heap: SharedHeap, private readonly frames: PageFrames) {}

  private readonly lists = new WeakMap<PartRef, readonly PageRef[]>();

  /** The pages of parts of a table. */
  pagesOf(directory: string, parts: readonly PartRef[]): PageRef[] {
    return parts.flatMap((part): readonly PageRef[] => part.isList ? this.listed(directory, part) : [part]);
  }

  private listed(directory: string, list: PartRef): readonly PageRef[] {
    let pages = this.lists.get(list);
    if (pages === undefined) {
      const bytes = this.frames.withPage(
        directory,
        list,
        (address) => this.heap.u8.slice(address, address + list.sizeBytes),
      );
      this.lists.set(list, pages = decodePages(new ByteReader(bytes)).map(storedRef));
    }
    return pages;
  }

  /** Segment `k` of a page, with these columns. `key`: the columns as text. */
  segment(
    directory: string,
    page: PageLocation,
    k: number,
    columnIds: readonly number[],
    key: string,
  ): SegmentSource {
    const kept = this.kept(page, key);
    return kept[k] ??= this.with(directory, page, (view) => {
      this.youngChunks += columnIds.length + 1;
      return view.segment(k, view.positionsOf(columnIds));
    });
  }

  /** Segments `from` … `to`-1. */
  segments(directory: string, { page, from, to }: Run, columnIds: readonly number[], key: string): SegmentSource[] {
    const kept = this.kept(page, key), found: SegmentSource[] = [];
    while (from + found.length < to && kept[from + found.length] !== undefined) found.push(kept[from + found.length]!);
    if (from + found.length === to) return found;
    return this.with(directory, page, (view) => {
      const positions = view.positionsOf(columnIds);
      for (let k = from + found.length; k < to; k++) {
        if (kept[k] === undefined) this.youngChunks += columnIds.length + 1;
        found.push(kept[k] ??= view.segment(k, positions));
      }
      return found;
    });
  }

  /** All segments of a page. They are not kept. */
  read(directory: string, page: PageLocation, columnIds: readonly number[]): SegmentSource[] {
    return this.with(directory, page, (view) => {
      const positions = view.positionsOf(columnIds);
      return Array.from({ length: view.count }, (_, k) => view.segment(k, positions));
    });
  }

  /** The segments of a page from `begin` on that overlap an interval, and the number of their rows. */
  within(
    directory: string,
    page: PageLocation,
    [low, high]: Interval,
    begin: number,
  ): { from: number; to: number; rowCount: number } {
    return this.with(directory, page, (view) => {
      const from = firstOf(begin, view.count, (k) => view.timestampMaxOf(k) >= low);
      const to = firstOf(from, view.count, (k) => view.timestampMinOf(k) > high);
      let rowCount = 0;
      for (let k = from; k < to; k++) rowCount += view.rowCountOf(k);
      return { from, to, rowCount };
    });
  }

  /** The partitions that have segments in a page. A page of one is not read, unless some of its chunks are in memory. */
  partitionsOf(directory: string, page: PageRef): PartitionSums[] {
    if (page.address !== 0 || page.partitionMin !== page.partitionMax) {
      return this.with(directory, page, (view) => view.partitions()).map(sumsOf);
    }
    const { partitionMin: start, version, rowCount, timestampMin, timestampMax, chunkBytes: diskSizeBytes } = page;
    return [{ start, version, format: formatOf(page), rowCount, timestampMin, timestampMax, diskSizeBytes }];
  }

  /** True if the column has nulls in the page. */
  hasNulls(directory: string, page: PageLocation, columnId: number): boolean {
    return this.with(directory, page, (view) => view.hasNulls(columnId));
  }

  private kept(page: PageLocation, key: string): Kept {
    const { id, address, file, offset } = page;
    const name = `${address === 0 ? `${file}+${offset}` : id} ${key}`;
    let kept = this.young.get(name);
    if (kept !== undefined) return kept;
    kept = this.old.get(name) ?? [];
    if (this.youngChunks > KEPT_CHUNKS) {
      this.old = this.young;
      this.young = new Map();
      this.youngChunks = 0;
    }
    for (const segment of kept) if (segment !== undefined) this.youngChunks += segment.chunks.length + 1;
    this.young.set(name, kept);
    return kept;
  }

  private with<T>(directory: string, page: PageLocation, use: (view: PageView) => T): T {
    if (page.address === 0) {
      return this.frames.withPage(directory, page, (address) => use(new PageView(this.heap, address)));
    }
    // The block is kept as long as a version that lists the page is pinned, or the newest one.
    const isThere = () => this.heap.f64[page.address / 8] === page.id;
    assert(isThere(), "the version of the page is pinned");
    const result = use(new PageView(this.heap, page.address));
    assert(isThere(), "the version of the page is pinned");
    return result;
  }
}

export class PagedSegments implements SegmentList {
  readonly length: number;
  /** By run: the index of its first segment; behind the last one, the length. */
  private readonly starts: Float64Array;
  private readonly key: string;
  private posted: PostedSegments | undefined;
  /** Of the last `at`: readers ask for a segment once for each column. */
  private lastIndex = -1;
  private last: SegmentSource | undefined;
  /** By column. */
  private readonly withNulls: (boolean | undefined)[] = [];

  constructor(
    private readonly reader: PageReader,
    private readonly directory: string,
    private readonly columnIds: readonly number[],
    private readonly runs: readonly Run[],
  ) {
    this.key = columnIds.join();
    this.starts = new Float64Array(runs.length + 1);
    for (let k = 0; k < runs.length; k++) this.starts[k + 1] = this.starts[k] + runs[k].to - runs[k].from;
    this.length = this.starts[runs.length];
  }

  static ofPosted(reader: PageReader, { directory, columnIds, runs: numbers }: PostedSegments): PagedSegments {
    const runs = Array.from({ length: numbers.length / RUN_NUMBERS }, (_, k): Run => {
      const [id, address, file, offset, sizeBytes, crc, from, to] = numbers.subarray(RUN_NUMBERS * k);
      return { page: { id, address, file, offset, sizeBytes, crc }, from, to };
    });
    return new PagedSegments(reader, directory, columnIds, runs);
  }

  post(): PostedSegments {
    if (this.posted === undefined) {
      const runs = new Float64Array(RUN_NUMBERS * this.runs.length);
      this.runs.forEach(({ page: { id, address, file, offset, sizeBytes, crc }, from, to }, k) =>
        runs.set([id, address, file, offset, sizeBytes, crc, from, to], RUN_NUMBERS * k)
      );
      this.posted = { directory: this.directory, columnIds: this.columnIds, runs };
    }
    return this.posted;
  }

  /** From the end if negative, as `Array.at`. */
  at(index: number): SegmentSource | undefined {
    const wanted = index < 0 ? index + this.length : index;
    if (wanted < 0 || wanted >= this.length) return undefined;
    if (wanted === this.lastIndex) return this.last;
    let low = 0, high = this.runs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.starts[middle] <= wanted) low = middle;
      else high = middle - 1;
    }
    const run = this.runs[low];
    const { directory, columnIds, key } = this;
    this.last = this.reader.segment(directory, run.page, run.from + wanted - this.starts[low], columnIds, key);
    this.lastIndex = wanted;
    return this.last;
  }

  hasNulls(column: number): boolean {
    const { reader, directory, columnIds } = this;
    return this.withNulls[column] ??= this.runs.some(({ page }) => reader.hasNulls(directory, page, columnIds[column]));
  }

  *[Symbol.iterator](): Iterator<SegmentSource> {
    const { directory, columnIds, key } = this;
    for (const run of this.runs) yield* this.reader.segments(directory, run, columnIds, key);
  }
}
