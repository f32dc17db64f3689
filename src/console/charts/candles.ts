/** Candlesticks for uPlot: series 1 to 4 are open, high, low and close. */
import type uPlot from "uplot";

const WIDTH_MAX_PX = 14;

export function drawCandles(plot: uPlot, colours: { up: string; down: string }): void {
  const { ctx, data: [x, open, high, low, close] } = plot;
  if (open === undefined || high === undefined || low === undefined || close === undefined) return;
  const px = devicePixelRatio;
  const width = Math.max(1, Math.min(WIDTH_MAX_PX * px, 0.7 * plot.bbox.width / Math.max(1, x.length)));
  ctx.save();
  ctx.beginPath();
  ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
  ctx.clip();
  for (const [at, value] of x.entries()) {
    const from = open[at], top = high[at], bottom = low[at], to = close[at];
    if (from == null || top == null || bottom == null || to == null) continue;
    const center = plot.valToPos(value, "x", true);
    const y = (value: number) => plot.valToPos(value, "y", true);
    ctx.fillStyle = to >= from ? colours.up : colours.down;
    ctx.fillRect(center - px / 2, y(top), px, y(bottom) - y(top));
    ctx.fillRect(center - width / 2, y(Math.max(from, to)), width, Math.max(px, Math.abs(y(from) - y(to))));
  }
  ctx.restore();
}
