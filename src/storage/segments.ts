/**
 * The segments of a table: an immutable tree of lists of pages of segments. A change copies the pages that it touches and their lists,
 * and shares the rest, so its cost hardly depends on the number of segments. Two sequences are compared by their lists, and changed
 * lists by their pages. A partition is a part of the tree (`packing.ts`), so it can be taken out and put in as it is.
 */
import { assert } from "../assert.ts";
import { type Change, changedPages, isFullList, LIMITS, listsOf, newPages, pageMaxOf, pagesOf } from "./packing.ts";
import { type Bounds, formatOf, mayHave, newVersion, Page } from "./page.ts";
import { PageList } from "./page-list.ts";
import type { PartitionPart } from "./page-partitions.ts";
import type { Segment } from "./segment.ts";
import { difference, type Splice } from "./splices.ts";

export type { Segment } from "./segment.ts";

/** A list on disk, or a page of another list: what manifests and publications name. */
export type Part = Page | PageList;

/** Replaces `count` segments from index `start` on. The splices of a change are ascending, with indexes before the change. */
export interface SplicedSegments {
  start: number;
  count: number;
  segments: readonly Segment[];
}

/**
 * The state of a partition. Flushes and compaction store the same rows in other places, so they do not make another version. What was
 * made from the rows of a version holds for a later state of the table if the partition has the same version there, also after a
 * restart.
 */
export interface PartitionVersion {
  /** Its start. */
  readonly partition: bigint;
  /** Different for each state of the partition's rows; 0 if no row has changed since format 8. */
  readonly version: number;
  /** One of `PARTITION_FORMAT`. */
  readonly format: number;
  /** It has segments `first` … `end`-1 of the table. */
  readonly first: number;
  readonly end: number;
  /** Number of rows before it. */
  readonly firstRow: number;
  readonly rowCount: number;
  readonly timestampMin: bigint;
  readonly timestampMax: bigint;
}

export class Segments implements Iterable<Segment> {
  /** By list: the index of its first segment and the number of rows before it; behind the last list, the totals. */
  private readonly starts: Float64Array;
  private readonly firstRows: Float64Array;
  private difference: { before: Segments; splices: readonly Splice<PageList>[] } | undefined;
  private partsOfLists: readonly Part[] | undefined;

  private constructor(readonly lists: readonly PageList[]) {
    this.starts = new Float64Array(lists.length + 1);
    this.firstRows = new Float64Array(lists.length + 1);
    for (let k = 0; k < lists.length; k++) {
      this.starts[k + 1] = this.starts[k] + lists[k].count;
      this.firstRows[k + 1] = this.firstRows[k] + lists[k].rowCount;
    }
  }

  static readonly EMPTY = new Segments([]);

  static of(segments: readonly Segment[]): Segments {
    return Segments.ofLists(listsOf(newPages(segments), { isAppended: true }));
  }

  static ofLists(lists: readonly PageList[]): Segments {
    return lists.length === 0 ? Segments.EMPTY : new Segments(lists);
  }

  /** The parts of a manifest. */
  static ofParts(parts: readonly Part[]): Segments {
    const lists: PageList[] = [];
    for (let from = 0, to = 0; from < parts.length; from = to) {
      const part = parts[from];
      if (part instanceof PageList) {
        lists.push(part);
        to++;
        continue;
      }
      const pages: Page[] = [];
      for (; parts[to] instanceof Page; to++) pages.push(parts[to] as Page);
      const before = lists.at(-1)?.last.partition, after = parts[to]?.first.partition;
      lists.push(...listsOf(pages, { before, after, isAppended: true }));
    }
    return Segments.ofLists(lists);
  }

  /** Followed by the segments of another sequence. */
  concat(other: Segments): Segments {
    if (this.length === 0 || other.length === 0) return this.length === 0 ? other : this;
    const { lists } = this, last = lists[lists.length - 1], [next, ...rest] = other.lists;
    let pages = [...last.pages, ...next.pages];
    if (last.last.partition === next.first.partition) {
      // The rows of a partition are added to it.
      const [page, ...behind] = next.pages;
      const around = { before: lists.at(-2)?.last.partition, after: (behind[0] ?? rest[0])?.first.partition };
      pages = page.isOfOne && last.pages[last.pages.length - 1].isOfOne
        ? [...last.pages, page.withVersion(0, newVersion()), ...behind]
        : [...changedPages(last.pages, newChange(last.count, 0, page.segments, []), around), ...behind];
    }
    const around = { before: lists.at(-2)?.last.partition, after: rest[0]?.first.partition, isAppended: true };
    return Segments.ofLists([...lists.slice(0, -1), ...listsOf(pages, around, [last, next]), ...rest]);
  }

  get length(): number {
    return this.starts[this.lists.length];
  }

  get rowCount(): number {
    return this.firstRows[this.lists.length];
  }

  /** Where the first segment begins, and where the last one ends. */
  get bounds(): [first: Bounds, last: Bounds] | undefined {
    const { lists } = this;
    return lists.length === 0 ? undefined : [lists[0].first, lists[lists.length - 1].last];
  }

  /** Lists that are on disk, and the pages of the others. */
  get parts(): readonly Part[] {
    return this.partsOfLists ??= this.lists.flatMap((list): readonly Part[] =>
      list.extent === undefined ? list.pages : [list]
    );
  }

  *pages(): Iterable<Page> {
    for (const { pages } of this.lists) yield* pages;
  }

  /** From the end if negative, as `Array.at`. */
  at(index: number): Segment | undefined {
    const wanted = index < 0 ? index + this.length : index;
    if (wanted < 0 || wanted >= this.length) return undefined;
    const { page, start } = this.find(wanted);
    return page.segments[wanted - start];
  }

  *[Symbol.iterator](): Iterator<Segment> {
    for (const { segments } of this.pages()) yield* segments;
  }

  /** The segments of all pages with a chunk in memory. */
  *live(): Iterable<Segment> {
    for (const list of this.lists) {
      if (!list.isLive) continue;
      for (const page of list.pages) if (page.isLive) yield* page.segments;
    }
  }

  slice(from = 0, to = this.length): Segment[] {
    const end = Math.min(to, this.length);
    const found: Segment[] = [];
    for (let list = this.listOf(from); list < this.lists.length && this.starts[list] < end; list++) {
      let start = this.starts[list];
      for (const page of this.lists[list].pages) {
        if (start + page.count > from && start < end) {
          for (const segment of page.segments.slice(Math.max(0, from - start), end - start)) found.push(segment);
        }
        start += page.count;
      }
    }
    return found;
  }

  /** Index of the first segment that is not `before`. All segments in front of it must be. */
  search(before: (bounds: Bounds) => boolean): number {
    const { lists, starts } = this;
    const list = firstNot(lists.length, (k) => before(lists[k].last));
    if (list === lists.length) return this.length;
    if (!before(lists[list].first)) return starts[list];
    const { pages } = lists[list];
    const page = firstNot(pages.length, (k) => before(pages[k].last));
    let start = starts[list];
    for (let k = 0; k < page; k++) start += pages[k].count;
    if (!before(pages[page].first)) return start;
    const { segments } = pages[page];
    return start + firstNot(segments.length, (k) => before(segments[k]));
  }

  /** Number of rows before segment `index`. */
  firstRowOf(index: number): number {
    if (index === this.length) return this.rowCount;
    const { page, start, firstRow } = this.find(index);
    let row = firstRow;
    if (index === start) return row;
    const { segments } = page;
    for (let k = 0; k < index - start; k++) row += segments[k].rowCount;
    return row;
  }

  /** The segment that has row `row` of all rows. */
  indexOfRow(row: number): { index: number; firstRow: number } {
    assert(row >= 0 && row < this.rowCount, "the row exists");
    const list = lastNotAbove(this.firstRows, this.lists.length, row);
    let index = this.starts[list], firstRow = this.firstRows[list];
    for (const page of this.lists[list].pages) {
      if (row >= firstRow + page.rowCount) {
        index += page.count;
        firstRow += page.rowCount;
        continue;
      }
      for (const { rowCount } of page.segments) {
        if (row < firstRow + rowCount) break;
        index++;
        firstRow += rowCount;
      }
      break;
    }
    return { index, firstRow };
  }

  /** The segment with this uid. */
  segmentByUid(uid: number): Segment | undefined {
    const wanted = new Set([uid]);
    for (const list of this.lists) {
      for (const page of mayHave(list, [uid]) ? list.pages : []) {
        if (mayHave(page, [uid]) && page.hasOneOf(wanted)) return page.segments.find((segment) => segment.uid === uid);
      }
    }
  }

  /** The number of rows before each segment with one of these uids, which are in ascending order, and its own number of rows. */
  placesOf(uids: readonly number[]): Map<number, { firstRow: number; rowCount: number }> {
    const places = new Map<number, { firstRow: number; rowCount: number }>();
    const wanted = new Set(uids);
    this.lists.forEach((list, k) => {
      if (places.size === wanted.size || !mayHave(list, uids)) return;
      let next = this.firstRows[k];
      for (const page of list.pages) {
        let firstRow = next;
        next += page.rowCount;
        if (!mayHave(page, uids) || !page.hasOneOf(wanted)) continue;
        for (const { uid, rowCount } of page.segments) {
          if (wanted.has(uid)) places.set(uid, { firstRow, rowCount });
          firstRow += rowCount;
        }
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
    const exchanged = count === 1 && added.length === 1 ? this.exchanged(start, added[0]) : undefined;
    if (exchanged !== undefined) return exchanged;
    const { lists, starts } = this;
    const change = this.changeOf(start, count, added);
    // A list that the change only borders on is among them: its last page may be extended.
    let first = this.listOf(Math.max(0, start - 1)), end = this.listOf(Math.min(start + count, this.length - 1)) + 1;
    const partitionBefore = (list: number) => lists[list - 1]?.last.partition;
    const changed = () => {
      // What goes as a whole is not read.
      const isGone = (k: number) => starts[k] >= start && starts[k + 1] <= start + count;
      let gone = 0;
      const pages: Page[] = [];
      for (let k = first; k < end; k++) {
        if (isGone(k)) gone += lists[k].count;
        else pages.push(...lists[k].pages);
      }
      const around = {
        before: partitionBefore(first),
        after: lists[end]?.first.partition,
        isAppended: end === lists.length,
      };
      return changedPages(pages, { ...change, start: start - starts[first], count: count - gone }, around);
    };
    let pages = changed();
    const isShort = pages.length > 0 && pages.length < LIMITS.listMin && count > added.length;
    if (isShort && end - first < lists.length) {
      if (end < lists.length) end++;
      else first--;
      pages = changed();
    }
    const known = lists.slice(first, end);
    // A full list stays as it is when pages come in front of it or behind it.
    let head = first, tail = end;
    while (head < tail && isFullList(lists[head]) && beginsWith(pages, lists[head])) {
      pages = pages.slice(lists[head].pages.length);
      head++;
    }
    while (head < tail && isFullList(lists[tail - 1]) && endsWith(pages, lists[tail - 1])) {
      pages = pages.slice(0, pages.length - lists[tail - 1].pages.length);
      tail--;
    }
    const around = {
      before: partitionBefore(head),
      after: lists[tail]?.first.partition,
      isAppended: tail === lists.length,
    };
    return Segments.ofLists(lists.toSpliced(head, tail - head, ...listsOf(pages, around, known)));
  }

  /**
   * With another segment at an index. Most commits only extend a segment: then its page and its list have as many segments and the same
   * partitions as before. Undefined if that may not be so.
   */
  private exchanged(index: number, segment: Segment): Segments | undefined {
    const { list, k, page, start } = this.find(index);
    const before = page.segments[index - start], version = page.versions[index - start];
    if (before.partition !== segment.partition || page.count > pageMaxOf(segment)) return undefined;
    // A page of an earlier format may mix parts of partitions.
    if (version === 0) return undefined;
    const changed = page.with(index - start, segment, hasSameRows(before, segment) ? version : newVersion());
    const { lists } = this;
    return Segments.ofLists(lists.with(list, PageList.of(lists[list].pages.with(k, changed))));
  }

  private changeOf(start: number, count: number, added: readonly Segment[]): Change {
    const before = count === added.length ? this.slice(start, start + count) : undefined;
    if (before?.every((segment, k) => hasSameRows(segment, added[k]))) {
      const versions = before.map((_, k) => this.versionAt(start + k));
      return { start, count, added, versions, version: 0, removed: [] };
    }
    const ends = count === 0 ? [] : [this.partitionAt(start), this.partitionAt(start + count - 1)];
    return newChange(start, count, added, ends[0] === ends[1] ? ends.slice(1) : ends);
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

  /** Replaces each segment of the lists and pages that are `touched`; undefined removes it. Pages without a change stay. */
  map(change: (segment: Segment) => Segment | undefined, touched: (part: Part) => boolean = () => true): Segments {
    const version = newVersion(), removed = new Set<bigint>();
    let result = this.mapPages((page) => {
      let kept: Segment[] | undefined;
      let versions: number[] = [];
      page.segments.forEach((segment, k) => {
        const after = change(segment);
        if (after === segment && kept === undefined) return;
        if (kept === undefined) {
          kept = page.segments.slice(0, k);
          versions = page.versions.slice();
        }
        if (after === undefined) {
          removed.add(segment.partition);
          return;
        }
        versions[kept.length] = hasSameRows(segment, after) ? versions[k] : version;
        kept.push(after);
      });
      return kept === undefined ? [page] : pagesOf(kept, versions);
    }, touched);
    for (const partition of removed) result = result.renewed(partition, version);
    return result;
  }

  /** The same for segments with these uids, which are in ascending order. */
  mapSegments(uids: readonly number[], change: (segment: Segment) => Segment | undefined): Segments {
    const wanted = new Set(uids);
    return this.map(
      (segment) => wanted.has(segment.uid) ? change(segment) : segment,
      (part) => mayHave(part, uids) && (part instanceof PageList || part.hasOneOf(wanted)),
    );
  }

  /** Replaces the pages that are `touched`, in lists that are. */
  mapPages(change: (page: Page) => readonly Page[], touched: (part: Part) => boolean = () => true): Segments {
    return this.mapLists((list) => {
      if (!touched(list)) return [list];
      let isChanged = false;
      const pages: Page[] = [];
      for (const page of list.pages) {
        const after = touched(page) ? change(page) : [page];
        isChanged ||= after.length !== 1 || after[0] !== page;
        pages.push(...after);
      }
      return isChanged ? listsOf(pages, { isAppended: true }) : [list];
    });
  }

  /** Replaces lists. */
  mapLists(change: (list: PageList, index: number) => readonly PageList[]): Segments {
    let isChanged = false;
    const lists = this.lists.flatMap((list, k) => {
      const after = change(list, k);
      isChanged ||= after.length !== 1 || after[0] !== list;
      return after;
    });
    return isChanged ? Segments.ofLists(lists) : this;
  }

  /**
   * The splices of lists that make this sequence from `before`. Publishing a change asks several times, so the last answer is kept,
   * and `before` with it. What `before` has kept is forgotten: older sequences must not stay.
   */
  differenceFrom(before: Segments): readonly Splice<PageList>[] {
    if (this.difference?.before === before) return this.difference.splices;
    const splices = difference(this.lists, before.lists);
    before.difference = undefined;
    if (this !== Segments.EMPTY) this.difference = { before, splices };
    return splices;
  }

  /** The pages that are not in `before`, and those that they replace there, by place. */
  replacedPages(before: Segments): { pages: readonly Page[]; replaced: readonly Page[] }[] {
    return this.differenceFrom(before).flatMap(({ start, count, added }) => {
      const pagesOfLists = (lists: readonly PageList[]) => lists.flatMap(({ pages }) => pages);
      const pages = pagesOfLists(before.lists.slice(start, start + count));
      return difference(pagesOfLists(added), pages).map(({ start, count, added }) => (
        { pages: added, replaced: pages.slice(start, start + count) }
      ));
    });
  }

  /** The partition with this start. At most one page is read for it. */
  partition(partition: bigint): PartitionVersion | undefined {
    for (const found of this.partitionsFrom(partition)) return found.partition === partition ? found : undefined;
  }

  /** All partitions, in order. */
  *partitions(): Iterable<PartitionVersion> {
    const { bounds } = this;
    if (bounds !== undefined) yield* this.partitionsFrom(bounds[0].partition);
  }

  /**
   * The partitions from this one on. Lists and pages of one partition are not read, and of others only the words of the
   * partitions.
   */
  private *partitionsFrom(start: bigint): Iterable<PartitionVersion> {
    const { lists } = this;
    let list = firstNot(lists.length, (k) => lists[k].last.partition < start);
    let first = this.starts[list], firstRow = this.firstRows[list];
    let found: PartitionVersion | undefined;
    for (; list < lists.length; list++) {
      const parts: readonly Part[] = lists[list].isOfOne ? [lists[list]] : lists[list].pages;
      const begin = firstNot(parts.length, (k) => parts[k].last.partition < start);
      for (let k = 0; k < parts.length; k++) {
        const part = parts[k];
        if (k < begin) {
          first += part.count;
          firstRow += part.rowCount;
          continue;
        }
        // Before the part is read: it may not be needed.
        if (found !== undefined && found.partition !== part.first.partition) {
          yield found;
          found = undefined;
        }
        for (const next of part.isOfOne ? [wholePart(part)] : (part as Page).partitions) {
          if (found !== undefined && found.partition !== next.start) yield found;
          if (next.start >= start) {
            found = found?.partition === next.start ? extended(found, next) : versionOf(next, first, firstRow);
          }
          first += next.segmentCount;
          firstRow += next.rowCount;
        }
      }
    }
    if (found !== undefined) yield found;
  }

  /** The start of a segment's partition. */
  partitionAt(index: number): bigint {
    const list = this.lists[this.listOf(index)];
    if (list.isOfOne) return list.first.partition;
    const { page, start } = this.find(index);
    if (page.isOfOne) return page.first.partition;
    let left = index - start;
    return page.partitions.find(({ segmentCount }) => (left -= segmentCount) < 0)!.start;
  }

  /** The segments of a partition of this sequence. Its own lists and pages are shared. */
  segmentsOf({ first, end }: PartitionVersion): Segments {
    const lists: PageList[] = [];
    for (let k = this.listOf(first); k < this.lists.length && this.starts[k] < end; k++) {
      let start = this.starts[k];
      if (start >= first && this.starts[k + 1] <= end) {
        lists.push(this.lists[k]);
        continue;
      }
      const pages: Page[] = [];
      for (const page of this.lists[k].pages) {
        const from = Math.max(0, first - start), to = Math.min(page.count, end - start);
        if (to - from === page.count) pages.push(page);
        else if (from < to) pages.push(Page.of(page.segments.slice(from, to), page.versions.slice(from, to)));
        start += page.count;
      }
      lists.push(PageList.of(pages));
    }
    return Segments.ofLists(lists);
  }

  /** Puts a partition in, which is not there. Lists and pages of its own are shared. */
  withPartition(added: Segments): Segments {
    const [{ partition }] = added.bounds!;
    const start = this.search((bounds) => bounds.partition < partition);
    assert(start === this.length || this.partitionAt(start) > partition, "the partition is not there");
    // Few segments share a page with others.
    if (added.lists.length === 1 && added.lists[0].pages.length === 1) return this.splice(start, 0, added.slice());
    if (this.length === 0) return added;
    const { lists, starts } = this, index = Math.min(this.listOf(start), lists.length - 1), list = lists[index];
    const left: Page[] = [], right: Page[] = [];
    let at = starts[index];
    for (const page of list.pages) {
      const count = Math.min(page.count, Math.max(0, start - at));
      if (count === page.count) left.push(page);
      else if (count === 0) right.push(page);
      else {
        left.push(Page.of(page.segments.slice(0, count), page.versions.slice(0, count)));
        right.push(Page.of(page.segments.slice(count), page.versions.slice(count)));
      }
      at += page.count;
    }
    const around = { before: lists[index - 1]?.last.partition, after: lists[index + 1]?.first.partition };
    const parts = added.lists.length === 1
      ? listsOf([...left, ...added.lists[0].pages, ...right], around, [list])
      : [...listsOf(left, around, [list]), ...added.lists, ...listsOf(right, around, [list])];
    return Segments.ofLists(lists.toSpliced(index, 1, ...parts));
  }

  private versionAt(index: number): number {
    const { page, start } = this.find(index);
    return page.versions[index - start];
  }

  /** Gives a partition another version, if it is there. */
  private renewed(partition: bigint, version: number): Segments {
    const first = this.search((bounds) => bounds.partition < partition);
    if (first === this.length || this.partitionAt(first) !== partition) return this;
    const { page, start } = this.find(first), index = this.listOf(first), list = this.lists[index];
    const pages = list.pages.map((other) => other === page ? page.withVersion(first - start, version) : other);
    return Segments.ofLists(this.lists.toSpliced(index, 1, PageList.of(pages)));
  }

  /** The list of a segment. For the index after the last segment, the number of lists. */
  private listOf(index: number): number {
    return lastNotAbove(this.starts, this.lists.length, index);
  }

  /**
   * The page of a segment, which is page `k` of a list, the index of the page's first segment, and the number of rows before it.
   */
  private find(index: number): { list: number; k: number; page: Page; start: number; firstRow: number } {
    const list = this.listOf(index), { pages } = this.lists[list];
    let start = this.starts[list], firstRow = this.firstRows[list], k = 0;
    while (index >= start + pages[k].count) {
      start += pages[k].count;
      firstRow += pages[k].rowCount;
      k++;
    }
    return { list, k, page: pages[k], start, firstRow };
  }
}

/** The first index for which `before` is false, or `count`. It must be true for all earlier ones. */
function firstNot(count: number, before: (index: number) => boolean): number {
  let from = 0, to = count;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (before(middle)) from = middle + 1;
    else to = middle;
  }
  return from;
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

/** What a list or a page of one partition has of it. */
export function wholePart(part: Part): Omit<PartitionPart, "files"> {
  const { first, last, version, rowCount, count } = part;
  return {
    start: first.partition,
    version,
    rowCount,
    timestampMin: first.timestampMin,
    timestampMax: last.timestampMax,
    segmentCount: count,
    format: formatOf(part),
  };
}

function versionOf(part: Omit<PartitionPart, "files">, first: number, firstRow: number): PartitionVersion {
  const { start: partition, version, format, rowCount, timestampMin, timestampMax, segmentCount } = part;
  const end = first + segmentCount;
  return { partition, version, format, first, end, firstRow, rowCount, timestampMin, timestampMax };
}

/** With what follows of the partition. */
function extended(found: PartitionVersion, next: Omit<PartitionPart, "files">): PartitionVersion {
  const { version, rowCount, timestampMax, segmentCount } = next;
  return {
    ...found,
    version: Math.max(found.version, version),
    end: found.end + segmentCount,
    rowCount: found.rowCount + rowCount,
    timestampMax,
  };
}

/** True if they are the same segment, in other places at most. */
function hasSameRows(a: Segment, b: Segment): boolean {
  return a.uid === b.uid && a.rowCount === b.rowCount && a.partition === b.partition;
}

function newChange(start: number, count: number, added: readonly Segment[], removed: readonly bigint[]): Change {
  return { start, count, added, version: newVersion(), removed };
}

/** Pages behind them do not belong to the same partition, unless the list has no other one. */
function beginsWith(pages: readonly Page[], list: PageList): boolean {
  const { length } = list.pages;
  return length <= pages.length && list.pages.every((page, k) => page === pages[k]) &&
    (list.isOfOne || pages[length]?.first.partition !== list.last.partition);
}

function endsWith(pages: readonly Page[], list: PageList): boolean {
  const start = pages.length - list.pages.length;
  return start >= 0 && list.pages.every((page, k) => page === pages[start + k]) &&
    (list.isOfOne || pages[start - 1]?.last.partition !== list.first.partition);
}
