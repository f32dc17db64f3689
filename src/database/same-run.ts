/** Tells whether operators and encoder of an execution can run another one: its outputs, and what it reads. */
import type { Encoding } from "../api.ts";
import type { ScanReading } from "../sql/plan.ts";
import type { ScanSource } from "../storage/contract.ts";
import type { OutputOptions } from "./output.ts";

export function everyPair<T>(a: readonly T[], b: readonly T[], holds: (a: T, b: T) => boolean): boolean {
  if (a.length !== b.length) return false;
  for (let k = 0; k < a.length; k++) if (a[k] !== b[k] && !holds(a[k]!, b[k]!)) return false;
  return true;
}

export function isSameIntervals(a: ScanReading["intervals"], b: ScanReading["intervals"]): boolean {
  if (a === b) return true;
  return a !== undefined && b !== undefined &&
    everyPair(a, b, ([low, high], [otherLow, otherHigh]) => low === otherLow && high === otherHigh);
}

/** A dictionary is only appended to, unless a transaction has added its column: then another one may get its place. */
export function hasSameDictionaries(a: ScanSource, b: ScanSource): boolean {
  return everyPair(
    a.dictionaries,
    b.dictionaries,
    (one, other) =>
      one !== undefined && other !== undefined && !one.own && !other.own && one.entries === other.entries &&
      one.count === other.count && one.tableId === other.tableId && one.columnId === other.columnId,
  );
}

/** Rows for tables and files are not asked for again and again. */
export function isKept(output: OutputOptions): boolean {
  return output.kind === "rows" && output.encoding.name !== "parquet";
}

export function isSameOutput(a: OutputOptions, b: OutputOptions): boolean {
  return a.kind === "rows" && b.kind === "rows" && isSameEncoding(a.encoding, b.encoding) &&
    a.window?.first === b.window?.first && a.window?.count === b.window?.count && a.countAll === b.countAll &&
    a.pieceBytes === b.pieceBytes;
}

function isSameEncoding(a: Encoding, b: Encoding): boolean {
  if (a.name === "json" && b.name === "json") {
    return a.quoteLargeNumbers === b.quoteLargeNumbers && a.isLines === b.isLines && isSameList(a.columns, b.columns);
  }
  if (a.name === "csv" && b.name === "csv") return a.delimiter === b.delimiter;
  return a.name === "pg" && b.name === "pg" && isSameList(a.formats, b.formats);
}

function isSameList(a: readonly number[] | undefined, b: readonly number[] | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined || a.length !== b.length) return false;
  for (let k = 0; k < a.length; k++) if (a[k] !== b[k]) return false;
  return true;
}
