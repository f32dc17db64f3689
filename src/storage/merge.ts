/**
 * How late rows become a part of a segment: the order in time of both, and the values of the new segments in this order. All of it
 * works on addresses and views, so that any thread can do it.
 */
import { assert, VERIFY } from "../assert.ts";
import { fillNull, LAYOUT_WIDTH, layoutOf } from "../types/mod.ts";
import type { ColumnStats, RowRange } from "./contract.ts";
import type { SharedHeap } from "./heap.ts";
import { firstNotBelow, isLess, type RowColumn } from "./rows.ts";
import { extendStats } from "./stats.ts";

/** Values up to this size are copied by a loop: a call costs more. */
const LOOP_BYTES_MAX = 64;

/** Rows of a new chunk: `count` rows from `start` of the old chunk (source 0) or of the added rows (source 1). */
export interface Run {
  source: 0 | 1;
  start: number;
  count: number;
}

/** The rows of the runs that are not of the old chunk. */
export function insertedRows(runs: readonly Run[]): RowRange[] {
  const inserted: RowRange[] = [];
  let row = 0;
  for (const { source, count } of runs) {
    if (source === 1) inserted.push({ from: row, to: row + count });
    row += count;
  }
  return inserted;
}

export function rowCountOf(runs: readonly Run[]): number {
  return runs.reduce((sum, run) => sum + run.count, 0);
}

/**
 * The order in time of rows [at, end) of a segment, whose times are at `address`, and of rows [from, to). Of equal times, those of the
 * segment come first.
 */
export function mergedRuns(
  heap: SharedHeap,
  address: number,
  at: number,
  end: number,
  times: Int32Array,
  from: number,
  to: number,
): Run[] {
  const { i32 } = heap, runs: Run[] = [];
  while (from < to) {
    // Rows with the time of a stored row go behind it.
    const next = firstNotBelow(i32, address / 4, at, end, times[2 * from + 1], times[2 * from], true);
    if (next > at) runs.push({ source: 0, start: at, count: next - at });
    at = next;
    let until = from + 1;
    if (at < end) {
      const k = address / 4 + 2 * at, high = i32[k + 1], low = i32[k];
      while (until < to && isLess(times[2 * until + 1], times[2 * until], high, low)) until++;
    } else until = to;
    runs.push({ source: 1, start: from, count: until - from });
    from = until;
  }
  if (at < end) runs.push({ source: 0, start: at, count: end - at });
  return runs;
}

/** Into how many rows each of about equal length a segment is cut, of at most `rowsMax` rows. */
export function partSizes(rowCount: number, rowsMax: number): number[] {
  const count = Math.max(1, Math.ceil(rowCount / rowsMax)), size = Math.ceil(rowCount / count);
  return Array.from({ length: count }, (_, k) => Math.min(size, rowCount - k * size));
}

/** Cuts runs into parts of these sizes. */
export function cut(runs: Run[], sizes: readonly number[]): Run[][] {
  if (sizes.length === 1) return [runs];
  const parts: Run[][] = [[]];
  let free = sizes[0];
  for (const run of runs) {
    for (let { start, count } = run; count > 0;) {
      if (free === 0) free = sizes[parts.push([]) - 1];
      const taken = Math.min(free, count);
      parts[parts.length - 1].push({ source: run.source, start, count: taken });
      start += taken, count -= taken, free -= taken;
    }
  }
  return parts;
}

/** Where the values of a chunk come from. */
export interface Sources {
  /** Address of the values of the old chunk; undefined: all null. */
  readonly old: number | undefined;
  readonly added: RowColumn | undefined;
}

/** Writes the values of a chunk to `at`, and the texts of its added rows to `textsAt`. Returns the end of these texts. */
export function assemble(
  heap: SharedHeap,
  type: string,
  { old, added }: Sources,
  runs: readonly Run[],
  at: number,
  textsAt: number,
): number {
  const layout = layoutOf(type), width = LAYOUT_WIDTH[layout];
  for (const { source, start, count } of runs) {
    const isNull = source === 0 ? old === undefined : added === undefined;
    if (isNull) fillNull(heap, type, at, 0, count);
    else if (source === 0) copy(heap, old! + start * width, at, count * width);
    else if (layout === "text") textsAt = copyTexts(heap, added!, start, start + count, at, textsAt);
    else write(heap, added!.values, start * width, at, count * width);
    at += count * width;
  }
  return textsAt;
}

/** Statistics of a column of these runs. `before`: those of the `oldRows` rows of the old chunk. */
export function statsOfRuns(
  heap: SharedHeap,
  type: string,
  address: number,
  runs: readonly Run[],
  inserted: readonly RowRange[],
  oldRows: number,
  before: ColumnStats,
): ColumnStats {
  const rowCount = rowCountOf(runs), insertedCount = inserted.reduce((sum, { from, to }) => sum + to - from, 0);
  const all = () => extendStats(heap, type, address, [{ from: 0, to: rowCount }], undefined);
  if (rowCount - insertedCount < oldRows) return all();
  const stats = extendStats(heap, type, address, inserted, before);
  if (VERIFY) assert(isSame(stats, all()), "statistics of inserted rows add up to those of all rows");
  return stats;
}

function isSame(a: ColumnStats, b: ColumnStats): boolean {
  return a.nullCount === b.nullCount && a.min === b.min && a.max === b.max && a.sum === b.sum;
}

/** Copies values within the heap. */
function copy({ u8, i32 }: SharedHeap, from: number, to: number, sizeBytes: number): void {
  if (sizeBytes > LOOP_BYTES_MAX || ((from | to | sizeBytes) & 3) !== 0) u8.copyWithin(to, from, from + sizeBytes);
  else for (let k = 0; k < sizeBytes >> 2; k++) i32[(to >>> 2) + k] = i32[(from >>> 2) + k];
}

/** The same from added rows. */
function write({ u8 }: SharedHeap, values: Uint8Array, from: number, to: number, sizeBytes: number): void {
  if (sizeBytes > LOOP_BYTES_MAX) u8.set(values.subarray(from, from + sizeBytes), to);
  else for (let k = 0; k < sizeBytes; k++) u8[to + k] = values[from + k];
}

/** Bytes of the texts of rows [from, to). */
export function textBytesOf({ values }: RowColumn, from: number, to: number): number {
  const pairs = pairsOf(values);
  let bytes = 0;
  for (let k = 2 * from + 1; k < 2 * to; k += 2) if (pairs[k] > 0) bytes += pairs[k];
  return bytes;
}

/** Writes the pairs of rows [from, to) to `address`, and their texts to `at`. Returns the end of the texts. */
export function copyTexts(
  { i32, u8 }: SharedHeap,
  { values, heap }: RowColumn,
  from: number,
  to: number,
  address: number,
  at: number,
): number {
  const pairs = pairsOf(values);
  let out = address / 4;
  // Texts that are contiguous are copied as one run.
  let runStart = 0, runEnd = 0;
  for (let k = 2 * from; k < 2 * to; k += 2, out += 2) {
    const length = pairs[k + 1];
    i32[out] = length > 0 ? at : 0;
    i32[out + 1] = length < 0 ? -1 : length;
    if (length <= 0) continue;
    const offset = pairs[k] >>> 0;
    if (offset !== runEnd) {
      if (runEnd > runStart) u8.set(heap!.subarray(runStart, runEnd), at - (runEnd - runStart));
      runStart = offset;
    }
    runEnd = offset + length;
    at += length;
  }
  if (runEnd > runStart) u8.set(heap!.subarray(runStart, runEnd), at - (runEnd - runStart));
  return at;
}

function pairsOf(values: Uint8Array<ArrayBufferLike>): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length >> 2);
}

export function allRows(rowCount: number): Run[] {
  return [{ source: 0, start: 0, count: rowCount }];
}

/** All rows but these, which are ascending. */
export function runsWithout(rows: Iterable<number>, rowCount: number): Run[] {
  const runs: Run[] = [];
  let at = 0;
  for (const row of rows) {
    if (row > at) runs.push({ source: 0, start: at, count: row - at });
    at = row + 1;
  }
  if (at < rowCount) runs.push({ source: 0, start: at, count: rowCount - at });
  return runs;
}
