/**
 * The interfaces of the engine: batches, operators, and the resources of a query. The engine runs in query workers and,
 * for small queries, on main.
 */
import type { FunctionEntry } from "../sql/functions/entry.ts";
import type { Column, Expr, ScanNode } from "../sql/plan.ts";
import type {
  ChooseOffsets,
  ChunkBound,
  ChunkOffsets,
  Dictionary,
  FoundRows,
  RowCondition,
  RowRange,
  ScanSource,
  VectorCounts,
} from "../storage/contract.ts";
import type { SharedHeap } from "../storage/heap.ts";
import type { Value } from "../types/mod.ts";
import type { PostedPlan } from "./packed-plan.ts";
import type { MeasuredChoice } from "./physical/measured.ts";

export type { PostedPlan } from "./packed-plan.ts";

/** A column of a batch: `rowCount` values of the type's layout at `address`. */
export interface Vector {
  type: string;
  address: number;
  /** SYMBOL only (type SYMBOL always has one; computed symbols are SYMBOL_TEXT). */
  dictionary?: Dictionary;
}

/** Valid until the next call of the operator that returned it. At most MORSEL_ROWS rows. */
export interface Batch {
  rowCount: number;
  columns: Vector[];
}

export const MORSEL_ROWS = 65_536;

/**
 * A pull-based operator. `next` returns undefined at the end; it does not return empty batches repeatedly without
 * progress. It calls `context.poll()` often enough that a cancel stops it within 50 ms. `close` frees its memory and is
 * called exactly once, also after a failure; no call follows it (`operators/contract.ts` asserts both).
 */
export interface Operator {
  readonly columns: readonly Column[];
  /** Upper bound of the number of rows, if it is known and no filter follows. */
  readonly rowsAtMost?: number;
  next(): Batch | undefined;
  /**
   * Between batches: prepares another run over the same sources, and keeps kernels and buffers. Returns false if the operator has
   * to be made anew.
   */
  rewind?(): boolean;
  /**
   * After `rewind`: the next run is over the sources that the context has now, which have the same dictionaries, with other intervals
   * and conditions. Returns false if the operator has to be made anew.
   */
  rebind?(changes: Changes): boolean;
  close(): void;
}

/**
 * What differs between two executions of a statement whose operators are kept: the intervals of scans, and constants of conditions,
 * which come from parameters.
 */
export interface Changes {
  /** The scan of the next plan in the place of this one. */
  scanOf(scan: ScanNode): ScanNode;
  /**
   * An operator's conditions for the next run; the same object if nothing changes. The operator uses them from then on for all that it does
   * with conditions.
   */
  take(conditions: readonly Expr[]): readonly Expr[];
  /** True if the scan reads other rows, or may: another version of its table. */
  isChanged(scan: number): boolean;
  /** How many constants operators have taken so far. */
  readonly takenCount: number;
  constant(constant: Constant): Constant;
  /** The values of IN. */
  list(values: readonly Value[]): readonly Value[];
  /** The same object if nothing changes. */
  mapped(expr: Expr): Expr;
}

export type Constant = Extract<Expr, { kind: "constant" }>;

/** The memory of one query, counted against its limit. Errors name the limit and the operator. */
export interface QueryMemory {
  allocate(sizeBytes: number, operator: string): number;
  free(address: number, sizeBytes: number): void;
  /** Accounts for memory outside of the shared memory (JS heap): positive or negative. */
  account(sizeBytes: number, operator: string): void;
  /**
   * Throws if this many more bytes would exceed the limit, but charges nothing: for memory that is freed immediately.
   */
  need(sizeBytes: number, operator: string): void;
  readonly usedBytes: number;
  /** 0: no limit. */
  readonly limitBytes: number;
  /**
   * Leaves a block to all threads of the query. It stays counted, and any thread may free it. `release` does not free
   * it: use `onRelease`.
   */
  share(address: number): void;
  /** Calls `free` before `release`, even if the thread fails, unless the returned function is called earlier. */
  onRelease(free: () => void): () => void;
  /** The blocks of this thread, for `freeSince`. */
  mark(): ReadonlySet<number>;
  /**
   * Frees the blocks that this thread has got since the mark: what is left of an operator that failed, which only an operator that can go
   * on without it calls. Much that it had in JavaScript's heap is collected.
   */
  freeSince(mark: ReadonlySet<number>): void;
  /** Frees everything that remains, at the end of the query. */
  release(): void;
}

/** Where the blocks of a query are that its memory does not hold. */
export interface SpillPlace {
  /** Each query has a directory there, named by its slot. */
  root: string;
  /** Most bytes of all queries together. */
  limitBytes: number;
}

export interface SpilledBlock {
  file: number;
  offset: number;
  sizeBytes: number;
}

/** Bytes in the shared memory. */
export type Piece = readonly [address: number, sizeBytes: number];

/** Blocks of a query on disk, which every thread of it can read. */
export interface Spill {
  /** Writes the pieces as one block. */
  write(pieces: readonly Piece[]): SpilledBlock;
  /** Call it before another thread reads blocks of this one. */
  flush(): void;
  /** Reads a block to `address`. */
  read(block: SpilledBlock, address: number): void;
  /** Counts a partition or a sorted run that is on disk. */
  countPart(): void;
}

/** Resolves a plan's function ids. It is injected, so that the engine does not depend on the SQL layer. */
export interface FunctionRegistry {
  /** The entry and the argument tags for an id. */
  resolve(id: string): { entry: FunctionEntry; types: string[] };
}

/** How many frames were in the pool, and how many chunks were read from files. */
export interface FrameCounts {
  found: number;
  read: number;
}

/** Frames of segments in shared memory. */
export interface Pool {
  /**
   * Address of the chunk's values, which are read and verified (CorruptFileError) on a miss. Text pairs have absolute
   * addresses. Pinned until `unpin`. With `rows`, only these need to have their values, so they may be in memory of this thread instead of a
   * frame; then `unpin` needs the address.
   */
  pin(source: ScanSource, segment: number, column: number, rows?: RowRange): number;
  unpin(source: ScanSource, segment: number, column: number, address?: number): void;
  /**
   * Copies values `rows[0 … count-1]` of a chunk to an address, without a frame for the others. Returns false if the chunk should be pinned:
   * it is in memory, has texts, or has been asked for repeatedly.
   */
  gather(
    source: ScanSource,
    segment: number,
    column: number,
    rows: Int32Array,
    count: number,
    address: number,
  ): boolean;
  /**
   * Copies the summaries of a stored chunk's vectors (`storage/encoding/summaries.ts`) without reading its values. Returns false if it has
   * none. `into` has space for those of a segment, and their tail.
   */
  summaries(source: ScanSource, segment: number, column: number, into: Uint8Array): boolean;
  /**
   * Finds rows of a segment by the codes of packed chunks. Writes numbers of rows in ascending order to `rows` (i32), at most `rowsMax`, and
   * returns how many: those within all bounds, and perhaps some others. Undefined if no column of the bounds can be kept packed. The answer depends on how chunks
   * are stored alone.
   */
  selectRows(
    source: ScanSource,
    segment: number,
    bounds: readonly ChunkBound[],
    range: RowRange,
    rows: number,
    rowsMax: number,
  ): number | undefined;
  /**
   * Writes the offsets of rows of a segment, and perhaps of their neighbours in a vector of 1,024 rows, to memory for those of all rows (i32) at
   * `address`, from a packed frame. Undefined if more than `missingMax` of their vectors (0 by default) have none; that depends only on how the
   * chunk is stored. `choose` may leave out vectors, and has to leave out those without offsets.
   */
  readOffsets(
    source: ScanSource,
    segment: number,
    column: number,
    rows: RowRange,
    address: number,
    choose?: ChooseOffsets,
    missingMax?: number,
  ): ChunkOffsets | undefined;
  /**
   * Marks the rows of a segment that pass all conditions, and no others, in `masks` (`RowCondition.test`), and returns their number. Bits of rows
   * outside of the range are undefined. `masks` is large enough for all rows of a segment. Undefined if a column cannot be kept packed, or has too many
   * vectors without codes; that depends only on how the chunks are stored.
   */
  maskRows(
    source: ScanSource,
    segment: number,
    conditions: readonly RowCondition[],
    range: RowRange,
    masks: number,
  ): number | undefined;
  /** Writes the numbers of rows of a range that are marked in `masks` to `rows` (i32), in ascending order. It is large enough for all of them. */
  listRows(masks: number, range: RowRange, rows: number, count: number): void;
  /** How many vectors the last call of `selectRows` or `maskRows` in this thread tested in which way. */
  vectorCounts(): VectorCounts;
  /**
   * Copies values of ascending rows (i32 at `rows`) to `values`, from a packed frame. Returns false if the chunk should be pinned: its values are
   * in memory, or it cannot be kept packed.
   */
  gatherRows(source: ScanSource, segment: number, column: number, rows: number, count: number, values: number): boolean;
  /**
   * The first row of a chunk of ascending times that is not below `value`, found in a packed frame; the number of rows if there is none.
   * Undefined if the chunk should be pinned.
   */
  firstAt(source: ScanSource, segment: number, column: number, value: bigint): number | undefined;
  /** What was used since the last call. */
  takeFrameCounts(): FrameCounts;
  /** True if rows of the segment can be found by the column. */
  isIndexed(source: ScanSource, segment: number, column: number): boolean;
  /** Those of the codes that the segment has. Undefined if the segment must be read to know. */
  present(source: ScanSource, segment: number, column: number, codes: readonly number[]): number[] | undefined;
  /**
   * The rows of a segment in which a symbol has one of the codes, which ascend. Undefined if they cannot be looked up, or if there are more
   * than `rowsMax`: the segment must be read. Valid until the next call.
   */
  find(
    source: ScanSource,
    segment: number,
    column: number,
    codes: readonly number[],
    rowsMax: number,
  ): FoundRows | undefined;
}

/** Location of the statistics of EXPLAIN ANALYZE, as plain data for another thread. */
export interface AnalysisShape {
  address: number;
  nodes: number;
  scans: number;
  /** The node whose work another thread shares. */
  node?: number;
}

/** Statistics of a plan's nodes during execution. */
export interface PlanAnalysis {
  readonly shape: AnalysisShape;
  /** The context for the node's operator: its memory is counted, also on other threads. */
  contextOf(node: number, context: QueryContext): QueryContext;
  /** Returns the operator with its calls counted from now on. */
  measured(node: number, operator: Operator): Operator;
  countScanned(scan: number, rows: number, bytes: number): void;
  /** Counts a segment whose rows were looked up by a symbol. `isSkipped`: it had none. */
  countLookup(scan: number, isSkipped: boolean): void;
  /** Counts vectors of 1,024 rows whose summaries were read instead of their values. */
  countSummarised(scan: number, vectors: number): void;
  /** Counts vectors of 1,024 rows whose packed codes were added up. */
  countOffsets(scan: number, vectors: number): void;
  /** Counts rows of a segment that were selected by the codes of packed chunks; no other rows of it were read. `vectors`: those that were tested. */
  countSelected(scan: number, rows: number, vectors: VectorCounts): void;
  /** Vectors on which conditions were tested. */
  countVectors(scan: number, vectors: VectorCounts): void;
  /** Counts frames that a scan has used. */
  countFrames(scan: number, frames: FrameCounts): void;
  /** Counts rows that a node has taken from a scan that it reads itself. */
  countTaken(node: number, rows: number): void;
  /** Counts rows that passed all conditions of the nodes fused into a node. */
  countPassed(node: number, rows: number): void;
  /** Counts rows of a join, whichever operator reads them. */
  countPairs(node: number, rows: number): void;
  /** Records the outcome of a choice that needed measured data. */
  chose(node: number, choice: MeasuredChoice): void;
}

export interface QueryContext {
  readonly heap: SharedHeap;
  readonly memory: QueryMemory;
  readonly pool: Pool;
  readonly functions: FunctionRegistry;
  /** By scan id. */
  readonly sources: ScanSource[];
  readonly nowMicros: bigint;
  readonly random: () => number;
  readonly user: string;
  /** Undefined if the query must stay within its memory, such as one on the main thread. */
  readonly spill?: Spill;
  /** Throws SqlError 57014 if cancelled or out of time. */
  poll(): void;
  /** Called before a function makes a long text of this many bytes: the next one may take long over it without a poll. */
  beforeText?(sizeBytes: number): void;
  /** Address of the i32 cancel word in shared memory that kernels poll. */
  readonly cancelWord: number;
  /** Set for EXPLAIN ANALYZE. */
  readonly analysis?: PlanAnalysis;
  /** For EXPLAIN ANALYZE: records what the operator has chosen by measured data. */
  chose?(choice: MeasuredChoice): void;
  /** Counts rows that a source has output; undefined if not needed. */
  countRead?(rows: number): void;
  /** Counts rows that a source will read, before it returns any. */
  countToRead?(rows: number): void;
  /** Runs morsels on other workers too; undefined on main and with a single worker. */
  readonly parallel?: ParallelRunner;
  /** For each enclosing recursion, by id: the rows of the previous round. */
  readonly working?: ReadonlyMap<number, WorkingRows>;
}

export interface WorkingRows {
  rowCount: number;
  columns: readonly Vector[];
}

/**
 * Runs `task` for morsels 0 … count-1, some of them on other workers. A task is a registered name plus plain data; each
 * participant makes its own state by `open`. `run(morsel)` is called once for each morsel, on any thread, in any order.
 * Returns the results of each participant's `finish` (plain data).
 */
export interface ParallelRunner {
  /** `node`: the node for statistics, if they are kept. */
  run(taskName: string, data: unknown, morselCount: number, node?: number): unknown[];
  readonly workerCount: number;
}

/** Everything needed to run a query. */
export interface QueryRequest {
  plan: PostedPlan;
  sources: ScanSource[];
  nowMicros: bigint;
  timeoutMs: number;
  memoryLimitBytes: number;
  /** Undefined if nothing may be written to disk. */
  spill?: SpillPlace;
  /** Set if statistics are kept for the plan's nodes. */
  analysis?: AnalysisShape;
  user: string;
  /** Query slot in shared memory, with the cancel word and the flow-control credits. */
  slot: number;
}
