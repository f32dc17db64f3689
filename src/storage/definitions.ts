/** Derives a table's new schema from a change of its name or columns. */
import type { TableEvent } from "../access/mod.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { NewColumn, NewTable } from "../sql/plan.ts";
import type { Definition } from "./blocks.ts";
import type { Change, PartitionChange, PartitionMove, TableColumn, TableSchema } from "./contract.ts";
import { columnById } from "./schema.ts";
import type { Table } from "./table.ts";

type Defining = Extract<
  Change,
  { kind: "rename" | "addColumns" | "dropColumns" | "renameColumn" | "setColumn" | "setOptions" }
>;

export function newSchema(id: number, table: NewTable): TableSchema {
  const { name, columns, timestamp, partitionBy, wal, dedupKeys, ttl, params, materialized } = table;
  return {
    id,
    name,
    columns: columns.map(newColumn),
    timestampId: timestamp,
    partitionBy,
    wal,
    dedupKeys,
    ttl,
    params,
    materialized,
    schemaVersion: 0,
  };
}

/**
 * @throws {SqlError} if the table's columns do not allow the change. The caller checks whether a new table name is
 * free.
 */
export function definitionOf(table: Pick<Table, "schema" | "nextColumnId">, change: Defining): Definition {
  const { columns } = table.schema;
  switch (change.kind) {
    case "rename":
      return { ...changed(table.schema, { name: change.to }), access: tableEventOf(change, table.schema) };
    case "renameColumn": {
      const column = columnOf(table.schema, change.columnId);
      checkNamesAreNew(columns.filter((other) => other !== column), [change.to]);
      return {
        ...changed(table.schema, { columns: columns.map((c) => (c === column ? { ...c, name: change.to } : c)) }),
        access: tableEventOf(change, table.schema),
      };
    }
    case "addColumns": {
      checkNamesAreNew(columns, change.columns.map(({ name }) => name));
      const added = change.columns.map((column, k) => newColumn(column, table.nextColumnId + k));
      const access = tableEventOf(change, table.schema);
      return { ...changed(table.schema, { columns: [...columns, ...added] }), access };
    }
    case "dropColumns": {
      for (const id of change.columnIds) {
        columnOf(table.schema, id);
        if (id === table.schema.timestampId) {
          throw new SqlError("Cannot drop the designated timestamp", 0, SQLSTATE.invalidParameter);
        }
      }
      const dropped = new Set(change.columnIds);
      const kept = columns.filter(({ id }) => !dropped.has(id));
      const dedupKeys = table.schema.dedupKeys.filter((id) => !dropped.has(id));
      return changed(table.schema, { columns: kept, dedupKeys }, change.columnIds);
    }
    case "setColumn": {
      const column = columnOf(table.schema, change.columnId);
      return changed(table.schema, { columns: columns.map((c) => (c === column ? { ...c, ...change.options } : c)) });
    }
    case "setOptions": {
      const { ttl, ...options } = change.options;
      for (const id of options.dedupKeys ?? []) columnOf(table.schema, id);
      const params = { ...table.schema.params, ...options.params };
      return changed(table.schema, { ...options, params, ...(ttl === undefined ? {} : { ttl: ttl ?? undefined }) });
    }
  }
}

/** How a definition affects grants. `schema`: before the change; undefined for a new table. */
export function tableEventOf(
  change: Change | PartitionChange,
  schema: TableSchema | undefined,
): TableEvent | undefined {
  switch (change.kind) {
    case "createTable":
      return creationEvent(change.table.name, change.creator);
    case "addColumns": {
      if (schema === undefined || change.creator === undefined) return undefined;
      const columns = change.columns.map(({ name }) => name);
      return { kind: "columnsAdded", table: schema.name, columns, creator: change.creator };
    }
    case "rename":
      return schema && { kind: "tableRenamed", from: schema.name, to: change.to };
    case "renameColumn": {
      const column = schema && columnById(schema, change.columnId);
      return column && { kind: "columnRenamed", table: schema!.name, from: column.name, to: change.to };
    }
    case "dropTable":
      return schema && removalEvent(schema.name, change.permissions);
  }
}

function creationEvent(table: string, creator: string | undefined): TableEvent | undefined {
  return creator === undefined ? undefined : { kind: "tableCreated", table, creator };
}

function removalEvent(table: string, permissions: boolean | undefined): TableEvent | undefined {
  return permissions ? { kind: "permissionsDropped", table } : undefined;
}

export function creation(schema: TableSchema, creator: string | undefined): Extract<Definition, { op: "create" }> {
  return {
    op: "create",
    schema,
    access: creationEvent(schema.name, creator),
  };
}

/**
 * @throws {SqlError} if a partition is not at the move's source, or its destination is occupied.
 */
export function partitionMoves(table: Table, moves: readonly PartitionMove[]): Definition {
  for (const { start, from, to } of moves) {
    if (!table.hasPartition(from, start)) {
      throw new SqlError(`Cannot move the partition: it is not ${from}`, 0, SQLSTATE.serializationFailure);
    }
    if (to !== "nowhere" && table.hasPartition(to, start)) {
      throw new SqlError(`Cannot move the partition: one with its name is ${to}`, 0, SQLSTATE.serializationFailure);
    }
  }
  return { op: "partitions", moves };
}

export function removal({ name }: TableSchema, permissions: boolean | undefined): Definition {
  return { op: "drop", access: removalEvent(name, permissions) };
}

function changed(schema: TableSchema, change: Partial<TableSchema>, dropped: readonly number[] = []): Definition {
  return {
    op: "schema",
    schema: { ...schema, ...change, schemaVersion: schema.schemaVersion + 1 },
    dropped: [...dropped],
  };
}

export function newColumn(column: NewColumn, id: number): TableColumn {
  const { name, type, indexed, symbolCapacity, symbolCached, indexCapacity } = column;
  return { id, name, type, indexed, symbolCapacity, symbolCached, indexCapacity };
}

function columnOf(schema: TableSchema, id: number): TableColumn {
  const column = columnById(schema, id);
  if (column === undefined) throw new SqlError("Cannot find the column: it was dropped", 0, SQLSTATE.undefinedColumn);
  return column;
}

function checkNamesAreNew(columns: readonly TableColumn[], names: readonly string[]): void {
  const known = new Set(columns.map(({ name }) => name.toLowerCase()));
  for (const name of names) {
    const lower = name.toLowerCase();
    if (known.has(lower)) {
      throw new SqlError(
        `Cannot use the name ${name}: the table already has a column of that name`,
        0,
        SQLSTATE.duplicateColumn,
      );
    }
    known.add(lower);
  }
}

/** Applies a definition to the table. The caller handles creation and drop. */
export function applyToTable(table: Table, definition: Definition): void {
  table.changed = true;
  if (definition.op === "truncate") table.truncate();
  if (definition.op === "partitions") table.movePartitions(definition.moves);
  if (definition.op !== "schema") return;
  table.schema = definition.schema;
  table.nextColumnId = Math.max(table.nextColumnId, 1 + Math.max(-1, ...definition.schema.columns.map((c) => c.id)));
  for (const id of definition.dropped) table.dropColumn(id);
}
