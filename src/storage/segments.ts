/**
 * The segments of a table: an immutable tree of lists of pages of segments. A change copies the pages that it touches and their lists,
 * and shares the rest, so its cost hardly depends on the number of segments. Two sequences are compared by their lists, and changed
 * lists by their pages.
 */
import { assert } from "../assert.ts";
import { type Bounds, mayHave, Page } from "./page.ts";
import { PageList } from "./page-list.ts";
import type { Segment } from "./segment.ts";
import { difference, type Splice } from "./splices.ts";

export type { Segment } from "./segment.ts";

/** Sizes of pages and lists. Tests set smaller ones. */
export const LIMITS = {
  /** A page has about this many chunks at most: it is copied for each change of one of its segments. */
  pageChunks: 640,
  pageMin: 8,
  pageMax: 128,
  /** Maximum number of pages of a list. */
  listMax: 64,
  /** A list with fewer pages is joined to a neighbour. */
  listMin: 8,
};

/** A list on disk, or a page of another list: what manifests and publications name. */
export type Part = Page | PageList;

/** Replaces `count` segments from index `start` on. The splices of a change are ascending, with indexes before the change. */
export interface SplicedSegments {
  start: number;
  count: number;
  segments: readonly Segment[];
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
    return Segments.ofLists(listsOf(pagesOf(segments)));
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
      lists.push(...listsOf(pages));
    }
    return Segments.ofLists(lists);
  }

  /** Followed by the segments of another sequence. */
  concat({ lists }: Segments): Segments {
    const last = this.lists.at(-1);
    if (last === undefined || lists.length === 0) return Segments.ofLists([...this.lists, ...lists]);
    const joined = listsOf([...last.pages, ...lists[0].pages]);
    return Segments.ofLists([...this.lists.slice(0, -1), ...joined, ...lists.slice(1)]);
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
        if (!mayHave(page, uids)) continue;
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
    const { lists, starts } = this;
    // A list that the change only borders on is among them: its last page may be extended.
    let first = this.listOf(Math.max(0, start - 1)), end = this.listOf(Math.min(start + count, this.length - 1)) + 1;
    const pagesOfLists = () => lists.slice(first, end).flatMap(({ pages }) => pages);
    let pages = splicedPages(pagesOfLists(), start - starts[first], count, added);
    const isShort = pages.length > 0 && pages.length < LIMITS.listMin && count > added.length;
    if (isShort && end - first < lists.length) {
      if (end < lists.length) end++;
      else first--;
      pages = splicedPages(pagesOfLists(), start - starts[first], count, added);
    }
    // A full list stays as it is when pages come in front of it or behind it.
    let head = first, tail = end;
    while (head < tail && isFullList(lists[head]) && beginsWith(pages, lists[head].pages)) {
      pages = pages.slice(lists[head].pages.length);
      head++;
    }
    while (head < tail && isFullList(lists[tail - 1]) && endsWith(pages, lists[tail - 1].pages)) {
      pages = pages.slice(0, pages.length - lists[tail - 1].pages.length);
      tail--;
    }
    return Segments.ofLists(lists.toSpliced(head, tail - head, ...listsOf(pages)));
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
    return this.mapPages((page) => {
      let kept: Segment[] | undefined;
      page.segments.forEach((segment, k) => {
        const after = change(segment);
        if (after === segment && kept === undefined) return;
        kept ??= page.segments.slice(0, k);
        if (after !== undefined) kept.push(after);
      });
      return kept === undefined ? [page] : pagesOf(kept);
    }, touched);
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
      return isChanged ? listsOf(pages) : [list];
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

  /** The list of a segment. For the index after the last segment, the number of lists. */
  private listOf(index: number): number {
    return lastNotAbove(this.starts, this.lists.length, index);
  }

  /** The page of a segment, the index of the page's first segment, and the number of rows before it. */
  private find(index: number): { page: Page; start: number; firstRow: number } {
    const list = this.listOf(index), { pages } = this.lists[list];
    let start = this.starts[list], firstRow = this.firstRows[list], k = 0;
    while (index >= start + pages[k].count) {
      start += pages[k].count;
      firstRow += pages[k].rowCount;
      k++;
    }
    return { page: pages[k], start, firstRow };
  }
}

/** Replaces `count` segments of pages from index `start` on. */
function splicedPages(pages: readonly Page[], start: number, count: number, added: readonly Segment[]): Page[] {
  let first = 0, before = 0;
  while (first + 1 < pages.length && before + pages[first].count <= start) before += pages[first++].count;
  // At the end of a page its tail is extended, so that not every append creates a page.
  if (first > 0 && start === before && !isFull(pages[first - 1], added)) before -= pages[--first].count;
  let end = first, covered = before;
  while (end < pages.length && (end === first || covered < start + count)) covered += pages[end++].count;
  // Behind a full page a new one begins.
  if (start === covered && isFull(pages[end - 1], added)) {
    return [...pages.slice(0, end), ...pagesOf(added), ...pages.slice(end)];
  }
  if (count > added.length && covered - before - count + added.length < LIMITS.pageMin) {
    if (end < pages.length) covered += pages[end++].count;
    else if (first > 0) before -= pages[--first].count;
  }
  const segments = pages.slice(first, end).flatMap((page) => page.segments);
  return [
    ...pages.slice(0, first),
    ...pagesOf([...segments.slice(0, start - before), ...added, ...segments.slice(start - before + count)]),
    ...pages.slice(end),
  ];
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

/** Maximum number of segments like this one in a page. */
function pageMaxOf({ chunks }: Segment): number {
  const { pageMin, pageMax, pageChunks } = LIMITS;
  return Math.max(pageMin, Math.min(pageMax, Math.floor(pageChunks / Math.max(1, chunks.length))));
}

function isFull({ count }: Page, added: readonly Segment[]): boolean {
  return count >= (added.length === 0 ? LIMITS.pageMax : pageMaxOf(added[0]));
}

function isFullList(list: PageList): boolean {
  return list.pages.length >= LIMITS.listMax;
}

function beginsWith(pages: readonly Page[], others: readonly Page[]): boolean {
  return others.length <= pages.length && others.every((page, k) => page === pages[k]);
}

function endsWith(pages: readonly Page[], others: readonly Page[]): boolean {
  const start = pages.length - others.length;
  return start >= 0 && others.every((page, k) => page === pages[start + k]);
}

function pagesOf(segments: readonly Segment[]): Page[] {
  if (segments.length === 0) return [];
  return cut(segments, pageMaxOf(segments[0])).map((part) => Page.of(part));
}

function listsOf(pages: readonly Page[]): PageList[] {
  return cut(pages, LIMITS.listMax).map((part) => PageList.of(part));
}

/** What grows in the middle is cut into halves, so that both can grow. Many items are appended: all but the last part are full. */
function cut<T>(items: readonly T[], max: number): T[][] {
  const count = Math.ceil(items.length / max), size = count <= 2 ? Math.ceil(items.length / count) : max;
  const parts: T[][] = [];
  for (let from = 0; from < items.length; from += size) parts.push(items.slice(from, from + size));
  return parts;
}
