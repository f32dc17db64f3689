/**
 * The data that crosses the boundary of the storage layer. It is plain, so that it can be posted between threads.
 *
 *     main  ──commands──▶ writer worker ──publications──▶ main (catalogue mirror) ──scan sources──▶ exec workers
 */
import type { RecordChange, RecordMap } from "../access/mod.ts";
import type { Interval, Materialized, NewColumn, NewTable, PartitionUnit, TableParams } from "../sql/plan.ts";

export interface TableColumn {
  /** Never changes and is never reused in this table. */
  readonly id: number;
  readonly name: string;
  /** Type tag. */
  readonly type: string;
  readonly indexed: boolean;
  readonly symbolCapacity: number;
  readonly symbolCached: boolean;
  /** As given in the statement; undefined: 256. */
  readonly indexCapacity?: number;
  /** Columns of which this one has the values, in another type: rows may still arrive that were made for them. */
  readonly former?: readonly { readonly id: number; readonly type: string }[];
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
  readonly params?: TableParams;
  readonly materialized?: Materialized;
  /** Counts changes of the definition. */
  readonly schemaVersion: number;
}

/**
 * A page of a table as the writer publishes it: segments that lie one after the other, in words (`page-words.ts`) that never
 * change.
 */
export interface PageRef {
  /** Different for each page since the start that has an address. */
  readonly id: number;
  /** Address of the words in shared memory, or 0: read them from the file. */
  readonly address: number;
  readonly file: number;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly crc: number;
  /** Number of segments. */
  readonly count: number;
  readonly rowCount: number;
  readonly timestampMin: bigint;
  readonly timestampMax: bigint;
  /** Of the first and of the last segment. */
  readonly partitionMin: bigint;
  readonly partitionMax: bigint;
  /** Bytes of the chunks in the data files. */
  readonly chunkBytes: number;
  /** Greatest version of its partitions. */
  readonly version: number;
  /** Formats of its partitions: bit `f` for format `f`. Bit 30 is of pages before format 9. */
  readonly formats: number;
}

/** A page, or a list of pages on disk (`page-list.ts`). */
export interface PartRef extends PageRef {
  readonly isList: boolean;
}

/**
 * The location of the values of one column in one segment. A missing chunk (undefined) belongs to a column added later:
 * all null.
 */
export interface ColumnChunk {
  /** Address of the values in shared memory (data not yet stored), or 0 if they are in the file. */
  address: number;
  /**
   * Id of the data file in the table's directory (-1: not stored yet), offset and stored size; used when `address` is 0.
   */
  file: number;
  offset: number;
  sizeBytes: number;
  crc: number;
  /** How it is encoded in the file (`encoding/encodings.ts`). 0 or missing: it is not. */
  encodings?: number;
  /** Bytes of the values in memory, without texts. */
  valueBytes: number;
  /** For encoded texts: bytes of the entries that follow the values in memory (equal texts can share one), and of all rows' texts. */
  entryBytes?: number;
  textBytes?: number;
  stats: ColumnStats;
}

/**
 * Exact statistics. `min` and `max` cover the non-null values; undefined for text, or if all are null. Symbols: codes.
 */
export interface ColumnStats {
  nullCount: number;
  min?: number | bigint;
  max?: number | bigint;
  /** Sum of the non-null values of integers; undefined for other types. */
  sum?: bigint;
}

/**
 * A summary of this many rows of a stored column, in words of 8 bytes: sum, least and greatest of the values (i64 or f64 each); in the
 * halves of the last word the number of those that are not NULL, and of rows. Without values, the other words have no meaning.
 */
export const SUMMARY_ROWS = 1024, SUMMARY_WORDS = 4;
export const SUMMARY = { sum: 0, min: 1, max: 2, counts: 3 } as const;

export interface SegmentSource {
  /** Identifies the segment in its table: the upper part of row ids. */
  uid: number;
  /** Start of its partition. */
  partition: bigint;
  rowCount: number;
  /** Range of the designated timestamp; 0n and 0n without one. */
  timestampMin: bigint;
  timestampMax: bigint;
  /** In the order of the scan's `columnIds`. */
  chunks: (ColumnChunk | undefined)[];
}

/** Bits of a row id that are the row's number in its segment. The others are the segment's uid. */
export const ROW_BITS = 16;

/** Segments in order. An array is one. */
export interface SegmentList extends Iterable<SegmentSource> {
  readonly length: number;
  at(index: number): SegmentSource | undefined;
  /** By the statistics of the segments, and of their neighbours: true if the column may have nulls. Without it, all segments are read. */
  hasNulls?(column: number): boolean;
  /** Plain data from which `SharedPool.segments` of another thread makes the list again. Without it, the list itself is posted. */
  post?(): PostedSegments;
}

/** `runs`: `RUN_NUMBERS` numbers for each page. */
export interface PostedSegments {
  directory: string;
  columnIds: readonly number[];
  runs: Float64Array;
}

/** A dictionary of a SYMBOL column as of a snapshot: `entries` is the address of `count` text pairs in shared memory. */
export interface Dictionary {
  /** Codes can be compared if table id and column id are equal. */
  tableId: number;
  columnId: number;
  entries: number;
  count: number;
  /** Set if an open transaction has added the column: no other session has this dictionary. */
  own?: true;
}

/** Rows `from` … `to`-1. */
export interface RowRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Rows of a chunk as integers of one scale: value = integer, integer / power or integer * power, which gives all bits of the values. The
 * integers are `least + offset`, offsets are below 2^31, and the offset of NULL is -1.
 */
export interface ChunkOffsets {
  scale: "integer" | "quotient" | "product";
  power: number;
  least: number;
  /** The greatest offset, or more. */
  greatest: number;
  hasNulls: boolean;
}

/**
 * Chooses the rows whose offsets are needed. Of vector `v` of 1,024 rows, `ranges[2 * v]` is the least integer and `ranges[2 * v + 1]` the greatest, or
 * more; without values, the least is greater.
 */
export type ChooseOffsets = (offsets: ChunkOffsets, ranges: Float64Array) => readonly RowRange[];

/** A column of the scan whose rows are found by their codes. */
export interface TestedColumn {
  readonly column: number;
  /** Bytes of a value, if values are signed integers. They need not be packed then. */
  readonly integerBytes?: number;
}

/** Rows whose value in a column of the scan is at least `low` and at most `high`. */
export interface ChunkBound extends TestedColumn {
  readonly low?: number | bigint;
  readonly high?: number | bigint;
}

/** A condition on the values of a column of the scan. */
export interface RowCondition extends TestedColumn {
  /** The integers that pass, if values are integers of this form, of floats below 2^46. */
  passingOf(form: Pick<ChunkOffsets, "scale" | "power">): PassingIntegers;
  /** Tests `count` values, and writes the outcomes to `mask`: of value k, bit k & 7 of byte k >> 3. All are addresses. */
  test(values: number, count: number, mask: number): void;
  /** The share of the rows it was last tested on that passed, which `maskRows` writes. It tests conditions with small shares first. */
  share: number;
}

/**
 * Those of some ranges, or all others and NULL. Ranges do not have the type's NULL, nor 0 if it has none: chunks of these types have 0 as if it were NULL.
 */
export interface PassingIntegers {
  readonly ranges: readonly { readonly low: bigint; readonly high: bigint }[];
  readonly areOthers: boolean;
}
/** The most ranges of a condition. */
export const PASSING_RANGES_MAX = 8;

/** From `low` to `high`. */
export interface IntegerRange {
  low: number;
  high: number;
}

/** Numbers of vectors whose codes were compared with a bound, by what came of it (`encoding/selection.ts`). */
export interface VectorCounts {
  skipped: number;
  whole: number;
  tested: number;
  withExceptions: number;
  withoutCodes: number;
}

/** Rows of a segment in which a symbol has one of some codes, ascending, and the code of each. */
export interface FoundRows {
  readonly count: number;
  readonly rows: Int32Array;
  readonly codes: Int32Array;
}

/** Everything that the engine needs to read a table or a part of it. Valid while `version` is pinned. */
export interface ScanSource {
  tableId: number;
  version: number;
  /** Of all segments. Each has rows within the intervals for which the source was made. */
  rowCount: number;
  /**
   * The segments' rows are in ascending order of the designated timestamp, also across segments. True for each table
   * that has one.
   */
  sorted: boolean;
  /** Of the data files. */
  directory: string;
  segments: SegmentList;
  /** By position in `columnIds`; undefined for types other than SYMBOL. */
  dictionaries: (Dictionary | undefined)[];
}

/**
 * A committed, immutable state of a table. For a table that has not been opened since the start, only the schema and
 * the LSN are known: everything else throws a TableClosedError. `StorageWriter.open` publishes a snapshot that has it.
 */
export interface TableSnapshot {
  readonly schema: TableSchema;
  readonly version: number;
  readonly lsn: bigint;
  readonly rowCount: number;
  readonly timestampMin: bigint | null;
  readonly timestampMax: bigint | null;
  /** Start of the first partition; null without rows. */
  readonly partitionMin: bigint | null;
  partitions(): PartitionInfo[];
  /** The storage of columns in each attached partition, in order of partitions and then of columns. */
  columnStorage(): ColumnStorage[];
  /** Detached partitions, in order. Their rows are in no source. */
  detachedPartitions(): PartitionInfo[];
  /** The pages, in order of their rows. */
  timedPages(): TimedPage[];
  /** Segments in order (oldest first), pruned by `intervals`. A kept segment may contain rows outside the intervals. */
  source(columnIds: readonly number[], intervals?: readonly Interval[]): ScanSource;
}

/** A page of a table, to find out what has changed. */
export interface TimedPage {
  /** The same as long as its rows are the same. */
  readonly key: string;
  readonly rowCount: number;
  readonly timestampMin: bigint;
  readonly timestampMax: bigint;
  /** Its segments, without columns. Absent if a file would have to be read for them. */
  segments?(): SegmentSource[];
}

export interface PartitionInfo extends PartitionSums {
  name: string;
}

/** How the rows of a partition are stored. */
export const PARTITION_FORMAT = { native: 0 } as const;

export interface PartitionSums {
  /** First instant, in the column's unit. It identifies the partition. */
  start: bigint;
  /** Another one after each change of its rows, and never again: also after a restart. 0: no change since format 8. */
  version: number;
  /** One of `PARTITION_FORMAT`. */
  format: number;
  rowCount: number;
  timestampMin: bigint;
  timestampMax: bigint;
  diskSizeBytes: number;
}

/** The storage of a column in a partition. */
export interface ColumnStorage {
  /** Name of the partition. */
  partition: string;
  column: TableColumn;
  rowCount: number;
  /** Rows that are in data files. The others are in memory and in the log. */
  storedRowCount: number;
  /** Bytes of the stored rows without encoding, and in their file. Dictionaries of symbols belong to no partition. */
  rawSizeBytes: number;
  diskSizeBytes: number;
  /** Encodings of the stored rows. */
  encodings: readonly string[];
}

/**
 * Rows to be added to a table; its buffers can be transferred. `values` has the column's layout. Text: (offset into
 * `heap`, length) pairs. SYMBOL: i32 codes into this batch's own `symbols` (text pairs into `heap`), -1 null. Columns
 * that are not given get nulls.
 */
export interface AppendBatch {
  rowCount: number;
  columns: AppendColumn[];
  /** The buffer of all columns, if it holds nothing else. It is transferred with the batch. */
  buffer?: ArrayBuffer;
  /** The same rows in the form of the log, if a thread has made it already. */
  payload?: Uint8Array;
}

/**
 * Rows in the form of a block of the log (`encodeBatches`). The threads that parse rows make it, and only the writer reads it, so
 * that a batch costs the main thread the same for any number of rows and columns.
 */
export interface EncodedBatch {
  rowCount: number;
  payload: Uint8Array;
  /** That of `payload`, which other batches of the same request may share. It is transferred with the batch. */
  buffer: ArrayBuffer;
}

export type RowBatch = AppendBatch | EncodedBatch;

export interface AppendColumn {
  columnId: number;
  values: Uint8Array;
  heap?: Uint8Array;
  symbols?: Int32Array;
}

/** The rows with these ids, and their new values if it is an update. */
export interface ChangedBatch {
  rowIds: BigInt64Array;
  columns: AppendColumn[];
  /** As in `AppendBatch`. */
  buffer?: ArrayBuffer;
}

/**
 * A change that is allowed in a transaction. `creator`: the principal that gets all permissions on the new table or
 * columns.
 */
export type Change =
  | { kind: "createTable"; table: NewTable; rows?: AppendBatch[]; creator?: string }
  /** `permissions`: also removes the permissions on the table. */
  | { kind: "dropTable"; tableId: number; permissions?: boolean }
  | { kind: "truncate"; tableId: number }
  | { kind: "rename"; tableId: number; to: string }
  | { kind: "addColumns"; tableId: number; columns: NewColumn[]; creator?: string }
  | { kind: "dropColumns"; tableId: number; columnIds: number[] }
  | { kind: "renameColumn"; tableId: number; columnId: number; to: string }
  | { kind: "setColumn"; tableId: number; columnId: number; options: SymbolOptions }
  | { kind: "setOptions"; tableId: number; options: TableOptions }
  | { kind: "append"; changes: TableRows[] }
  | { kind: "update" | "delete"; tableId: number; batches: readonly ChangedBatch[] };

/** Rows to be added to a table. */
export interface TableRows {
  tableId: number;
  batches: RowBatch[];
}

/** Changeable options of a SYMBOL column. Omitted options stay. */
export type SymbolOptions = Partial<
  Pick<TableColumn, "indexed" | "indexCapacity" | "symbolCached" | "symbolCapacity">
>;

/** Changeable options of a table. Omitted options stay; `ttl: null` removes the time to live. */
export interface TableOptions {
  readonly ttl?: TableSchema["ttl"] | null;
  readonly dedupKeys?: readonly number[];
  readonly params?: TableParams;
  readonly wal?: boolean;
  readonly materialized?: Materialized;
}

/** Moves the partition that begins at `start`. A new partition cannot be created this way, only by INSERT. */
export interface PartitionMove {
  readonly start: bigint;
  readonly from: "attached" | "detached";
  readonly to: "attached" | "detached" | "nowhere";
}

/** `ordinal`: position among the transaction's changes. */
export type OrderedChange = Change & { ordinal: number };

/** Moves all of these partitions or none. Not allowed in a transaction. */
export interface PartitionChange {
  kind: "partitions";
  tableId: number;
  moves: readonly PartitionMove[];
}

/**
 * A transaction. Its changes are visible only through its `catalogue` until `commit`, which makes all of them durable
 * and visible at once, or none. It has its own state of each table that it has changed, as of its first change there or
 * `fork`. Other commits to that table become visible to it only after `commit`, which fails with 40001 if both changed
 * the same rows or columns.
 */
export interface StorageTransaction {
  readonly catalogue: Catalogue;
  /** Applies all changes or none. Returns the new table's id if the last change creates a table. */
  change(changes: OrderedChange[]): Promise<number | undefined>;
  /** After this, `catalogue` returns the transaction's own state of the table, so that rows can be addressed by id. */
  fork(tableId: number): Promise<void>;
  /** Undoes the changes after this ordinal. */
  rollbackTo(ordinal: number): Promise<void>;
  /** The transaction is over afterwards, whether or not the commit succeeds. */
  commit(changes: OrderedChange[]): Promise<void>;
  rollback(): Promise<void>;
}

/**
 * The writing side. A promise is fulfilled once the change is durable (as the commit mode says), applied and published,
 * so that the next `tables()` shows it. Failures: SqlError (position 0) for unacceptable values, CorruptFileError,
 * DiskFullError.
 */
export interface StorageWriter {
  createTable(table: NewTable, rows?: AppendBatch[], creator?: string): Promise<TableSnapshot>;
  /** Begins a table with more rows than memory should hold at once. The table is invisible until its `commit`. */
  beginLoad(table: NewTable, creator?: string): Promise<BulkLoad>;
  /**
   * Begins to add more rows to a table than memory should hold at once. They are invisible until `commit`. `columnIds`: of the
   * batches, in order.
   */
  beginAppend(tableId: number, columnIds: readonly number[]): Promise<BulkLoad>;
  /**
   * Begins to change more rows than memory should hold at once. The changes are invisible until `commit`. The batches have new values of
   * `columnIds`, in order, and then the ids of the rows.
   */
  beginChange(change: "update" | "delete", tableId: number, columnIds: readonly number[]): Promise<BulkLoad>;
  /**
   * Begins to convert a column. Until `commit`, which makes the new values and the definition visible together, the table is used and
   * changed as before: what is changed is converted again. No batches are added. `column`: the new definition.
   */
  beginTypeChange(tableId: number, columnId: number, column: NewColumn): Promise<BulkLoad>;
  /** All batches of one call are committed together and become visible together. */
  append(changes: TableRows[]): Promise<void>;
  /** Makes any other change. Returns the new table's id, if the change creates one. */
  change(change: Change | PartitionChange): Promise<number | undefined>;
  /**
   * Changes records of access control, all or none. @throws {SqlError} 40001 if a record differs from its `before`:
   * repeat the change from the current records.
   */
  changeAccess(changes: readonly AccessChange[]): Promise<void>;
  /** Begins a transaction that may hold `limitBytes` of memory for its changes. */
  begin(limitBytes: number): StorageTransaction;
  /** Opens a table after a `TableClosedError`. Does nothing if the table was dropped. */
  open(tableId: number): Promise<void>;
  checkpoint(): Promise<void>;
  /**
   * Makes a checkpoint. The files that it lists then stay unchanged until `release`, so that they can be copied. Holds
   * are counted.
   */
  hold(): Promise<void>;
  release(): Promise<void>;
  /**
   * Keeps the log from block `lsn` on for `name`, a reader of it (`wal/follower.ts`), in place of its former hold. Default: the blocks
   * to come. Returns the LSN. The hold ends with the process, and when more than `heldLogBytes` would be kept.
   */
  holdLog(name: string, lsn?: number): Promise<number>;
  releaseLog(name: string): Promise<void>;
  /** Writes everything to disk, closes the files and releases the lock. */
  close(): Promise<void>;
}

/**
 * The rows of a table that is being created, many rows that are added to one or changed in it, or a column that is converted. If the load fails or is aborted, or the process ends,
 * nothing remains of it.
 */
export interface BulkLoad {
  /** Adds a packed batch of all columns in order and takes over its buffer. Waits while too many batches are queued. */
  add(packed: Uint8Array): Promise<void>;
  /** Waits until all batches are in storage and prepared for `commit`, in steps between which others commit. @throws the signal's reason. */
  added(signal?: AbortSignal): Promise<void>;
  commit(): Promise<TableSnapshot>;
  abort(): Promise<void>;
}

/** A replacement of a record of access control. Null means that there is no record. */
export interface AccessChange {
  readonly key: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** The records of access control, by key. */
export interface AccessSource {
  readonly records: RecordMap;
  /** Calls `listener` after each change. */
  onChange(listener: (changes: readonly RecordChange[]) => void): void;
}

/** The reading side, on the main thread. Names are case-insensitive. */
export interface Catalogue {
  table(name: string): TableSnapshot | undefined;
  tableById(id: number): TableSnapshot | undefined;
  tables(): TableSnapshot[];
  /** Prevents the memory and files of the current version from being reused until the returned function is called. */
  pin(): () => void;
  /** Increases with every publication. */
  readonly version: number;
}
