/** The physical plan, as plain data. Operators are created from it, and EXPLAIN prints it. */
import type {
  AggregateNode,
  Column,
  DistinctNode,
  Expr,
  FilesNode,
  FilterNode,
  HorizonJoinNode,
  JoinNode,
  LatestNode,
  LimitNode,
  MetadataNode,
  ParquetNode,
  Plan,
  ProjectNode,
  RecursionNode,
  SampleNode,
  Sampling,
  ScanNode,
  SequenceNode,
  SetNode,
  SortKey,
  SortNode,
  SpooledNode,
  TimeJoinNode,
  UnnestNode,
  ValuesNode,
  WindowJoinNode,
  WindowNode,
  WorkingNode,
} from "../../sql/plan.ts";

/**
 * A node of the logical plan with its id: 0 at the root, then depth first, left before right. The id also identifies
 * its statistics.
 */
export interface FusedNode {
  id: number;
  node: Plan;
}

interface PhysicalBase {
  id: number;
  /** The operators whose rows this one reads, left before right. */
  inputs: PhysicalPlan[];
  /** The nodes below `node` that this operator executes in the same pass over the rows, top down. */
  fused: FusedNode[];
}

/**
 * How an operator continues on disk when its memory is short. "sorted runs": portions of the rows are sorted and written, and then merged.
 * "hash partitions": the rows of all inputs are divided by the hashes of their keys, and each partition is processed separately.
 * "rows in order": few rows are in memory at a time, and the rows are written if a result depends on all of them.
 * An operator without a way fails.
 */
export type SpillWay = "sorted runs" | "hash partitions" | "hash partitions and sorted runs" | "rows in order";

/** Filters and projections, combined over the columns of a base. */
export interface Reading {
  base: ReadingBase;
  baseColumns: readonly Column[];
  /** Over the base's columns; all must be true. */
  predicates: readonly Expr[];
  /** The columns of the reading, over the base's columns. */
  exprs: readonly Expr[];
  columns: readonly Column[];
  /** The operator whose statistics count the rows of a scan, and those that pass the predicates. */
  reader?: number;
}

export type ReadingBase =
  /** The rows of a stored table. */
  | { kind: "scan"; node: ScanNode }
  /** The pairs of the first input, a join. */
  | { kind: "join" }
  /** The batches of the first input. */
  | { kind: "input" };

export interface PhysicalPipeline extends PhysicalBase {
  operator: "pipeline";
  node: ScanNode | FilterNode | ProjectNode;
  reading: Reading;
  /** Upper bound of the number of rows, if it is known and no filter follows. */
  rowsAtMost?: number;
  /** A limit reads it: the first batches have few rows. */
  inSteps?: boolean;
  /** Rows of a scan may be read ahead by all threads. */
  ahead?: AheadLimits;
}

/** When rows are read ahead by all threads. */
export interface AheadLimits {
  /** Least time of one thread for the rows of a stage. */
  stageMsMin: number;
  /** Most time for keeping the rows that pass, as a share of that time. */
  keepingShareMax: number;
  /** A stage that takes longer than this share of that time is the last one. */
  stageShareMax: number;
}

/** One aggregate with a kernel form, over the columns of a base. */
export interface GroupCall {
  function: string;
  args: Expr[];
  type: string;
}

/**
 * "single": one group. "dense": a table by small integers. "measured": dense or hash, decided by the dictionaries at
 * run time.
 */
export type TableKind = "single" | "dense" | "hash" | "measured";

/** A grouping over the columns of a base. */
export interface GroupSpec {
  predicates: readonly Expr[];
  keys: readonly Expr[];
  calls: readonly GroupCall[];
  rowIdColumn?: number;
  expectedRows: number;
  /** Keys and arguments become columns before grouping. "measured": decided by the dictionaries at run time. */
  staged: boolean | "measured";
  table: TableKind;
  /**
   * Whole segments are grouped in a small dense table each, which is merged into that of the groups: aggregates of plain columns by the integers of
   * packed chunks, the others by values. "masks": the rows of a segment that pass are marked by the codes of packed chunks, and go into the table of
   * the groups. Undefined: all rows go there.
   */
  segments?: "codes" | "values" | "masks";
  /** The records of groups keep texts of their rows. */
  keepsTexts?: boolean;
  /** The base is an operator, whose batches have any size: sums of floats must not depend on it. The groups of all batches are in one table. */
  isOverBatches?: boolean;
}

/**
 * How rows reach their groups. "count": no column is read. "ranges": each range of morsels has its own table; a sample
 * may change this to one table or partitions. "one range": all morsels in order. "in order": in the order of the base.
 */
export type GroupReads = "count" | "ranges" | "one range" | "in order";

export type GroupWay =
  | { kind: "kernel"; reading: Reading; spec: GroupSpec; reads: GroupReads; spill?: SpillWay }
  /**
   * Aggregates without a kernel form or over distinct values: over the batches of the input. `distinct`: for each aggregate over distinct
   * values, the table of its arguments. `apart`: another way, which reads the input several times, if the distinct values of a group exceed
   * the memory.
   */
  | { kind: "batches"; table: TableKind; distinct: (TableKind | undefined)[]; spill?: SpillWay; apart?: GroupWay }
  /** count(DISTINCT x): one bit for each value of a small range, beginning at `low`. */
  | {
    kind: "bits";
    node: ScanNode;
    reader?: number;
    predicates: readonly Expr[];
    value: Expr;
    low: bigint;
    bytes: number;
  }
  /** count(DISTINCT x): groups by x are counted. */
  | { kind: "values"; groups: Grouping }
  /** count(DISTINCT x) by keys: rows are grouped by keys and x, then these groups by the keys. */
  | { kind: "pairs"; pairs: Grouping; counts: Grouping }
  /** Each part has the same groups in the same order; `columns` is the source of each output column. */
  | { kind: "side by side"; parts: Grouping[]; columns: { part: number; column: number }[] };

export interface Grouping {
  node: AggregateNode;
  way: GroupWay;
}

export interface PhysicalAggregate extends PhysicalBase {
  operator: "aggregate";
  node: AggregateNode | DistinctNode;
  grouping: Grouping;
}

/** SAMPLE BY over a scan in time order. */
export interface RunsWay {
  kind: "runs";
  node: ScanNode;
  reader?: number;
  spec: GroupSpec;
  sampling: Sampling;
  timeType: string;
}

/** The bucket is an expression over the rows of a scan or join, which are read by morsels. */
export interface ComputedBuckets {
  kind: "computed";
  groups: Grouping;
  /** Groups, which are in the order of their first rows, are in the order of their buckets. */
  isInOrder: boolean;
}

export interface PhysicalSample extends PhysicalBase {
  operator: "sample";
  node: SampleNode;
  /**
   * "runs": edges of buckets are searched in ordered times. "buckets": rows are grouped by their bucket, computed for
   * each row.
   */
  way: RunsWay | ComputedBuckets | { kind: "buckets"; groups: Grouping };
}

/**
 * How rows behind the best ones so far are skipped, by the first key: by a kernel, by comparing row by row, or not at
 * all.
 */
export type SkipWay = "kernel" | "row by row" | "none";

export type SortWay =
  /**
   * All rows are sorted, and the first `limit` are output. `inRowFormat`: rows are copied into row format, in parts by the first key,
   * if the memory allows; otherwise they are found by their numbers.
   */
  | { kind: "all"; limit?: number; inRowFormat: boolean; spill?: SpillWay }
  /** Only the best rows so far are kept. */
  | { kind: "best"; limit: number; skip: SkipWay; spill?: SpillWay }
  /** Like "best", by all workers. */
  | { kind: "best by morsels"; limit: number; skip: SkipWay; reading: Reading; spill?: SpillWay }
  /** By the keys alone, over segments in order of promise; then the columns of the selected rows are read. */
  | {
    kind: "top";
    limit: number;
    skip: SkipWay;
    reading: Reading;
    keys: SortKey[];
    helpFromRows: number;
    spill?: SpillWay;
  };

export interface PhysicalSort extends PhysicalBase {
  operator: "sort";
  node: SortNode;
  way: SortWay;
}

/**
 * How a pair of keys is compared. "symbol": by codes of the right dictionary or as texts, depending on the
 * dictionaries' sizes.
 */
export type JoinKeyKind = "value" | "wide" | "text" | "symbol";

/** A join that operators above read like a scan. */
interface PhysicalPairs extends PhysicalBase {
  operator: "join";
  /** The columns of the left side's base, then the right side's. */
  columns: readonly Column[];
  /** The join's rows over `columns`. */
  over: { predicates: readonly Expr[]; exprs: readonly Expr[] };
  /** It is read by morsels, on any thread. */
  byMorsels: boolean;
  expectedLeftRows: number;
}

/** A join whose left rows look up right rows by their keys. If its left side's base is read by morsels, so is the join. */
export interface PhysicalProbe extends PhysicalPairs {
  left: Reading;
  /** Keys over the left side's base. */
  leftKeys: readonly Expr[];
  keyKinds: readonly JoinKeyKind[];
}

export interface PhysicalJoin extends PhysicalProbe {
  way: "pairs";
  node: JoinNode;
  /** A join condition besides the keys, over `columns`; for inner joins it is one of `over`'s predicates. */
  residual?: Expr;
  spill?: SpillWay;
}

/**
 * An ASOF or LT join whose left side is read by morsels. If it is itself read by morsels, it keeps all right rows, as far as the memory
 * allows; otherwise it merges both sides like a "merge".
 */
export interface PhysicalLastRows extends PhysicalProbe {
  way: "last rows";
  node: TimeJoinNode;
  /** The column of the time in the left side's base, and in the right side. */
  leftTime: number;
  rightTime: number;
  spill?: SpillWay;
  /** It can start again on disk after it has output rows, because its inputs give the same rows each time. */
  canRestart: boolean;
}

/** A SPLICE join, which keeps both sides as far as the memory allows; otherwise it merges them in order. */
export interface PhysicalSplice extends PhysicalPairs {
  way: "splice";
  node: TimeJoinNode;
  spill?: SpillWay;
  /** It can start again on disk after it has output rows, because its inputs give the same rows each time. */
  canRestart: boolean;
}

/** An ASOF or LT join that reads both sides in order, and keeps only the last right row of each key. */
export interface PhysicalTimeJoin extends PhysicalBase {
  operator: "time join";
  node: TimeJoinNode;
  spill?: SpillWay;
  /** It can start again on disk after it has output rows, because its inputs give the same rows each time. */
  canRestart: boolean;
}

/** Reads both sides in order, and keeps the right rows of the windows of some left rows. */
export interface PhysicalWindowJoin extends PhysicalBase {
  operator: "window join";
  node: WindowJoinNode;
}

/** Reads both sides in order, and keeps the right rows between the times of some left rows. */
export interface PhysicalHorizonJoin extends PhysicalBase {
  operator: "horizon join";
  node: HorizonJoinNode;
}

/**
 * "chain": one input after the other. "new rows": only rows not seen before. "against right": compared with the right
 * side's rows.
 */
export interface PhysicalSet extends PhysicalBase {
  operator: "set";
  node: SetNode;
  way: "chain" | "new rows" | "against right";
  spill?: SpillWay;
  /** It can start again on disk after it has output rows, because its inputs give the same rows each time. */
  canRestart: boolean;
}

export type LatestWay =
  /** A table by one symbol: codes from the newest segment backwards until each symbol is found. */
  | { kind: "by symbol"; scan: ScanNode; key: number; reader: number }
  /**
   * A table from the newest row backwards: the first row of a key is its last. `symbols`: the keys, if they are symbol columns, so that all keys can be
   * known to be found. Unless this is after few rows, `groups` finds them.
   */
  | { kind: "newest first"; scan: ScanNode; symbols?: number[]; groups?: Grouping }
  /** A table: its rows are grouped by the keys and the last row id of each group, and then the rows are fetched. */
  | { kind: "groups"; scan: ScanNode; groups: Grouping }
  /** Any input: one row for each key is kept. */
  | { kind: "all rows" };

export interface PhysicalLatest extends PhysicalBase {
  operator: "latest";
  node: LatestNode;
  way: LatestWay;
}

export type LimitWay =
  /** Rows from+1 … to. */
  | { kind: "first"; from: number; to: number }
  /** The last `count` rows without the last `without` of them; this many are kept. */
  | { kind: "last"; count: number; without: number }
  /** The last `count` rows of a reversed input. */
  | { kind: "last of reversed"; count: number }
  /** Without the first `skip` and the last `without` rows; as many as the latter are kept. */
  | { kind: "without ends"; skip: number; without: number };

export interface PhysicalLimit extends PhysicalBase {
  operator: "limit";
  node: LimitNode;
  way: LimitWay;
}

/** A window function computed from a small state for each partition. */
export type StreamingCall =
  | { kind: "row number" | "count" | "sum" | "average" | "first value" | "last value" }
  | { kind: "lag"; offset: number };

/**
 * One computed from a small state over rows in its order, all of one partition. "moving sum" and "moving average": of the rows from `first`
 * rows before the current one to `last` rows before it.
 */
export type OrderedCall =
  | StreamingCall
  | { kind: "rank" | "dense rank" | "least" | "greatest" }
  | { kind: "moving sum" | "moving average"; first: number; last: number };

/** Calls of a window, by their positions, which continue on disk together. */
export type WindowStep = DividedStep | OrderedStep;

/** `keys`: all calls have them in PARTITION BY. */
export interface DividedStep {
  kind: "hash partitions";
  calls: number[];
  keys: readonly Expr[];
}

/** Calls without PARTITION BY. */
export interface OrderedStep {
  kind: "in order";
  /** None if the rows arrive in this order. */
  sortBy: readonly SortKey[];
  /** These need only this many rows before and after the current one. */
  near: { calls: number[]; before: number; after: number };
  /** The other calls. */
  calls: number[];
  ways: OrderedCall[];
  /** The last result is that of all rows. */
  isWhole: boolean[];
}

/** `steps`: each of them reads the output of the one before, if the memory is short. */
export type WindowWay =
  /** Rows are output as they arrive. */
  | { kind: "streaming"; calls: StreamingCall[]; spill?: SpillWay; steps: WindowStep[] }
  /** All rows are kept. */
  | { kind: "general"; calls: KeptCall[]; spill?: SpillWay; steps: WindowStep[] };

/** How a window function is computed over kept rows. */
export interface KeptCall {
  /** The rows arrive in its order. Otherwise they are sorted. */
  isSorted: boolean;
  /** Keys are compared to find peers. */
  hasPeers: boolean;
  /** The states of rows are merged for each frame, even if the function has an evaluation of its own. */
  mergesStates: boolean;
}

export interface PhysicalWindow extends PhysicalBase {
  operator: "window";
  node: WindowNode;
  way: WindowWay;
}

export interface PhysicalUnnest extends PhysicalBase {
  operator: "unnest";
  node: UnnestNode;
}

/** The second input runs in rounds, over the rows of the previous round. */
export interface PhysicalRecursion extends PhysicalBase {
  operator: "recursion";
  node: RecursionNode;
}

/** An operator without inputs and without alternatives. */
export interface PhysicalSource extends PhysicalBase {
  operator: "source";
  node: ParquetNode | SpooledNode | FilesNode | ValuesNode | SequenceNode | MetadataNode | WorkingNode;
}

export type PhysicalPlan =
  | PhysicalPipeline
  | PhysicalAggregate
  | PhysicalSample
  | PhysicalSort
  | PhysicalJoin
  | PhysicalLastRows
  | PhysicalSplice
  | PhysicalTimeJoin
  | PhysicalWindowJoin
  | PhysicalHorizonJoin
  | PhysicalSet
  | PhysicalLatest
  | PhysicalLimit
  | PhysicalWindow
  | PhysicalUnnest
  | PhysicalRecursion
  | PhysicalSource;
