/** The report of an import, as JSON and as text. */
import type { ImportReport } from "../../api.ts";
import { typeOf } from "../../types/mod.ts";

export function jsonReport(table: string, report: ImportReport): string {
  const { rowsRejected, rowsImported, hasHeader, partitionBy, timestamp, warnings, columns } = report;
  return JSON.stringify({
    status: "OK",
    location: table,
    rowsRejected,
    rowsImported,
    header: hasHeader,
    partitionBy,
    timestamp,
    warnings: warnings.length === 0 ? undefined : warnings,
    columns: columns.map(({ name, type, sizeBytes, errors }) => ({
      name,
      type: typeOf(type).name,
      size: sizeBytes,
      errors,
    })),
  });
}

const RULE = `+${"-".repeat(113)}+\r\n`;
const WIDTHS = [15, 50, 15, 7, 12];

export function textReport(table: string, report: ImportReport): string {
  const { rowsRejected, rowsImported, partitionBy, timestamp, warnings, columns } = report;
  return [
    RULE,
    row(["Location:", table, "Pattern", "Locale", "Errors"]),
    row(["Partition by", partitionBy, "", "", ""]),
    row(["Timestamp", timestamp ?? "NONE", "", "", ""]),
    RULE,
    row(["Rows handled", String(rowsImported + rowsRejected), "", "", ""]),
    row(["Rows imported", String(rowsImported), "", "", ""]),
    RULE,
    ...columns.map(({ name, type, errors }, index) => row([String(index), name, typeOf(type).name, String(errors)])),
    RULE,
    ...warnings.map((warning) => `warning: ${warning}\r\n`),
  ].join("");
}

/** In a row of four cells, the third cell has the width of two. */
function row(cells: readonly string[]): string {
  const widths = cells.length === 4 ? [WIDTHS[0], WIDTHS[1], WIDTHS[2] + WIDTHS[3] + 3, WIDTHS[4]] : WIDTHS;
  return `|${cells.map((cell, index) => cell.padStart(widths[index]) + "  ").join("|")}|\r\n`;
}
