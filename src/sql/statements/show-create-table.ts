import type { TableSnapshot } from "../../storage/contract.ts";
import { typeName } from "../../types/mod.ts";
import { columns } from "../binder/metadata.ts";
import { INDEX_BLOCK_CAPACITY } from "./show-columns.ts";
import { showOfTable } from "./show.ts";

const DDL = columns("ddl:VARCHAR");

export const showCreateTable = showOfTable({
  kind: "showCreateTable",
  words: '"SHOW" "CREATE" "TABLE"',
  reference: { syntax: "SHOW CREATE TABLE table", summary: "A statement that creates the same table." },
  columns: () => DDL,
  rows: (table) => [[createTableText(table)]],
});

/** Returns a statement that creates the same table. */
export function createTableText({ schema }: TableSnapshot): string {
  const columns = schema.columns.map((column) => {
    const symbol = column.type === "SYMBOL" && !column.symbolCached ? " NOCACHE" : "";
    return `\t${column.name} ${typeName(column.type)}${symbol}${
      column.indexed ? ` INDEX CAPACITY ${column.indexCapacity ?? INDEX_BLOCK_CAPACITY}` : ""
    }`;
  });
  const timestamp = schema.columns.find((column) => column.id === schema.timestampId);
  const keys = schema.dedupKeys.map((id) => schema.columns.find((column) => column.id === id)!.name);
  const tail = [
    timestamp && ` timestamp(${timestamp.name}) PARTITION BY ${schema.partitionBy}`,
    schema.ttl && ` TTL ${schema.ttl.count} ${schema.ttl.unit}${schema.ttl.count === 1 ? "" : "S"}`,
    !schema.wal && timestamp && " BYPASS WAL",
    keys.length > 0 && `\nDEDUP UPSERT KEYS(${keys.join(",")})`,
  ];
  return `CREATE TABLE '${schema.name}' ( \n${columns.join(",\n")}\n)${tail.filter(Boolean).join("")};`;
}
