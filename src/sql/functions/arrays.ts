/**
 * Arrays of DOUBLE with any number of dimensions: elements and slices, element-wise arithmetic, reductions. Indices
 * count from 1; negative indices count from the end.
 */
import { NULL_I32, typeOf } from "../../types/mod.ts";
import { arrayDimensions } from "../../types/wide.ts";
import { elementFunctions } from "./array-elements.ts";
import {
  areEqual,
  areSame,
  byRow,
  combined,
  deviation,
  insertionPoint,
  mean,
  product,
  shift,
  sort,
  total,
  transposed,
  withoutNulls,
} from "./array-grids.ts";
import {
  ARRAY,
  type ArrayReader,
  arrayTag,
  each,
  type Grid,
  grid,
  POLL_ELEMENTS,
  read,
  readerOf,
  same,
  unfit,
  widest,
  write,
  writeShape,
} from "./array-values.ts";
import {
  bookKernel,
  type Change,
  changeKernel,
  combiningKernel,
  dotKernel,
  type Form,
  lengthKernel,
  literalKernels,
  type Operation,
  type Reduction,
  reductionKernel,
  searchKernel,
  shiftKernel,
  sortKernel,
} from "./array-kernels.ts";
import { inRuns, toArraysInRuns } from "./array-runs.ts";
import { sliceFunction } from "./array-slices.ts";
import { batchEntry } from "./batch-entry.ts";
import type { BatchColumn, BatchOut, FunctionContext, FunctionEntry } from "./entry.ts";
import { NUMBERS } from "./nodes.ts";
import { roundedTo } from "./numeric.ts";

/** Returns a row of any numeric column as a number; NaN for null. */
function numberAt(column: BatchColumn, row: number): number {
  if (column.type === "NULL") return NaN;
  const value = column.values[row];
  if (column.type === "DOUBLE") return value;
  const { nullable, nullValue } = typeOf(column.type);
  return nullable && value === nullValue ? NaN : Number(value);
}

/** Makes a function from an array to a number. `of` receives the non-null elements, at least one. A kernel does the same with short arrays. */
function reduction(
  name: string,
  summary: string,
  of: (present: Float64Array) => number,
  kernel?: Reduction,
): FunctionEntry {
  return batchEntry(name, [ARRAY("array")], "DOUBLE", summary, ([column], out, rowCount, context) => {
    const one = (row: number) => {
      const values = read(column, row, context)?.values ?? new Float64Array(0);
      const present = withoutNulls(values);
      out.values[row] = present.length === 0 ? NaN : of(present);
    };
    if (kernel === undefined) return each(one, rowCount, context);
    const reduce = reductionKernel(context.heap.memory, kernel);
    inRuns([column], rowCount, context, (from, to) => reduce(column.address, from, to, out.address), one);
  });
}

/** Makes a function from an array to another array. A kernel does the same with short arrays. */
function mapping(
  name: string,
  summary: string,
  returns: FunctionEntry["returns"],
  of: (array: Grid, context: FunctionContext) => Grid | undefined,
  { ofNull, kernel }: { ofNull?: Grid; kernel?: Change } = {},
): FunctionEntry {
  return batchEntry(name, [ARRAY("array")], returns, summary, ([column], out, rowCount, context) => {
    const one = (row: number) => {
      const array = read(column, row, context);
      write(out, row, array === undefined ? ofNull : of(array, context));
    };
    if (kernel === undefined) return each(one, rowCount, context);
    const change = changeKernel(context.heap.memory, kernel);
    const run = (from: number, to: number, at: number) => change(column.address, from, to, out.address, at);
    toArraysInRuns([column], out, rowCount, context, run, one);
  });
}

const flat = (): string => arrayTag(1);

/** Numbers as arrays without dimensions, one for each column. */
const scalars = new WeakMap<BatchColumn, Grid>();

/** Valid until the column's next one is read. */
function operandAt(column: BatchColumn, row: number, context: FunctionContext): Grid | undefined {
  if (arrayDimensions(column.type) > 0) return read(column, row, context);
  let scalar = scalars.get(column);
  if (scalar === undefined) scalars.set(column, scalar = { shape: [], values: new Float64Array(1) });
  scalar.values[0] = numberAt(column, row);
  return scalar;
}

const OPERATIONS: [name: Operation, summary: string, of: (x: number, y: number) => number][] = [
  ["+", "Sum, element by element.", (x, y) => x + y],
  ["-", "Difference, element by element.", (x, y) => x - y],
  ["*", "Product, element by element.", (x, y) => x * y],
  ["/", "Quotient, element by element.", (x, y) => x / y],
];

/** A short array of the result, if both are of the same shape or one is a number. False if it is not written. */
function writeCombined(
  a: ArrayReader | number,
  b: ArrayReader | number,
  operation: (x: number, y: number) => number,
  out: BatchOut,
  row: number,
): boolean {
  const many = typeof a === "number" ? b : a;
  if (typeof many === "number" || many.length > POLL_ELEMENTS) return false;
  if (typeof a !== "number" && typeof b !== "number" && !areSame(a.shape, b.shape)) return false;
  const { view, at } = writeShape(out, row, many.shape);
  for (let k = 0; k < many.length; k++) {
    const value = operation(typeof a === "number" ? a : a.element(k), typeof b === "number" ? b : b.element(k));
    view.setFloat64(at + 8 * k, Number.isFinite(value) ? value : NaN, true);
  }
  return true;
}

const FORMS: [left: string, right: string, Form][] = [["array", "array", "both"], ["array", "DOUBLE", "left"], [
  "DOUBLE",
  "array",
  "right",
]];

/** Kernels read arrays and DOUBLEs, but NULL is of neither type. */
const isOfForm = ({ type }: BatchColumn, wanted: string): boolean =>
  wanted === "array" ? arrayDimensions(type) > 0 : type === wanted;

const arithmetic = OPERATIONS.flatMap(([name, summary, of]) =>
  FORMS.map(([left, right, form]) =>
    batchEntry(
      name,
      [{ name: "a", type: left }, { name: "b", type: right }],
      widest,
      summary,
      ([a, b], out, rowCount, context) => {
        const [x, y] = [a, b].map((column) => arrayDimensions(column.type) > 0 ? readerOf(column, context) : undefined);
        const one = (row: number) => {
          if (x?.open(row) === false || y?.open(row) === false) return out.setNull(row);
          if (writeCombined(x ?? numberAt(a, row), y ?? numberAt(b, row), of, out, row)) return;
          write(out, row, combined(operandAt(a, row, context)!, operandAt(b, row, context)!, of, context));
        };
        if (!isOfForm(a, left) || !isOfForm(b, right)) return each(one, rowCount, context);
        const combine = combiningKernel(context.heap.memory, name, form);
        const run = (from: number, to: number, at: number) => combine(a.address, b.address, from, to, out.address, at);
        toArraysInRuns(form === "right" ? [b] : form === "left" ? [a] : [a, b], out, rowCount, context, run, one);
      },
    )
  )
);

/** Of the arrays of literals that are made between two polls. */
const LITERALS_BYTES = 1 << 18;

/** Array literals of expressions: numbers, or arrays of equal shape. */
const literals: FunctionEntry[] = [
  batchEntry(
    "array_of",
    [{ name: "element", type: "DOUBLE", variadic: true }],
    flat,
    "An array of the given numbers.",
    (columns, out, rowCount, context) => {
      const { begin, fill } = literalKernels(context.heap.memory), sizeBytes = 8 + 8 * columns.length;
      const runRows = Math.ceil(LITERALS_BYTES / sizeBytes);
      for (let row = 0; row < rowCount; row += runRows) {
        const to = Math.min(rowCount, row + runRows), at = out.reserve(sizeBytes * (to - row));
        begin(row, to, out.address, at, columns.length);
        columns.forEach(({ address }, k) => fill(address, row, to, at + 8 + 8 * k, sizeBytes));
        context.poll();
      }
    },
  ),
  batchEntry(
    "array_of",
    [{ name: "row", type: "array", variadic: true }],
    (types) => arrayTag(arrayDimensions(types[0]) + 1),
    "An array whose elements are the given arrays.",
    (columns, out, rowCount, context) =>
      each(
        (row) => {
          const rows = columns.map((column) => read(column, row, context));
          const first = rows.find((each) => each !== undefined);
          if (first === undefined || rows.includes(undefined)) return write(out, row, undefined);
          if (rows.some((each) => !areSame(each!.shape, first.shape))) {
            throw unfit("the rows of an array must have the same length", context);
          }
          const size = first.values.length;
          const value = (i: number) => rows[Math.floor(i / size)]!.values[i % size];
          write(out, row, grid([rows.length, ...first.shape], value, context));
        },
        rowCount,
        context,
      ),
  ),
];

const ofDimensions = (wanted: number, count: number): FunctionEntry["check"] => (_, types) => {
  const wrong = types.slice(0, count).findIndex((type) => arrayDimensions(type) !== wanted);
  return wrong < 0 ? undefined : { argument: wrong, message: `expected an array of ${wanted} dimensions` };
};

function optional(name: string, type: string, constant = false) {
  return { name, type, optional: true, ...(constant ? { constant } : {}) };
}

const isTrue = (column: BatchColumn | undefined, row: number): boolean =>
  column !== undefined && column.values[row] === 1;

const isFiller = (type: string): boolean =>
  (NUMBERS as readonly string[]).includes(type) || type === "NULL" || arrayDimensions(type) > 0;

/** `size` is a number, or an array that has as many elements. */
const builders: FunctionEntry[] = ["INT", "LONG", "array"].map((sizeType) =>
  batchEntry(
    "array_build",
    [{ name: "arrays", type: "INT", constant: true }, { name: "size", type: sizeType }, {
      name: "filler",
      type: "any",
      variadic: true,
    }],
    (_, constants = []) => arrayTag(Number(constants[0] ?? 1) > 1 ? 2 : 1),
    "An array of the given size, or as long as another array, filled with a number or with an array's elements.",
    ([count, size, ...fillers], out, rowCount, context) => {
      const none = typeOf(size.type).nullValue;
      const numberOf = (row: number) => size.values[row] === none ? undefined : Number(size.values[row]);
      const lengthOf = sizeType === "array" ? (row: number) => read(size, row, context)?.values.length : numberOf;
      each(
        (row) => {
          const arrays = count.values[row] as number, length = lengthOf(row);
          if (length === undefined) return write(out, row, undefined);
          if (length < 0) throw unfit("the size of an array must not be negative", context);
          const rows = fillers.map((filler) => {
            const found = operandAt(filler, row, context);
            return (i: number): number =>
              found === undefined ? NaN : found.shape.length === 0 ? found.values[0] : found.values[i] ?? NaN;
          });
          write(
            out,
            row,
            arrays > 1
              ? grid([arrays, length], (i) => rows[Math.floor(i / length)](i % length), context)
              : grid([length], rows[0], context),
          );
        },
        rowCount,
        context,
      );
    },
    [],
    {
      check: (constants, types) => {
        const count = Number(constants[0]);
        if (!(count >= 1)) return { argument: 0, message: "expected at least one array" };
        if (arrayDimensions(types[1]) > 1) {
          return {
            argument: 1,
            message: "expected a number or an array of 1 dimension",
          };
        }
        const unfit = types.findIndex((type, k) => k >= 2 && !isFiller(type));
        if (unfit > 0) {
          return {
            argument: unfit,
            message: `array_build: a filler must be a number or an array: found ${types[unfit]}`,
          };
        }
        return types.length - 2 === count ? undefined : { message: `expected ${count} fillers, one for each array` };
      },
    },
  )
);

const others: FunctionEntry[] = [
  batchEntry(
    "array_count",
    [ARRAY("array")],
    "INT",
    "The number of elements that are not null.",
    ([column], out, rowCount, context) => {
      const count = reductionKernel(context.heap.memory, "count");
      inRuns([column], rowCount, context, (from, to) => count(column.address, from, to, out.address), (row) => {
        out.values[row] = withoutNulls(read(column, row, context)?.values ?? new Float64Array()).length;
      });
    },
  ),
  batchEntry(
    "array_position",
    [ARRAY("array"), { name: "value", type: "DOUBLE" }],
    "INT",
    "The position of a value's first occurrence, counted from 1; null if there is none.",
    ([column, wanted], out, rowCount, context) => {
      const find = searchKernel(context.heap.memory, "position");
      const run = (from: number, to: number) => find(column.address, wanted.address, from, to, out.address, 0);
      inRuns([column], rowCount, context, run, (row) => {
        const value = wanted.values[row] as number;
        const at = read(column, row, context)?.values.findIndex((other) =>
          areEqual(other, value) || (Number.isNaN(value) && Number.isNaN(other))
        );
        out.values[row] = at === undefined || at < 0 ? NULL_I32 : at + 1;
      });
    },
    [],
    { check: ofDimensions(1, 1) },
  ),
  batchEntry(
    "array_sort",
    [ARRAY("array"), optional("descending", "BOOLEAN"), optional("nullsFirst", "BOOLEAN")],
    same,
    "Each row sorted. Nulls are last, or first in descending order.",
    ([column, descending, nullsFirst], out, rowCount, context) => {
      const one = (row: number) => {
        const array = read(column, row, context), falls = isTrue(descending, row);
        const first = nullsFirst === undefined ? falls : isTrue(nullsFirst, row);
        write(
          out,
          row,
          array === undefined ? undefined : byRow(array, context, (values) => sort(values, falls, first, context)),
        );
      };
      if (rowCount === 0 || descending?.isConstant === false || nullsFirst?.isConstant === false) {
        return each(one, rowCount, context);
      }
      const falls = isTrue(descending, 0), first = nullsFirst === undefined ? falls : isTrue(nullsFirst, 0);
      const sorted = sortKernel(context.heap.memory, falls, first);
      const run = (from: number, to: number, at: number) => sorted(column.address, from, to, out.address, at);
      toArraysInRuns([column], out, rowCount, context, run, one);
    },
  ),
  batchEntry(
    "dim_length",
    [ARRAY("array"), { name: "dimension", type: "INT", constant: true }],
    "INT",
    "The length of a dimension.",
    ([column, dimension], out, rowCount, context) => {
      const length = lengthKernel(context.heap.memory);
      const run = (from: number, to: number) => length(column.address, from, to, out.address, dimension.values[0]);
      inRuns([column], rowCount, context, run, (row) => {
        out.values[row] = read(column, row, context)?.shape[dimension.values[row] - 1] ?? 0;
      });
    },
    [],
    {
      check: (constants, types) => {
        const dimension = Number(constants[1]), most = arrayDimensions(types[0]);
        return dimension >= 1 && dimension <= most
          ? undefined
          : { argument: 1, message: `expected a dimension from 1 to ${most}` };
      },
    },
  ),
  batchEntry(
    "array_length",
    [ARRAY("array"), { name: "dimension", type: "INT" }],
    "INT",
    "The length of a dimension, as in PostgreSQL: NULL if the array is NULL or empty or has no such dimension.",
    ([column, dimension], out, rowCount, context) =>
      each(
        (row) => {
          const length = read(column, row, context)?.shape[Number(dimension.values[row]) - 1];
          out.values[row] = length === undefined || length === 0 ? NULL_I32 : length;
        },
        rowCount,
        context,
      ),
    [["array_length(array[[1.0, 2.0, 3.0]], 2)", 3], ["array_length(array[1.0], 2)", null]],
  ),
  ...FORMS.map(([left, right, form]) =>
    batchEntry(
      "dot_product",
      [{ name: "a", type: left }, { name: "b", type: right }],
      "DOUBLE",
      "The sum of the products of elements at the same position. Nulls are ignored.",
      ([a, b], out, rowCount, context) => {
        const one = (row: number) => {
          const x = operandAt(a, row, context), y = operandAt(b, row, context);
          // A null array has no elements, unless it is multiplied by a number.
          if (x === undefined || y === undefined) {
            out.values[row] = left === right ? 0 : NaN;
            return;
          }
          // A null number makes every product null.
          if ([x, y].some(({ shape, values }) => shape.length === 0 && Number.isNaN(values[0]))) {
            out.values[row] = NaN;
            return;
          }
          if (x.shape.length > 0 && y.shape.length > 0 && !areSame(x.shape, y.shape)) {
            throw unfit("the arrays have different shapes", context);
          }
          const many = x.shape.length > 0 ? x : y;
          let sum = 0;
          for (let k = 0; k < many.values.length; k++) {
            const term = x.values[x === many ? k : 0] * y.values[y.shape.length > 0 ? k : 0];
            if (!Number.isNaN(term)) sum += term;
          }
          out.values[row] = sum;
        };
        if (!isOfForm(a, left) || !isOfForm(b, right)) return each(one, rowCount, context);
        const dot = dotKernel(context.heap.memory, form);
        const run = (from: number, to: number) => dot(a.address, b.address, from, to, out.address);
        inRuns(form === "right" ? [b] : form === "left" ? [a] : [a, b], rowCount, context, run, one);
      },
    )
  ),
  batchEntry(
    "matmul",
    [ARRAY("a"), ARRAY("b")],
    () => arrayTag(2),
    "The product of two matrices.",
    ([a, b], out, rowCount, context) =>
      each(
        (row) => {
          const x = read(a, row, context), y = read(b, row, context);
          write(out, row, x === undefined || y === undefined ? undefined : product(x, y, context));
        },
        rowCount,
        context,
      ),
    [],
    { check: ofDimensions(2, 2) },
  ),
  batchEntry(
    "shift",
    [ARRAY("array"), { name: "places", type: "INT" }, optional("fill", "DOUBLE")],
    same,
    "Each row with its elements moved to the right by a number of places, or to the left if it is negative. Free places are null or the fill value.",
    ([column, places, fill], out, rowCount, context) => {
      const shifted = shiftKernel(context.heap.memory, fill !== undefined);
      const run = (from: number, to: number, at: number) =>
        shifted(column.address, places.address, fill?.address ?? 0, from, to, out.address, at);
      toArraysInRuns([column], out, rowCount, context, run, (row) => {
        const array = read(column, row, context), by = places.values[row] as number;
        const free = fill === undefined ? NaN : fill.values[row] as number;
        write(
          out,
          row,
          array === undefined ? undefined : byRow(array, context, (values) => shift(values, by, free)),
        );
      });
    },
  ),
  batchEntry(
    "round",
    [ARRAY("array"), { name: "decimals", type: "INT" }],
    same,
    "The array with its elements rounded to a number of decimals.",
    ([column, places], out, rowCount, context) =>
      each(
        (row) => {
          const array = read(column, row, context), digits = places.values[row] as number;
          write(out, row, array && grid(array.shape, (k) => roundedTo(array.values[k], digits), context));
        },
        rowCount,
        context,
      ),
    [["round(ARRAY[1.25, -2.567], 1)", "[1.3,-2.6]"]],
  ),
  batchEntry(
    "insertion_point",
    [ARRAY("array"), { name: "value", type: "DOUBLE" }, optional("before", "BOOLEAN")],
    "INT",
    "The position at which a value is inserted into a sorted array, counted from 1: after equal elements, or before them if `before` is true.",
    ([column, wanted, before], out, rowCount, context) => {
      const one = (row: number) => {
        const values = read(column, row, context)?.values;
        out.values[row] = values === undefined
          ? NULL_I32
          : insertionPoint(values, wanted.values[row], isTrue(before, row));
      };
      if (rowCount === 0 || before?.isConstant === false) return each(one, rowCount, context);
      const find = searchKernel(context.heap.memory, "insertion"), isBefore = isTrue(before, 0) ? 1 : 0;
      const run = (from: number, to: number) => find(column.address, wanted.address, from, to, out.address, isBefore);
      inRuns([column], rowCount, context, run, one);
    },
    [],
    { check: ofDimensions(1, 1) },
  ),
  batchEntry(
    "l2price",
    [{ name: "size", type: "DOUBLE" }, ARRAY("sizes"), ARRAY("prices")],
    "DOUBLE",
    "The average price of trading a size against a book's levels, best first. Null if the book is too small.",
    ([wanted, sizes, prices], out, rowCount, context) => {
      const price = bookKernel(context.heap.memory);
      const run = (from: number, to: number) =>
        price(wanted.address, sizes.address, prices.address, from, to, out.address);
      inRuns([sizes, prices], rowCount, context, run, (row) => {
        const size = wanted.values[row] as number,
          volumes = read(sizes, row, context)?.values,
          levels = read(prices, row, context)?.values;
        if (volumes !== undefined && levels !== undefined && volumes.length !== levels.length) {
          throw unfit("the book's sizes and prices have different lengths", context);
        }
        out.values[row] = volumes === undefined || levels === undefined ? NaN : bookPrice(size, volumes, levels);
      });
    },
  ),
];

function bookPrice(size: number, volumes: Float64Array, prices: Float64Array): number {
  if (size === 0) return prices[0] ?? NaN;
  let rest = size, paid = 0;
  for (let i = 0; i < volumes.length; i++) {
    const taken = Math.min(rest, volumes[i]);
    paid += taken * prices[i];
    rest -= taken;
    if (rest <= 0) return paid / size;
  }
  return NaN;
}

export const arrayFunctions: FunctionEntry[] = [
  ...arithmetic,
  ...literals,
  reduction("array_sum", "The sum of the elements.", total, "sum"),
  reduction("array_avg", "The average of the elements.", mean, "avg"),
  reduction("array_min", "The smallest element.", (values) => values.reduce((a, b) => Math.min(a, b)), "min"),
  reduction("array_max", "The greatest element.", (values) => values.reduce((a, b) => Math.max(a, b)), "max"),
  reduction("array_stddev", "The sample standard deviation.", (values) => deviation(values, 1)),
  reduction("array_stddev_samp", "The sample standard deviation.", (values) => deviation(values, 1)),
  reduction("array_stddev_pop", "The population standard deviation.", (values) => deviation(values, 0)),
  mapping(
    "array_cum_sum",
    "The cumulative sums of all elements, in one row. Null if there are none.",
    flat,
    ({ values }, context) => {
      if (values.length === 0) return undefined;
      let sum = NaN;
      return grid([values.length], (i) => {
        if (!Number.isNaN(values[i])) sum = (Number.isNaN(sum) ? 0 : sum) + values[i];
        return sum;
      }, context);
    },
    { kernel: "sums" },
  ),
  mapping(
    "neg",
    "The negative of each element.",
    same,
    (array) => {
      const { values } = array;
      for (let i = 0; i < values.length; i++) values[i] = -values[i];
      return array;
    },
    { kernel: "negative" },
  ),
  mapping(
    "array_reverse",
    "Each row with its elements in reverse order.",
    same,
    (array, context) => byRow(array, context, (row) => row.reverse()),
    { kernel: "reverse" },
  ),
  mapping("flatten", "All elements in one row. A null array has none.", flat, ({ values }) => ({
    shape: [values.length],
    values,
  }), { ofNull: { shape: [0], values: new Float64Array(0) } }),
  mapping("transpose", "The transposed array: rows and columns are exchanged.", same, transposed),
  ...builders,
  ...elementFunctions,
  sliceFunction,
  ...others,
];
