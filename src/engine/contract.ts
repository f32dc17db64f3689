/**
 * The engine's walls: batches, operators, what a query may use. Runs the same in an exec worker and, for small queries, on main.
 */
import type { FunctionEntry } from "../sql/functions/entry.ts";
import type { Column, Plan, ScanReading } from "../sql/plan.ts";
import type { Dictionary, ScanSource } from "../storage/contract.ts";
import type { SharedHeap } from "../storage/heap.ts";

/** A column of a batch: `rowCount` values of the type's layout at `address`. */
export interface Vector {
  type: string;
  address: number;
  /** SYMBOL only (type SYMBOL always has one; computed symbols are SYMBOL_TEXT). */
  dictionary?: Dictionary;
}

/** Valid until the next call of the operator that gave it. At most MORSEL_ROWS rows. */
export interface Batch {
  rowCount: number;
  columns: Vector[];
}

export const MORSEL_ROWS = 65_536;

/**
 * A pull-based operator. `next` gives undefined at the end, never an empty batch twice in a row without progress; it polls
 * `context.poll()` often enough that a cancel stops it within 50 ms. `close` frees its memory; it is called exactly once, also after a failure.
 */
export interface Operator {
  readonly columns: readonly Column[];
  /** How many rows there are at most, where that is known and they are not filtered. */
  readonly rowsAtMost?: number;
  next(): Batch | undefined;
  close(): void;
}

/** Memory of one query, counted against its limit. Errors name the limit and the operator. */
export interface QueryMemory {
  allocate(sizeBytes: number, operator: string): number;
  free(address: number, sizeBytes: number): void;
  /** State outside the shared memory (JS heap): positive or negative. */
  account(sizeBytes: number, operator: string): void;
  /** Throws, and charges nothing, if so many more bytes would go beyond the limit: for what is gone again at once. */
  need(sizeBytes: number, operator: string): void;
  readonly usedBytes: number;
  /** Frees what is left, at the end of the query. */
  release(): void;
}

/** Looks a plan's function ids up. Handed in, so that the engine does not know the SQL room. */
export interface FunctionRegistry {
  /** The entry and the argument tags of an id. */
  resolve(id: string): { entry: FunctionEntry; types: string[] };
}

/** Frames of segments in shared memory. */
export interface Pool {
  /** Address of the chunk's values; read and checked (CorruptFileError) on a miss. Text pairs are absolute in memory. Pinned until `unpin`. */
  pin(source: ScanSource, segment: number, column: number): number;
  unpin(source: ScanSource, segment: number, column: number): void;
}

/** Where the statistics of EXPLAIN ANALYZE are: plain data for another thread. */
export interface AnalysisShape {
  address: number;
  nodes: number;
  scans: number;
  /** Whose work another thread shares. */
  node?: number;
}

/** Statistics of a plan's nodes while it runs. */
export interface PlanAnalysis {
  readonly shape: AnalysisShape;
  /** The context in which the node's operator works: its memory is counted, also on other threads. */
  contextOf(node: number, context: QueryContext): QueryContext;
  /** The operator itself, whose calls are counted from now on. */
  measured(node: number, operator: Operator): Operator;
  countScanned(scan: number, rows: number, bytes: number): void;
  /** Rows that a node has taken from the scan that it does itself. */
  countTaken(node: number, rows: number): void;
  /** Rows that have passed all conditions of the nodes that a node does itself. */
  countPassed(node: number, rows: number): void;
  /** Rows of a join, whichever operator reads them. */
  countPairs(node: number, rows: number): void;
}

export interface QueryContext {
  readonly heap: SharedHeap;
  readonly memory: QueryMemory;
  readonly pool: Pool;
  readonly functions: FunctionRegistry;
  /** By the ids of the plan's scans. */
  readonly sources: ScanSource[];
  readonly nowMicros: bigint;
  readonly random: () => number;
  readonly user: string;
  /** Throws SqlError 57014 when cancelled or out of time. */
  poll(): void;
  /** Address of the i32 cancel word in shared memory that kernels poll. */
  readonly cancelWord: number;
  /** EXPLAIN ANALYZE. */
  readonly analysis?: PlanAnalysis;
  /** Counts rows that a source has given; undefined where nobody asks. */
  countRead?(rows: number): void;
  /** Counts rows that a source has, before it gives any. */
  countToRead?(rows: number): void;
  /** Runs morsels on other workers too; undefined on main and where there is one worker. */
  readonly parallel?: ParallelRunner;
  /** Of the recursions around the operator, by their ids: the rows of the round before. */
  readonly working?: ReadonlyMap<number, WorkingRows>;
}

export interface WorkingRows {
  rowCount: number;
  columns: readonly Vector[];
}

/**
 * Runs `task` for morsels 0 … count-1, some of them on other workers. A task is a registered name plus plain data; each participant makes
 * its own state by `open`. `run(morsel)` is called once for each morsel, on some thread, in no order. Returns what each participant's
 * `finish` gave (plain data).
 */
export interface ParallelRunner {
  /** `node`: whose work it is, where statistics are kept by nodes. */
  run(taskName: string, data: unknown, morselCount: number, node?: number): unknown[];
  readonly workerCount: number;
}

/**
 * A whole plan as bytes, on its way from the thread that made it to the one that runs it: a long statement's plan has tens of
 * thousands of parts, and the threads between need not read them.
 */
export interface PackedPlan {
  bytes: Uint8Array<ArrayBuffer>;
  scans: ScanReading[];
  /** Values of parameters, clocks or rows of metadata are still missing: it has to be made again for each run. */
  isOpen: boolean;
  /** How many nodes the plan has. */
  nodes: number;
  /** Of the plan's root. */
  columns: Column[];
  timestamp: number;
}

/** A plan as threads post it. */
export type PostedPlan = Plan | PackedPlan;

export function isPacked(plan: PostedPlan): plan is PackedPlan {
  return "bytes" in plan;
}

/** What a whole query needs: posted to an exec worker. */
export interface QueryRequest {
  id: number;
  plan: PostedPlan;
  sources: ScanSource[];
  nowMicros: bigint;
  timeoutMs: number;
  memoryLimitBytes: number;
  /** Where statistics are kept by the nodes of the plan. */
  analysis?: AnalysisShape;
  user: string;
  /** Query slot in shared memory: holds the cancel word and the flow-control credits. */
  slot: number;
}
