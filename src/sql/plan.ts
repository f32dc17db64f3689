/**
 * The typed plan: the binder makes it from a syntax tree and the engine runs it. It is plain data, so that it can be posted to a
 * worker, compared and printed (EXPLAIN). Nodes do not refer to the catalogue: tables are ids, functions are ids of entries.
 */
import type { Value } from "../types/mod.ts";

/** A typed expression over the columns of a node's input. `type` is a type tag. */
export type Expr =
  | { kind: "column"; index: number; type: string }
  | { kind: "constant"; value: Value; type: string }
  /** A bind variable; replaced by a constant before the plan runs. */
  | { kind: "parameter"; index: number; type: string; at: number }
  | Placeholder
  /** `function` is the id of a catalogue entry: "name(TYPE,TYPE)". `at` is the position of runtime errors. */
  | { kind: "call"; function: string; args: Expr[]; type: string; at: number }
  /**
   * CASE and similar: conditions are BOOLEAN, and `otherwise` is always present. Branches that are not taken cannot
   * fail.
   */
  | { kind: "case"; branches: { when: Expr; then: Expr }[]; otherwise: Expr; type: string }
  /** Membership in a list of constants of `operand`'s type, including nulls. */
  | { kind: "in"; operand: Expr; values: Value[]; type: "BOOLEAN" };

/**
 * Placeholder for a column of a node that the binder has not made yet. `index` is the ordinal of the aggregate call,
 * the window call, the array of `unnest` or the item of the select list. "bucket" is the start of a SAMPLE BY bucket.
 * The binder replaces placeholders by columns, so finished plans have none.
 */
export interface Placeholder {
  kind: "placeholder";
  of: "aggregate" | "window" | "bucket" | "item" | "unnest";
  index: number;
  type: string;
}

/** Whether it compares two expressions by `=`. */
export function isEquality(expr: Expr): expr is Extract<Expr, { kind: "call" }> {
  return expr.kind === "call" && expr.function.startsWith("=(");
}

/** The direct sub-expressions of an expression. */
export function childrenOf(expr: Expr): Expr[] {
  switch (expr.kind) {
    case "call":
      return expr.args;
    case "case":
      return [...expr.branches.flatMap((branch) => [branch.when, branch.then]), expr.otherwise];
    case "in":
      return [expr.operand];
    default:
      return [];
  }
}

/** `function` is the id of an aggregate entry. */
export interface AggregateCall {
  function: string;
  args: Expr[];
  distinct: boolean;
  type: string;
  at: number;
}

export interface Column {
  readonly name: string;
  readonly type: string;
}

/** A range of the designated timestamp in its own unit, both ends inclusive. */
export type Interval = [low: bigint, high: bigint];

interface NodeBase {
  /** The output columns, in order. */
  columns: Column[];
  /** Index of the designated timestamp among `columns`, or -1. */
  timestamp: number;
  /** The order of the rows by the designated timestamp. */
  order: "asc" | "desc" | "none";
}

/**
 * Reads a stored table. Output: `columns` (those of `columnIds`), then, with `rowId`, one LONG `segment << 32 | row`.
 */
export interface ScanNode extends NodeBase {
  node: "scan";
  /**
   * Unique within the plan, from 0. Identifies the scan's source and statistics. -1 until the rules have run (see
   * number-scans.ts).
   */
  id: number;
  tableId: number;
  tableName: string;
  columnIds: number[];
  /** Sorted and disjoint. Undefined means all. Segments outside are pruned, and rows outside are omitted. */
  intervals?: Interval[];
  /** Only rows for which this is true are output. Refers to the scan's own columns. */
  predicate?: Expr;
  /** True if the newest rows are output first. */
  reverse: boolean;
  rowId: boolean;
}

/** The part of a table that a scan reads. */
export type ScanReading = Pick<ScanNode, "id" | "tableId" | "columnIds" | "intervals">;

export interface ParquetNode extends NodeBase {
  node: "parquet";
  /** Absolute path; the binder has checked that it is inside the import root. */
  path: string;
  /** The import root. */
  root: string;
  /** Column names in the file, in the order of `columns`. */
  fileColumns: string[];
  at: number;
  /** Only so many of the last rows are needed: the row groups before these may be left out. */
  lastRows?: number;
}

/**
 * Rows that a wire has spooled as lines of JSON: see `isLines` of the encoding. No statement has it. Symbols are read as
 * texts.
 */
export interface SpooledNode extends NodeBase {
  node: "spooled";
  path: string;
  /** Number of the file's first bytes that are read. */
  sizeBytes: number;
  rowCount: number;
}

/** Known rows: VALUES, metadata, SELECT without FROM (one row without columns: `rows` is [[]]). */
export interface ValuesNode extends NodeBase {
  node: "values";
  /** The row is an aggregate's result that was computed from segment statistics. */
  ofStatistics?: true;
  rows: Value[][];
}

/**
 * Rows that the database layer makes when the query starts: `source` is "tables", "table_columns", … with `args`. It is
 * replaced by a ValuesNode or a FilesNode.
 */
export interface MetadataNode extends NodeBase {
  node: "metadata";
  source: string;
  args: Value[];
  at: number;
}

/**
 * files(), import_files(), export_files() and glob(): the database layer replaces their metadata nodes by it, so that a query
 * worker lists the files.
 */
export interface FilesNode extends NodeBase {
  node: "files";
  /** Absolute, or relative to the first root. Undefined: the first root, which may not exist. */
  path?: string;
  /** Only files in the first root whose path matches. */
  pattern?: string;
  /** The directories that may be listed. */
  roots: string[];
  /** Files whose names have this prefix are omitted. */
  hiddenPrefix: string;
  at: number;
}

/**
 * long_sequence: one LONG column with `count` rows, from `start` by `step`. generate_series uses it with another name
 * and type.
 */
export interface SequenceNode extends NodeBase {
  node: "sequence";
  start: bigint;
  step: bigint;
  count: number;
  /** long_sequence(n, seed1, seed2): seeds for the rnd_ functions above it. */
  seeds?: [bigint, bigint];
}

export interface FilterNode extends NodeBase {
  node: "filter";
  input: Plan;
  predicate: Expr;
}

export interface ProjectNode extends NodeBase {
  node: "project";
  input: Plan;
  expressions: Expr[];
}

/**
 * One row for each group: keys, then aggregates, in the order of the groups' first rows. Without keys: exactly one row.
 */
export interface AggregateNode extends NodeBase {
  node: "aggregate";
  input: Plan;
  keys: Expr[];
  aggregates: AggregateCall[];
}

/** The buckets of SAMPLE BY. Units as in SQL: n U T s m h d w M y. */
export interface Sampling {
  count: number;
  unit: string;
  /** calendar: buckets are aligned to the epoch (or `from`); otherwise to the first row's time. */
  align: "calendar" | "first observation";
  /** IANA name or ±hh:mm; "" is UTC. */
  timeZone: string;
  /** WITH OFFSET, in the timestamp's unit. */
  offset: bigint;
  /** In the timestamp's unit. Rows outside are omitted. With a fill, the buckets extend to these bounds. */
  from?: bigint;
  to?: bigint;
}

export type Fill =
  | { kind: "none" | "null" | "linear" }
  /** `from`: the aggregate whose previous value it is, if that is another one. */
  | { kind: "prev"; from?: number }
  | { kind: "value"; value: Value };

/**
 * Output: keys (in `columns` order: the bucket's start at `bucketIndex`, the other keys around it), then aggregates. In
 * order of buckets.
 */
export interface SampleNode extends NodeBase {
  node: "sample";
  input: Plan;
  /** The timestamp, over the input. */
  time: Expr;
  sampling: Sampling;
  keys: Expr[];
  aggregates: AggregateCall[];
  /** One for each aggregate; empty without FILL. Output columns: bucket, keys…, aggregates…. */
  fills: Fill[];
}

/** The last row by `time` for each combination of `keys`, output in order of time. */
export interface LatestNode extends NodeBase {
  node: "latest";
  input: Plan;
  time: Expr;
  keys: Expr[];
}

export interface SortKey {
  expression: Expr;
  descending: boolean;
  /** Undefined: the dialect's default (see `ColumnType.order`). */
  nulls?: "first" | "last";
}

/** A stable sort. */
export interface SortNode extends NodeBase {
  node: "sort";
  input: Plan;
  keys: SortKey[];
  /** Only the first `limit` rows are needed. Set by a planner rule. */
  limit?: number;
}

/** Rows low+1 … high of the input, as in the dialect: negative bounds count from the end. */
export interface LimitNode extends NodeBase {
  node: "limit";
  input: Plan;
  /** Constants or parameters of type LONG. */
  low?: Expr;
  high: Expr;
}

/** Distinct rows, in order of first appearance. */
export interface DistinctNode extends NodeBase {
  node: "distinct";
  input: Plan;
}

/** Output: left columns, then right columns. Unmatched sides get the types' nulls. */
export interface JoinNode extends NodeBase {
  node: "join";
  type: "inner" | "left" | "right" | "full" | "cross";
  left: Plan;
  right: Plan;
  /** Equality keys; each pair has the same layout (the binder inserted casts). Nulls match. */
  leftKeys: Expr[];
  rightKeys: Expr[];
  /** The rest of ON besides the equality keys, over left columns then right columns. */
  residual?: Expr;
}

/** The sides of a join by time. */
export interface TimedSides {
  left: Plan;
  right: Plan;
  /** Over each side's columns, in the same unit. Both inputs are in ascending order of it. */
  leftTime: Expr;
  rightTime: Expr;
  leftKeys: Expr[];
  rightKeys: Expr[];
}

/** Output: left columns, then right columns. */
export interface TimeJoinNode extends NodeBase, TimedSides {
  node: "timeJoin";
  type: "asof" | "lt" | "splice";
  /** In the time's unit; undefined: no limit. */
  tolerance?: bigint;
}

/** A bound of the windows of a WINDOW JOIN: the time of a left row, moved by `offset` times `unit`. */
export interface WindowBound {
  /** A LONG over the left side. NULL: the window is empty. A negative number counts as 0. */
  offset: Expr;
  /** In the unit of the join's times. */
  unit: bigint;
  direction: "preceding" | "following";
}

/**
 * Aggregates over the right rows within a window of time around each left row. Output: left columns, then a column for each aggregate, in the
 * order of the left rows.
 */
export interface WindowJoinNode extends NodeBase, TimedSides {
  node: "windowJoin";
  /** Both inclusive. */
  start: WindowBound;
  end: WindowBound;
  /** The last right row at or before the start belongs to the window, too. */
  includesPrevailing: boolean;
  /** The rest of ON besides the keys, over left columns then right columns. Other right rows do not exist for a left row. */
  residual?: Expr;
  /** Over left columns then right columns. */
  aggregates: AggregateCall[];
}

/**
 * Each left row with each offset, and the last right row at or before the row's time plus the offset. Output: left columns, the offset, the
 * moved time, right columns.
 */
export interface HorizonJoinNode extends NodeBase, TimedSides {
  node: "horizonJoin";
  /** The left side's time in its own unit. */
  time: Expr;
  /** In that unit, ascending. */
  offsets: bigint[];
}

/** Window functions whose result depends only on the position in the partition: they ignore the frame. */
export const UNFRAMED: ReadonlySet<string> = new Set(
  ["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"],
);

export interface WindowCall {
  /** The id of a window entry such as "row_number()", or of an aggregate. */
  function: string;
  args: Expr[];
  ignoreNulls: boolean;
  partitionBy: Expr[];
  orderBy: SortKey[];
  frame: WindowFrame;
  type: string;
  at: number;
}

/** Offsets are in rows, or for "range" in the unit of the (single, ascending) order key. undefined: unbounded. */
export interface WindowFrame {
  unit: "rows" | "range";
  /** Negative: preceding; 0: current row; positive: following. */
  start?: bigint;
  end?: bigint;
  excludeCurrentRow: boolean;
}

/** Output: the input's columns, then one column for each call. Rows keep the input's order. */
export interface WindowNode extends NodeBase {
  node: "window";
  input: Plan;
  calls: WindowCall[];
}

/** The inputs have the same types in order (the binder inserted casts). */
export interface SetNode extends NodeBase {
  node: "set";
  operator: "union" | "union all" | "except" | "except all" | "intersect" | "intersect all";
  left: Plan;
  right: Plan;
}

/**
 * A row for each element of the arrays of each input row. Elements are combined by position; shorter arrays are padded
 * with nulls. Output: the input's columns, a DOUBLE for each array, then, with `ordinality`, the position of the
 * element from 1 as a LONG.
 */
export interface UnnestNode extends NodeBase {
  node: "unnest";
  input: Plan;
  arrays: Expr[];
  ordinality: boolean;
}

/**
 * WITH RECURSIVE: the rows of `left`, then, round by round, those of `right` over the rows of the previous round, until
 * a round gives none. Both have the node's types in order.
 */
export interface RecursionNode extends NodeBase {
  node: "recursion";
  /** Unique within the statement. */
  id: number;
  /** UNION: omit rows that occurred before. */
  distinct: boolean;
  left: Plan;
  right: Plan;
}

/** Below the `right` of the recursion with this id: the rows of the previous round. */
export interface WorkingNode extends NodeBase {
  node: "working";
  id: number;
}

export type Plan =
  | ScanNode
  | ParquetNode
  | SpooledNode
  | ValuesNode
  | MetadataNode
  | FilesNode
  | SequenceNode
  | FilterNode
  | ProjectNode
  | AggregateNode
  | SampleNode
  | LatestNode
  | SortNode
  | LimitNode
  | DistinctNode
  | JoinNode
  | TimeJoinNode
  | WindowJoinNode
  | HorizonJoinNode
  | WindowNode
  | SetNode
  | UnnestNode
  | RecursionNode
  | WorkingNode;

/** A node's inputs, left before right. */
export function inputsOf(plan: Plan): Plan[] {
  switch (plan.node) {
    case "scan":
    case "parquet":
    case "spooled":
    case "values":
    case "metadata":
    case "files":
    case "sequence":
    case "working":
      return [];
    case "join":
    case "timeJoin":
    case "windowJoin":
    case "horizonJoin":
    case "set":
    case "recursion":
      return [plan.left, plan.right];
    default:
      return [plan.input];
  }
}

/** A column of a table to be created. `type` is a tag. */
export interface NewColumn {
  name: string;
  type: string;
  indexed: boolean;
  symbolCapacity: number;
  symbolCached: boolean;
  /** As written. Undefined: 256. */
  indexCapacity?: number;
}

export const PARTITION_UNITS = ["NONE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"] as const;
export type PartitionUnit = typeof PARTITION_UNITS[number];

/** A query with a name. */
export interface View {
  name: string;
  text: string;
}

/** Views by their names, whose case does not matter. */
export interface Views {
  view(name: string): View | undefined;
}

export interface NewTable {
  name: string;
  columns: NewColumn[];
  /** Index of the designated timestamp, or -1. */
  timestamp: number;
  partitionBy: PartitionUnit;
  wal: boolean;
  dedupKeys: number[];
  ttl?: { count: number; unit: string };
  params?: TableParams;
  /** The table has the rows of a query. */
  materialized?: Materialized;
}

/** The definition of a materialized view, which is a table that only the server changes. */
export interface Materialized {
  /** The table whose changes are followed. */
  readonly base: string;
  readonly baseId: number;
  readonly text: string;
  /** Of each SAMPLE BY of the query. `offset`: as text, in the timestamp's unit. */
  readonly samplings: readonly (Pick<Sampling, "count" | "unit" | "timeZone"> & { readonly offset: string })[];
  readonly refresh: RefreshRule;
  /** Rows that are this much older than the newest one of the base are not refreshed. */
  readonly limit?: UnitCount;
  /** Why it is refreshed no more. */
  readonly fault?: string;
  /** LSN of the base, as text, at which all of its rows were in the view. Set when the server stops. */
  readonly upToLsn?: string;
  /** With `upToLsn`, of a view with periods: rows of the base from this time on were not in the view. */
  readonly periodHiMicros?: number;
}

/** What REFRESH MATERIALIZED VIEW asks for. Times are microseconds; the range has rows from the first to before the last. */
export type Refresh =
  | { kind: "full" | "incremental" }
  | { kind: "range"; fromMicros: bigint; toMicros: bigint };

export interface UnitCount {
  readonly count: number;
  /** MINUTE, HOUR, DAY, WEEK, MONTH or YEAR; for periods SECOND, too. */
  readonly unit: string;
}

/** PERIOD: rows of a period get into the view when its end, and then the delay, have passed. Periods are counted from the epoch, in local time. */
export interface RefreshPeriod {
  /** At most 24 hours. */
  readonly length: UnitCount;
  readonly delay?: UnitCount;
  readonly timeZone?: string;
  /** Of the period in which it was defined, in local time. It is shown only. */
  readonly startMicros: number;
}

/** When a view is refreshed: after each change of the base, when asked, or each `every` from `startMicros` on. */
export type RefreshRule =
  & {
    /** The view gets its first rows with the first refresh. */
    readonly isDeferred?: true;
    readonly period?: RefreshPeriod;
  }
  & (
    | { readonly kind: "immediate" | "manual" }
    | { readonly kind: "timer"; readonly every: UnitCount; readonly startMicros: number; readonly timeZone?: string }
  );

/** Parameters of QuestDB's tables. They are stored and shown but have no effect. */
export interface TableParams {
  readonly maxUncommittedRows?: number;
  readonly o3MaxLagMicros?: number;
}

/** A bound statement with its plan as `P`: plain data, as declared in its kind's file in `statements/`. */
export interface BoundStatement<P = Plan> {
  readonly kind: string;
  /** The plan's rows are the result, or what the statement stores or changes. */
  readonly plan?: P;
  /** The statement within EXPLAIN. */
  readonly statement?: BoundStatement<P>;
}
