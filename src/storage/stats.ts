/**
 * Exact statistics of a column's values, extended as rows are added. 64-bit integers are processed as two halves in plain
 * numbers, because a bigint for each row costs 20 times as much. Sums of halves stay below 2^53, because a segment has
 * at most 65,536 rows.
 */
import { type ColumnType, type Layout, nullTest, typeOf } from "../types/mod.ts";
import type { ColumnStats, RowRange } from "./contract.ts";
import type { SharedHeap } from "./heap.ts";

/** Statistics of rows, added to those of other rows. */
export function extendStats(
  heap: SharedHeap,
  tag: string,
  address: number,
  ranges: readonly RowRange[],
  before: ColumnStats | undefined,
): ColumnStats {
  const type = typeOf(tag);
  const base = before ?? { nullCount: 0 };
  return ranges.every(({ from, to }) => from >= to) ? base : LOOPS[type.layout]({ heap, type, address, ranges, base });
}

/** Rows of a column. */
interface Range {
  heap: SharedHeap;
  type: ColumnType;
  address: number;
  ranges: readonly RowRange[];
  base: ColumnStats;
}

const LOOPS: Record<Layout, (range: Range) => ColumnStats> = {
  i8: (range) => integers(range.heap.i8, range.address, range),
  i16: (range) =>
    range.type.order === "unsigned"
      ? unsummed(integers(range.heap.u16, range.address >>> 1, range))
      : integers(range.heap.i16, range.address >>> 1, range),
  i32: (range) =>
    range.type.order === "unsigned"
      ? unsummed(integers(range.heap.u32, range.address >>> 2, range))
      : integers(range.heap.i32, range.address >>> 2, range),
  symbol: (range) => unsummed(integers(range.heap.i32, range.address >>> 2, range)),
  i64: longs,
  f32: (range) => floats(range.heap.f32, range.address >>> 2, range),
  f64: (range) => floats(range.heap.f64, range.address >>> 3, range),
  text: countNulls,
  i128: countNulls,
  i256: countNulls,
};

function countNulls({ heap, type, address, ranges, base }: Range): ColumnStats {
  const isNull = nullTest(heap, type.tag, address);
  let nulls = 0;
  for (const { from, to } of ranges) {
    for (let row = from; row < to; row++) if (isNull(row)) nulls++;
  }
  return { nullCount: base.nullCount + nulls };
}

/** Statistics of `count` rows of a column that was not given: all null. */
export function nullStats(tag: string, count: number): ColumnStats {
  const type = typeOf(tag);
  if (type.nullable) return { nullCount: count };
  return count === 0 ? { nullCount: 0 } : { nullCount: 0, min: 0, max: 0, sum: 0n };
}

function unsummed(stats: ColumnStats): ColumnStats {
  return { nullCount: stats.nullCount, min: stats.min, max: stats.max };
}

function integers(
  values: Int8Array | Int16Array | Uint16Array | Int32Array | Uint32Array,
  start: number,
  { type, ranges, base }: Range,
): ColumnStats {
  const nullValue = type.nullable ? Number(type.nullValue) : NaN;
  let nulls = 0, sum = 0;
  let min = base.min === undefined ? Infinity : Number(base.min);
  let max = base.max === undefined ? -Infinity : Number(base.max);
  for (const { from, to } of ranges) {
    for (let i = start + from, end = start + to; i < end; i++) {
      const value = values[i];
      if (value === nullValue) nulls++;
      else {
        if (value < min) min = value;
        if (value > max) max = value;
        sum += value;
      }
    }
  }
  const nullCount = base.nullCount + nulls;
  return max === -Infinity ? { nullCount } : { nullCount, min, max, sum: (base.sum ?? 0n) + BigInt(sum) };
}

function longs({ heap: { i32, u32 }, type, address, ranges, base }: Range): ColumnStats {
  const start = address >>> 2, [nullLow, nullHigh] = type.nullWords;
  let nulls = 0, highSum = 0, lowSum = 0, any = false;
  let minHigh = 0, minLow = 0, maxHigh = 0, maxLow = 0;
  if (base.min !== undefined) {
    any = true;
    minHigh = Number(base.min as bigint >> 32n), minLow = Number(BigInt.asUintN(32, base.min as bigint));
    maxHigh = Number(base.max as bigint >> 32n), maxLow = Number(BigInt.asUintN(32, base.max as bigint));
  }
  for (const { from, to } of ranges) {
    for (let i = start + 2 * from, end = start + 2 * to; i < end; i += 2) {
      const low = u32[i], high = i32[i + 1];
      if (high === nullHigh && low === nullLow) {
        nulls++;
        continue;
      }
      highSum += high;
      lowSum += low;
      if (!any) {
        any = true;
        minHigh = maxHigh = high;
        minLow = maxLow = low;
      } else if (high < minHigh || (high === minHigh && low < minLow)) {
        minHigh = high;
        minLow = low;
      } else if (high > maxHigh || (high === maxHigh && low > maxLow)) {
        maxHigh = high;
        maxLow = low;
      }
    }
  }
  const nullCount = base.nullCount + nulls;
  if (!any) return { nullCount };
  const sum = (base.sum ?? 0n) + (BigInt(highSum) << 32n) + BigInt(lowSum);
  return {
    nullCount,
    min: (BigInt(minHigh) << 32n) + BigInt(minLow),
    max: (BigInt(maxHigh) << 32n) + BigInt(maxLow),
    sum,
  };
}

/** Infinities are null too. There is no sum: it depends on the order of addition, so no query could use it. */
function floats(values: Float32Array | Float64Array, start: number, { ranges, base }: Range): ColumnStats {
  let nulls = 0;
  let min = (base.min as number | undefined) ?? Infinity;
  let max = (base.max as number | undefined) ?? -Infinity;
  for (const { from, to } of ranges) {
    for (let i = start + from, end = start + to; i < end; i++) {
      const value = values[i];
      if (value - value !== 0) nulls++;
      else {
        if (value < min) min = value;
        if (value > max) max = value;
      }
    }
  }
  const nullCount = base.nullCount + nulls;
  return max === -Infinity ? { nullCount } : { nullCount, min, max };
}
