/**
 * Which segments are in a page together, and which pages in a list. A page has whole partitions, or a part of one partition; so has a
 * list. So a partition of many segments has pages and lists of its own, which stay as they are when other partitions change, and many
 * small partitions share a page. Pages of earlier versions mix parts of partitions; a change separates those that it touches.
 */
import { newVersion, Page } from "./page.ts";
import { PageList } from "./page-list.ts";
import type { Segment } from "./segment.ts";

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

/** What is around segments or pages in the table. */
export interface Around {
  /** Partitions of the segments before and behind them. */
  readonly before?: bigint;
  readonly after?: bigint;
  /** They are appended to the table: pages and lists in front of them are filled, because nothing more is added there. */
  readonly isAppended?: boolean;
}

/** A change of segments: `count` of them from index `start` on are replaced by `added`. */
export interface Change {
  readonly start: number;
  readonly count: number;
  readonly added: readonly Segment[];
  /** Set if the new segments have the same rows: their versions, which they keep. */
  readonly versions?: readonly number[];
  /** Otherwise the number of the change, and the partitions of the first and of the last segment that goes. */
  readonly version: number;
  readonly removed: readonly bigint[];
}

export function pagesOf(
  segments: readonly Segment[],
  versions: readonly number[] | undefined,
  around: Around = {},
): Page[] {
  if (segments.length === 0) return [];
  const ranges = rangesOf(segments.length, pageMaxOf(segments[0]), around, (k) => segments[k], (k) => segments[k]);
  return ranges.map(([from, to]) => Page.of(segments.slice(from, to), versions?.slice(from, to)));
}

export function newPages(segments: readonly Segment[]): Page[] {
  return pagesOf(segments, new Array<number>(segments.length).fill(newVersion()), { isAppended: true });
}

/** Parts that are lists of `known` stay these objects. */
export function listsOf(pages: readonly Page[], around: Around = {}, known: readonly PageList[] = []): PageList[] {
  if (pages.length === 0) return [];
  const ranges = rangesOf(pages.length, LIMITS.listMax, around, (k) => pages[k].first, (k) => pages[k].last);
  return ranges.map(([from, to]) => {
    const part = pages.slice(from, to);
    return known.find((list) => list.isRead && isSame(list.pages, part)) ?? PageList.of(part);
  });
}

export function isFullList(list: PageList): boolean {
  return list.pages.length >= LIMITS.listMax;
}

/** Applies a change to pages that lie one after the other, of which the first segment has index 0. */
export function changedPages(pages: readonly Page[], change: Change, around: Around): Page[] {
  const { start, count, added } = change;
  if (pages.length === 0) return pagesOf(added, versionsOf(change), around);
  const before = (k: number) => k > 0 ? pages[k - 1].last.partition : around.before;
  const after = (k: number) => k < pages.length ? pages[k].first.partition : around.after;
  // The page of segment `start`, or behind the last one.
  let first = 0, firstStart = 0;
  while (first < pages.length && firstStart + pages[first].count <= start) firstStart += pages[first++].count;
  let end = first, endStart = firstStart;
  while (end < pages.length && endStart < start + count) endStart += pages[end++].count;
  const includePrevious = () => firstStart -= pages[--first].count;
  const includeNext = () => endStart += pages[end++].count;
  if (first === end && added.length > 0) {
    // They are inserted.
    const [left, right] = [added[0].partition, added[added.length - 1].partition];
    const isOpen = (k: number) => !isFull(pages[k], added);
    if (start > firstStart) includeNext();
    else if (first > 0 && isOpen(first - 1) && (before(first) === left || isWhole(pages, first - 1, around))) {
      includePrevious();
    } else if (
      end < pages.length && isOpen(end) &&
      (after(end) === right || (before(first) !== left && isWhole(pages, end, around)))
    ) includeNext();
  } else if (first < end && count > added.length && endStart - firstStart - count + added.length < LIMITS.pageMin) {
    if (end < pages.length) includeNext();
    else if (first > 0) includePrevious();
  }
  // A partition that has a part of a page must not continue outside.
  const kept = () => keptSegments(pages.slice(first, end), firstStart, change);
  let { segments, versions } = kept();
  for (;;) {
    if (segments.length === 0) break;
    if (first > 0 && before(first) === segments[0].partition && !pages[first - 1].isOfOne) includePrevious();
    else if (end < pages.length && after(end) === segments[segments.length - 1].partition && !pages[end].isOfOne) {
      includeNext();
    } else break;
    ({ segments, versions } = kept());
  }
  const result = [...pages.slice(0, first)], rest = pages.slice(end);
  for (const partition of change.removed) {
    if (change.versions !== undefined) break;
    const k = segments.findIndex((segment) => segment.partition === partition);
    if (k >= 0) versions[k] = change.version;
    else if (first > 0 && before(first) === partition) {
      result[first - 1] = result[first - 1].withVersion(result[first - 1].count - 1, change.version);
    } else if (rest.length > 0 && after(end) === partition) rest[0] = rest[0].withVersion(0, change.version);
  }
  const isAppended = around.isAppended && rest.length === 0;
  return [...result, ...pagesOf(segments, versions, { before: before(first), after: after(end), isAppended }), ...rest];
}

/** Several parts of at most `max` items, of which neighbours may belong together: those that go on where the ones before them end. */
function rangesOf(
  count: number,
  max: number,
  { before, after, isAppended = false }: Around,
  firstOf: (k: number) => { partition: bigint },
  lastOf: (k: number) => { partition: bigint },
): [from: number, to: number][] {
  const isOpenBefore = before === firstOf(0).partition, isOpenAfter = after === lastOf(count - 1).partition;
  if (count <= max && !isOpenBefore && !isOpenAfter) return [[0, count]];
  if (firstOf(0).partition === lastOf(count - 1).partition) return cut([[0, count]], max, isAppended);
  const ranges: [number, number][] = [];
  /** Whole partitions. */
  let whole: [number, number][] = [];
  const endWhole = (isLast: boolean) => {
    ranges.push(...cut(whole, max, isAppended && isLast));
    whole = [];
  };
  for (let from = 0, to = 0; from < count; from = to) {
    to = from + 1;
    while (to < count && lastOf(to - 1).partition === firstOf(to).partition) to++;
    const isPart = (isOpenBefore && from === 0) || (isOpenAfter && to === count);
    if (!isPart && to - from <= max) {
      whole.push([from, to]);
      continue;
    }
    endWhole(false);
    ranges.push(...cut([[from, to]], max, isAppended && to === count));
  }
  endWhole(true);
  return ranges;
}

/**
 * Cuts ranges that follow one another into parts of at most `max` items, between ranges unless there is only one. What grows in the
 * middle is cut into halves, so that both can grow. Many items are appended, or if `fills`: all but the last part are full.
 */
function cut(ranges: readonly [number, number][], max: number, fills: boolean): [from: number, to: number][] {
  if (ranges.length === 0) return [];
  const start = ranges[0][0], end = ranges[ranges.length - 1][1], count = Math.ceil((end - start) / max);
  const size = fills || count > 2 ? max : Math.ceil((end - start) / count);
  const parts: [number, number][] = [];
  if (ranges.length === 1) {
    for (let from = start; from < end; from += size) parts.push([from, Math.min(end, from + size)]);
    return parts;
  }
  let from = start;
  for (const [next, to] of ranges) {
    if (next > from && (to - from > max || next - from >= size)) {
      parts.push([from, next]);
      from = next;
    }
  }
  return [...parts, [from, end]];
}

/** What a change leaves of these pages, of which the first segment has index `at`, and the new segments. */
function keptSegments(
  pages: readonly Page[],
  at: number,
  change: Change,
): { segments: Segment[]; versions: number[] } {
  const { start, count, added } = change;
  const segments: Segment[] = [], versions: number[] = [];
  const keep = (page: Page, from: number, to: number) => {
    if (from === to) return;
    for (let k = from; k < to; k++) {
      segments.push(page.segments[k]);
      versions.push(page.versions[k]);
    }
  };
  const add = () => {
    for (const segment of added) segments.push(segment);
    for (const version of versionsOf(change)) versions.push(version);
    isAdded = true;
  };
  let isAdded = false;
  for (const page of pages) {
    const from = Math.min(page.count, Math.max(0, start - at)),
      to = Math.min(page.count, Math.max(0, start + count - at));
    keep(page, 0, from);
    if (!isAdded && start <= at + page.count) add();
    keep(page, to, page.count);
    at += page.count;
  }
  if (!isAdded) add();
  return { segments, versions };
}

function versionsOf({ added, versions, version }: Change): readonly number[] {
  return versions ?? new Array<number>(added.length).fill(version);
}

/** Maximum number of segments like this one in a page. */
export function pageMaxOf({ chunks }: Segment): number {
  const { pageMin, pageMax, pageChunks } = LIMITS;
  return Math.max(pageMin, Math.min(pageMax, Math.floor(pageChunks / Math.max(1, chunks.length))));
}

function isFull({ count }: Page, added: readonly Segment[]): boolean {
  return count >= (added.length === 0 ? LIMITS.pageMax : pageMaxOf(added[0]));
}

/** No partition of page `k` continues outside. */
function isWhole(pages: readonly Page[], k: number, around: Around): boolean {
  const before = k === 0 ? around.before : pages[k - 1].last.partition;
  const after = k + 1 === pages.length ? around.after : pages[k + 1].first.partition;
  return before !== pages[k].first.partition && after !== pages[k].last.partition;
}

function isSame(pages: readonly Page[], others: readonly Page[]): boolean {
  return pages.length === others.length && pages.every((page, k) => page === others[k]);
}
