/** A page: segments that lie one after the other in a table. */
import { assert } from "../assert.ts";
import { extentBytes } from "./datafile.ts";
import type { Extent } from "./extent.ts";
import type { MemoryBlock } from "./memory.ts";
import { PARTITION_FORMAT } from "./contract.ts";
import { contentsOf, type PageContents, partitionsIn } from "./page-words.ts";
import { type PartitionPart, partitionsAfter, partitionsOf } from "./page-partitions.ts";
import type { Segment } from "./segment.ts";

/** Pages whose segments or partitions are kept as objects although they can be read again: between one and two times as many. */
const KEPT_PAGES = 16;

/** Of pages that have only native partitions. */
export const NATIVE_FORMATS = 1 << PARTITION_FORMAT.native;

/** The format version since which the words of pages are as they are now. */
export const PAGE_FORMAT = 9;

/** Set in `formats` if the words of a page have no partitions, as before format 9. */
export const OLD_WORDS = 1 << 30;

/** The format of the partition of a page that has one. */
export function formatOf({ formats }: Pick<Summary, "formats">): number {
  return 31 - Math.clz32(formats & ~OLD_WORDS);
}

export function isOld({ formats }: Pick<Summary, "formats">): boolean {
  return (formats & OLD_WORDS) !== 0;
}

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
  /** Greatest version of its partitions. */
  readonly version: number;
  /** Formats of its partitions: bit `f` for format `f`. And `OLD_WORDS`. */
  readonly formats: number;
  /** Bytes of the extents of the chunks by data file; of a list of pages, also those of the pages. */
  readonly fileBytes: readonly (readonly [file: number, bytes: number])[];
}

/** A page, or a list of pages, that is on disk. */
export type PageRecord = Summary & Extent;

export type ReadExtent = (extent: Extent) => Uint8Array;

/** What can be told of a page or a list of pages without reading what is in it. */
export abstract class Summarised<Known extends Omit<Summary, "fileBytes">> {
  protected constructor(
    protected readonly summary: Known,
    /** The record, if it is on disk. */
    protected readonly onDisk: PageRecord | undefined,
    protected readonly read: ReadExtent | undefined,
    /** A chunk is in memory. */
    readonly isLive: boolean,
  ) {}

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

  /** Greatest version of its partitions. */
  get version(): number {
    return this.summary.version;
  }

  get formats(): number {
    return this.summary.formats;
  }

  /** All segments are of one partition. */
  get isOfOne(): boolean {
    return this.first.partition === this.last.partition;
  }

  get extent(): Extent | undefined {
    return this.onDisk;
  }

  get stored(): PageRecord {
    assert(this.onDisk !== undefined, "it is on disk");
    return this.onDisk;
  }
}

let pageCount = 0, nextVersionNumber = 1;

/** A number for a change of rows, greater than those of all changes of tables that are open. */
export function newVersion(): number {
  return nextVersionNumber++;
}

/** The number after all that were given. Manifests have it, so that no number is given again. */
export function nextVersion(): number {
  return nextVersionNumber;
}

/** A table is opened, to whose changes all numbers before this one were given. */
export function passVersions(next: number): void {
  nextVersionNumber = Math.max(nextVersionNumber, next);
}

/** The segments of a page that is on disk are read when they are needed. */
export class Page extends Summarised<Summary> {
  /** Different for each page since the start. */
  readonly id = ++pageCount;
  /** Number of lists that use the page and count it. */
  refs = 0;
  /** The words in shared memory, for readers. */
  block: MemoryBlock | undefined;
  private uids: Float64Array | undefined;

  private constructor(
    summary: Summary,
    /** Set if a chunk is in memory, or if the page is not on disk. */
    private readonly own: PageContents | undefined,
    onDisk: PageRecord | undefined,
    read: ReadExtent | undefined,
    isLive: boolean,
  ) {
    super(summary, onDisk, read, isLive);
  }

  /** `versions`: by segment. */
  static of(
    segments: readonly Segment[],
    versions: readonly number[] = new Array<number>(segments.length).fill(0),
  ): Page {
    return Page.made({ segments, versions, partitions: partitionsOf(segments, versions) }, segments.some(isLive));
  }

  private static made(own: PageContents, isLive: boolean): Page {
    return new Page(summaryOf(own), own, undefined, undefined, isLive);
  }

  /** A page of a manifest. */
  static stored(record: PageRecord, read: ReadExtent): Page {
    return new Page(record, undefined, record, read, false);
  }

  /** The same page, whose words are on disk now. */
  sealed(extent: Extent, read: ReadExtent): Page {
    const { summary, isLive } = this;
    return new Page(summary, isLive ? this.own : undefined, { ...summary, ...extent }, read, isLive);
  }

  /** The page with another segment `k` of the same partition, in this version. */
  with(k: number, segment: Segment, version: number): Page {
    const segments = this.segments.with(k, segment), versions = this.versions.with(k, version);
    const partitions = partitionsAfter(this.partitions, segments, versions, k);
    return Page.made({ segments, versions, partitions }, isLive(segment) || (this.isLive && segments.some(isLive)));
  }

  /** The same page, in which segment `k` has this version. */
  withVersion(k: number, version: number): Page {
    return this.with(k, this.segments[k], version);
  }

  /** True if it has one of these segments. Uids are kept, so that segments are found without reading all pages again. */
  hasOneOf(uids: ReadonlySet<number>): boolean {
    this.uids ??= Float64Array.from(this.segments, ({ uid }) => uid);
    return this.uids.some((uid) => uids.has(uid));
  }

  get fileBytes(): Summary["fileBytes"] {
    return this.summary.fileBytes;
  }

  /** @throws {CorruptFileError} if the page is read from a damaged file. */
  get segments(): readonly Segment[] {
    return this.contents.segments;
  }

  /** By segment: the last change of rows there, or a later one of the same partition. */
  get versions(): readonly number[] {
    return this.contents.versions;
  }

  /** What it has of its partitions. @throws {CorruptFileError} if the page is read from a damaged file. */
  get partitions(): readonly PartitionPart[] {
    return this.own?.partitions ?? keptPartitions.get(this, () => partitionsIn(this.read!(this.stored)));
  }

  private get contents(): PageContents {
    return this.own ?? keptContents.get(this, () => contentsOf(this.read!(this.stored)));
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

/** What was read last from pages. */
class Kept<T> {
  private young = new Map<Page, T>();
  private old = this.young;

  get(page: Page, read: () => T): T {
    let found = this.young.get(page);
    if (found !== undefined) return found;
    found = this.old.get(page) ?? read();
    if (this.young.size >= KEPT_PAGES) this.old = this.young, this.young = new Map();
    this.young.set(page, found);
    return found;
  }
}

const keptContents = new Kept<PageContents>(), keptPartitions = new Kept<readonly PartitionPart[]>();

export function isLive({ chunks }: Segment): boolean {
  return chunks.some((chunk) => chunk !== undefined && chunk.plain.address !== 0);
}

function summaryOf({ segments, partitions }: PageContents): Summary {
  const bytes = new Map<number, number>();
  let rowCount = 0, version = 0, formats = 0, uidMin = Infinity, uidMax = 0;
  for (const part of partitions) {
    rowCount += part.rowCount;
    version = Math.max(version, part.version);
    formats |= 1 << part.format;
    for (const [file, added] of part.files) if (file !== 0) bytes.set(file, (bytes.get(file) ?? 0) + added);
  }
  for (const { uid } of segments) {
    uidMin = Math.min(uidMin, uid);
    uidMax = Math.max(uidMax, uid);
  }
  const [first, last] = [segments[0], segments[segments.length - 1]].map((
    { partition, timestampMin, timestampMax },
  ) => ({ partition, timestampMin, timestampMax }));
  return { count: segments.length, rowCount, first, last, uidMin, uidMax, version, formats, fileBytes: [...bytes] };
}
