/** Rows as text: for the clipboard, and as CSV for files. */
import type { Column, Rows } from "../server/client.ts";
import { isNumeric, textOf } from "./cells.ts";
import { eachPage, type WholeOptions } from "./whole.ts";

export interface TextForm {
  name: string;
  head(columns: readonly Column[]): string;
  row(values: readonly unknown[], columns: readonly Column[]): string;
  /** Separator between two rows, and after the last one. */
  between: string;
  end: string;
}

const TSV = separated("TSV", "\t", (text) => text.replace(/[\t\r\n]+/g, " "));
const CSV = separated("CSV", ",", csvField);
/** With the line ends of the server's own files. @see RFC 4180 */
export const CSV_FILE = separated("CSV", ",", csvField, "\r\n");
const MARKDOWN: TextForm = {
  name: "Markdown",
  head: (columns) => `${markdownRow(columns.map(({ name }) => name))}\n${markdownRow(columns.map(() => "---"))}\n`,
  row: (values) => markdownRow(values.map(textOf)),
  between: "\n",
  end: "\n",
};
const JSON_ROWS: TextForm = {
  name: "JSON",
  head: () => "[\n",
  row: (values, columns) =>
    `{${columns.map(({ name, type }, at) => `${JSON.stringify(name)}:${jsonOf(values[at], type)}`).join(",")}}`,
  between: ",\n",
  end: "\n]\n",
};

export const COPIES: readonly TextForm[] = [TSV, CSV, MARKDOWN, JSON_ROWS];

export interface Written {
  /** The joined parts are the text. */
  parts: string[];
  rowCount: number;
}

/**
 * Writes the rows in a format: all of them, or the first ones with at most `lengthMax` characters. @throws
 * {ExpiredError}
 */
export async function written(
  rows: Rows,
  form: TextForm,
  lengthMax = Infinity,
  options?: WholeOptions,
): Promise<Written> {
  const { columns } = rows, head = form.head(columns);
  const parts = [head];
  let rowCount = 0, left = lengthMax - head.length - form.end.length;
  await eachPage(rows, (dataset) => {
    const lines: string[] = [];
    for (const values of dataset) {
      const line = form.row(values, columns);
      left -= line.length + form.between.length;
      if (left < 0) break;
      lines.push(line);
    }
    if (lines.length > 0) parts.push(rowCount > 0 ? form.between : "", lines.join(form.between));
    rowCount += lines.length;
    return left >= 0;
  }, options);
  if (rowCount > 0 || form === JSON_ROWS) parts.push(form.end);
  return { parts, rowCount };
}

function separated(name: string, separator: string, field: (text: string) => string, lineEnd = "\n"): TextForm {
  const value = (one: unknown, { type }: Column) => one === null ? "" : field(numberText(one, type) ?? textOf(one));
  return {
    name,
    head: (columns) => columns.map(({ name }) => field(name)).join(separator) + lineEnd,
    row: (values, columns) => columns.map((column, at) => value(values[at], column)).join(separator),
    between: lineEnd,
    end: lineEnd,
  };
}

/** Numbers that JavaScript cannot hold arrive as texts. JSON itself has any number of digits. */
function jsonOf(value: unknown, type: string): string {
  const isNumber = typeof value === "string" && isNumeric(type) && /^-?\d+(?:\.\d+)?$/.test(value);
  return isNumber ? value : JSON.stringify(value);
}

/** Whole numbers of a column of doubles stay recognisable: 1.0. */
function numberText(value: unknown, type: string): string | undefined {
  const isFloating = type === "DOUBLE" || type === "FLOAT";
  return isFloating && Number.isSafeInteger(value) ? `${value}.0` : undefined;
}

function csvField(text: string): string {
  return /[",\r\n]/.test(text) || text === "" ? `"${text.replaceAll('"', '""')}"` : text;
}

function markdownRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replace(/\s+/g, " ")).join(" | ")} |`;
}
