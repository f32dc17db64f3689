/** Smallest, greatest, summed and averaged elements at each position of several arrays: of a row, or of the rows of a group. */
import {
  ARRAY,
  type ArrayReader,
  each,
  type Grid,
  grid,
  POLL_ELEMENTS,
  readerOf,
  same,
  sizeOf,
  unfit,
  widest,
  write,
} from "./array-values.ts";
import { batchEntry } from "./batch-entry.ts";
import type { BatchAggregateState, BatchColumn, BatchOut, FunctionContext, FunctionEntry } from "./entry.ts";
import { Pace } from "./pace.ts";
import { checkElements } from "./sizes.ts";

/** Element-wise aggregation of several arrays. Nulls and missing elements are ignored. */
class Elements {
  private shape: number[] | undefined;
  private values = new Float64Array(0);
  /** Number of values that contributed to each element. */
  private counts = new Float64Array(0);

  constructor(private readonly kind: "min" | "max" | "sum" | "avg", private readonly context: FunctionContext) {}

  private put(at: number, value: number, count: number): void {
    const isFirst = this.counts[at] === 0;
    this.counts[at] += count;
    if (isFirst) this.values[at] = value;
    else if (this.kind === "min") this.values[at] = Math.min(this.values[at], value);
    else if (this.kind === "max") this.values[at] = Math.max(this.values[at], value);
    else this.values[at] += value;
  }

  /** Grows to contain every element of an array of that shape. */
  private widen(shape: readonly number[]): number[] {
    const old = this.shape ?? shape.map(() => 0);
    if (old.length !== shape.length) {
      throw unfit(`arrays of ${old.length} and ${shape.length} dimensions cannot be combined`, this.context);
    }
    if (this.shape !== undefined && shape.every((length, i) => length <= old[i])) return this.shape;
    const wide = shape.map((length, i) => Math.max(length, old[i]));
    const place = placesIn(old, wide);
    const { values, counts } = this;
    checkElements(2 * sizeOf(wide), this.context);
    this.values = new Float64Array(sizeOf(wide));
    this.counts = new Float64Array(sizeOf(wide));
    for (let i = 0; i < values.length; i++) {
      const at = place(i);
      this.values[at] = values[i];
      this.counts[at] = counts[i];
    }
    return this.shape = wide;
  }

  /** Adds the array that was opened. */
  add(array: ArrayReader): void {
    const { shape, length } = array;
    if (length === 0) return;
    // One dimension, mostly.
    if (shape.length === 1 && this.shape?.length === 1 && length <= this.shape[0]) {
      for (let i = 0; i < length; i++) this.putPresent(i, array.element(i));
      return;
    }
    const place = placesIn(shape, this.widen(shape));
    for (let i = 0; i < length; i++) {
      if (i % POLL_ELEMENTS === 0) this.context.poll();
      this.putPresent(place(i), array.element(i));
    }
  }

  private putPresent(at: number, value: number): void {
    if (!Number.isNaN(value)) this.put(at, value, 1);
  }

  merge(later: Elements): void {
    if (later.shape === undefined) return;
    const place = placesIn(later.shape, this.widen(later.shape));
    later.counts.forEach((count, i) => {
      if (count > 0) this.put(place(i), later.values[i], count);
    });
  }

  result(): Grid | undefined {
    if (this.shape === undefined) return undefined;
    const { values, counts, kind } = this;
    const value = (i: number) => counts[i] === 0 ? NaN : kind === "avg" ? values[i] / counts[i] : values[i];
    return grid(this.shape, value, this.context);
  }

  get size(): number {
    return 64 + 16 * this.values.length;
  }
}

/**
 * Maps an index in an array of the first shape to an index in an array of the second shape, which is at least as long
 * in every dimension.
 */
function placesIn(shape: readonly number[], wide: readonly number[]): (index: number) => number {
  if (shape.length === 1 || shape.every((length, i) => length === wide[i])) return (index) => index;
  return (index) => {
    let rest = index, at = 0, stride = 1;
    for (let i = shape.length - 1; i >= 0; i--) {
      at += (rest % shape[i]) * stride;
      rest = Math.floor(rest / shape[i]);
      stride *= wide[i];
    }
    return at;
  };
}

class ElementsState implements BatchAggregateState {
  private readonly groups: Elements[] = [];

  constructor(private readonly kind: "min" | "max" | "sum" | "avg", private readonly context: FunctionContext) {}

  update(groups: Int32Array | undefined, [column]: BatchColumn[], rowCount: number): void {
    const reader = readerOf(column, this.context), pace = new Pace(this.context);
    for (let row = 0; row < rowCount; row++) {
      const group = groups === undefined ? 0 : groups[row];
      const elements = this.groups[group] ??= new Elements(this.kind, this.context);
      if (!reader.open(row)) continue;
      elements.add(reader);
      pace.spend(8 + reader.length);
    }
  }

  merge(later: ElementsState, mapping: Int32Array): void {
    later.groups.forEach((elements, group) =>
      (this.groups[mapping[group]] ??= new Elements(this.kind, this.context)).merge(elements)
    );
  }

  finish(out: BatchOut, groupCount: number): void {
    for (let group = 0; group < groupCount; group++) write(out, group, this.groups[group]?.result());
  }

  sizeBytes(): number {
    return this.groups.reduce((sum, elements) => sum + (elements?.size ?? 0), 0);
  }
}

const ELEMENTS: [kind: "min" | "max" | "sum" | "avg", what: string][] = [
  ["min", "smallest elements"],
  ["max", "greatest elements"],
  ["sum", "sums of the elements"],
  ["avg", "averages of the elements"],
];
export const elementFunctions = ELEMENTS.flatMap(([kind, what]): FunctionEntry[] => [
  batchEntry(
    `array_elem_${kind}`,
    [ARRAY("first"), { name: "next", type: "array", variadic: true }],
    widest,
    `The ${what} at each position of several arrays.`,
    (columns, out, rowCount, context) =>
      each(
        (row) => {
          const elements = new Elements(kind, context);
          for (const column of columns) {
            const reader = readerOf(column, context);
            if (reader.open(row)) elements.add(reader);
          }
          write(out, row, elements.result());
        },
        rowCount,
        context,
      ),
  ),
  batchEntry(
    `array_elem_${kind}`,
    [ARRAY("array")],
    same,
    `The ${what} at each position, over the arrays of all rows.`,
    undefined,
    [],
    {
      aggregate: { kind: "batch", create: (_, __, context) => new ElementsState(kind, context) },
    },
  ),
]);
