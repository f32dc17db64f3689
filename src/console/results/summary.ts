/** Formats an outcome as one line. */
import type { Outcome } from "../server/client.ts";

/** "12 rows · 3.1 ms" */
export function outcomeText({ rows, changed, durationMs, isLost }: Outcome): string {
  if (isLost) return "not kept";
  const count = rows?.count ?? changed;
  return `${count === undefined ? "OK" : countText(count)} · ${time(durationMs)}`;
}

/** Includes how the time was spent, and information that is not shown otherwise. */
export function outcomeDetails(outcome: Outcome): string {
  const { rows, compileMs, executeMs, durationMs } = outcome;
  const inside = compileMs === undefined || executeMs === undefined
    ? ""
    : ` (compile ${time(compileMs)}, execute ${time(executeMs)}, transfer ${
      time(Math.max(0, durationMs - compileMs - executeMs))
    })`;
  const cut = rows?.cutBy === undefined ? "" : ` · further rows are omitted because of ${rows.cutBy}`;
  return outcomeText(outcome) + inside + cut;
}

export function time(ms: number): string {
  return ms < 1000 ? `${ms.toFixed(ms < 10 ? 2 : 1)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

export function bytesText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 2 ** (10 * unit);
  return `${unit === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${units[unit]}`;
}

/** "1 row", "1,000 rows" */
export const countText = (count: number, what = "row") =>
  `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
