/** Determines the runs of rows that a scan reads, by its intervals and the statistics of segments. */
import { assert } from "../../assert.ts";
import type { Expr, Interval, ScanNode } from "../../sql/plan.ts";
import type { ScanSource, SegmentList, SegmentSource } from "../../storage/contract.ts";
import { typeOf } from "../../types/mod.ts";
import { MORSEL_ROWS, type QueryContext } from "../contract.ts";
import { type Bound, boundsOf } from "../bounds.ts";
import { LOOKUP_ROWS_MIN } from "../physical/thresholds.ts";
import { codesOf, lookedUp } from "./lookup.ts";
import type { Morsel } from "./morsel.ts";

/** Ranges of a scan: more than workers, so that these finish together, but few, because each has a table. */
const RANGES_MAX = 32;
/** Rows of a range whose groups are many. Fewer are less often the same, and the groups of more do not stay in a cache. */
const SMALL_RANGE_ROWS = 131_072;

type SearchContext = Pick<QueryContext, "heap" | "pool" | "functions">;

/** The statistics of a column that was added later, of a type without NULL: its rows have 0. */
const ZEROS = { min: 0, max: 0 } as const;

/** True if by its statistics no row of the segment can be within the bound. */
function isOutside({ chunks, rowCount }: SegmentSource, { column, low, high }: Bound, node: ScanNode): boolean {
  if (column >= chunks.length) return false; // row ids
  const stats = chunks[column]?.stats ?? (typeOf(node.columns[column]!.type).nullable ? undefined : ZEROS);
  if (stats === undefined || ("nullCount" in stats && stats.nullCount === rowCount)) return true; // all null
  const { min, max } = stats;
  return (low !== undefined && max !== undefined && max < low) ||
    (high !== undefined && min !== undefined && min > high);
}

function isOutsideAny(segment: SegmentSource, bounds: readonly Bound[], node: ScanNode): boolean {
  for (const bound of bounds) if (isOutside(segment, bound, node)) return true;
  return false;
}

const FEW_SEGMENTS = 8;

/** Sources of more segments are not searched by `rowsLeft`. */
const SEARCHED_SEGMENTS_MAX = 64;

/**
 * Number of rows that the scan's intervals and the statistics leave, or an upper bound of it. It searches the boundaries of
 * intervals in the segments' timestamps.
 */
export function rowsLeft(node: ScanNode, source: ScanSource, context: SearchContext): number {
  const { intervals, predicate } = node;
  if (source.segments.length > SEARCHED_SEGMENTS_MAX) return source.rowCount;
  if (intervals === undefined && predicate === undefined) return source.rowCount;
  const morsels = morselsOf(node, source, context, predicate === undefined ? [] : [predicate]);
  return morsels.reduce((sum, { start, end }) => sum + end - start, 0);
}

/** The morsels that the scan's intervals and the statistics leave, in table order. */
export function morselsOf(
  node: ScanNode,
  source: ScanSource,
  context: SearchContext,
  predicates: readonly Expr[] = [],
  /** Additional bounds that hold for all required rows. */
  known: readonly Bound[] = [],
  /** Rows may be looked up, by a reader that can. */
  lookups = false,
): Morsel[] {
  const { intervals } = node;
  const bounds = boundsOf(predicates, context).concat(known);
  const allowed = lookups && !node.rowId && source.rowCount >= LOOKUP_ROWS_MIN
    ? codesOf(source, predicates, context)
    : undefined;
  if (allowed?.codes.length === 0) return [];
  if (allowed !== undefined && allowed.codes[0]! >= 0) {
    bounds.push({ column: allowed.column, low: allowed.codes[0], high: allowed.codes.at(-1) });
  }
  const morsels: Morsel[] = [], { segments } = source, { length } = segments;
  // An iterator reads the pages of many segments once. It makes objects of its own, which few segments do not need.
  const others = length > FEW_SEGMENTS ? segments[Symbol.iterator]() : undefined;
  for (let index = 0; index < length; index++) {
    const segment: SegmentSource = others === undefined ? segments.at(index)! : others.next().value!,
      { rowCount } = segment;
    if (rowCount === 0 || isOutsideAny(segment, bounds, node)) continue;
    if (intervals === undefined) {
      morsels.push({ segment: index, start: 0, end: rowCount });
      continue;
    }
    const { timestampMin: min, timestampMax: max } = segment;
    for (const [low, high] of intervals) {
      if (low > max || high < min) continue;
      const isWhole = low <= min && high >= max;
      assert(isWhole || node.timestamp >= 0 && source.sorted, "a scan with intervals reads the designated timestamp");
      const start = low <= min ? 0 : firstAt(context, source, index, node.timestamp, low);
      const end = high >= max ? rowCount : firstAt(context, source, index, node.timestamp, high + 1n);
      if (start < end) morsels.push({ segment: index, start, end });
    }
  }
  return allowed === undefined ? morsels : lookedUp(morsels, allowed, source, context);
}

/**
 * Number of rows within the scan's intervals. The source knows the rows of all segments, so only those at the ends of intervals are looked at.
 */
export function rowsOf({ intervals, timestamp }: ScanNode, source: ScanSource, context: SearchContext): number {
  if (intervals === undefined) return source.rowCount;
  assert(timestamp >= 0 && source.sorted, "a scan with intervals reads the designated timestamp");
  const { segments } = source;
  /** Rows of segments that are not all within an interval. */
  const within = new Map<number, number>();
  const addEnd = (index: number, [low, high]: Interval) => {
    const { timestampMin: min, timestampMax: max, rowCount } = segments.at(index)!;
    if (low <= min && high >= max) return;
    const start = low <= min ? 0 : firstAt(context, source, index, timestamp, low);
    const end = high >= max ? rowCount : firstAt(context, source, index, timestamp, high + 1n);
    within.set(index, (within.get(index) ?? 0) + end - start);
  };
  for (const interval of intervals) {
    const [low, high] = interval;
    const first = firstSegment(segments, (segment) => segment.timestampMax >= low);
    const last = firstSegment(segments, (segment) => segment.timestampMin > high) - 1;
    if (first > last) continue;
    addEnd(first, interval);
    if (last > first) addEnd(last, interval);
  }
  let rowCount = source.rowCount;
  for (const [index, rows] of within) rowCount -= segments.at(index)!.rowCount - rows;
  return rowCount;
}

/** Index of the first segment for which `holds` is true, as it is for all later ones, or their number. */
function firstSegment(segments: SegmentList, holds: (segment: SegmentSource) => boolean): number {
  let low = 0, high = segments.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(segments.at(middle)!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** First row of a segment whose time is not below `time`. */
export function firstAt(
  context: SearchContext,
  source: ScanSource,
  segment: number,
  column: number,
  time: bigint,
): number {
  const { chunks, rowCount } = source.segments.at(segment)!, chunk = chunks[column];
  assert(chunk !== undefined, "the designated timestamp is in every segment");
  if (chunk.address !== 0) return lowerBound(context, chunk.address, rowCount, time);
  const known = searches.rowOf(source, segment, column, time);
  if (known >= 0) return known;
  const row = firstOfStored(context, source, segment, column, rowCount, time);
  searches.add(source, segment, column, time, row);
  return row;
}

function firstOfStored(
  context: SearchContext,
  source: ScanSource,
  segment: number,
  column: number,
  rowCount: number,
  time: bigint,
): number {
  const packed = context.pool.firstAt(source, segment, column, time);
  if (packed !== undefined) return packed;
  const address = context.pool.pin(source, segment, column);
  try {
    return lowerBound(context, address, rowCount, time);
  } finally {
    context.pool.unpin(source, segment, column);
  }
}

/**
 * The last searches of this thread: an execution with other parameters searches once to know how many rows it reads, and again when it reads them. A
 * source has the same rows at any time.
 */
class LastSearches {
  private static readonly count = 8;

  private readonly sources: (ScanSource | undefined)[] = new Array(LastSearches.count).fill(undefined);
  private readonly segments = new Int32Array(LastSearches.count);
  private readonly columns = new Int32Array(LastSearches.count);
  private readonly times = new BigInt64Array(LastSearches.count);
  private readonly rows = new Int32Array(LastSearches.count);
  private next = 0;

  /** -1 if it is not known. */
  rowOf(source: ScanSource, segment: number, column: number, time: bigint): number {
    for (let k = 0; k < LastSearches.count; k++) {
      if (this.sources[k] !== source || this.segments[k] !== segment || this.columns[k] !== column) continue;
      if (this.times[k] === time) return this.rows[k]!;
    }
    return -1;
  }

  add(source: ScanSource, segment: number, column: number, time: bigint, row: number): void {
    const k = this.next;
    this.next = (k + 1) % LastSearches.count;
    this.sources[k] = source;
    this.segments[k] = segment;
    this.columns[k] = column;
    this.times[k] = time;
    this.rows[k] = row;
  }
}

const searches = new LastSearches();

/** First row whose time is not below `time`. */
export function lowerBound(
  context: Pick<QueryContext, "heap">,
  address: number,
  rowCount: number,
  time: bigint,
): number {
  const times = context.heap.i64, base = address / 8;
  let low = 0, high = rowCount;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[base + middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Morsels of the right rows of a join, which tell those without a match when all morsels before them have been read. */
export function unmatchedMorsels(join: number, rowCount: number): Morsel[] {
  return Array.from({ length: Math.ceil(rowCount / MORSEL_ROWS) }, (_, k) => {
    const start = k * MORSEL_ROWS;
    return { segment: -1, start, end: Math.min(rowCount, start + MORSEL_ROWS), unmatched: join };
  });
}

/** Neighbours in a list of ranges, or of morsels, that may be read at the same time. One stage begins when the one before has ended. */
export interface Stage {
  first: number;
  count: number;
}

export function stagesOf(ranges: readonly (readonly Morsel[])[]): Stage[] {
  const stages: Stage[] = [];
  ranges.forEach(([{ unmatched }], index) => {
    if (index === 0 || ranges[index - 1][0].unmatched !== unmatched) stages.push({ first: index, count: 0 });
    stages.at(-1)!.count++;
  });
  return stages;
}

/** Splits the morsels of each stage into ranges of neighbours of about equal number. */
export function rangesOf(morsels: readonly Morsel[]): Morsel[][] {
  return stagesOf(morsels.map((morsel) => [morsel])).flatMap((stage) => {
    const count = Math.min(RANGES_MAX, stage.count),
      at = (k: number) => stage.first + Math.floor(k * stage.count / count);
    return Array.from({ length: count }, (_, k) => morsels.slice(at(k), at(k + 1)));
  });
}

/** Ranges of a number of rows that does not depend on the table. */
export function smallRangesOf(morsels: readonly Morsel[]): Morsel[][] {
  return rangesOfRows(morsels, SMALL_RANGE_ROWS);
}

/** Splits morsels into ranges of neighbours of one stage and of at most `rowsMax` rows, or of one morsel. */
export function rangesOfRows(morsels: readonly Morsel[], rowsMax: number): Morsel[][] {
  const ranges: Morsel[][] = [];
  let left = 0;
  for (const morsel of morsels) {
    const rowCount = morsel.end - morsel.start;
    if (ranges.length === 0 || rowCount > left || ranges.at(-1)![0].unmatched !== morsel.unmatched) {
      ranges.push([]);
      left = rowsMax;
    }
    ranges.at(-1)!.push(morsel);
    left -= rowCount;
  }
  return ranges;
}
