import assert from "node:assert/strict";
import { edgesOf, heatColours } from "./heat.ts";
import { DRAWN_MAX, Reducer } from "./reduce.ts";
import { dataOf, shapeOf, typesFor } from "./shape.ts";

const table = (columns: [name: string, type: string][], dataset: unknown[][]) => ({
  columns: columns.map(([name, type]) => ({ name, type })),
  dataset,
});
const T = (second: number) => `2026-01-01T00:00:0${second}.000001Z`;

Deno.test("time is x, and a column of symbols forms series", () => {
  const rows = table([["symbol", "SYMBOL"], ["at", "TIMESTAMP"], ["price", "DOUBLE"]], [
    ["a", T(0), 1],
    ["b", T(0), 2],
    ["a", T(1), 3],
    ["b", T(2), null],
  ]);
  const shape = shapeOf(rows)!;
  assert.deepEqual([shape.x, shape.xKind, shape.seriesBy, shape.y, shape.best], [1, "time", 0, [2], "line"]);
  const { x, series } = dataOf(rows, shape, "line");
  assert.deepEqual(x, [0, 1, 2].map((second) => Date.UTC(2026, 0, 1, 0, 0, second)));
  assert.deepEqual(series, [{ name: "a", values: [1, 3, null] }, { name: "b", values: [2, null, null] }]);
});

Deno.test("open, high, low and close are recognised in any order", () => {
  const rows = table(
    [["at", "TIMESTAMP"], ["close", "DOUBLE"], ["open", "DOUBLE"], ["low", "DOUBLE"], ["high", "DOUBLE"]],
    [[T(0), 2, 1, 0, 3]],
  );
  const shape = shapeOf(rows)!;
  assert.equal(shape.best, "candlestick");
  assert.deepEqual(dataOf(rows, shape, "candlestick").series.map(({ values }) => values[0]), [1, 3, 0, 2]);
  assert.deepEqual(typesFor(shape), ["candlestick", "line", "area", "bar", "scatter", "heat map"]);
});

Deno.test("texts and a number make bars, numbers a scatter plot, other results no chart", () => {
  const bars = table([["side", "VARCHAR"], ["n", "LONG"]], [["buy", "9007199254740993"], ["sell", 1]]);
  assert.equal(shapeOf(bars)!.best, "bar");
  assert.deepEqual(dataOf(bars, shapeOf(bars)!, "bar").categories, ["buy", "sell"]);
  assert.equal(shapeOf(table([["x", "LONG"], ["y", "DOUBLE"]], [[1, 2]]))!.best, "scatter");
  assert.equal(shapeOf(table([["a", "VARCHAR"]], [["x"]])), undefined);
  assert.equal(shapeOf(table([["x", "LONG"], ["y", "DOUBLE"]], [])), undefined);
});

Deno.test("a heat map's cells meet half-way, and its colours rank all values", () => {
  assert.deepEqual(edgesOf([0, 10, 30], (at) => at), [[-5, 5], [5, 20], [20, 40]]);
  assert.deepEqual(edgesOf([7], (at) => 10 * at), [[65, 75]]);
  const colourOf = heatColours([[1, null, 2], [null, 3, 8]]);
  assert.notEqual(colourOf(1), colourOf(8));
  assert.equal(new Set([1, 2, 3, 8].map(colourOf)).size, 4);
  assert.equal(heatColours([[5]])(5), colourOf(1));
});

/** A row each second of 1970: time, series, open, high, low, close. */
function manyRows(count: number): unknown[][] {
  return Array.from({ length: count }, (_, at) => {
    const value = at === 123_456 ? 9_999 : at === 234_567 ? -9_999 : at % 100;
    return [new Date(at * 1000).toISOString(), at % 2 === 0 ? "even" : "odd", value, value + 1, value - 1, value];
  });
}

const KEYS: [string, string][] = [["at", "TIMESTAMP"], ["s", "SYMBOL"]];
const COLUMNS: [string, string][] = [...KEYS, ["v", "LONG"]];
const OHLC: [string, string][] = [
  ...KEYS,
  ...["open", "high", "low", "close"].map((name) => [name, "LONG"] as [string, string]),
];

Deno.test("many rows are reduced to few, in their order, with the extremes of each series", () => {
  const all = manyRows(300_000), shape = shapeOf(table(COLUMNS, all.slice(0, 1000)))!;
  const reducer = new Reducer(shape, "line");
  for (const row of all) reducer.add(row);
  const rows = reducer.rows();
  assert.ok(rows.length > 5_000 && rows.length < DRAWN_MAX, `${rows.length} rows`);
  assert.ok(reducer.rowsOfPoint > 1);
  assert.deepEqual(rows.map(([at]) => at), rows.map(([at]) => at).toSorted());
  const values = (series: string) => rows.filter((row) => row[1] === series).map((row) => row[2] as number);
  assert.deepEqual([Math.max(...values("even")), Math.min(...values("odd"))], [9_999, -9_999]);
  const known = new Set(all);
  assert.ok(rows.every((row) => known.has(row)), "each is a row of the result");
});

Deno.test("few rows are not reduced", () => {
  const all = manyRows(DRAWN_MAX), reducer = new Reducer(shapeOf(table(COLUMNS, all))!, "line");
  for (const row of all) reducer.add(row);
  assert.deepEqual(reducer.rows(), all);
  assert.equal(reducer.rowsOfPoint, 1);
});

Deno.test("candles are merged, and cells of a heat map stay in line", () => {
  const all = manyRows(131_072), shape = shapeOf(table(OHLC, all.slice(0, 1000)))!;
  const candles = new Reducer(shape, "candlestick"), heat = new Reducer(shape, "heat map");
  for (const row of all) {
    candles.add(row);
    heat.add(row);
  }
  const size = candles.rowsOfPoint, [first] = candles.rows();
  assert.deepEqual(first?.slice(2), [0, Math.min(100, size), -1, (size - 1) % 100]);
  assert.ok(candles.rows().some(([, , , high]) => high === 10_000));
  const times = heat.rows().map(([at]) => at);
  assert.equal(new Set(times).size * 2, times.length, "two series at each time");
});
