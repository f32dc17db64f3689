/** Tells what the points of a chart stand for. */
import { countText } from "../results/summary.ts";
import type { Rows } from "../server/client.ts";
import type { DrawnRows } from "./drawn-rows.ts";
import type { ChartType } from "./shape.ts";

/** Empty if each stands for one row, and all rows are drawn. */
export function noteOf({ rowsOfPoint, isCut, rows }: DrawnRows, { count, spool }: Rows, type: ChartType): string {
  if (spool?.isRunning) return `The first ${countText(rows.dataset.length)} are drawn until all have come.`;
  if (isCut) return `The first ${countText(rows.dataset.length)} of ${countText(count)} are drawn.`;
  if (rowsOfPoint === 1) return "";
  const each = `each ${rowsOfPoint.toLocaleString("en")} rows`;
  if (type === "candlestick") return `A candle is drawn for ${each} of ${countText(count)}.`;
  if (type === "heat map") return `A cell has the largest value of ${each} of ${countText(count)}.`;
  return `The smallest and the largest value of ${each} are drawn, of ${countText(count)}.`;
}
