/** Rows of the sources that describe the database. One entry per source, keyed by the binder's name for it. */
import { CorruptFileError, SqlError, SQLSTATE, TableClosedError } from "../errors.ts";
import { FUNCTIONS, isInternal } from "../sql/functions/mod.ts";
import {
  accessIsOff,
  columnRows,
  keywords,
  partitionRows,
  type SourceServices,
  statementSource,
  tableOid,
  viewOid,
} from "../sql/mod.ts";
import type { FilesNode, Materialized, MetadataNode, Plan } from "../sql/plan.ts";
import type { TableSnapshot } from "../storage/mod.ts";
import type { Value } from "../types/mod.ts";
import { accessTextsFor } from "./access/ddl.ts";
import { ACCESS_SOURCES, allPermissionRows } from "./access/metadata.ts";
import { visibleTables } from "./access/visible.ts";
import { type Core, SERVER } from "./core.ts";
import type { RefreshFacts } from "./materialized-views.ts";
import { catalogRows, isCatalogSource, type Relation } from "./pg-catalog.ts";
import { UNFINISHED } from "./copies.ts";
import { memoryParts } from "./memory-parts.ts";
import { OWN_TABLES } from "./planning.ts";
import type { Asker } from "./statements.ts";
import type { StoredView } from "./views.ts";

/** Replaces metadata sources in the plan by their current rows. */
export function resolveMetadata(plan: Plan, core: Core, asker: Asker): Plan {
  const { access } = core;
  if (access === undefined || asker.identity === SERVER) return resolve(plan, core, asker);
  return resolve(plan, { ...core, catalogue: visibleTables(core.catalogue, access.rightsOf(asker.identity)) }, asker);
}

function resolve(plan: Plan, core: Core, asker: Asker): Plan {
  if (plan.node === "metadata") {
    return filesNode(plan, core) ?? { ...plan, node: "values", rows: rowsOf(plan, core, asker) };
  }
  if ("left" in plan) {
    return {
      ...plan,
      left: resolve(plan.left, core, asker),
      right: resolve(plan.right, core, asker),
    };
  }
  return "input" in plan ? { ...plan, input: resolve(plan.input, core, asker) } : plan;
}

/** Directories are read by a query worker: reading a large one takes long. */
function filesNode({ source, args: [arg], columns, at }: MetadataNode, { options }: Core): FilesNode | undefined {
  if (!Object.hasOwn(FILE_SOURCES, source)) return undefined;
  const listing = FILE_SOURCES[source]!(options, String(arg));
  return { node: "files", ...listing, hiddenPrefix: UNFINISHED, at, columns, timestamp: -1, order: "none" };
}

type Listing = Pick<FilesNode, "path" | "pattern" | "roots">;

const FILE_SOURCES: Record<string, (options: Core["options"], arg: string) => Listing> = {
  files: ({ importRoot, exportRoot }, path) => ({ roots: [importRoot, exportRoot], path }),
  import_files: ({ importRoot }) => ({ roots: [importRoot] }),
  export_files: ({ exportRoot }) => ({ roots: [exportRoot] }),
  glob: ({ importRoot }, pattern) => ({ roots: [importRoot], pattern }),
};

type Source = (core: Core, table: () => TableSnapshot, asker: Asker, node: MetadataNode) => Value[][];

function rowsOf(node: MetadataNode, core: Core, asker: Asker): Value[][] {
  if (node.source === "pg_catalog.pg_stat_activity") {
    return core.activity.catalogRows(asker.identity).map((row) => node.columns.map(({ name }) => row[name] ?? null));
  }
  if (isCatalogSource(node.source)) {
    return catalogRows(node.source, node.columns, () => relationsOf(core, asker), asker);
  }
  if (Object.hasOwn(ACCESS_SOURCES, node.source)) return accessRows(node, core, asker);
  const ofStatement = statementSource(node.source);
  if (ofStatement !== undefined) {
    const { catalogue, options } = core;
    const accessTexts: SourceServices["accessTexts"] = (categories, required, at) =>
      accessTextsFor(core.access, asker.identity, { categories, required, at });
    const views = { all: () => seenViews(core, asker).map(({ view }) => view) };
    return ofStatement.rows({ catalogue, userTables: () => userTables(core), views, options, accessTexts }, node);
  }
  const source = SOURCES[node.source];
  if (!source) throw new SqlError(`${node.source} is not supported`, node.at, SQLSTATE.featureNotSupported);
  return source(
    core,
    () => {
      const name = String(node.args[0] ?? "");
      const table = core.catalogue.table(name);
      if (!table) throw new SqlError(`table ${name} does not exist`, node.at, SQLSTATE.undefinedTable);
      return table;
    },
    asker,
    node,
  );
}

function relationsOf(core: Core, asker: Asker): Relation[] {
  const schemas = userTables(core).map(({ schema }) => schema).toSorted((a, b) => a.id - b.id);
  return [
    ...schemas.map(({ id, name, columns }) => ({ oid: tableOid(id), name, columns, isView: false })),
    ...seenViews(core, asker).map(({ view: { name }, columns }) => ({
      oid: viewOid(name),
      name,
      columns,
      isView: true,
    })),
  ];
}

function accessRows({ source, args: [of], at }: MetadataNode, { access }: Core, asker: Asker): Value[][] {
  if (access === undefined) throw accessIsOff(at);
  const { identity } = asker;
  return ACCESS_SOURCES[source]!({
    access,
    tables: access.tables,
    identity,
    of: of === undefined ? undefined : String(of),
    at,
  });
}

/** All but those that the server has made for itself. */
const userTables = ({ catalogue }: Core): TableSnapshot[] =>
  catalogue.tables().filter(({ schema }) => !OWN_TABLES.has(schema.name));

const byName = (a: TableSnapshot, b: TableSnapshot) => a.schema.name < b.schema.name ? -1 : 1;

/** Table functions that the dialect lists as plain functions. */
const SERIES = new Set(["long_sequence", "generate_series"]);

const SOURCES: Record<string, Source> = {
  tables: (core, _, asker) => [
    ...userTables(core).toSorted((a, b) => a.schema.id - b.schema.id).map((table) =>
      tableRow(table, core.lastWrites.of(table.schema.id))
    ),
    ...seenViews(core, asker).map(({ view, timestamp }) => viewRow(view.name, timestamp)),
  ],
  table_columns: (_, table) => columnRows(table()),
  table_partitions: (_, table) => partitionRows(table()),
  table_column_storage: (_, table) =>
    table().columnStorage().map((
      { partition, column: { name, type }, rowCount, storedRowCount, rawSizeBytes, diskSizeBytes, encodings },
    ) => [
      partition,
      name,
      type,
      BigInt(rowCount),
      BigInt(storedRowCount),
      BigInt(rawSizeBytes),
      BigInt(diskSizeBytes),
      encodings.join(", ") || null,
    ]),
  functions: () =>
    FUNCTIONS.filter(({ name }) => !isInternal(name)).map(({ name, args, volatility, aggregate, window, table }) => {
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
  all_tables: (core, _, asker) =>
    [
      ...userTables(core).map(({ schema }) => schema.name),
      ...seenViews(core, asker).map(({ view }) => view.name),
    ].sort()
      .map((name) => [name]),
  table_storage: (core) =>
    userTables(core).toSorted(byName).map((table) => {
      const partitions = table.partitions();
      const diskSize = partitions.reduce((total, { diskSizeBytes }) => total + diskSizeBytes, 0);
      const { name, wal, partitionBy } = table.schema;
      return [name, wal, partitionBy, BigInt(partitions.length), BigInt(table.rowCount), BigInt(diskSize)];
    }),
  views: (core, _, asker) =>
    seenViews(core, asker).map(({ view: { name, text, changedMicros }, fault }) => [
      ...[name, text, null, fault ?? null],
      ...fault === undefined ? ["valid", changedMicros] : ["invalid", null],
    ]),
  /** There are no pools: snapshots are shared, and one writer has all tables. */
  reader_pool: () => [],
  writer_pool: () => [],
  memory_metrics: ({ heap, further }) => memoryParts(heap, further).map(([tag, bytes]) => [tag, BigInt(bytes)]),
  materialized_views: ({ catalogue, materialized }) =>
    catalogue.tables().flatMap((table) => {
      const { materialized: definition } = table.schema;
      return definition === undefined
        ? []
        : [materializedRow(table, definition, materialized.factsOf(table.schema.id))];
    }),
  /** Rows are visible when they are acknowledged, so no rows wait to be applied. */
  wal_tables: ({ catalogue }) =>
    catalogue.tables().filter(({ schema }) => schema.wal).map((
      { schema, lsn },
    ) => [schema.name, false, lsn, 0n, lsn, "", "", 0]),
  /** All tables share one log, so of a table's transactions only the last one is known. */
  wal_transactions: ({ lastWrites }, table) => {
    const { schema: { id, wal }, lsn } = table();
    return wal && lsn > 0n ? [[lsn, lastWrites.of(id), ...Array(8).fill(null)]] : [];
  },
  /** As QuestDB does, -1 stands for numbers that are not counted. */
  table_writer_metrics: ({ heap }) => [
    ["total_commits", BigInt(heap.counter("commits"))],
    ["o3commits", -1n],
    ["rollbacks", -1n],
    ["committed_rows", BigInt(heap.counter("committedRows"))],
    ["physically_written_rows", -1n],
  ],
  pending_config: ({ options }) =>
    (options.pendingConfig?.() ?? []).map(({ path, value, pendingValue }) => [path, value, pendingValue]),
  server_metrics: ({ options }) =>
    (options.metrics?.() ?? []).map(({ name, kind, label, le, value }) => [
      name,
      kind,
      label ?? null,
      le === undefined || le === Infinity ? null : le,
      value,
    ]),
  recent_errors: ({ options }) =>
    (options.recentErrors?.() ?? []).map(({ timeMicros, level, logger, message }) => [
      BigInt(timeMicros),
      level,
      logger,
      message,
    ]),
  query_activity: ({ activity }, _, { identity }) => activity.rows(identity),
  export_activity: ({ copies }, _, { identity }) => copies.activeExportRows(identity),
  all_permissions: allPermissionRows,
  "sys.text_import_log": ({ copies }, _, { identity }) => copies.importRows(identity),
  "sys.copy_export_log": ({ copies }, _, { identity }) => copies.exportRows(identity),
  checkpoint_status: ({ backups }) => [[backups.startedAtMicros !== undefined, backups.startedAtMicros ?? null]],
};

/** Counters that are not kept are 0. Unknown values are null. */
function tableRow(table: TableSnapshot, lastWrite: bigint | null): Value[] {
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
    ...[schema.materialized !== undefined, `t${schema.id}`],
    ...[schema.params?.maxUncommittedRows ?? 500_000, BigInt(schema.params?.o3MaxLagMicros ?? 600_000_000)],
    ...[false, schema.materialized === undefined ? "T" : "M"],
    ...[rowCount, first, last, lastWrite, lsn, schema.wal ? 0 : null],
    ...[0n, 0, 0, 0, 0, ...NONE],
    ...[0n, null, schema.wal ? lsn : null, schema.wal ? last : null, ...NONE, ...NONE, false],
  ];
}

function materializedRow(
  { schema: { id, name } }: TableSnapshot,
  { base, text, refresh, limit, fault }: Materialized,
  facts: RefreshFacts,
): Value[] {
  const timer = refresh.kind === "timer" ? refresh : undefined, { period } = refresh, timed = timer ?? period;
  return [
    ...[name, refresh.kind, base, facts.begunMicros, facts.endedMicros, text, `t${id}`, fault ?? null],
    fault !== undefined ? "invalid" : facts.isRefreshing ? "refreshing" : "valid",
    ...[facts.periodHiMicros, facts.upToLsn, facts.baseLsn, limit?.count ?? 0, limit?.unit ?? null],
    ...[timed?.timeZone ?? null, timed === undefined ? null : BigInt(timed.startMicros)],
    ...[timer?.every.count ?? 0, timer?.every.unit ?? null],
    ...[period?.length.count ?? 0, period?.length.unit ?? null],
    ...[period?.delay?.count ?? 0, period?.delay?.unit ?? null],
  ];
}

/** A view with its columns and its designated timestamp, or why it cannot be read. */
interface SeenView {
  view: StoredView;
  /** None if they are not known. */
  columns: Relation["columns"];
  timestamp?: string;
  fault?: string;
}

/** The views that the user may read. Administrators see the others, too. */
function seenViews(core: Core, { identity }: Asker): SeenView[] {
  const { access, catalogue } = core;
  const mayAll = access === undefined || identity === SERVER || access.rightsOf(identity).isAdmin;
  return core.viewFacts.all().flatMap(({ view, fact }): SeenView[] => {
    if (fact.kind !== "compiled") {
      return mayAll ? [{ view, columns: [], fault: fact.kind === "faulty" ? fact.fault : undefined }] : [];
    }
    const { columns, timestamp, requires } = fact;
    if (!mayAll) {
      try {
        access.authorize(identity, undefined, requires, catalogue);
      } catch (error) {
        if (error instanceof SqlError) return [];
        throw error;
      }
    }
    return [{ view, columns, timestamp: columns[timestamp]?.name }];
  });
}

/** Properties that only tables have are those of an empty table. */
function viewRow(name: string, timestamp: string | undefined): Value[] {
  return [
    ...[null, name, timestamp ?? null, "N/A", false, false, 0, "HOUR", false, null, 0, 0n, false, "V"],
    ...[null, null, null, null, null, 0, 0n, 0, 0, 0, 0, ...NONE, 0n, null, null, null, ...NONE, ...NONE, false],
  ];
}

/** Count and percentiles without any values. */
const NONE: readonly bigint[] = [0n, 0n, 0n, 0n, 0n];

/** Values for a closed table are null. Reading its metadata does not open it. */
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
