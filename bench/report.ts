/** Functions to print the measurements. */
import { arch, cpus, release, totalmem, type } from "node:os";

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The given quantile (nearest rank). */
export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];
}

export function geometricMean(values: number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

export function table(head: string[], rows: string[][]): string {
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i].length)));
  const line = (row: string[]) =>
    `| ${row.map((cell, i) => i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])).join(" | ")} |`;
  return [
    line(head),
    `|${widths.map((width, i) => i === 0 ? "-".repeat(width + 2) : "-".repeat(width + 1) + ":").join("|")}|`,
    ...rows.map(line),
  ].join("\n");
}

export function describeMachine(): string {
  const list = cpus();
  return `${list.length} cores of ${list[0]?.model.trim() ?? "unknown"}, ${
    (totalmem() / 2 ** 30).toFixed(0)
  } GiB, ${type()} ${release()} ${arch()}, Deno ${Deno.version.deno}`;
}
