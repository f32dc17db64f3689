/** Rows of the sources that describe the database itself: one entry a source, by the name the binder gives it. */
import { CorruptFileError, SqlError, SQLSTATE, TableClosedError } from "../errors.ts";
import { FUNCTIONS } from "../sql/functions/mod.ts";
import { accessIsOff, keywords } from "../sql/mod.ts";
import type { MetadataNode, Plan } from "../sql/plan.ts";
import type { TableSnapshot } from "../storage/mod.ts";
import { typeOf, type Value } from "../types/mod.ts";
import { arrayDimensions } from "../types/wide.ts";
import { ACCESS_SOURCES, allPermissionRows } from "./access/metadata.ts";
import { visibleTables } from "./access/visible.ts";
import { type Core, SERVER } from "./core.ts";
import { catalogRows, isCatalogSource } from "./pg-catalog.ts";
import type { Asker } from "./statements.ts";

/** The plan with its metadata as rows of this moment. */
export function resolveMetadata(plan: Plan, core: Core, asker: Asker): Plan {
  const { access } = core;
  if (access === undefined || asker.identity === SERVER) return resolve(plan, core, asker);
  return resolve(plan, { ...core, catalogue: visibleTables(core.catalogue, access.rightsOf(asker.identity)) }, asker);
}

function resolve(plan: Plan, core: Core, asker: Asker): Plan {
  if (plan.node === "metadata") return { ...plan, node: "values", rows: rowsOf(plan, core, asker) };
  if ("left" in plan) {
    return {
      ...plan,
      left: resolve(plan.left, core, asker),
      right: resolve(plan.right, core, asker),
    };
  }
  return "input" in plan ? { ...plan, input: resolve(plan.input, core, asker) } : plan;
}

type Source = (core: Core, table: () => TableSnapshot, asker: Asker) => Value[][];

function rowsOf(node: MetadataNode, core: Core, asker: Asker): Value[][] {
  if (node.source === "pg_catalog.pg_stat_activity") {
    return core.activity.catalogRows(asker.identity).map((row) => node.columns.map(({ name }) => row[name] ?? null));
  }
  if (isCatalogSource(node.source)) {
    const schemas = core.catalogue.tables().map(({ schema }) => schema).toSorted((a, b) => a.id - b.id);
    return catalogRows(node.source, node.columns, schemas, asker);
  }
  if (Object.hasOwn(ACCESS_SOURCES, node.source)) return accessRows(node, core, asker);
  const source = SOURCES[node.source];
  if (!source) throw new SqlError(`${node.source} is not supported`, node.at, SQLSTATE.featureNotSupported);
  return source(core, () => {
    const name = String(node.args[0] ?? "");
    const table = core.catalogue.table(name);
    if (!table) throw new SqlError(`table ${name} does not exist`, node.at, SQLSTATE.undefinedTable);
    return table;
  }, asker);
}

function accessRows({ source, args: [of], at }: MetadataNode, { access }: Core, asker: Asker): Value[][] {
  if (access === undefined) throw accessIsOff(at);
  const { identity } = asker;
  return ACCESS_SOURCES[source]({
    access,
    tables: access.tables,
    identity,
    of: of === undefined ? undefined : String(of),
    at,
  });
}

const byName = (a: TableSnapshot, b: TableSnapshot) => a.schema.name < b.schema.name ? -1 : 1;

/** Sources that the dialect counts among plain functions. */
const SERIES = new Set(["long_sequence", "generate_series"]);

const SOURCES: Record<string, Source> = {
  tables: ({ catalogue }) => catalogue.tables().toSorted((a, b) => a.schema.id - b.schema.id).map(tableRow),
  show_tables: ({ catalogue }) => catalogue.tables().toSorted(byName).map(({ schema }) => [schema.name]),
  table_columns: (_, table) => columnRows(table()),
  show_columns: (_, table) => columnRows(table()),
  table_partitions: (_, table) => partitionRows(table()),
  show_partitions: (_, table) => partitionRows(table()),
  show_create_table: (_, table) => [[createTableText(table())]],
  show_parameters: ({ options }) => options.parameters(),
  functions: () =>
    FUNCTIONS.map(({ name, args, volatility, aggregate, window, table }) => {
      const signature = `${name}(${
        args.map((arg) => `${arg.name} ${arg.type}${arg.variadic ? "..." : ""}`).join(", ")
      })`;
      return [
        name,
        `${name}(${args.map((arg) => arg.type).join(",")})`,
        signature,
        volatility !== "volatile",
        aggregate ? "GROUP_BY" : window ? "WINDOW" : table && !SERIES.has(name) ? "CURSOR" : "STANDARD",
      ];
    }),
  keywords: () => keywords().map((word) => [word]),
  all_tables: ({ catalogue }) => catalogue.tables().toSorted(byName).map(({ schema }) => [schema.name]),
  table_storage: ({ catalogue }) =>
    catalogue.tables().toSorted(byName).map((table) => {
      const partitions = partitionRows(table);
      const sum = (column: number) => partitions.reduce((total, row) => total + BigInt(row[column] as bigint), 0n);
      const { name, wal, partitionBy } = table.schema;
      return [name, wal, partitionBy, BigInt(partitions.length), sum(5), sum(6)];
    }),
  /** There are no views yet. */
  views: () => [],
  /** Snapshots are shared, and one writer has all tables: there are no pools. */
  reader_pool: () => [],
  writer_pool: () => [],
  memory_metrics: () => [["RSS", BigInt(Deno.memoryUsage().rss)]],
  materialized_views: () => [],
  /** Rows are visible when they are acknowledged: nothing waits to be applied. */
  wal_tables: ({ catalogue }) =>
    catalogue.tables().filter(({ schema }) => schema.wal).map((
      { schema, lsn },
    ) => [schema.name, false, lsn, 0n, lsn, "", "", 0]),
  pending_config: ({ options }) =>
    (options.pendingConfig?.() ?? []).map(({ path, value, pendingValue }) => [path, value, pendingValue]),
  query_activity: ({ activity }, _, { identity }) => activity.rows(identity),
  all_permissions: allPermissionRows,
  checkpoint_status: ({ backups }) => [[backups.startedAtMicros !== undefined, backups.startedAtMicros ?? null]],
};

/** Statistics that are not kept count nothing; what is not known is null. */
function tableRow(table: TableSnapshot): Value[] {
  const { schema, lsn } = table;
  const { rowCount, first, last } = extentOf(table);
  return [
    ...[schema.id, schema.name, schema.columns.find((column) => column.id === schema.timestampId)?.name ?? null],
    ...[
      schema.partitionBy,
      schema.wal,
      schema.dedupKeys.length > 0,
      schema.ttl?.count ?? 0,
      schema.ttl?.unit ?? "HOUR",
    ],
    ...[false, `t${schema.id}`, 500_000, 600_000_000n, false, "T"],
    ...[rowCount, first, last, null, lsn, schema.wal ? 0 : null],
    ...[0n, 0, 0, 0, 0, ...NONE],
    ...[0n, null, schema.wal ? lsn : null, schema.wal ? last : null, ...NONE, ...NONE, false],
  ];
}

/** A count and percentiles of nothing. */
const NONE: readonly bigint[] = [0n, 0n, 0n, 0n, 0n];

/** Of a table that nobody has opened yet nothing is known, and it stays closed. */
function extentOf(table: TableSnapshot): { rowCount: Value; first: Value; last: Value } {
  const column = table.schema.columns.find(({ id }) => id === table.schema.timestampId);
  const micros = (time: bigint | null) => time !== null && column?.type === "TIMESTAMP_NS" ? time / 1000n : time;
  try {
    const { rowCount, timestampMin, timestampMax } = table;
    return { rowCount: BigInt(rowCount), first: micros(timestampMin), last: micros(timestampMax) };
  } catch (error) {
    if (error instanceof TableClosedError || error instanceof CorruptFileError) {
      return { rowCount: null, first: null, last: null };
    }
    throw error;
  }
}

/** Told of every SYMBOL column, with and without an index, unless the statement that made it said otherwise. */
const INDEX_BLOCK_CAPACITY = 256;

/** Arrays are called ARRAY in replies, but by their full type in metadata. */
function typeName(tag: string): string {
  return arrayDimensions(tag) > 0 ? tag : typeOf(tag).name;
}

function columnRows(table: TableSnapshot): Value[][] {
  const { schema } = table;
  return schema.columns.map((column) => {
    const isSymbol = column.type === "SYMBOL";
    return [
      column.name,
      typeName(column.type),
      column.indexed,
      isSymbol ? column.indexCapacity ?? INDEX_BLOCK_CAPACITY : 0,
      isSymbol && column.symbolCached,
      isSymbol ? column.symbolCapacity : 0,
      isSymbol ? symbolTableSize(table, column.id) : 0,
      column.id === schema.timestampId,
      schema.dedupKeys.includes(column.id),
    ];
  });
}

/** Null is one more symbol where there are nulls. */
function symbolTableSize(table: TableSnapshot, columnId: number): number {
  const { dictionaries: [dictionary], segments } = table.source([columnId]);
  const hasNulls = segments.some(({ chunks: [chunk], rowCount }) => rowCount > 0 && chunk?.stats.nullCount !== 0);
  return (dictionary?.count ?? 0) + (hasNulls ? 1 : 0);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

function readableSize(bytes: number): string {
  let size = bytes, unit = 0;
  for (; size >= 1024 && unit < UNITS.length - 1; unit++) size /= 1024;
  return `${size.toFixed(1)} ${UNITS[unit]}`;
}

function partitionRows(table: TableSnapshot): Value[][] {
  const partitions = table.partitions();
  return partitions.map((partition, i) => [
    partition.index,
    table.schema.partitionBy,
    partition.name,
    table.schema.timestampId < 0 ? null : partition.timestampMin,
    table.schema.timestampId < 0 ? null : partition.timestampMax,
    BigInt(partition.rowCount),
    BigInt(partition.diskSizeBytes),
    readableSize(partition.diskSizeBytes),
    false,
    i === partitions.length - 1,
    true,
    false,
    false,
    false,
    -1n,
  ]);
}

/** The statement that makes such a table. */
function createTableText({ schema }: TableSnapshot): string {
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
