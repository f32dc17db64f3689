/** A heat map for uPlot: a line of cells for each series, coloured by value. */
import type uPlot from "uplot";

/** From pale to strong, with evenly decreasing lightness, so that the order is also visible without colours. */
export const HEAT_COLOURS = ["#f3ead7", "#f0cf8e", "#e6ab4b", "#d07f2a", "#a9541f", "#7a2f1c", "#4a1713"];

export function drawHeat(plot: uPlot): void {
  const { ctx, data: [x, ...lines] } = plot;
  const colourOf = heatColours(lines as (number | null)[][]);
  // Cells meet half-way between two times.
  const edges = edgesOf(x as number[], (at) => Math.round(plot.valToPos(at, "x", true)));
  ctx.save();
  ctx.beginPath();
  ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
  ctx.clip();
  lines.forEach((values, line) => {
    if (plot.series[line + 1]?.show === false) return;
    const top = plot.valToPos(line + 0.46, "y", true), bottom = plot.valToPos(line - 0.46, "y", true);
    for (const [at, [left, right]] of edges.entries()) {
      const value = values[at];
      if (value == null) continue;
      ctx.fillStyle = colourOf(value);
      ctx.fillRect(left, top, Math.max(1, right - left), bottom - top);
    }
  });
  ctx.restore();
}

/** The colour of a value among all values. */
export function heatColours(lines: readonly (readonly (number | null)[])[]): (value: number) => string {
  const [low, high] = heatRange(lines), span = high > low ? high - low : 1, { length } = HEAT_COLOURS;
  // The largest value has the last colour.
  return (value) => HEAT_COLOURS[Math.min(length - 1, Math.floor((value - low) / span * length))]!;
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

/** The edges of the cell around each of ascending values. `positionOf`: of a value in the drawing. */
export function edgesOf(
  x: readonly number[],
  positionOf: (value: number) => number,
): (readonly [left: number, right: number])[] {
  return x.map((at, index) => {
    const before = x[index - 1], after = x[index + 1];
    // The first and the last cell are as wide as their neighbours.
    const half = before !== undefined ? (at - before) / 2 : after === undefined ? 0.5 : (after - at) / 2;
    const left = before === undefined ? at - half : (before + at) / 2;
    const right = after === undefined ? at + half : (at + after) / 2;
    return [positionOf(left), positionOf(right)];
  });
}
