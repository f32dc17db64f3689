/** A plan whose operators are chosen, as plain data: what operators are made from, and what EXPLAIN prints. */
import type {
  AggregateNode,
  Column,
  DistinctNode,
  Expr,
  FilterNode,
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
  TimeJoinNode,
  UnnestNode,
  ValuesNode,
  WindowNode,
  WorkingNode,
} from "../../sql/plan.ts";

/** A node of the logical plan with its id: 0 at the root, then depth first and left before right. Statistics are found by it. */
export interface FusedNode {
  id: number;
  node: Plan;
}

interface PhysicalBase {
  id: number;
  /** The operators whose rows this one takes, left before right. */
  inputs: PhysicalPlan[];
  /** The nodes below `node` that this operator does in the same pass over the rows, from the top down. */
  fused: FusedNode[];
}

/** Filters and projections, put together over the columns of a base. */
export interface Reading {
  base: ReadingBase;
  baseColumns: readonly Column[];
  /** Over the base's columns, all of which must hold. */
  predicates: readonly Expr[];
  /** Over the base's columns: the columns of the reading. */
  exprs: readonly Expr[];
  columns: readonly Column[];
  /** In whose statistics rows are counted: those of a scan, and those that pass the predicates. */
  reader?: number;
}

export type ReadingBase =
  /** The rows of a stored table. */
  | { kind: "scan"; node: ScanNode }
  /** The pairs of the first input, a join. */
  | { kind: "join" }
  /** The batches of the first input. */
  | { kind: "input" };

/** The parts of an operator's expressions that its kernels leave to others. */
export interface Calls {
  /** Functions without a kernel form: they run over whole batches, between two kernels. */
  batch: string[];
  /** Functions that run once for each entry of a symbol's dictionary. */
  perSymbol: string[];
}

export interface PhysicalPipeline extends PhysicalBase {
  operator: "pipeline";
  node: ScanNode | FilterNode | ProjectNode;
  reading: Reading;
  calls: Calls;
  /** How many rows there are at most, where that is known and they are not filtered. */
  rowsAtMost?: number;
}

/** One aggregate with a kernel form, over the columns of a base. */
export interface GroupCall {
  function: string;
  args: Expr[];
  type: string;
}

/** "single": one group. "dense": a table by small integers. "measured": dense or hash, when the dictionaries are there. */
export type TableKind = "single" | "dense" | "hash" | "measured";

/** What to group, over the columns of a base. */
export interface GroupSpec {
  predicates: readonly Expr[];
  keys: readonly Expr[];
  calls: readonly GroupCall[];
  rowIdColumn?: number;
  expectedRows: number;
  /** Keys and arguments become columns before they are grouped. "measured": when the dictionaries are there. */
  staged: boolean | "measured";
  table: TableKind;
}

/**
 * How rows reach their groups. "count": no column is read. "ranges": each range of morsels has a table of its own; a sample may say
 * that one table is better, or parts. "one range": all morsels in order. "in order": as the base gives them.
 */
export type GroupReads = "count" | "ranges" | "one range" | "in order";

export type GroupWay =
  | { kind: "kernel"; reading: Reading; spec: GroupSpec; reads: GroupReads; calls: Calls }
  /** Aggregates that no kernel knows, or that take each value once: over the batches of the input. */
  | { kind: "batches"; calls: Calls }
  /** count(DISTINCT x): a bit for each value of a small range, from `low` on. */
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
  /** Each part has the same groups in the same order; `columns` says where each output column is. */
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

/** SAMPLE BY over a scan in the order of time. */
export interface RunsWay {
  kind: "runs";
  node: ScanNode;
  reader?: number;
  spec: GroupSpec;
  sampling: Sampling;
  timeType: string;
}

export interface PhysicalSample extends PhysicalBase {
  operator: "sample";
  node: SampleNode;
  /** "runs": edges of buckets are searched in ordered times. "buckets": each row gets its bucket, which rows are grouped by. */
  way: RunsWay | { kind: "buckets"; groups: Grouping };
}

export type SortWay =
  /** All rows, of which the first `limit` are given. */
  | { kind: "all"; limit?: number }
  /** Only the best rows so far are kept. */
  | { kind: "best"; limit: number }
  /** The same by all workers. */
  | { kind: "best by morsels"; limit: number; reading: Reading }
  /** By the keys alone, over segments in the order of their promise; then the columns of the rows found. */
  | { kind: "top"; limit: number; reading: Reading; keys: SortKey[]; helpFromRows: number };

export interface PhysicalSort extends PhysicalBase {
  operator: "sort";
  node: SortNode;
  way: SortWay;
}

/** How a pair of keys is compared. "symbol": by codes of the right dictionary or as texts, by the dictionaries' sizes. */
export type JoinKeyKind = "value" | "wide" | "text" | "symbol";

export interface PhysicalJoin extends PhysicalBase {
  operator: "join";
  node: JoinNode;
  left: Reading;
  /** The columns of the left side's base, then the right side's. */
  columns: readonly Column[];
  /** Keys over the left side's base. */
  leftKeys: readonly Expr[];
  keyKinds: readonly JoinKeyKind[];
  /** Decides with the keys which rows are partners, over `columns`; of inner joins it is one of `over`'s predicates. */
  residual?: Expr;
  /** The join's rows over `columns`. */
  over: { predicates: readonly Expr[]; exprs: readonly Expr[] };
  /** Its left side's base is read morsel by morsel, on any thread. */
  leftByMorsels: boolean;
  /** And so are its pairs. */
  byMorsels: boolean;
  expectedLeftRows: number;
}

/** "merge": of the right side the last row of each key is kept. "splice": both sides are kept. */
export interface PhysicalTimeJoin extends PhysicalBase {
  operator: "time join";
  node: TimeJoinNode;
  way: "merge" | "splice";
}

/** "chain": one input after the other. "new rows": those of them not seen before. "against right": by the rows of the right side. */
export interface PhysicalSet extends PhysicalBase {
  operator: "set";
  node: SetNode;
  way: "chain" | "new rows" | "against right";
}

export type LatestWay =
  /** A table by one symbol: codes from the newest segment back until each symbol is found. */
  | { kind: "by symbol"; scan: ScanNode; key: number }
  /** A table from the newest row back: the first row of a key is its last. At most `keysMax` keys. */
  | { kind: "newest first"; keysMax: number }
  /** Any input: one row a key is kept. */
  | { kind: "all rows" };

export interface PhysicalLatest extends PhysicalBase {
  operator: "latest";
  node: LatestNode;
  way: LatestWay;
}

export type LimitWay =
  /** Rows from+1 … to. */
  | { kind: "first"; from: number; to: number }
  /** The last `count` rows but for the last `without` of them; so many are kept. */
  | { kind: "last"; count: number; without: number }
  /** The last `count` rows of an input that comes with its last row first. */
  | { kind: "last of reversed"; count: number }
  /** Without the first `skip` and the last `without` rows; so many as the latter are kept. */
  | { kind: "without ends"; skip: number; without: number };

export interface PhysicalLimit extends PhysicalBase {
  operator: "limit";
  node: LimitNode;
  way: LimitWay;
}

/** "streaming": rows go out as they come in. "general": all rows are kept. */
export type WindowWay = "streaming" | "general";

export interface PhysicalWindow extends PhysicalBase {
  operator: "window";
  node: WindowNode;
  way: WindowWay;
}

export interface PhysicalUnnest extends PhysicalBase {
  operator: "unnest";
  node: UnnestNode;
}

/** The second input runs round by round, over the rows of the round before. */
export interface PhysicalRecursion extends PhysicalBase {
  operator: "recursion";
  node: RecursionNode;
}

/** Rows of no other operator. There is one way to make them. */
export interface PhysicalSource extends PhysicalBase {
  operator: "source";
  node: ParquetNode | ValuesNode | SequenceNode | MetadataNode | WorkingNode;
}

export type PhysicalPlan =
  | PhysicalPipeline
  | PhysicalAggregate
  | PhysicalSample
  | PhysicalSort
  | PhysicalJoin
  | PhysicalTimeJoin
  | PhysicalSet
  | PhysicalLatest
  | PhysicalLimit
  | PhysicalWindow
  | PhysicalUnnest
  | PhysicalRecursion
  | PhysicalSource;
