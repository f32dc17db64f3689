/** Compares functions over arrays with plain versions of them, for short arrays, which kernels process, and long ones. */
import assert from "node:assert/strict";
import { encodeArray } from "../../types/array-text.ts";
import { NULL_I32, NULL_I64 } from "../../types/mod.ts";
import { randomOf, SEED } from "../../testing.ts";
import { SHORT_ARRAY_BYTES } from "./array-runs.ts";
import { called as calledOf } from "./testing-batches.ts";

interface Grid {
  shape: number[];
  values: number[];
}
type Value = Grid | number | bigint | undefined;

const random = randomOf(SEED);
const ROWS = 60;

const ELEMENTS = [NaN, NaN, 0, -0, 1, 1, -1, 2, 2.5, 5, 5 + 1e-11, 1e300, -1e300, Infinity, -Infinity];
const element = () => random(4) === 0 ? random(2000) / 16 - 50 : ELEMENTS[random(ELEMENTS.length)]!;

function gridOf(dimensions: number, isLong = false): Grid {
  const shape = Array.from({ length: dimensions }, () => random(4));
  if (random(3) > 0) shape.fill(Math.max(1, shape[0]!));
  if (isLong) shape[dimensions - 1] = SHORT_ARRAY_BYTES / 8 + random(9);
  const size = shape.reduce((product, length) => product * length, 1);
  return { shape, values: Array.from({ length: size }, element) };
}

/** One in nine is NULL, and one in thirty is long. */
const arrays = (dimensions: number): (Grid | undefined)[] =>
  Array.from({ length: ROWS }, () => random(9) === 0 ? undefined : gridOf(dimensions, random(30) === 0));
/** As long as the others, mostly. */
const likeArrays = (others: readonly (Grid | undefined)[]) =>
  others.map((other) =>
    random(9) === 0 ? undefined : other && { shape: other.shape, values: other.values.map(element) }
  );
const numbers = () => Array.from({ length: ROWS }, element);
const integers = (): number[] => Array.from({ length: ROWS }, () => random(7) === 0 ? NULL_I32 : random(13) - 6);
/** Subscripts: 0 is no element. */
const EXTREMES = [NULL_I64, NULL_I64 + 1n, 2n ** 32n, 2n ** 63n - 1n];
const longs = (): bigint[] =>
  Array.from({ length: ROWS }, () => random(7) === 0 ? EXTREMES[random(EXTREMES.length)]! : BigInt(random(9) - 4));

const isGrid = (value: Value): value is Grid => typeof value === "object";

function called(
  name: string,
  types: string[],
  args: Value[][],
  returns: string,
  constants: Record<number, number | bigint> = {},
): Value[] {
  const stored = (value: Value) => isGrid(value) ? encodeArray(value.shape, Float64Array.from(value.values)) : value;
  return calledOf(name, types, args.map((values) => values.map(stored)), returns, constants).map((found) => {
    if (!(found instanceof Uint8Array)) return found;
    const words = new Uint32Array(found.buffer, 0, 1 + new DataView(found.buffer).getUint32(0, true));
    return { shape: [...words.subarray(1)], values: [...new Float64Array(found.buffer.slice(4 * words.length))] };
  });
}

const finite = (grid: Grid | undefined) =>
  grid && { shape: grid.shape, values: grid.values.map((value) => Number.isFinite(value) ? value : NaN) };
const known = (values: readonly number[]) => values.filter((value) => !Number.isNaN(value));
const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
const alike = (a: number, b: number) => Math.abs(a - b) <= 1e-10;

/** Changes each run of the last dimension. */
function runs(grid: Grid | undefined, change: (run: number[]) => number[]): Grid | undefined {
  if (grid === undefined) return undefined;
  const length = grid.shape.at(-1)!, values: number[] = [];
  for (let at = 0; length > 0 && at < grid.values.length; at += length) {
    values.push(...change(grid.values.slice(at, at + length)));
  }
  return finite({ shape: grid.shape, values });
}

/** As typed arrays are sorted: -0 is before 0. */
function sorted(run: number[], isDescending: boolean, nullsFirst: boolean): number[] {
  const values = [...Float64Array.from(known(run)).sort()], nulls = run.filter(Number.isNaN);
  if (isDescending) values.reverse();
  return nullsFirst ? [...nulls, ...values] : [...values, ...nulls];
}

const REDUCTIONS: Record<string, (values: number[]) => number> = {
  array_sum: (values) => values.length === 0 ? NaN : sum(values),
  array_avg: (values) => sum(values) / values.length,
  array_min: (values) => values.length === 0 ? NaN : Math.min(...values),
  array_max: (values) => values.length === 0 ? NaN : Math.max(...values),
};
const TAGS = ["DOUBLE[]", "DOUBLE[][]", "DOUBLE[][][]"];

Deno.test("functions from an array to a number", () => {
  for (const [k, tag] of [...TAGS, ...TAGS].entries()) {
    const column = arrays(1 + k % 3);
    for (const [name, of] of Object.entries(REDUCTIONS)) {
      const expected = column.map((array) => of(known(array?.values ?? [])));
      assert.deepEqual(called(name, [tag], [column], "DOUBLE"), expected, name);
    }
    assert.deepEqual(
      called("array_count", [tag], [column], "INT"),
      column.map((array) => known(array?.values ?? []).length),
    );
    for (let dimension = 1; dimension <= 4; dimension++) {
      assert.deepEqual(
        called("dim_length", [tag, "INT"], [column, Array(ROWS).fill(dimension)], "INT", { 1: dimension }),
        column.map((array) => array?.shape[dimension - 1] ?? 0),
      );
    }
  }
});

Deno.test("functions that look for a value in an array", () => {
  for (let round = 0; round < 10; round++) {
    const column = arrays(1), wanted = numbers();
    const position = column.map((array, row) => {
      const at = array?.values.findIndex((value) =>
        alike(value, wanted[row]!) || Object.is(value, wanted[row]) && Number.isNaN(value)
      );
      return at === undefined || at < 0 ? NULL_I32 : at + 1;
    });
    assert.deepEqual(called("array_position", ["DOUBLE[]", "DOUBLE"], [column, wanted], "INT"), position);
    for (const before of [0, 1]) {
      const place = column.map((array, row) => {
        if (array === undefined) return NULL_I32;
        const value = wanted[row]!, { values } = array, falls = values.length > 1 && !(values[0]! <= values.at(-1)!);
        if (Number.isNaN(value)) return 1;
        const at = values.findIndex((other) =>
          alike(other, value) ? before === 1 : falls ? other < value : other > value
        );
        return (at < 0 ? values.length : at) + 1;
      });
      const types = ["DOUBLE[]", "DOUBLE", "BOOLEAN"], args = [column, wanted, Array(ROWS).fill(before)];
      assert.deepEqual(called("insertion_point", types, args, "INT", { 2: before }), place);
      assert.deepEqual(called("insertion_point", types, args, "INT"), place);
    }
  }
});

Deno.test("l2price() takes levels until there is enough", () => {
  for (let round = 0; round < 10; round++) {
    const volumes = arrays(1), prices = likeArrays(volumes), sizes = numbers();
    const expected = sizes.map((size, row) => {
      const [volume, price] = [volumes[row], prices[row]];
      if (volume === undefined || price === undefined) return NaN;
      if (size === 0) return price.values[0] ?? NaN;
      let rest = size, paid = 0;
      for (const [k, most] of volume.values.entries()) {
        const taken = Math.min(rest, most);
        paid += taken * price.values[k]!;
        rest -= taken;
        if (rest <= 0) return paid / size;
      }
      return NaN;
    });
    assert.deepEqual(
      called("l2price", ["DOUBLE", "DOUBLE[]", "DOUBLE[]"], [sizes, volumes, prices], "DOUBLE"),
      expected,
    );
  }
});

Deno.test("operators on arrays and numbers", () => {
  const operations: Record<string, (a: number, b: number) => number> = {
    "+": (a, b) => a + b,
    "-": (a, b) => a - b,
    "*": (a, b) => a * b,
    "/": (a, b) => a / b,
  };
  const dot = (terms: number[]) => sum(known(terms));
  for (const [k, tag] of [...TAGS, ...TAGS].entries()) {
    const left = arrays(1 + k % 3), right = likeArrays(left), values = numbers();
    const both = (of: (a: number, b: number) => number) =>
      left.map((array, row) => {
        const other = right[row];
        return array && other &&
          finite({ shape: array.shape, values: array.values.map((value, k) => of(value, other.values[k]!)) });
      });
    const one = (of: (a: number, b: number) => number) =>
      left.map((array, row) =>
        array && finite({ shape: array.shape, values: array.values.map((value) => of(value, values[row]!)) })
      );
    for (const [name, of] of Object.entries(operations)) {
      assert.deepEqual(called(name, [tag, tag], [left, right], tag), both(of), name);
      assert.deepEqual(called(name, [tag, "DOUBLE"], [left, values], tag), one(of), name);
      assert.deepEqual(called(name, ["DOUBLE", tag], [values, left], tag), one((a, b) => of(b, a)), name);
    }
    assert.deepEqual(
      called("dot_product", [tag, tag], [left, right], "DOUBLE"),
      left.map((array, row) => {
        const other = right[row];
        return array && other ? dot(array.values.map((value, k) => value * other.values[k]!)) : 0;
      }),
    );
    const scaled = left.map((array, row) =>
      array === undefined || Number.isNaN(values[row]) ? NaN : dot(array.values.map((value) => value * values[row]!))
    );
    assert.deepEqual(called("dot_product", [tag, "DOUBLE"], [left, values], "DOUBLE"), scaled);
    assert.deepEqual(called("dot_product", ["DOUBLE", tag], [values, left], "DOUBLE"), scaled);
  }
});

Deno.test("operators stretch arrays of other shapes, or refuse them", () => {
  const row: Grid = { shape: [1, 3], values: [1, 2, 3] }, column: Grid = { shape: [3, 1], values: [10, 20, 30] };
  const left = Array.from({ length: ROWS }, (_, k) => k % 3 === 0 ? row : column);
  const right = Array.from({ length: ROWS }, (_, k) => k % 2 === 0 ? row : column);
  const sums = called("+", ["DOUBLE[][]", "DOUBLE[][]"], [left, right], "DOUBLE[][]");
  const table = { shape: [3, 3], values: [11, 12, 13, 21, 22, 23, 31, 32, 33] };
  const twice = (grid: Grid) => ({ shape: grid.shape, values: grid.values.map((value) => 2 * value) });
  assert.deepEqual(sums, left.map((a, k) => a === right[k] ? twice(a) : table));
  const flat = left.map(() => ({ shape: [6], values: [1, 2, 3, 4, 5, 6] }));
  assert.throws(() => called("dot_product", ["DOUBLE[][]", "DOUBLE[][]"], [left, right], "DOUBLE"), /different shapes/);
  assert.throws(
    () => called("+", ["DOUBLE[]", "DOUBLE[]"], [flat, flat.map(() => ({ shape: [2], values: [1, 2] }))], "DOUBLE[]"),
    /cannot be combined/,
  );
});

Deno.test("functions from an array to an array", () => {
  for (const [k, tag] of [...TAGS, ...TAGS, ...TAGS].entries()) {
    const column = arrays(1 + k % 3), by = integers(), fill = numbers();
    const negative = column.map((array) => runs(array, (run) => run.map((value) => -value)));
    assert.deepEqual(called("neg", [tag], [column], tag), negative);
    assert.deepEqual(
      called("array_reverse", [tag], [column], tag),
      column.map((array) => runs(array, (run) => run.toReversed())),
    );
    assert.deepEqual(
      called("array_cum_sum", [tag], [column], "DOUBLE[]"),
      column.map((array) => {
        if (array === undefined || array.values.length === 0) return undefined;
        let total = NaN;
        const values = array.values.map((value) => {
          if (!Number.isNaN(value)) total = (Number.isNaN(total) ? 0 : total) + value;
          return total;
        });
        return finite({ shape: [values.length], values });
      }),
    );
    for (const isFilled of [false, true]) {
      assert.deepEqual(
        called("shift", isFilled ? [tag, "INT", "DOUBLE"] : [tag, "INT"], [column, by, fill], tag),
        column.map((array, row) =>
          runs(array, (run) => run.map((_, k) => run[k - by[row]!] ?? (isFilled ? fill[row]! : NaN)))
        ),
      );
    }
    for (const isDescending of [0, 1]) {
      const types = [tag, "BOOLEAN", "BOOLEAN"], falls = Array(ROWS).fill(isDescending);
      assert.deepEqual(
        called("array_sort", types.slice(0, 2), [column, falls], tag, { 1: isDescending }),
        column.map((array) => runs(array, (run) => sorted(run, isDescending === 1, isDescending === 1))),
      );
      for (const nullsFirst of [0, 1]) {
        const expected = column.map((array) => runs(array, (run) => sorted(run, isDescending === 1, nullsFirst === 1)));
        const args = [column, falls, Array(ROWS).fill(nullsFirst)];
        assert.deepEqual(called("array_sort", types, args, tag, { 1: isDescending, 2: nullsFirst }), expected);
        assert.deepEqual(called("array_sort", types, args, tag), expected);
      }
    }
  }
});

Deno.test("array_of() writes its arguments in their order", () => {
  for (const count of [1, 2, 5]) {
    const columns = Array.from({ length: count }, numbers);
    assert.deepEqual(
      called("array_of", columns.map(() => "DOUBLE"), columns, "DOUBLE[]"),
      columns[0]!.map((_, row) => finite({ shape: [count], values: columns.map((column) => column[row]!) })),
    );
  }
});

/** Kinds of subscripts: an index, an open slice, a closed slice. */
const INDEX = 0, CLOSED = 1, OPEN = 2;

/** What subscripts take of an array, dimension by dimension. */
function taken(grid: Grid | undefined, kinds: number[], froms: bigint[], tos: bigint[]): Grid | undefined {
  if (grid === undefined) return undefined;
  const picked: number[][] = [], shape: number[] = [];
  for (const [k, length] of grid.shape.entries()) {
    const place = (value: bigint) => value < 0n ? length + Number(value) : Number(value) - 1;
    const all = Array.from({ length }, (_, at) => at);
    const kind = kinds[k], from = froms[k] ?? 1n, to = tos[k] ?? 1n;
    if (kind !== undefined && from === NULL_I64 || kind === CLOSED && to === NULL_I64) return undefined;
    if (kind === INDEX) {
      if (all[place(from)] === undefined) return undefined;
      picked.push([place(from)]);
    } else {
      const end = kind === CLOSED ? place(to) : length;
      picked.push(all.filter((at) => kind === undefined || at >= place(from) && at < end));
      shape.push(picked[k]!.length);
    }
  }
  let offsets = [0];
  for (const [k, places] of picked.entries()) {
    offsets = offsets.flatMap((offset) => places.map((at) => offset * grid.shape[k]! + at));
  }
  return { shape, values: offsets.map((at) => grid.values[at]!) };
}

Deno.test("subscripts take elements and slices of arrays, whatever their order", () => {
  const kinds = [[], ...[INDEX, CLOSED, OPEN].map((kind) => [kind])];
  const lists = kinds.flatMap((a) => kinds.flatMap((b) => kinds.map((c) => [...a, ...b, ...c])));
  for (const dimensions of [1, 2, 3]) {
    for (const list of lists.filter(({ length }) => length > 0 && length <= dimensions)) {
      const column = arrays(dimensions), froms = list.map(longs), tos = list.map(longs);
      const kept = dimensions - list.filter((kind) => kind === INDEX).length;
      const types = ["DOUBLE" + "[]".repeat(dimensions), ...list.flatMap(() => ["LONG", "LONG", "LONG"])];
      const args = [column, ...list.flatMap((kind, k) => [Array(ROWS).fill(BigInt(kind)), froms[k]!, tos[k]!])];
      const constants = Object.fromEntries(list.map((kind, k) => [1 + 3 * k, BigInt(kind)]));
      const expected = column.map((array, row) =>
        taken(array, list, froms.map((each) => each[row]!), tos.map((each) => each[row]!))
      );
      const returns = kept === 0 ? "DOUBLE" : "DOUBLE" + "[]".repeat(kept);
      for (const known of [constants, {}]) {
        assert.deepEqual(
          called("array_slice", types, args, returns, known),
          kept === 0 ? expected.map((found) => found?.values[0] ?? NaN) : expected,
        );
      }
    }
  }
});
