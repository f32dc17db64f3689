/**
 * Changes of grants that result from changes of tables, for the audit. Storage makes them (`storage/definitions.ts`).
 */
import { changesOf, type TableEvent } from "../../access/mod.ts";
import type { Catalogue, Change, PartitionChange } from "../../storage/contract.ts";
import { tableEventOf } from "../../storage/mod.ts";
import type { AccessControl, Actor } from "./control.ts";

/** Returns a function that writes the audit line, to be called after the change. Without changed grants it does nothing. */
export function auditOf(
  access: AccessControl | undefined,
  by: Actor,
  change: Change | PartitionChange,
  tables: Catalogue,
): () => void {
  const schema = "tableId" in change ? tables.tableById(change.tableId)?.schema : undefined;
  const event = access && tableEventOf(change, schema);
  if (event === undefined || changesOf(access!.snapshot.records, event).length === 0) return () => {};
  return () => access!.record(by, described(event));
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
