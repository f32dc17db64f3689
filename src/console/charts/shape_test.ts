import assert from "node:assert/strict";
import { edgesOf, heatColours } from "./heat.ts";
import { dataOf, shapeOf, typesFor } from "./shape.ts";

const table = (columns: [name: string, type: string][], dataset: unknown[][]) => ({
  columns: columns.map(([name, type]) => ({ name, type })),
  dataset,
});
const T = (second: number) => `2026-01-01T00:00:0${second}.000001Z`;

Deno.test("time goes to x, a column of symbols makes series", () => {
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

Deno.test("texts and a number make bars, numbers a scatter, other results nothing", () => {
  const bars = table([["side", "VARCHAR"], ["n", "LONG"]], [["buy", "9007199254740993"], ["sell", 1]]);
  assert.equal(shapeOf(bars)!.best, "bar");
  assert.deepEqual(dataOf(bars, shapeOf(bars)!, "bar").categories, ["buy", "sell"]);
  assert.equal(shapeOf(table([["x", "LONG"], ["y", "DOUBLE"]], [[1, 2]]))!.best, "scatter");
  assert.equal(shapeOf(table([["a", "VARCHAR"]], [["x"]])), undefined);
  assert.equal(shapeOf(table([["x", "LONG"], ["y", "DOUBLE"]], [])), undefined);
});

Deno.test("a heat map's cells meet half-way, and its colours rank all values", () => {
  assert.deepEqual(edgesOf([0, 10, 30]), [-5, 5, 20, 40]);
  assert.deepEqual(edgesOf([7]), [6.5, 7.5]);
  const colourOf = heatColours([[1, null, 2], [null, 3, 8]]);
  assert.notEqual(colourOf(1), colourOf(8));
  assert.equal(new Set([1, 2, 3, 8].map(colourOf)).size, 4);
  assert.equal(heatColours([[5]])(5), colourOf(1));
});
