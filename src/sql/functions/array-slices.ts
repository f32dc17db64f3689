/** Elements and slices of arrays: `a[2]`, `a[1:3, 2]`. */
import { NULL_I64, type Value } from "../../types/mod.ts";
import { arrayDimensions } from "../../types/wide.ts";
import { ARRAY, type ArrayReader, arrayTag, each, readerOf, writeShape } from "./array-values.ts";
import { elementKernel, sliceKernel } from "./array-kernels.ts";
import { inRuns, toArraysInRuns } from "./array-runs.ts";
import { batchEntry } from "./batch-entry.ts";
import type { BatchColumn, BatchFunction, BatchOut, FunctionEntry } from "./entry.ts";

/** Kinds of subscripts: `a[from]`, `a[from:to]`, `a[from:]`. */
export const SUBSCRIPT = { index: 0n, slice: 1n, sliceToEnd: 2n };
const INDEX = Number(SUBSCRIPT.index), SLICE = Number(SUBSCRIPT.slice), SLICE_TO_END = Number(SUBSCRIPT.sliceToEnd);

/** Index from 0 of an element that is counted from 1, or from the end if it is negative. */
const placeOf = (index: number, length: number): number => index < 0 ? length + index : index - 1;

const numberOf = (value: bigint): number => value === NULL_I64 ? NaN : Number(value);

/** What the subscripts of a row take of an array. */
class Cut {
  /** By dimension. */
  readonly from: number[] = [];
  readonly to: number[] = [];
  /** The lengths of the dimensions that are kept. */
  readonly shape: number[] = [];
  private readonly constants: (number | undefined)[];

  /** `numbers`: three for each subscript, its kind, `from` and `to`. `to` counts only for a slice with an end. */
  constructor(private readonly numbers: readonly BatchColumn[], rowCount: number) {
    this.constants = numbers.map(({ isConstant, values }) =>
      isConstant && rowCount > 0 ? numberOf(values[0]) : undefined
    );
  }

  private number(k: number, row: number): number {
    return this.constants[k] ?? numberOf(this.numbers[k].values[row]);
  }

  /** False if an element does not exist, or a bound is NULL. `lengths`: of the array. */
  read(row: number, lengths: readonly number[]): boolean {
    const { from, to, shape, numbers } = this;
    shape.length = 0;
    for (let k = 0; k < lengths.length; k++) {
      const length = lengths[k], isWhole = 3 * k >= numbers.length;
      const kind = isWhole ? SLICE_TO_END : this.number(3 * k, row), first = isWhole ? 1 : this.number(3 * k + 1, row);
      const start = placeOf(first, length);
      if (kind === INDEX) {
        if (!(start >= 0 && start < length)) return false;
        from[k] = start;
        to[k] = start + 1;
      } else {
        const end = kind === SLICE ? placeOf(this.number(3 * k + 2, row), length) : length;
        if (Number.isNaN(start) || Number.isNaN(end)) return false;
        from[k] = Math.max(0, start);
        to[k] = Math.max(from[k], Math.min(length, end));
        shape.push(to[k] - from[k]);
      }
    }
    return true;
  }

  /** Of an array that was opened, if there are indices alone. */
  element(array: ArrayReader): number {
    let at = 0;
    for (let k = 0; k < array.shape.length; k++) at = at * array.shape[k] + this.from[k];
    return array.element(at);
  }

  /** Writes the part of the array that was opened. */
  write(out: BatchOut, row: number, array: ArrayReader): void {
    const { from, to, shape } = this, last = from.length - 1;
    const { view, at } = writeShape(out, row, shape);
    let end = at;
    const copy = (k: number, offset: number) => {
      const stride = offset * array.shape[k];
      for (let i = from[k]; i < to[k]; i++) {
        if (k < last) copy(k + 1, stride + i);
        else {
          view.setFloat64(end, array.element(stride + i), true);
          end += 8;
        }
      }
    };
    copy(0, 0);
  }
}

/** The kinds of subscripts if they are constants. */
function kindsOf(numbers: readonly BatchColumn[]): number[] | undefined {
  const kinds = numbers.filter((_, k) => k % 3 === 0);
  return kinds.every(({ isConstant }) => isConstant) ? kinds.map(({ values }) => numberOf(values[0])) : undefined;
}

/** `array_slice(array, kind, from, to, …)`. */
const slice: BatchFunction = ([column, ...numbers], out, rowCount, context) => {
  const reader = readerOf(column, context), cut = new Cut(numbers, rowCount), isElement = out.type === "DOUBLE";
  const one = (row: number) => {
    if (!reader.open(row) || !cut.read(row, reader.shape)) return out.setNull(row);
    if (isElement) out.values[row] = cut.element(reader);
    else cut.write(out, row, reader);
  };
  const kinds = rowCount === 0 ? undefined : kindsOf(numbers), { memory } = context.heap;
  const indexCount = kinds?.findIndex((kind) => kind !== INDEX) ?? -1;
  // Elements are side by side if only one dimension is cut, behind those with an index.
  if (kinds === undefined || indexCount >= 0 && indexCount < kinds.length - 1) return each(one, rowCount, context);
  const { address } = column, froms = numbers.filter((_, k) => k % 3 === 1).map((number) => number.address);
  if (isElement) {
    const element = elementKernel(memory, kinds.length);
    inRuns([column], rowCount, context, (from, to) => element(address, from, to, out.address, ...froms), one);
  } else {
    const isClosed = kinds.at(-1) === SLICE, end = indexCount < 0 ? "whole" : isClosed ? "closed" : "open";
    const kernel = sliceKernel(
      memory,
      arrayDimensions(column.type),
      indexCount < 0 ? kinds.length : indexCount,
      end,
    );
    const columns = isClosed ? [...froms, numbers.at(-1)!.address] : froms;
    const run = (from: number, to: number, at: number) => kernel(address, from, to, out.address, at, ...columns);
    toArraysInRuns([column], out, rowCount, context, run, one);
  }
};

function sliceType(types: string[], constants: readonly (Value | undefined)[] = []): string {
  let dimensions = arrayDimensions(types[0]);
  for (let i = 1; i < types.length; i += 3) if (Number(constants[i] ?? 1) === INDEX) dimensions--;
  return dimensions <= 0 ? "DOUBLE" : arrayTag(dimensions);
}

/** Element 0 does not exist. */
const noZero: FunctionEntry["check"] = (constants) => {
  if (constants.length % 3 !== 1) return { message: "expected three numbers for each subscript" };
  for (let i = 1; i + 2 < constants.length; i += 3) {
    const zero = [i + 1, i + 2].find((at) => constants[at] === 0 || constants[at] === 0n);
    if (zero !== undefined) return { argument: zero, message: "elements count from 1" };
  }
  return undefined;
};

export const sliceFunction: FunctionEntry = batchEntry(
  "array_slice",
  [ARRAY("array"), { name: "number", type: "LONG", variadic: true }],
  sliceType,
  "Elements and slices of an array, as in `a[1, 2:4]`.",
  slice,
  [],
  { check: noZero },
);
