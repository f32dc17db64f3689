/** Looks up the columns of a schema. A line can have thousands of columns, so each lookup must not search all of them. */
import { SqlError, SQLSTATE } from "../errors.ts";
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

/** The column that has the values of a former one. */
export function columnAfter({ columns }: TableSchema, formerId: number): TableColumn | undefined {
  return columns.find(({ former }) => former?.some(({ id }) => id === formerId));
}

/** @throws {SqlError} 40001 if one of the columns has another type by now. */
export function checkNotFormer(schema: TableSchema, columnIds: readonly number[]): void {
  for (const id of columnIds) {
    const after = columnById(schema, id) === undefined ? columnAfter(schema, id) : undefined;
    if (after === undefined) continue;
    const { name, type } = after;
    throw new SqlError(
      `Cannot change column ${name} of ${schema.name}: its type has become ${type} in the meantime`,
      0,
      SQLSTATE.serializationFailure,
    );
  }
}
