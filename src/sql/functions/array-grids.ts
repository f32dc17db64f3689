/** Operations on the values of arrays: shapes, sums, order. The entries of functions that use them are in `arrays.ts`. */
import { type Grid, grid, POLL_ELEMENTS, unfit } from "./array-values.ts";
import type { FunctionContext } from "./entry.ts";
import { DOUBLE_TOLERANCE } from "./nodes.ts";
import { Pace } from "./pace.ts";
import { checkElements } from "./sizes.ts";

/** Moves the non-null elements to the start of `values`. */
export function withoutNulls(values: Float64Array): Float64Array {
  let count = 0;
  for (let k = 0; k < values.length; k++) {
    const value = values[k];
    if (!Number.isNaN(value)) values[count++] = value;
  }
  return count === values.length ? values : values.subarray(0, count);
}

export const total = (values: Float64Array): number => {
  let sum = 0;
  for (let k = 0; k < values.length; k++) sum += values[k];
  return sum;
};

export const mean = (values: Float64Array): number => total(values) / values.length;

export const deviation = (values: Float64Array, less: number): number => {
  const middle = mean(values), count = values.length - less;
  let squares = 0;
  for (const value of values) squares += (value - middle) ** 2;
  return count <= 0 ? NaN : Math.sqrt(squares / count);
};

/** Changes every run of the last dimension in place. */
export function byRow(array: Grid, context: FunctionContext, change: (row: Float64Array) => void): Grid {
  const { shape, values } = array, length = shape.at(-1) ?? 0;
  const pace = new Pace(context);
  for (let at = 0; length > 0 && at < values.length; at += length) {
    change(values.subarray(at, at + length));
    pace.spend(64 + length);
  }
  return array;
}

export function transposed({ shape, values }: Grid, context: FunctionContext): Grid {
  const turned = shape.toReversed();
  const strides: number[] = [];
  shape.reduceRight((stride, length, i) => {
    strides[i] = stride;
    return stride * length;
  }, 1);
  const turnedStrides = strides.toReversed();
  return grid(turned, (index) => {
    let rest = index, at = 0;
    for (let i = turned.length - 1; i >= 0; i--) {
      at += (rest % turned[i]) * turnedStrides[i];
      rest = Math.floor(rest / turned[i]);
    }
    return values[at];
  }, context);
}

/** Returns the element for `index` of shape `to` in an array that is broadcast to that shape. */
function stretched({ shape, values }: Grid, to: readonly number[]): (index: number) => number {
  const missing = to.length - shape.length;
  return (index) => {
    let rest = index, at = 0, stride = 1;
    for (let i = to.length - 1; i >= missing; i--) {
      const place = rest % to[i], length = shape[i - missing];
      rest = Math.floor(rest / to[i]);
      at += (length === 1 ? 0 : place) * stride;
      stride *= length;
    }
    return values[at];
  };
}

export const areSame = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((length, k) => length === b[k]);

/** Element-wise operation with broadcasting: a length of 1, or a missing leading dimension, matches any length. */
export function combined(
  a: Grid,
  b: Grid,
  operation: (x: number, y: number) => number,
  context: FunctionContext,
): Grid {
  const dimensions = Math.max(a.shape.length, b.shape.length);
  const shape = Array.from({ length: dimensions }, (_, i) => {
    const x = a.shape[i - dimensions + a.shape.length] ?? 1, y = b.shape[i - dimensions + b.shape.length] ?? 1;
    if (x !== y && x !== 1 && y !== 1) throw unfit(`arrays of ${x} and ${y} elements cannot be combined`, context);
    return x === 1 ? y : x;
  });
  const left = stretched(a, shape), right = stretched(b, shape);
  return grid(shape, (i) => operation(left(i), right(i)), context);
}

export function product(a: Grid, b: Grid, context: FunctionContext): Grid {
  const [rows, inner] = a.shape, [other, columns] = b.shape;
  if (inner !== other) {
    throw unfit(`cannot multiply a matrix of ${inner} columns by a matrix of ${other} rows`, context);
  }
  const pace = new Pace(context);
  return grid([rows, columns], (index) => {
    const i = Math.floor(index / columns), j = index % columns;
    let sum = 0;
    pace.spend(inner);
    for (let k = 0; k < inner; k++) sum += a.values[i * inner + k] * b.values[k * columns + j];
    return sum;
  }, context);
}

export function sort(row: Float64Array, descending: boolean, nullsFirst: boolean, context: FunctionContext): void {
  const values = withoutNulls(row), count = values.length;
  sortAscending(values, context);
  if (descending) values.reverse();
  if (nullsFirst) row.copyWithin(row.length - count, 0, count);
  row.fill(NaN, nullsFirst ? 0 : count, nullsFirst ? row.length - count : row.length);
}

/** A run of this length is sorted in about a millisecond. */
const RUN_ELEMENTS = 16_384;

/**
 * Sorts runs and merges them pairwise, polling in between. `sort` without a comparison function is some ten times as
 * fast as with one.
 */
function sortAscending(values: Float64Array, context: FunctionContext): void {
  const count = values.length;
  for (let at = 0; at < count; at += RUN_ELEMENTS) {
    context.poll();
    values.subarray(at, at + RUN_ELEMENTS).sort();
  }
  if (count <= RUN_ELEMENTS) return;
  checkElements(count, context);
  let from: Float64Array = values, to: Float64Array = new Float64Array(count);
  for (let run = RUN_ELEMENTS; run < count; run *= 2) {
    for (let at = 0; at < count; at += 2 * run) {
      mergeRuns(from, to, at, Math.min(count, at + run), Math.min(count, at + 2 * run), context);
    }
    [from, to] = [to, from];
  }
  if (from !== values) values.set(from);
}

function mergeRuns(
  from: Float64Array,
  to: Float64Array,
  start: number,
  middle: number,
  end: number,
  context: FunctionContext,
): void {
  for (let a = start, b = middle, at = start; at < end;) {
    context.poll();
    for (const stop = Math.min(end, at + POLL_ELEMENTS); at < stop; at++) {
      to[at] = b === end || (a < middle && from[a] <= from[b]) ? from[a++] : from[b++];
    }
  }
}

/** Shifts a row's elements to the right. */
export function shift(row: Float64Array, by: number, free: number): void {
  const places = Math.max(-row.length, Math.min(row.length, by));
  if (places >= 0) row.copyWithin(places, 0);
  else row.copyWithin(0, -places);
  row.fill(free, places >= 0 ? 0 : row.length + places, places >= 0 ? places : row.length);
}

/** As for `=` of DOUBLEs. */
export const areEqual = (a: number, b: number): boolean => Math.abs(a - b) <= DOUBLE_TOLERANCE;

/** Insertion point of the value in an ascending or descending list, after equal values or before them. */
export function insertionPoint(values: Float64Array, value: number, before: boolean): number {
  if (Number.isNaN(value)) return 1;
  const ascending = values.length < 2 || values[0] <= values[values.length - 1];
  const at = values.findIndex((other) => areEqual(other, value) ? before : ascending ? other > value : other < value);
  return (at < 0 ? values.length : at) + 1;
}
