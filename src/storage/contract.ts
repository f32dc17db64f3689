/**
 * What crosses the walls of the storage room, as plain data that can be posted between threads.
 *
 *     main  ──commands──▶ writer worker ──publications──▶ main (catalogue mirror) ──scan sources──▶ exec workers
 */
import type { Interval, NewColumn, NewTable, PartitionUnit } from "../sql/plan.ts";

export interface TableColumn {
  /** Never changes and is never used again in this table. */
  readonly id: number;
  readonly name: string;
  /** Type tag. */
  readonly type: string;
  readonly indexed: boolean;
  readonly symbolCapacity: number;
  readonly symbolCached: boolean;
  /** As the statement gave it; undefined: 256. */
  readonly indexCapacity?: number;
}

export interface TableSchema {
  readonly id: number;
  readonly name: string;
  readonly columns: readonly TableColumn[];
  /** Column id of the designated timestamp, or -1. */
  readonly timestampId: number;
  readonly partitionBy: PartitionUnit;
  readonly wal: boolean;
  readonly dedupKeys: readonly number[];
  readonly ttl?: { count: number; unit: string };
  /** Counts changes of name and columns. */
  readonly schemaVersion: number;
}

/** A segment as the writer publishes it. */
export interface SegmentRecord {
  partition: bigint;
  rowCount: number;
  timestampMin: bigint;
  timestampMax: bigint;
  /** By column id. `file` is an index into the table's list of files. */
  chunks: (ColumnChunk | undefined)[];
}

/** Where the values of one column in one segment are. A missing chunk (undefined) is a column added later: all null. */
export interface ColumnChunk {
  /** Address of the values in shared memory (dirty or tail data), or 0: then read them from the file. */
  address: number;
  /** Index into `ScanSource.files`, offset and stored size; used when `address` is 0. */
  file: number;
  offset: number;
  sizeBytes: number;
  crc: number;
  /** Bytes of the values proper; for text, the heap of `sizeBytes - valueBytes` bytes follows them. */
  valueBytes: number;
  stats: ColumnStats;
}

/** Exact. `min` and `max` are of the values that are not null; undefined for text, or when all are null. Symbols: codes. */
export interface ColumnStats {
  nullCount: number;
  min?: number | bigint;
  max?: number | bigint;
  /** Of the values that are not null: number for floats (added in row order), bigint for integers; undefined for the others. */
  sum?: number | bigint;
}

export interface SegmentSource {
  rowCount: number;
  /** Of the designated timestamp; 0n and 0n without one. */
  timestampMin: bigint;
  timestampMax: bigint;
  /** First row's ordinal in the table: rows of a snapshot are counted in the order of segments. */
  firstRow: number;
  /** Ordinal of the segment in the snapshot: the upper half of row ids. */
  ordinal: number;
  /** In the order of the scan's `columnIds`. */
  chunks: (ColumnChunk | undefined)[];
}

/** A dictionary of a SYMBOL column as of a snapshot: `entries` is the address of `count` text pairs in shared memory. */
export interface Dictionary {
  /** Equal ids and columns mean that codes can be compared. */
  tableId: number;
  columnId: number;
  entries: number;
  count: number;
  /** Of a column that an open transaction has added: no other session has this dictionary. */
  own?: true;
}

/** All that an engine needs to read (part of) a table. Valid while `version` is pinned. */
export interface ScanSource {
  tableId: number;
  version: number;
  rowCount: number;
  /** Are the segments' rows in ascending order of the designated timestamp, also across segments? Always true when there is one. */
  sorted: boolean;
  files: string[];
  segments: SegmentSource[];
  /** By position in `columnIds`; undefined for other types than SYMBOL. */
  dictionaries: (Dictionary | undefined)[];
}

/**
 * A committed state of a table. Immutable. Of a table that nobody has asked for since the start only the schema and the LSN are
 * known: the rest throws a TableClosedError, and is there in the snapshot that `StorageWriter.open` makes.
 */
export interface TableSnapshot {
  readonly schema: TableSchema;
  readonly version: number;
  readonly lsn: bigint;
  readonly rowCount: number;
  readonly timestampMin: bigint | null;
  readonly timestampMax: bigint | null;
  partitions(): PartitionInfo[];
  /** Segments in order (oldest first), pruned by `intervals`; rows of a kept segment may still lie outside. */
  source(columnIds: readonly number[], intervals?: readonly Interval[]): ScanSource;
}

export interface PartitionInfo {
  index: number;
  name: string;
  rowCount: number;
  timestampMin: bigint;
  timestampMax: bigint;
  diskSizeBytes: number;
}

/**
 * Rows on their way into a table; buffers can be transferred. `values` has the column's layout. Text: (offset into `heap`,
 * length) pairs. SYMBOL: i32 codes into this batch's own `symbols` (text pairs into `heap`), -1 null. Columns not given get nulls.
 */
export interface AppendBatch {
  rowCount: number;
  columns: AppendColumn[];
}

export interface AppendColumn {
  columnId: number;
  values: Uint8Array;
  heap?: Uint8Array;
  symbols?: Int32Array;
}

/** Rows by id (`segment ordinal << 32 | row`, ascending) with new values, against snapshot `version`. */
export interface UpdateBatch {
  rowIds: BigInt64Array;
  columns: AppendColumn[];
}

/** What can be done in a transaction. */
export type Change =
  | { kind: "createTable"; table: NewTable; rows?: AppendBatch[] }
  | { kind: "dropTable"; tableId: number }
  | { kind: "truncate"; tableId: number }
  | { kind: "rename"; tableId: number; to: string }
  | { kind: "addColumns"; tableId: number; columns: NewColumn[] }
  | { kind: "dropColumns"; tableId: number; columnIds: number[] }
  | { kind: "renameColumn"; tableId: number; columnId: number; to: string }
  | { kind: "append"; changes: { tableId: number; batches: AppendBatch[] }[] }
  | { kind: "update"; tableId: number; version: number; batch: UpdateBatch }
  | { kind: "delete"; tableId: number; version: number; rowIds: BigInt64Array };

/** `ordinal`: its place among the changes of the transaction. */
export type OrderedChange = Change & { ordinal: number };

/**
 * Changes that only `catalogue` shows until `commit`, which makes them all durable and visible at once, or none. A transaction
 * has its own state of each table that it has changed, as of its first change there or `fork`. What others commit to that
 * table meanwhile shows after `commit`, which fails with 40001 where both have changed the same rows or columns.
 */
export interface StorageTransaction {
  readonly catalogue: Catalogue;
  /** All of them or none. Gives the new table's id for the last one, if that makes one. */
  change(changes: OrderedChange[]): Promise<number | undefined>;
  /** From now on `catalogue` shows the transaction's own state of the table, so that its rows can be named by id. */
  fork(tableId: number): Promise<void>;
  /** Takes back the changes after this ordinal. */
  rollbackTo(ordinal: number): Promise<void>;
  /** After this, successful or not, the transaction is over. */
  commit(changes: OrderedChange[]): Promise<void>;
  rollback(): Promise<void>;
}

/**
 * The writing side. Every promise is fulfilled after the change is durable (by the commit mode), applied and published, so that
 * the next `tables()` shows it. Failures: SqlError (position 0) for what a row's values do wrong, CorruptFileError, DiskFullError.
 */
export interface StorageWriter {
  createTable(table: NewTable, rows?: AppendBatch[]): Promise<TableSnapshot>;
  /** A new table with more rows than should be held at once: nobody sees it before its `commit`. */
  beginLoad(table: NewTable): Promise<BulkLoad>;
  /** All batches of a call are one commit, visible together. */
  append(changes: { tableId: number; batches: AppendBatch[] }[]): Promise<void>;
  /** Any other change. Gives the new table's id, if it makes one. */
  change(change: Change): Promise<number | undefined>;
  /** A transaction that may hold so much memory for its changes. */
  begin(limitBytes: number): StorageTransaction;
  /** Makes readable what a `TableClosedError` was about. Nothing to do for a table that was dropped. */
  open(tableId: number): Promise<void>;
  checkpoint(): Promise<void>;
  /** Makes a checkpoint; from then on files that it lists stay as they are, so that they can be copied, until `release`. Holds are counted. */
  hold(): Promise<void>;
  release(): Promise<void>;
  /** Everything on disk, files closed, the lock released. */
  close(): Promise<void>;
}

/** Rows on their way into a table that is being made. Nothing of it is left when it fails, is aborted or the process ends. */
export interface BulkLoad {
  /** A packed batch of all columns in order, whose buffer is taken away. Waits while too many are on their way. */
  add(packed: Uint8Array): Promise<void>;
  commit(): Promise<TableSnapshot>;
  abort(): Promise<void>;
}

/** The reading side, on the main thread. Names are found without case. */
export interface Catalogue {
  table(name: string): TableSnapshot | undefined;
  tableById(id: number): TableSnapshot | undefined;
  tables(): TableSnapshot[];
  /** Keeps what `snapshot` lists from being reused until the returned function is called. */
  pin(): () => void;
  /** Grows with every publication. */
  readonly version: number;
}
