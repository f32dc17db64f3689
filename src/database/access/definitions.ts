/** Changes of grants that come with changes of tables, for the audit. Storage makes them (`storage/definitions.ts`). */
import { changesOf, type TableEvent } from "../../access/mod.ts";
import type { Catalogue, Change, PartitionChange } from "../../storage/contract.ts";
import type { AccessControl, Actor } from "./control.ts";

/** Returns a function that writes the audit line, to be called after the change. Without changed grants it does nothing. */
export function auditOf(
  access: AccessControl | undefined,
  by: Actor,
  change: Change | PartitionChange,
  tables: Catalogue,
): () => void {
  const event = access && eventOf(change, tables);
  if (event === undefined || changesOf(access!.snapshot.records, event).length === 0) return () => {};
  return () => access!.tell(by, described(event));
}

function eventOf(change: Change | PartitionChange, tables: Catalogue): TableEvent | undefined {
  const schema = "tableId" in change ? tables.tableById(change.tableId)?.schema : undefined;
  switch (change.kind) {
    case "createTable":
      return change.creator === undefined
        ? undefined
        : { kind: "tableCreated", table: change.table.name, creator: change.creator };
    case "addColumns": {
      if (schema === undefined || change.creator === undefined) return undefined;
      const columns = change.columns.map(({ name }) => name);
      return { kind: "columnsAdded", table: schema.name, columns, creator: change.creator };
    }
    case "rename":
      return schema && { kind: "tableRenamed", from: schema.name, to: change.to };
    case "renameColumn": {
      const column = schema?.columns.find(({ id }) => id === change.columnId);
      return column && { kind: "columnRenamed", table: schema!.name, from: column.name, to: change.to };
    }
    case "dropTable":
      return schema && change.permissions ? { kind: "permissionsDropped", table: schema.name } : undefined;
  }
}

function described(event: TableEvent): string {
  switch (event.kind) {
    case "tableCreated":
      return `GRANT ALL ON '${event.table}' TO '${event.creator}' WITH GRANT OPTION, by CREATE TABLE`;
    case "columnsAdded": {
      const columns = event.columns.map((name) => `'${name}'`).join(", ");
      return `GRANT ALL ON '${event.table}'(${columns}) TO '${event.creator}' WITH GRANT OPTION, by ADD COLUMN`;
    }
    case "tableRenamed":
      return `RENAME TABLE '${event.from}' TO '${event.to}', with its grants`;
    case "columnRenamed":
      return `ALTER TABLE '${event.table}' RENAME COLUMN '${event.from}' TO '${event.to}', with its grants`;
    case "permissionsDropped":
      return `DROP TABLE '${event.table}' CASCADE PERMISSIONS`;
  }
}
