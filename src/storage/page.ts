/** A page: segments that lie one after the other in a table. */
import { assert } from "../assert.ts";
import { extentBytes } from "./datafile.ts";
import type { Extent } from "./extent.ts";
import type { MemoryBlock } from "./memory.ts";
import { segmentsOf } from "./page-words.ts";
import type { Segment } from "./segment.ts";

/** Pages whose segments are kept as objects although they can be read again: between one and two times as many. */
const KEPT_PAGES = 16;

/** The order of segments. */
export type Bounds = Pick<Segment, "partition" | "timestampMin" | "timestampMax">;

/** What a sequence of segments has. */
export interface Summary {
  readonly count: number;
  readonly rowCount: number;
  readonly first: Bounds;
  readonly last: Bounds;
  readonly uidMin: number;
  readonly uidMax: number;
  /** Bytes of the extents of the chunks by data file; of a list of pages, also those of the pages. */
  readonly fileBytes: readonly (readonly [file: number, bytes: number])[];
}

/** A page, or a list of pages, that is on disk. */
export type PageRecord = Summary & Extent;

export type ReadExtent = (extent: Extent) => Uint8Array;

let pageCount = 0, versionCount = 0;

/** A number for a change of rows, greater than those of all changes since the start. */
export function newVersion(): number {
  return ++versionCount;
}

/** The segments of a page that is on disk are read when they are needed. */
export class Page {
  /** Different for each page since the start. */
  readonly id = ++pageCount;
  /** Number of lists that use the page and count it. */
  refs = 0;
  /** The words in shared memory, for readers. */
  block: MemoryBlock | undefined;
  private lastVersion: number | undefined;
  private uids: Float64Array | undefined;

  private constructor(
    private readonly summary: Summary,
    /** Set if a chunk is in memory, or if the page is not on disk. */
    private readonly own: readonly Segment[] | undefined,
    /** The record of a page that is on disk. */
    private readonly onDisk: PageRecord | undefined,
    private readonly read: ReadExtent | undefined,
    /** A chunk is in memory. */
    readonly isLive: boolean,
    /** By segment: the last change of rows there. Undefined: as the table was opened. */
    readonly versions: readonly number[] | undefined,
  ) {}

  static of(segments: readonly Segment[], versions?: readonly number[]): Page {
    return new Page(summaryOf(segments), segments, undefined, undefined, segments.some(isLive), versions);
  }

  /** A page of a manifest. */
  static stored(record: PageRecord, read: ReadExtent): Page {
    return new Page(record, undefined, record, read, false, undefined);
  }

  /** The same page, whose words are on disk now. */
  sealed(extent: Extent, read: ReadExtent): Page {
    const { summary, isLive, versions } = this;
    return new Page(summary, isLive ? this.own : undefined, { ...summary, ...extent }, read, isLive, versions);
  }

  /** The same page, in which segment `k` has this version. */
  withVersion(k: number, version: number): Page {
    const versions = this.versions?.slice() ?? new Array<number>(this.count).fill(0);
    versions[k] = version;
    return new Page(this.summary, this.own, this.onDisk, this.read, this.isLive, versions);
  }

  /** True if it has one of these segments. Uids are kept, so that segments are found without reading all pages again. */
  hasOneOf(uids: ReadonlySet<number>): boolean {
    this.uids ??= Float64Array.from(this.segments, ({ uid }) => uid);
    return this.uids.some((uid) => uids.has(uid));
  }

  /** The last change of rows. */
  get version(): number {
    return this.lastVersion ??= this.versionOf(0, this.count);
  }

  /** The same of segments `from` … `to`-1. */
  versionOf(from: number, to: number): number {
    const { versions } = this;
    let last = 0;
    for (let k = from; versions !== undefined && k < to; k++) last = Math.max(last, versions[k]);
    return last;
  }

  /** All segments are of one partition. */
  get isOfOne(): boolean {
    return this.first.partition === this.last.partition;
  }

  get extent(): Extent | undefined {
    return this.onDisk;
  }

  get count(): number {
    return this.summary.count;
  }

  get rowCount(): number {
    return this.summary.rowCount;
  }

  get first(): Bounds {
    return this.summary.first;
  }

  get last(): Bounds {
    return this.summary.last;
  }

  get uidMin(): number {
    return this.summary.uidMin;
  }

  get uidMax(): number {
    return this.summary.uidMax;
  }

  get fileBytes(): Summary["fileBytes"] {
    return this.summary.fileBytes;
  }

  get stored(): PageRecord {
    assert(this.onDisk !== undefined, "the page is on disk");
    return this.onDisk;
  }

  /** @throws {CorruptFileError} if the page is read from a damaged file. */
  get segments(): readonly Segment[] {
    return this.own ?? kept(this, () => segmentsOf(this.read!(this.extent!)));
  }

  /** The bytes that the page and its chunks take in each data file. */
  extents(): Summary["fileBytes"] {
    return withExtent(this.fileBytes, this.extent);
  }
}

/** Adds an extent to bytes by data file. */
export function withExtent(fileBytes: Summary["fileBytes"], extent: Extent | undefined): Summary["fileBytes"] {
  return extent === undefined ? fileBytes : [...fileBytes, [extent.file, extentBytes(extent.sizeBytes)]];
}

/** False if none of the uids, in ascending order, can be of one of the segments. */
export function mayHave({ uidMin, uidMax }: Pick<Summary, "uidMin" | "uidMax">, uids: readonly number[]): boolean {
  let from = 0, to = uids.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (uids[middle] < uidMin) from = middle + 1;
    else to = middle;
  }
  return from < uids.length && uids[from] <= uidMax;
}

let young = new Map<Page, readonly Segment[]>(), old = young;

function kept(page: Page, read: () => readonly Segment[]): readonly Segment[] {
  let segments = young.get(page);
  if (segments !== undefined) return segments;
  segments = old.get(page) ?? read();
  if (young.size >= KEPT_PAGES) old = young, young = new Map();
  young.set(page, segments);
  return segments;
}

export function isLive({ chunks }: Segment): boolean {
  return chunks.some((chunk) => chunk !== undefined && chunk.plain.address !== 0);
}

function summaryOf(segments: readonly Segment[]): Summary {
  const bytes = new Map<number, number>();
  let rowCount = 0, uidMin = Infinity, uidMax = 0;
  for (const segment of segments) {
    rowCount += segment.rowCount;
    uidMin = Math.min(uidMin, segment.uid);
    uidMax = Math.max(uidMax, segment.uid);
    for (const chunk of segment.chunks) {
      if (chunk === undefined || chunk.plain.file < 0) continue;
      const { file, sizeBytes } = chunk.plain;
      bytes.set(file, (bytes.get(file) ?? 0) + extentBytes(sizeBytes));
    }
  }
  const [first, last] = [segments[0], segments[segments.length - 1]].map((
    { partition, timestampMin, timestampMax },
  ) => ({ partition, timestampMin, timestampMax }));
  return { count: segments.length, rowCount, first, last, uidMin, uidMax, fileBytes: [...bytes] };
}
