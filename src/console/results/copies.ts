/** Rows as texts for the clipboard. */
import type { Rows } from "../server/client.ts";
import { textOf } from "./cells.ts";

type Table = Pick<Rows, "columns" | "dataset">;

export const COPIES: readonly { name: string; make(rows: Table): string }[] = [
  { name: "TSV", make: (rows) => lines(rows, "\t", (text) => text.replace(/[\t\r\n]+/g, " ")) },
  { name: "CSV", make: (rows) => lines(rows, ",", csvField) },
  { name: "Markdown", make: markdown },
  { name: "JSON", make: json },
];

function lines({ columns, dataset }: Table, separator: string, field: (text: string) => string): string {
  const head = columns.map(({ name }) => field(name)).join(separator);
  const body = dataset.map((row) => row.map((value) => value === null ? "" : field(textOf(value))).join(separator));
  return [head, ...body].join("\n") + "\n";
}

/** @see RFC 4180 */
function csvField(text: string): string {
  return /[",\r\n]/.test(text) || text === "" ? `"${text.replaceAll('"', '""')}"` : text;
}

function markdown({ columns, dataset }: Table): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replace(/\s+/g, " ")).join(" | ")} |`;
  const rows = dataset.map((row) => line(row.map(textOf)));
  return [line(columns.map(({ name }) => name)), line(columns.map(() => "---")), ...rows].join("\n") + "\n";
}

function json({ columns, dataset }: Table): string {
  const rows = dataset.map((row) => Object.fromEntries(columns.map(({ name }, at) => [name, row[at]])));
  return JSON.stringify(rows, null, 1) + "\n";
}
