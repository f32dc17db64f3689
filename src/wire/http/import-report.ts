/** The report of an import, as JSON and as text. */
import type { ImportFault, ImportReport } from "../../api.ts";
import { typeName, typeOf } from "../../types/mod.ts";
import { decimalOf, geohashBits } from "../../types/wide.ts";

/** The part of a report about lines and values that did not fit, if the client has asked for it. */
export interface ReportedFaults {
  first: readonly ImportFault[];
  count: number;
  /** The spooled result with all of them. */
  result?: string;
}

export function jsonReport(table: string, report: ImportReport, faults?: ReportedFaults): string {
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
    columns: columns.map(({ name, type, errors }) => ({ name, type: typeName(type), size: sizeOf(type), errors })),
    faults: faults?.first,
    faultCount: faults?.count,
    faultsResult: faults?.result,
  });
}

/** The size of a value in QuestDB's files, in bytes. Texts and arrays have none. */
function sizeOf(type: string): number {
  const decimal = decimalOf(type), bits = geohashBits(type), { layout, width } = typeOf(type);
  if (decimal !== undefined) {
    return [[2, 1], [4, 2], [9, 4]].find(([digits]) => decimal.precision <= digits!)?.[1] ?? width;
  }
  if (bits !== undefined) return bits < 8 ? 1 : bits < 16 ? 2 : bits < 32 ? 4 : 8;
  return layout === "text" ? 0 : width;
}

const RULE = `+${"-".repeat(113)}+\r\n`;
const WIDTHS = [15, 50, 15, 7, 12] as const, [FIRST, SECOND, THIRD, FOURTH, FIFTH] = WIDTHS;

export function textReport(table: string, report: ImportReport, faults?: ReportedFaults): string {
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
    ...columns.map(({ name, type, errors }, index) => row([String(index), name, typeName(type), String(errors)])),
    RULE,
    ...warnings.map((warning) => `warning: ${warning}\r\n`),
    ...faultLines(faults),
  ].join("");
}

function faultLines(faults: ReportedFaults | undefined): string[] {
  if (faults === undefined) return [];
  const { first, count } = faults;
  const lines = first.map(({ line, column, value, reason }) => {
    const found = value === undefined ? "nothing" : JSON.stringify(value);
    return `line ${line}${column === undefined ? "" : `, ${column}`}: found ${found}, ${reason}\r\n`;
  });
  return count > first.length ? [...lines, `and ${count - first.length} more\r\n`] : lines;
}

/** In a row of four cells, the third cell has the width of two. */
function row(cells: readonly string[]): string {
  const widths: readonly number[] = cells.length === 4 ? [FIRST, SECOND, THIRD + FOURTH + 3, FIFTH] : WIDTHS;
  return `|${cells.map((cell, index) => cell.padStart(widths[index]!) + "  ").join("|")}|\r\n`;
}
