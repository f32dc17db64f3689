/**
 * The segments of a table: an immutable sequence in pages. A change copies the pages that it touches and the list of pages, and
 * shares the rest, so its cost hardly depends on the number of segments. Two sequences are compared by their pages.
 */
import { assert } from "../errors.ts";
import { extentBytes } from "./datafile.ts";
import type { Extent } from "./extent.ts";
import type { Segment } from "./segment.ts";
import type { MemoryBlock } from "./memory.ts";
import { segmentsOf } from "./page-words.ts";

export type { Extent } from "./extent.ts";
export type { Segment } from "./segment.ts";

/** A page has about this many chunks at most: it is copied for each change of one of its segments. */
const PAGE_CHUNKS = 640;
const PAGE_MIN = 8, PAGE_MAX = 128;
/** Pages whose segments are kept as objects although they can be read again: between one and two times as many. */
const KEPT_PAGES = 16;

/** The order of segments. */
export type Bounds = Pick<Segment, "partition" | "timestampMin" | "timestampMax">;

/** A page in a manifest. */
export interface PageRecord extends Extent {
  readonly count: number;
  readonly rowCount: number;
  readonly first: Bounds;
  readonly last: Bounds;
  readonly uidMin: number;
  readonly uidMax: number;
  /** Bytes of the chunks' extents by data file. */
  readonly fileBytes: readonly (readonly [file: number, bytes: number])[];
}

export type ReadExtent = (extent: Extent) => Uint8Array;

let pageCount = 0;

/** Segments that lie one after the other. The segments of a page that is on disk are read when they are needed. */
export class Page {
  /** Different for each page since the start. */
  readonly id = ++pageCount;
  /** Number of sequences that use the page and count it. */
  refs = 0;
  /** The words in shared memory, for readers. */
  block: MemoryBlock | undefined;

  private constructor(
    private readonly record: Omit<PageRecord, keyof Extent>,
    /** Set if a chunk is in memory, or if the page is not on disk. */
    private readonly own: readonly Segment[] | undefined,
    /** The record of a page that is on disk. */
    private readonly onDisk: PageRecord | undefined,
    private readonly read: ReadExtent | undefined,
    /** A chunk is in memory. */
    readonly isLive: boolean,
  ) {}

  static of(segments: readonly Segment[]): Page {
    return new Page(recordOf(segments), segments, undefined, undefined, segments.some(isLive));
  }

  /** A page of a manifest. */
  static stored(record: PageRecord, read: ReadExtent): Page {
    return new Page(record, undefined, record, read, false);
  }

  /** The same page, whose words are on disk now. */
  sealed(extent: Extent, read: ReadExtent): Page {
    return new Page(this.record, this.isLive ? this.own : undefined, { ...this.record, ...extent }, read, this.isLive);
  }

  get extent(): Extent | undefined {
    return this.onDisk;
  }

  get count(): number {
    return this.record.count;
  }

  get rowCount(): number {
    return this.record.rowCount;
  }

  get first(): Bounds {
    return this.record.first;
  }

  get last(): Bounds {
    return this.record.last;
  }

  get fileBytes(): PageRecord["fileBytes"] {
    return this.record.fileBytes;
  }

  get stored(): PageRecord {
    assert(this.onDisk !== undefined, "the page is on disk");
    return this.onDisk;
  }

  /** @throws {CorruptFileError} if the page is read from a damaged file. */
  get segments(): readonly Segment[] {
    return this.own ?? kept(this, () => segmentsOf(this.read!(this.extent!)));
  }

  /** False if none of the uids, in ascending order, can be of a segment of the page. */
  mayHave(uids: readonly number[]): boolean {
    let from = 0, to = uids.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (uids[middle] < this.record.uidMin) from = middle + 1;
      else to = middle;
    }
    return from < uids.length && uids[from] <= this.record.uidMax;
  }

  /** The bytes that the page and its chunks take in each data file. */
  extents(): readonly (readonly [file: number, bytes: number])[] {
    const { fileBytes, extent } = this;
    return extent === undefined ? fileBytes : [...fileBytes, [extent.file, extentBytes(extent.sizeBytes)]];
  }
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

function recordOf(segments: readonly Segment[]): Omit<PageRecord, keyof Extent> {
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

/** Replaces `count` segments from index `start` on. The splices of a change are ascending, with indexes before the change. */
export interface SplicedSegments {
  start: number;
  count: number;
  segments: readonly Segment[];
}

/** The same for pages. */
export interface SplicedPages<P = Page> {
  start: number;
  count: number;
  pages: readonly P[];
}

export class Segments implements Iterable<Segment> {
  /** By page: the index of its first segment and the number of rows before it; behind the last page, the totals. */
  private readonly starts: Float64Array;
  private readonly firstRows: Float64Array;
  private difference: { before: WeakRef<Segments>; splices: readonly SplicedPages[] } | undefined;

  private constructor(readonly pages: readonly Page[]) {
    this.starts = new Float64Array(pages.length + 1);
    this.firstRows = new Float64Array(pages.length + 1);
    for (let k = 0; k < pages.length; k++) {
      this.starts[k + 1] = this.starts[k] + pages[k].count;
      this.firstRows[k + 1] = this.firstRows[k] + pages[k].rowCount;
    }
  }

  static readonly EMPTY = new Segments([]);

  static of(segments: readonly Segment[]): Segments {
    return Segments.ofPages(pagesOf(segments));
  }

  static ofPages(pages: readonly Page[]): Segments {
    return pages.length === 0 ? Segments.EMPTY : new Segments(pages);
  }

  get length(): number {
    return this.starts[this.pages.length];
  }

  get rowCount(): number {
    return this.firstRows[this.pages.length];
  }

  /** Where the first segment begins, and where the last one ends. */
  get bounds(): [first: Bounds, last: Bounds] | undefined {
    return this.pages.length === 0 ? undefined : [this.pages[0].first, this.pages[this.pages.length - 1].last];
  }

  /** From the end if negative, as `Array.at`. */
  at(index: number): Segment | undefined {
    const from = index < 0 ? index + this.length : index;
    if (from < 0 || from >= this.length) return undefined;
    const page = this.pageOf(from);
    return this.pages[page].segments[from - this.starts[page]];
  }

  *[Symbol.iterator](): Iterator<Segment> {
    for (const { segments } of this.pages) yield* segments;
  }

  /** The segments of all pages with a chunk in memory. */
  *live(): Iterable<Segment> {
    for (const page of this.pages) if (page.isLive) yield* page.segments;
  }

  slice(from = 0, to = this.length): Segment[] {
    const end = Math.min(to, this.length);
    const found: Segment[] = [];
    for (let page = this.pageOf(from); page < this.pages.length && this.starts[page] < end; page++) {
      const start = this.starts[page];
      if (start + this.pages[page].count <= from) continue;
      for (const segment of this.pages[page].segments.slice(Math.max(0, from - start), end - start)) {
        found.push(segment);
      }
    }
    return found;
  }

  /** Index of the first segment that is not `before`. All segments in front of it must be. */
  search(before: (bounds: Bounds) => boolean): number {
    let from = 0, to = this.pages.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (before(this.pages[middle].last)) from = middle + 1;
      else to = middle;
    }
    if (from === this.pages.length) return this.length;
    if (!before(this.pages[from].first)) return this.starts[from];
    const { segments } = this.pages[from];
    let low = 0, high = segments.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (before(segments[middle])) low = middle + 1;
      else high = middle;
    }
    return this.starts[from] + low;
  }

  /** Number of rows before segment `index`. */
  firstRowOf(index: number): number {
    const page = this.pageOf(index);
    let row = this.firstRows[page];
    if (index === this.starts[page]) return row;
    const { segments } = this.pages[page];
    for (let k = 0; k < index - this.starts[page]; k++) row += segments[k].rowCount;
    return row;
  }

  /** The segment that has row `row` of all rows. */
  indexOfRow(row: number): { index: number; firstRow: number } {
    assert(row >= 0 && row < this.rowCount, "the row exists");
    const page = lastNotAbove(this.firstRows, this.pages.length, row);
    let index = this.starts[page], firstRow = this.firstRows[page];
    for (const { rowCount } of this.pages[page].segments) {
      if (row < firstRow + rowCount) break;
      index++;
      firstRow += rowCount;
    }
    return { index, firstRow };
  }

  /** The number of rows before each segment with one of these uids, which are in ascending order, and its own number of rows. */
  placesOf(uids: readonly number[]): Map<number, { firstRow: number; rowCount: number }> {
    const places = new Map<number, { firstRow: number; rowCount: number }>();
    const wanted = new Set(uids);
    this.pages.forEach((page, k) => {
      if (places.size === wanted.size || !page.mayHave(uids)) return;
      let firstRow = this.firstRows[k];
      for (const { uid, rowCount } of page.segments) {
        if (wanted.has(uid)) places.set(uid, { firstRow, rowCount });
        firstRow += rowCount;
      }
    });
    return places;
  }

  with(index: number, segment: Segment): Segments {
    return this.splice(index, 1, [segment]);
  }

  splice(start: number, count: number, added: readonly Segment[]): Segments {
    if (count === 0 && added.length === 0) return this;
    assert(start >= 0 && start + count <= this.length, "the segments exist");
    if (this.length === 0) return Segments.of(added);
    // At the end of a page its tail is extended, so that not every append creates a page.
    let first = Math.min(this.pageOf(start), this.pages.length - 1);
    if (first > 0 && start === this.starts[first] && !isFull(this.pages[first - 1], added)) first--;
    let last = Math.min(this.pageOf(start + count), this.pages.length - 1);
    if (last > first && start + count === this.starts[last]) last--;
    const size = this.starts[last + 1] - this.starts[first] - count + added.length;
    if (size < PAGE_MIN && last + 1 < this.pages.length) last++;
    else if (size < PAGE_MIN && first > 0) first--;
    const segments = [
      ...this.slice(this.starts[first], start),
      ...added,
      ...this.slice(start + count, this.starts[last + 1]),
    ];
    return Segments.ofPages(this.pages.toSpliced(first, last + 1 - first, ...pagesOf(segments)));
  }

  /** Applies the splices of a change. */
  apply(splices: readonly SplicedSegments[]): Segments {
    // deno-lint-ignore no-this-alias
    let result: Segments = this;
    for (let k = splices.length - 1; k >= 0; k--) {
      const { start, count, segments } = splices[k];
      result = result.splice(start, count, segments);
    }
    return result;
  }

  /** Replaces each segment of the pages that are `touched`; undefined removes it. Pages without a change stay. */
  map(change: (segment: Segment) => Segment | undefined, touched: (page: Page) => boolean = () => true): Segments {
    return this.mapPages((page) => {
      if (!touched(page)) return [page];
      let kept: Segment[] | undefined;
      page.segments.forEach((segment, k) => {
        const after = change(segment);
        if (after === segment && kept === undefined) return;
        kept ??= page.segments.slice(0, k);
        if (after !== undefined) kept.push(after);
      });
      return kept === undefined ? [page] : pagesOf(kept);
    });
  }

  /** Replaces pages. */
  mapPages(change: (page: Page) => readonly Page[]): Segments {
    let isChanged = false;
    const pages: Page[] = [];
    for (const page of this.pages) {
      const after = change(page);
      isChanged ||= after.length !== 1 || after[0] !== page;
      pages.push(...after);
    }
    return isChanged ? Segments.ofPages(pages) : this;
  }

  /** The splices of pages that make this sequence from `before`. Publishing a change asks several times. */
  differenceFrom(before: Segments): readonly SplicedPages[] {
    if (this.difference?.before.deref() !== before) {
      this.difference = { before: new WeakRef(before), splices: this.splicesFrom(before) };
    }
    return this.difference.splices;
  }

  private splicesFrom(before: Segments): SplicedPages[] {
    if (before === this) return [];
    const isSame = (a: number, b: number) => this.pages[a] === before.pages[b];
    // Pages that both sequences share are skipped at both ends. Shared pages between them are found by identity.
    let head = 0;
    const least = Math.min(this.pages.length, before.pages.length);
    while (head < least && isSame(head, head)) head++;
    let tail = 0;
    while (
      tail < least - head && isSame(this.pages.length - 1 - tail, before.pages.length - 1 - tail)
    ) tail++;
    const end = this.pages.length - tail, endBefore = before.pages.length - tail;
    if (head === end || head === endBefore) {
      return end === endBefore ? [] : [{ start: head, count: endBefore - head, pages: this.pages.slice(head, end) }];
    }
    const known = new Map<Page, number>();
    for (let k = head; k < endBefore; k++) known.set(before.pages[k], k);
    const splices: SplicedPages[] = [];
    let from = head, fromBefore = head;
    const add = (to: number, toBefore: number) => {
      const pages = this.pages.slice(from, to), count = toBefore - fromBefore;
      if (count > 0 || pages.length > 0) splices.push({ start: fromBefore, count, pages });
    };
    for (let k = head; k < end; k++) {
      const same = known.get(this.pages[k]);
      if (same === undefined || same < fromBefore) continue;
      add(k, same);
      from = k + 1;
      fromBefore = same + 1;
    }
    add(end, endBefore);
    return splices;
  }

  /** The page of a segment. For the index after the last segment, the number of pages. */
  private pageOf(index: number): number {
    return lastNotAbove(this.starts, this.pages.length, index);
  }
}

/** Applies splices of pages. */
export function splicePages<P>(before: readonly P[], splices: readonly SplicedPages<P>[]): readonly P[] {
  let pages = before;
  for (const { start, count, pages: added } of splices.toReversed()) pages = pages.toSpliced(start, count, ...added);
  return pages;
}

/** The last of `count + 1` ascending numbers that is not above `value`. */
function lastNotAbove(numbers: Float64Array, count: number, value: number): number {
  let from = 0, to = count;
  while (from < to) {
    const middle = (from + to + 1) >>> 1;
    if (numbers[middle] <= value) from = middle;
    else to = middle - 1;
  }
  return from;
}

/** Maximum number of segments like this one in a page. */
function pageMaxOf({ chunks }: Segment): number {
  return Math.max(PAGE_MIN, Math.min(PAGE_MAX, Math.floor(PAGE_CHUNKS / Math.max(1, chunks.length))));
}

function isFull({ count }: Page, added: readonly Segment[]): boolean {
  return count >= (added.length === 0 ? PAGE_MAX : pageMaxOf(added[0]));
}

function pagesOf(segments: readonly Segment[]): Page[] {
  if (segments.length === 0) return [];
  const max = pageMaxOf(segments[0]), count = Math.ceil(segments.length / max);
  const pages: Page[] = [];
  // Appended segments go into a new page when the last one is full. A page that grows in the middle is cut into halves.
  const size = count <= 2 ? Math.ceil(segments.length / count) : max;
  for (let from = 0; from < segments.length; from += size) pages.push(Page.of(segments.slice(from, from + size)));
  return pages;
}
