/**
 * An immutable sequence of segments in pages. A change copies the pages that it touches and the list of pages, and shares
 * the rest, so its cost hardly depends on the number of segments. Two sequences are compared by their pages.
 */
import { assert } from "../errors.ts";

/** Maximum number of segments of a page. A larger page is split. */
const PAGE_MAX = 512;
/** A smaller page is joined with a neighbour when it changes. */
const PAGE_MIN = 64;

interface Sized {
  readonly rowCount: number;
}

export interface Page<S extends Sized> {
  readonly segments: readonly S[];
  readonly rowCount: number;
}

/** Replaces `count` segments from index `start` on. The splices of a change are ascending, with indexes before the change. */
export interface SplicedSegments<S> {
  start: number;
  count: number;
  segments: readonly S[];
}

export class Segments<S extends Sized> implements Iterable<S> {
  /**
   * For each page, the index of its first segment and the number of rows before it. After the last page, the totals.
   */
  private readonly starts: Float64Array;
  private readonly firstRows: Float64Array;

  private constructor(readonly pages: readonly Page<S>[]) {
    this.starts = new Float64Array(pages.length + 1);
    this.firstRows = new Float64Array(pages.length + 1);
    for (let k = 0; k < pages.length; k++) {
      this.starts[k + 1] = this.starts[k] + pages[k].segments.length;
      this.firstRows[k + 1] = this.firstRows[k] + pages[k].rowCount;
    }
  }

  static readonly EMPTY = new Segments<never>([]);

  static of<S extends Sized>(segments: readonly S[]): Segments<S> {
    return segments.length === 0 ? Segments.EMPTY : new Segments(pagesOf(segments));
  }

  get length(): number {
    return this.starts[this.pages.length];
  }

  get rowCount(): number {
    return this.firstRows[this.pages.length];
  }

  /** Negative indices count from the end, as in `Array.at`. */
  at(index: number): S | undefined {
    const from = index < 0 ? index + this.length : index;
    if (from < 0 || from >= this.length) return undefined;
    const page = this.pageOf(from);
    return this.pages[page].segments[from - this.starts[page]];
  }

  *[Symbol.iterator](): Iterator<S> {
    for (const { segments } of this.pages) yield* segments;
  }

  slice(from = 0, to = this.length): S[] {
    const end = Math.min(to, this.length);
    const found: S[] = [];
    for (let page = this.pageOf(from); page < this.pages.length && this.starts[page] < end; page++) {
      const { segments } = this.pages[page], start = this.starts[page];
      if (from <= start && start + segments.length <= end) { for (const segment of segments) found.push(segment); }
      else found.push(...segments.slice(Math.max(0, from - start), end - start));
    }
    return found;
  }

  /** The first index whose segment is not `before`. `before` must hold for all segments before it. */
  search(before: (segment: S) => boolean): number {
    let from = 0, to = this.pages.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (before(this.pages[middle].segments.at(-1)!)) from = middle + 1;
      else to = middle;
    }
    if (from === this.pages.length) return this.length;
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
    if (page === this.pages.length) return row;
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

  with(index: number, segment: S): Segments<S> {
    return this.splice(index, 1, [segment]);
  }

  splice(start: number, count: number, added: readonly S[]): Segments<S> {
    if (count === 0 && added.length === 0) return this;
    assert(start >= 0 && start + count <= this.length, "the segments exist");
    if (this.length === 0) return Segments.of(added);
    // At the end of a page its tail is extended, so that not every append creates a page.
    let first = Math.min(this.pageOf(start), this.pages.length - 1);
    if (first > 0 && start === this.starts[first] && this.pages[first - 1].segments.length < PAGE_MAX) first--;
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
    const pages = this.pages.toSpliced(first, last + 1 - first, ...pagesOf(segments));
    return pages.length === 0 ? Segments.EMPTY : new Segments(pages);
  }

  /** Applies the splices of a change. */
  apply(splices: readonly SplicedSegments<S>[]): Segments<S> {
    // deno-lint-ignore no-this-alias
    let result: Segments<S> = this;
    for (let k = splices.length - 1; k >= 0; k--) {
      const { start, count, segments } = splices[k];
      result = result.splice(start, count, segments);
    }
    return result;
  }

  /** Replaces each segment; undefined removes it. Pages without a change stay. */
  map(change: (segment: S) => S | undefined): Segments<S> {
    let isChanged = false;
    const pages: Page<S>[] = [];
    for (const page of this.pages) {
      let kept: S[] | undefined;
      page.segments.forEach((segment, k) => {
        const after = change(segment);
        if (after === segment && kept === undefined) return;
        kept ??= page.segments.slice(0, k);
        if (after !== undefined) kept.push(after);
      });
      if (kept === undefined) pages.push(page);
      else {
        isChanged = true;
        pages.push(...pagesOf(kept));
      }
    }
    if (!isChanged) return this;
    return pages.length === 0 ? Segments.EMPTY : new Segments(pages);
  }

  /** The splices that make this sequence from `before`. */
  differenceFrom(before: Segments<S>): SplicedSegments<S>[] {
    if (before === this) return [];
    const known = new Map<Page<S>, number>();
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
    for (let k = head; k < endBefore; k++) known.set(before.pages[k], k);
    const splices: SplicedSegments<S>[] = [];
    let from = head, fromBefore = head;
    const add = (to: number, toBefore: number) => {
      const old = before.slice(before.starts[fromBefore], before.starts[toBefore]);
      const now = this.slice(this.starts[from], this.starts[to]);
      splices.push(...trimmed(before.starts[fromBefore], old, now));
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

function pagesOf<S extends Sized>(segments: readonly S[]): Page<S>[] {
  const count = Math.ceil(segments.length / PAGE_MAX);
  const pages: Page<S>[] = [];
  // Appends continue after full pages. A page that grows in the middle is split into halves.
  const size = count <= 2 ? Math.ceil(segments.length / Math.max(1, count)) : PAGE_MAX;
  for (let from = 0; from < segments.length; from += size) {
    const part = segments.slice(from, from + size);
    pages.push({ segments: part, rowCount: part.reduce((sum, { rowCount }) => sum + rowCount, 0) });
  }
  return pages;
}

/** The splice between two lists, without their common parts at both ends. */
function trimmed<S>(start: number, before: readonly S[], now: readonly S[]): SplicedSegments<S>[] {
  let head = 0;
  const least = Math.min(before.length, now.length);
  while (head < least && before[head] === now[head]) head++;
  let tail = 0;
  while (tail < least - head && before[before.length - 1 - tail] === now[now.length - 1 - tail]) tail++;
  const count = before.length - tail - head, segments = now.slice(head, now.length - tail);
  return count === 0 && segments.length === 0 ? [] : [{ start: start + head, count, segments }];
}
