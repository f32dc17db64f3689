/**
 * Exact statistics of a column's values, extended as a tail grows. 64-bit integers are handled as two halves of plain
 * numbers, as a bigint for each row costs 20 times as much. Sums of halves stay below 2^53, because a segment has at most 65,536 rows.
 */
import { NULL_I32, NULL_I64, typeOf } from "../types/mod.ts";
import type { ColumnStats } from "./contract.ts";
import type { SharedHeap } from "./heap.ts";

/** Statistics of `values[from … to)`, added to those of the rows before. */
export function extendStats(
  heap: SharedHeap,
  tag: string,
  address: number,
  from: number,
  to: number,
  before: ColumnStats | undefined,
): ColumnStats {
  const type = typeOf(tag);
  const base = before ?? { nullCount: 0 };
  if (from >= to) return base;
  switch (type.layout) {
    case "i8":
      return integers(heap.i8, address, from, to, NaN, base);
    case "i16":
      return type.order === "unsigned"
        ? unsummed(integers(heap.u16, address >>> 1, from, to, type.nullable ? 0 : NaN, base))
        : integers(heap.i16, address >>> 1, from, to, NaN, base);
    case "i32":
      return type.order === "unsigned"
        ? unsummed(integers(heap.u32, address >>> 2, from, to, Number(type.nullValue) >>> 0, base))
        : integers(heap.i32, address >>> 2, from, to, NULL_I32, base);
    case "symbol":
      return unsummed(integers(heap.i32, address >>> 2, from, to, -1, base));
    case "i64":
      return longs(heap, address >>> 2, from, to, base);
    case "f32":
      return floats(heap.f32, address >>> 2, from, to, base);
    case "f64":
      return floats(heap.f64, address >>> 3, from, to, base);
    case "text":
      return { nullCount: base.nullCount + countNullTexts(heap, address, from, to) };
    default:
      return { nullCount: base.nullCount + countNullWides(heap, address, type.width / 8, from, to) };
  }
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
  from: number,
  to: number,
  nullValue: number,
  base: ColumnStats,
): ColumnStats {
  let nulls = 0, sum = 0;
  let min = base.min === undefined ? Infinity : Number(base.min);
  let max = base.max === undefined ? -Infinity : Number(base.max);
  for (let i = start + from, end = start + to; i < end; i++) {
    const value = values[i];
    if (value === nullValue) nulls++;
    else {
      if (value < min) min = value;
      if (value > max) max = value;
      sum += value;
    }
  }
  const nullCount = base.nullCount + nulls;
  return max === -Infinity ? { nullCount } : { nullCount, min, max, sum: ((base.sum as bigint) ?? 0n) + BigInt(sum) };
}

function longs(heap: SharedHeap, start: number, from: number, to: number, base: ColumnStats): ColumnStats {
  const { i32, u32 } = heap;
  let nulls = 0, highSum = 0, lowSum = 0, any = false;
  let minHigh = 0, minLow = 0, maxHigh = 0, maxLow = 0;
  if (base.min !== undefined) {
    any = true;
    minHigh = Number(base.min as bigint >> 32n), minLow = Number(BigInt.asUintN(32, base.min as bigint));
    maxHigh = Number(base.max as bigint >> 32n), maxLow = Number(BigInt.asUintN(32, base.max as bigint));
  }
  for (let i = start + 2 * from, end = start + 2 * to; i < end; i += 2) {
    const low = u32[i], high = i32[i + 1];
    if (high === NULL_I32 && low === 0) {
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
  const nullCount = base.nullCount + nulls;
  if (!any) return { nullCount };
  const sum = ((base.sum as bigint) ?? 0n) + (BigInt(highSum) << 32n) + BigInt(lowSum);
  return {
    nullCount,
    min: (BigInt(minHigh) << 32n) + BigInt(minLow),
    max: (BigInt(maxHigh) << 32n) + BigInt(maxLow),
    sum,
  };
}

function floats(
  values: Float32Array | Float64Array,
  start: number,
  from: number,
  to: number,
  base: ColumnStats,
): ColumnStats {
  let nulls = 0;
  let sum = (base.sum as number | undefined) ?? 0;
  let min = (base.min as number | undefined) ?? Infinity;
  let max = (base.max as number | undefined) ?? -Infinity;
  for (let i = start + from, end = start + to; i < end; i++) {
    const value = values[i];
    if (value !== value) nulls++;
    else {
      sum += value;
      if (value < min) min = value;
      if (value > max) max = value;
    }
  }
  const nullCount = base.nullCount + nulls;
  return nullCount === to ? { nullCount } : { nullCount, min, max, sum };
}

function countNullTexts(heap: SharedHeap, address: number, from: number, to: number): number {
  let nulls = 0;
  const start = address >>> 2;
  for (let i = start + 2 * from + 1, end = start + 2 * to; i < end; i += 2) if (heap.i32[i] < 0) nulls++;
  return nulls;
}

function countNullWides(heap: SharedHeap, address: number, words: number, from: number, to: number): number {
  let nulls = 0;
  const start = address >>> 3;
  for (let row = from; row < to; row++) {
    let isNull = true;
    for (let k = 0; k < words; k++) if (heap.i64[start + row * words + k] !== NULL_I64) isNull = false;
    if (isNull) nulls++;
  }
  return nulls;
}
