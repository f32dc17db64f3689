/** A catalogue without storage, for tests: its tables are created by statements and have no rows. */
import type { Catalogue, TableSchema, TableSnapshot } from "../../storage/contract.ts";
import type { BoundStatement, NewTable } from "../plan.ts";
import type { BoundAddColumns } from "../statements/alter-add-column.ts";
import type { BoundDropColumns } from "../statements/alter-drop-column.ts";
import type { BoundAlterColumnType } from "../statements/alter-column-type.ts";
import type { BoundRenameColumn } from "../statements/alter-rename-column.ts";
import type { BoundCreateTable } from "../statements/create-table.ts";
import type { BoundDropTable } from "../statements/drop-table.ts";
import type { BoundRenameTable } from "../statements/rename-table.ts";

export class FakeCatalogue implements Catalogue {
  private readonly snapshots = new Map<number, TableSnapshot>();
  private nextId = 1;
  version = 0;

  table(name: string): TableSnapshot | undefined {
    return this.tables().find(({ schema }) => schema.name.toLowerCase() === name.toLowerCase());
  }

  tableById(id: number): TableSnapshot | undefined {
    return this.snapshots.get(id);
  }

  tables(): TableSnapshot[] {
    return [...this.snapshots.values()];
  }

  pin(): () => void {
    return () => {};
  }

  add(table: NewTable): void {
    const columns = table.columns.map((column, index) => ({ id: index + 1, ...column }));
    this.publish({
      id: this.nextId++,
      name: table.name,
      columns,
      timestampId: table.timestamp < 0 ? -1 : columns[table.timestamp]!.id,
      partitionBy: table.partitionBy,
      wal: table.wal,
      dedupKeys: table.dedupKeys.map((index) => columns[index]!.id),
      ttl: table.ttl,
      schemaVersion: 1,
    });
  }

  /** Applies the statement to the schemas. */
  apply(bound: BoundStatement): void {
    const statement = bound as
      | BoundCreateTable<unknown>
      | BoundDropTable
      | BoundRenameTable
      | BoundAddColumns
      | BoundDropColumns
      | BoundAlterColumnType
      | BoundRenameColumn;
    switch (statement.kind) {
      case "createTable":
        if (this.table(statement.table.name) === undefined) this.add(statement.table);
        break;
      case "dropTable":
        for (const { name } of statement.names) {
          const found = this.table(name);
          if (found !== undefined) this.snapshots.delete(found.schema.id);
        }
        break;
      case "renameTable":
        this.change(statement.tableId, (schema) => ({ ...schema, name: statement.to }));
        break;
      case "addColumns":
        this.change(statement.tableId, (schema) => {
          const first = Math.max(0, ...schema.columns.map((column) => column.id)) + 1;
          return {
            ...schema,
            columns: [...schema.columns, ...statement.columns.map((column, i) => ({ id: first + i, ...column }))],
          };
        });
        break;
      case "dropColumns":
        this.change(
          statement.tableId,
          (schema) => ({
            ...schema,
            columns: schema.columns.filter((column) => !statement.columnIds.includes(column.id)),
          }),
        );
        break;
      case "alterColumnType":
        this.change(statement.tableId, (schema) => ({
          ...schema,
          columns: schema.columns.map((column) =>
            column.id === statement.columnId ? { ...column, ...statement.column } : column
          ),
        }));
        break;
      case "renameColumn":
        this.change(statement.tableId, (schema) => ({
          ...schema,
          columns: schema.columns.map((column) => {
            const renamed = statement.renames.find(({ columnId }) => columnId === column.id);
            return renamed === undefined ? column : { ...column, name: renamed.to };
          }),
        }));
        break;
    }
  }

  private change(id: number, to: (schema: TableSchema) => TableSchema): void {
    this.publish(to(this.snapshots.get(id)!.schema));
  }

  private publish(schema: TableSchema): void {
    this.version++;
    this.snapshots.set(schema.id, {
      schema,
      version: this.version,
      lsn: 0n,
      rowCount: 0,
      timestampMin: null,
      timestampMax: null,
      partitionMin: null,
      partitions: () => [],
      timedPages: () => [],
      detachedPartitions: () => [],
      columnStorage: () => [],
      source: () => {
        throw new Error("a fake table has no rows");
      },
    });
  }
}
