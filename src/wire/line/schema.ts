/** Names and types of the tables and columns that lines create. */
import type { Values } from "../../config/mod.ts";
import { LineError } from "../../errors.ts";
import type { NewColumn, NewTable, PartitionUnit } from "../../sql/plan.ts";
import type { TableColumn, TableSchema } from "../../storage/contract.ts";
import { hiddenCharacterFault, nameKey } from "../../types/names.ts";
import { type ColumnOutline, KIND, type TableOutline } from "./columns.ts";
import type { lineSettings } from "./settings.ts";

/** Name of the designated timestamp of a new table. */
const TIME_COLUMN = "timestamp";

/** Types of new columns for numeric literals. */
export type LineTypes = Values<typeof lineSettings.lineTypes>;

/** Type of a new column by the kind of its first literal, unless a setting determines it. */
const NEW_TYPES: Record<number, string> = {
  [KIND.tag]: "SYMBOL",
  [KIND.boolean]: "BOOLEAN",
  [KIND.text]: "VARCHAR",
  [KIND.micros]: "TIMESTAMP",
  [KIND.nanos]: "TIMESTAMP_NS",
  [KIND.millis]: "TIMESTAMP",
  [KIND.long256]: "LONG256",
};

/** @throws {LineError} if the column's first value is missing. */
function newColumn(column: ColumnOutline, types: LineTypes): NewColumn {
  if (column.isUntyped) {
    throw new LineError(
      column.line,
      `column ${column.name} is new, but its first line has no value to determine its type`,
    );
  }
  const fault = hiddenCharacterFault(column.name);
  if (fault !== undefined) throw new LineError(column.line, fault);
  return {
    name: column.name,
    type: newType(column, types),
    indexed: false,
    symbolCapacity: 256,
    symbolCached: true,
  };
}

function newType({ kind, dimensions }: ColumnOutline, types: LineTypes): string {
  if (kind === KIND.array) return `DOUBLE${"[]".repeat(dimensions)}`;
  if (kind === KIND.double) return types.float;
  if (kind === KIND.decimal) return types.decimal;
  return kind === KIND.long ? types.integer : NEW_TYPES[kind];
}

/** Finds a column by its exact name ignoring case, or by its name in Unicode normal form. */
export function columnOf(known: Map<string, TableColumn>, name: string): TableColumn | undefined {
  return known.get(name.toLowerCase()) ?? known.get(nameKey(name));
}

/** The columns of a schema by lower-case name, and by name in Unicode normal form. */
export function columnsOf(schema: TableSchema): Map<string, TableColumn> {
  let columns = columnsBySchema.get(schema);
  if (columns === undefined) {
    columns = new Map(schema.columns.map((column) => [nameKey(column.name), column]));
    for (const column of schema.columns) columns.set(column.name.toLowerCase(), column);
    columnsBySchema.set(schema, columns);
  }
  return columns;
}

const columnsBySchema = new WeakMap<TableSchema, Map<string, TableColumn>>();

/** Columns of the lines that the table does not have. @throws {LineError} */
export function missingColumns(lines: TableOutline, schema: TableSchema, types: LineTypes): NewColumn[] {
  const known = columnsOf(schema);
  const missing = lines.columns.filter((column) => columnOf(known, column.name) === undefined);
  checkDistinct(missing);
  return missing.map((column) => newColumn(column, types));
}

/** @throws {LineError} if the names of two new columns have the same Unicode normal form. */
function checkDistinct(columns: readonly ColumnOutline[]): void {
  const names = new Set<string>();
  for (const { name, line } of columns) {
    const key = nameKey(name);
    if (names.has(key)) throw new LineError(line, `two columns are called ${name}, in different Unicode forms`);
    names.add(key);
  }
}

/**
 * Definition of a new table for the lines: columns in order of appearance, the designated timestamp last. @throws
 * {LineError}
 */
export function newTable(lines: TableOutline, partitionBy: PartitionUnit, types: LineTypes): NewTable {
  const given = lines.columns.filter((column) => column.name.toLowerCase() !== TIME_COLUMN);
  const fault = hiddenCharacterFault(lines.name);
  if (fault !== undefined) throw new LineError(lines.line, fault);
  checkDistinct(given);
  const columns = given.map((column) => newColumn(column, types));
  const type = lines.nanosecondTable ? "TIMESTAMP_NS" : "TIMESTAMP";
  columns.push({ name: TIME_COLUMN, type, indexed: false, symbolCapacity: 256, symbolCached: true });
  return { name: lines.name, columns, timestamp: columns.length - 1, partitionBy, wal: true, dedupKeys: [] };
}
