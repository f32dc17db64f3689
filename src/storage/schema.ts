/** Looks up the columns of a schema. A line can have thousands of columns, so each lookup must not search all of them. */
import type { TableColumn, TableSchema } from "./contract.ts";

const columnsOf = new WeakMap<TableSchema, ReadonlyMap<number, TableColumn>>();

/** The column with this id, unless it was dropped. */
export function columnById(schema: TableSchema, id: number): TableColumn | undefined {
  let columns = columnsOf.get(schema);
  if (columns === undefined) {
    columnsOf.set(schema, columns = new Map(schema.columns.map((column) => [column.id, column])));
  }
  return columns.get(id);
}
