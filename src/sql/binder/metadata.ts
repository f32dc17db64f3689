/** Names and columns of metadata sources, whose rows are made when the query starts (tables(), pg_catalog, …). */
import type { Column, MetadataNode } from "../plan.ts";
import type { Permission } from "../../access/mod.ts";
import { CATALOG_TABLES, catalogName, isCopyLog, TABLE_OID } from "./catalog-tables.ts";
import type { TableSchema } from "../../storage/contract.ts";
import type { Value } from "../../types/mod.ts";

/** Parses the columns from `name:TYPE` items. */
export function columns(text: string): Column[] {
  return text.trim().split(/\s+/).map((pair) => {
    const colon = pair.lastIndexOf(":");
    return { name: pair.slice(0, colon), type: pair.slice(colon + 1) };
  });
}

export const TABLE_COLUMNS = columns(
  "column:STRING type:STRING indexed:BOOLEAN indexBlockCapacity:INT symbolCached:BOOLEAN symbolCapacity:INT symbolTableSize:INT designated:BOOLEAN upsertKey:BOOLEAN",
);

const TABLE_PARTITIONS = columns(
  "index:INT partitionBy:STRING name:STRING minTimestamp:TIMESTAMP maxTimestamp:TIMESTAMP numRows:LONG diskSize:LONG diskSizeHuman:STRING readOnly:BOOLEAN active:BOOLEAN attached:BOOLEAN detached:BOOLEAN attachable:BOOLEAN isParquet:BOOLEAN parquetFileSize:LONG",
);

/** The columns of SHOW PARTITIONS and table_partitions(). Their timestamps have the type of the table's. */
export function partitionColumns({ columns, timestampId }: TableSchema): Column[] {
  const ofTable = columns.find(({ id }) => id === timestampId)?.type ?? "TIMESTAMP";
  return TABLE_PARTITIONS.map(({ name, type }) => ({ name, type: type === "TIMESTAMP" ? ofTable : type }));
}

const FILES = columns("path:VARCHAR diskSize:LONG diskSizeHuman:STRING modifiedTime:DATE");

const SIGN_IN = columns("auth_type:STRING enabled:BOOLEAN");

interface Source {
  columns: Column[] | ((table: TableSchema) => Column[]);
  /** Number of constant text arguments. */
  args: number;
  /** What the first argument is. By default, it names a table. */
  takes?: "directory" | "pattern";
  isFunction: boolean;
  /** The permission required to read it. */
  requires?: Permission;
}

const SOURCES = new Map<string, Source>([
  ["tables", {
    columns: columns(
      `id:INT table_name:STRING designatedTimestamp:STRING partitionBy:STRING walEnabled:BOOLEAN dedup:BOOLEAN ttlValue:INT ttlUnit:STRING
       matView:BOOLEAN directoryName:STRING maxUncommittedRows:INT o3MaxLag:LONG table_suspended:BOOLEAN table_type:CHAR
       table_row_count:LONG table_min_timestamp:TIMESTAMP table_max_timestamp:TIMESTAMP table_last_write_timestamp:TIMESTAMP
       table_txn:LONG table_memory_pressure_level:INT table_write_amp_count:LONG table_write_amp_p50:DOUBLE table_write_amp_p90:DOUBLE
       table_write_amp_p99:DOUBLE table_write_amp_max:DOUBLE table_merge_rate_count:LONG table_merge_rate_p50:LONG
       table_merge_rate_p90:LONG table_merge_rate_p99:LONG table_merge_rate_max:LONG wal_pending_row_count:LONG
       wal_dedup_row_count_since_start:LONG wal_txn:LONG wal_max_timestamp:TIMESTAMP wal_tx_count:LONG wal_tx_size_p50:LONG
       wal_tx_size_p90:LONG wal_tx_size_p99:LONG wal_tx_size_max:LONG replica_batch_count:LONG replica_batch_size_p50:LONG
       replica_batch_size_p90:LONG replica_batch_size_p99:LONG replica_batch_size_max:LONG replica_more_pending:BOOLEAN`,
    ),
    args: 0,
    isFunction: true,
  }],
  ["table_columns", { columns: TABLE_COLUMNS, args: 1, isFunction: true }],
  ["table_partitions", { columns: partitionColumns, args: 1, isFunction: true }],
  ["functions", {
    columns: columns("name:STRING signature:STRING signature_translated:STRING runtime_constant:BOOLEAN type:STRING"),
    args: 0,
    isFunction: true,
  }],
  ["keywords", { columns: columns("keyword:STRING"), args: 0, isFunction: true }],
  ["wal_tables", {
    columns: columns(
      "name:STRING suspended:BOOLEAN writerTxn:LONG bufferedTxnSize:LONG sequencerTxn:LONG errorTag:STRING errorMessage:STRING memoryPressure:INT",
    ),
    args: 0,
    isFunction: true,
  }],
  ["wal_transactions", {
    columns: columns(
      `sequencerTxn:LONG timestamp:TIMESTAMP walId:INT segmentId:INT segmentTxn:INT structureVersion:LONG
       minTimestamp:TIMESTAMP maxTimestamp:TIMESTAMP rowCount:LONG alterCommandType:SHORT`,
    ),
    args: 1,
    isFunction: true,
  }],
  ["table_writer_metrics", { columns: columns("name:STRING value:LONG"), args: 0, isFunction: true }],
  ["files", { columns: FILES, args: 1, takes: "directory", isFunction: true, requires: "SYSTEM ADMIN" }],
  ["import_files", { columns: FILES, args: 0, isFunction: true }],
  ["glob", { columns: FILES, args: 1, takes: "pattern", isFunction: true }],
  ["export_files", { columns: FILES, args: 0, isFunction: true, requires: "SYSTEM ADMIN" }],
  ["reader_pool", {
    columns: columns("table_name:STRING owner_thread_id:LONG last_access_timestamp:TIMESTAMP current_txn:LONG"),
    args: 0,
    isFunction: true,
  }],
  ["writer_pool", {
    columns: columns("table_name:STRING owner_thread_id:LONG last_access_timestamp:TIMESTAMP ownership_reason:STRING"),
    args: 0,
    isFunction: true,
  }],
  ["memory_metrics", { columns: columns("memory_tag:STRING bytes:LONG"), args: 0, isFunction: true }],
  ["all_tables", { columns: columns("table_name:STRING"), args: 0, isFunction: true }],
  ["table_storage", {
    columns: columns(
      "tableName:STRING walEnabled:BOOLEAN partitionBy:STRING partitionCount:LONG rowCount:LONG diskSize:LONG",
    ),
    args: 0,
    isFunction: true,
  }],
  ["table_column_storage", {
    columns: columns(
      "partition:STRING column:STRING type:STRING numRows:LONG storedRows:LONG rawSize:LONG diskSize:LONG encodings:STRING",
    ),
    args: 1,
    isFunction: true,
  }],
  ["views", {
    columns: columns(
      "view_name:STRING view_sql:STRING view_table_dir_name:STRING invalidation_reason:STRING view_status:STRING view_status_update_time:TIMESTAMP",
    ),
    args: 0,
    isFunction: true,
  }],
  ["materialized_views", {
    columns: columns(
      "view_name:STRING refresh_type:STRING base_table_name:STRING last_refresh_start_timestamp:TIMESTAMP last_refresh_finish_timestamp:TIMESTAMP view_sql:STRING view_table_dir_name:STRING invalidation_reason:STRING view_status:STRING refresh_period_hi:TIMESTAMP refresh_base_table_txn:LONG base_table_txn:LONG refresh_limit:INT refresh_limit_unit:STRING timer_time_zone:STRING timer_start:TIMESTAMP timer_interval:INT timer_interval_unit:STRING period_length:INT period_length_unit:STRING period_delay:INT period_delay_unit:STRING",
    ),
    args: 0,
    isFunction: true,
  }],
  // QuestDB's columns come first.
  ["query_activity", {
    columns: columns(
      `query_id:LONG worker_id:LONG worker_pool:STRING username:STRING query_start:TIMESTAMP state_change:TIMESTAMP
       state:STRING is_wal:BOOLEAN query:STRING
       wire:STRING client_address:STRING application_name:STRING phase:STRING rows_read:LONG rows_to_read:LONG
       rows_written:LONG memory_bytes:LONG seconds:DOUBLE full_name:STRING`,
    ),
    args: 0,
    isFunction: true,
  }],
  ["export_activity", {
    columns: columns(
      `export_id:STRING worker_id:LONG username:STRING start_time:TIMESTAMP phase:STRING request_source:STRING export_path:STRING
       export_sql:STRING message:STRING`,
    ),
    args: 0,
    isFunction: true,
  }],
  ["server_metrics", {
    columns: columns("name:STRING kind:STRING label:STRING le:DOUBLE value:DOUBLE"),
    args: 0,
    isFunction: true,
    requires: "SYSTEM ADMIN",
  }],
  ["recent_errors", {
    columns: columns("timestamp:TIMESTAMP level:STRING logger:STRING message:STRING"),
    args: 0,
    isFunction: true,
    requires: "SYSTEM ADMIN",
  }],
  ["pending_config", {
    columns: columns("property_path:STRING value:STRING pending_value:STRING"),
    args: 0,
    isFunction: true,
    requires: "SYSTEM ADMIN",
  }],
  ["all_permissions", {
    columns: columns("permission:STRING database:BOOLEAN table:BOOLEAN column:BOOLEAN description:STRING"),
    args: 0,
    isFunction: true,
  }],
  ["show_users", { columns: columns("name:STRING"), args: 0, isFunction: false }],
  ["show_groups", { columns: columns("name:STRING"), args: 0, isFunction: false }],
  ["show_service_accounts", { columns: columns("name:STRING"), args: 0, isFunction: false }],
  ["show_service_accounts_of", { columns: columns("name:STRING grant_option:BOOLEAN"), args: 1, isFunction: false }],
  ["show_user", { columns: SIGN_IN, args: 0, isFunction: false }],
  ["show_service_account", { columns: SIGN_IN, args: 0, isFunction: false }],
  ["show_permissions", {
    columns: columns(
      "permission:STRING table_name:STRING column_name:STRING grant_option:BOOLEAN origin:CHAR",
    ),
    args: 0,
    isFunction: false,
  }],
  ["checkpoint_status", { columns: columns("in_progress:BOOLEAN started_at:TIMESTAMP"), args: 0, isFunction: true }],
  ...Object.entries(CATALOG_TABLES).map(([name, text]) => [name, catalogSource(name, text)] as const),
]);

function catalogSource(name: string, text: string) {
  return {
    columns: columns(name.startsWith("pg_catalog.") ? `${text} ${TABLE_OID}:INT` : text),
    args: 0,
    isFunction: false,
  };
}

/** True for tables of the catalogues, which are read by name, without parentheses. */
export function isMetadata(name: string): boolean {
  return catalogName(name) !== undefined;
}

export function metadataFunction(name: string): Pick<Source, "args" | "takes" | "requires"> | undefined {
  const source = SOURCES.get(name.toLowerCase());
  return source?.isFunction ? source : undefined;
}

export function metadataFunctions(): string[] {
  return [...SOURCES].filter(([, { isFunction }]) => isFunction).map(([name]) => name);
}

/** `table`: the table that the first argument names, if the source is about one. */
export function metadataPlan(name: string, args: Value[], at: number, table?: TableSchema): MetadataNode {
  const source = catalogName(name) ?? name.toLowerCase();
  const { columns: known } = SOURCES.get(source)!;
  const columns = typeof known === "function" ? known(table!) : known;
  // The first column of logs is their time; a clock may have been set back between two rows.
  return { node: "metadata", source, args, at, columns, timestamp: isCopyLog(source) ? 0 : -1, order: "none" };
}
