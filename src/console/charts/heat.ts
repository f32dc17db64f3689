/** A heat map for uPlot: a line of cells for each series, coloured by value. */
import type uPlot from "uplot";

/** From pale to strong, with evenly decreasing lightness, so that the order is also visible without colours. */
export const HEAT_COLOURS = ["#f3ead7", "#f0cf8e", "#e6ab4b", "#d07f2a", "#a9541f", "#7a2f1c", "#4a1713"];

export function drawHeat(plot: uPlot): void {
  const { ctx, data: [x, ...lines] } = plot;
  const colourOf = heatColours(lines as (number | null)[][]);
  // Cells meet half-way between two times. The first and the last are as wide as their neighbours.
  const edges = edgesOf(x as number[]).map((at) => Math.round(plot.valToPos(at, "x", true)));
  ctx.save();
  ctx.beginPath();
  ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
  ctx.clip();
  lines.forEach((values, line) => {
    const top = plot.valToPos(line + 0.46, "y", true), bottom = plot.valToPos(line - 0.46, "y", true);
    for (let at = 0; at < x.length; at++) {
      const value = values[at];
      if (value == null || plot.series[line + 1].show === false) continue;
      ctx.fillStyle = colourOf(value);
      ctx.fillRect(edges[at], top, Math.max(1, edges[at + 1] - edges[at]), bottom - top);
    }
  });
  ctx.restore();
}

/** The colour of a value among all values. */
export function heatColours(lines: readonly (readonly (number | null)[])[]): (value: number) => string {
  const [low, high] = heatRange(lines), span = high > low ? high - low : 1, { length } = HEAT_COLOURS;
  return (value) => HEAT_COLOURS[Math.min(length - 1, Math.floor((value - low) / span * length))];
}

/** The smallest and the largest value. */
export function heatRange(lines: readonly (readonly (number | null)[])[]): [low: number, high: number] {
  let low = Infinity, high = -Infinity;
  for (const values of lines) {
    for (const value of values) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return [low, high];
}

/** Edges of the cells around ascending values: one more than values. */
export function edgesOf(x: readonly number[]): number[] {
  if (x.length === 1) return [x[0] - 0.5, x[0] + 0.5];
  const middles = x.slice(1).map((at, index) => (x[index] + at) / 2);
  return [2 * x[0] - middles[0], ...middles, 2 * x.at(-1)! - middles.at(-1)!];
}
