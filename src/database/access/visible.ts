/** The tables and columns that a user may know of. Everything that lists or suggests names uses these. */
import type { Columns, Rights } from "../../access/mod.ts";
import type { Catalogue, TableSchema, TableSnapshot } from "../../storage/contract.ts";

export function visibleTables(all: Catalogue, rights: Rights): Catalogue {
  if (rights.isAdmin) return all;
  const visible = (table: TableSnapshot | undefined) => {
    if (table === undefined || !rights.sees(table.schema)) return undefined;
    const columns = rights.seen(table.schema);
    return columns === "all" ? table : narrowed(table, columns);
  };
  return {
    table: (name) => visible(all.table(name)),
    tableById: (id) => visible(all.tableById(id)),
    tables: () => all.tables().flatMap((table) => visible(table) ?? []),
    pin: () => all.pin(),
    get version() {
      return all.version;
    },
  };
}

/** The same table with some of its columns. */
function narrowed(table: TableSnapshot, columns: Exclude<Columns, "all">): TableSnapshot {
  const { schema } = table;
  const narrow: TableSchema = {
    ...schema,
    columns: schema.columns.filter(({ id }) => columns.has(id)),
    timestampId: columns.has(schema.timestampId) ? schema.timestampId : -1,
    dedupKeys: schema.dedupKeys.filter((id) => columns.has(id)),
  };
  return Object.create(table, { schema: { value: narrow } }) as TableSnapshot;
}
