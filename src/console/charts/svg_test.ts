import assert from "node:assert/strict";
import { type DrawnPlot, svgOf } from "./svg.ts";

/** Values are pixels within a plot of 100 by 50 at (40, 10). */
function plotOf(lines: (number | null)[][], labels: string[]): DrawnPlot {
  const axis = (splits: number[]) => ({ _splits: splits, _values: splits.map((at) => `<${at}>`) });
  return {
    width: 160,
    height: 80,
    bbox: { left: 80, top: 20, width: 200, height: 100 },
    data: [[0, 50, 100], ...lines],
    series: [{}, ...labels.map((label) => ({ label, stroke: () => "#123456", show: label !== "hidden" }))],
    axes: [axis([0, 50, 1000]), axis([10])],
    scales: {},
    valToPos: (value: number, scale: string) => scale === "x" ? value : 50 - value,
  } as unknown as DrawnPlot;
}
const COLOURS = { paper: "#fff", text: "#000", line: "#eee", up: "#0a0", down: "#a00" };
const svg = (type: Parameters<typeof svgOf>[1], lines: (number | null)[][], labels: string[]) =>
  svgOf(plotOf(lines, labels), type, COLOURS, 2);

Deno.test("lines, areas, bars and points of a plot are in its SVG, hidden series are not", () => {
  const line = svg("line", [[1, null, 3], [5, 5, 5]], ["a & b", "hidden"]);
  assert.match(line, /<path d="M40 59L140 57" fill="none" stroke="#123456"/);
  assert.equal(line.match(/stroke-width/g)?.length, 1);
  assert.match(line, />a &amp; b</);
  assert.match(line, />&lt;50&gt;</);
  assert.doesNotMatch(line, /1000/);
  assert.match(svg("area", [[1, 2, 3]], ["a"]), /M40 60L40 59L90 58L140 57L140 60Z/);
  assert.equal(svg("scatter", [[1, null, 3]], ["a"]).match(/<circle/g)?.length, 2);
  assert.match(svg("bar", [[1, 2, 3]], ["a"]), /height="2" fill="#123456"/);
});

Deno.test("candles and heat maps are in the SVG with their colours", () => {
  const candles = svg("candlestick", [[1, 5, null], [6, 7, 8], [0, 1, 2], [4, 2, 3]], ["o", "h", "l", "c"]);
  assert.equal(candles.match(/fill="#0a0"/g)?.length, 2);
  assert.equal(candles.match(/fill="#a00"/g)?.length, 2);
  const heat = svg("heat map", [[1, 2, 3], [4, null, 6]], ["a", "b"]);
  assert.equal(heat.match(/<rect/g)?.length, 1 + 5 + 7);
  assert.match(heat, />1<.*>6</s);
});
