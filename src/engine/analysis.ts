/**
 * EXPLAIN ANALYZE: the output and the cost of each node of a plan. The statistics are in shared memory, because several threads may
 * work on one node. Nodes are identified by their ids in the physical plan, scans by their own ids.
 */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { VectorCounts } from "../storage/contract.ts";
import { HeapFullError, SharedHeap } from "../storage/heap.ts";
import { layoutOf, typeOf } from "../types/mod.ts";
import {
  type AnalysisShape,
  type Batch,
  type FrameCounts,
  type Operator,
  type ParallelRunner,
  type Piece,
  PlanAnalysis,
  type QueryContext,
  type QueryMemory,
  type Spill,
  type SpilledBlock,
} from "./contract.ts";
import { countNodes, type PostedPlan } from "./packed-plan.ts";
import { MEASURED_CHOICES, type MeasuredChoice } from "./physical/measured.ts";

/** Offsets in words; each is an i64. */
const WORD = {
  rows: 0,
  bytes: 1,
  nanos: 2,
  memory: 3,
  memoryPeak: 4,
  taken: 5,
  passed: 6,
  pairs: 7,
  counted: 8,
  chosen: 9,
  spilled: 10,
  spilledParts: 11,
  workers: 12,
} as const;
const NODE_WORDS = 13;
/** Flags: which statistics of a node were counted. */
const COUNTED = { given: 1n, taken: 2n, passed: 4n, pairs: 8n } as const;
/**
 * Rows, bytes, segments whose rows were looked up, and those of them without such rows, vectors by summaries, segments whose rows were selected
 * by codes, these rows, frames found in the pool, chunks read from files, and `VectorCounts`.
 */
const SCAN_WORDS = 15;

export interface NodeStatistics {
  /** Undefined if another operator does this node's work in the same pass over the rows. */
  rows?: number;
  /** Rows taken from the scan, if the operator reads it itself. */
  taken?: number;
  /** Rows that passed all conditions of the nodes fused into the operator. */
  passed?: number;
  /** Pairs of a join that another operator has read. */
  pairs?: number;
  /** Fixed widths, plus the bytes of texts. */
  bytes: number;
  /** Time on the leading thread, including the inputs. */
  nanos: number;
  memoryPeakBytes: number;
  /** Bytes on disk, because the memory did not hold them, and the partitions that they belong to. */
  spilledBytes: number;
  spilledParts: number;
  /** Most threads that have worked on it together. */
  workers: number;
  /** Outcomes of choices that needed measured data. */
  chosen: MeasuredChoice[];
}

export interface ScanStatistics {
  rows: number;
  bytes: number;
  /** Segments whose rows were looked up by a symbol, and those of them that had none. */
  lookups: number;
  skipped: number;
  /** Vectors of 1,024 rows whose summaries were read instead of their values. */
  summarised: number;
  /** Vectors whose packed codes were added up. */
  offsets: number;
  /** Segments whose rows were selected by the codes of packed chunks, and these rows. */
  selections: number;
  selected: number;
  /** Frames that were in the pool, and chunks that were read from files. */
  framesFound: number;
  framesRead: number;
  /** Vectors of these segments' columns. */
  vectors: VectorCounts;
}

export interface PlanStatistics {
  nodes: NodeStatistics[];
  /** By scan id: rows and bytes of columns that were read, on all threads. */
  scans: ScanStatistics[];
  memoryPeakBytes: number;
}

/** The statistics of one plan. The owner must free them. */
export class Analysis implements PlanAnalysis {
  private readonly first: number;

  /** `nodes` and `scans`: the number of each. */
  constructor(
    private readonly heap: SharedHeap,
    readonly address: number,
    private readonly nodes: number,
    private readonly scans: number,
  ) {
    this.first = address / 8;
  }

  /** `scans`: greater than all scan ids. */
  static create(heap: SharedHeap, plan: PostedPlan, scans: number): Analysis {
    const nodes = countNodes(plan);
    const address = allocate(heap, Analysis.sizeBytes(nodes, scans));
    const analysis = new Analysis(heap, address, nodes, scans);
    heap.i64.fill(0n, analysis.first, analysis.first + Analysis.sizeBytes(nodes, scans) / 8);
    return analysis;
  }

  /** The data with which another thread counts in the same place. */
  get shape(): AnalysisShape {
    return { address: this.address, nodes: this.nodes, scans: this.scans };
  }

  private static sizeBytes(nodes: number, scans: number): number {
    return 8 * ((nodes + 1) * NODE_WORDS + scans * SCAN_WORDS);
  }

  free(): void {
    this.heap.free(this.address, Analysis.sizeBytes(this.nodes, this.scans), "query");
  }

  read(): PlanStatistics {
    const at = (index: number) => Number(Atomics.load(this.heap.i64, this.first + index));
    const node = (index: number) => (word: number) => at(index * NODE_WORDS + word);
    const scan = (index: number) => (this.nodes + 1) * NODE_WORDS + index * SCAN_WORDS;
    return {
      nodes: Array.from({ length: this.nodes }, (_, index) => {
        const value = node(index), counted = BigInt(value(WORD.counted)), chosen = value(WORD.chosen);
        const known = (what: keyof typeof COUNTED, word: number) =>
          (counted & COUNTED[what]) === 0n ? undefined : value(word);
        return {
          rows: known("given", WORD.rows),
          taken: known("taken", WORD.taken),
          passed: known("passed", WORD.passed),
          pairs: known("pairs", WORD.pairs),
          bytes: value(WORD.bytes),
          nanos: value(WORD.nanos),
          memoryPeakBytes: value(WORD.memoryPeak),
          spilledBytes: value(WORD.spilled),
          spilledParts: value(WORD.spilledParts),
          workers: value(WORD.workers),
          chosen: MEASURED_CHOICES.filter((_, bit) => (chosen & (1 << bit)) !== 0),
        };
      }),
      scans: Array.from({ length: this.scans }, (_, index): ScanStatistics => ({
        rows: at(scan(index)),
        bytes: at(scan(index) + 1),
        lookups: at(scan(index) + 2),
        skipped: at(scan(index) + 3),
        summarised: at(scan(index) + 4),
        selections: at(scan(index) + 5),
        selected: at(scan(index) + 6),
        framesFound: at(scan(index) + 7),
        framesRead: at(scan(index) + 8),
        vectors: {
          skipped: at(scan(index) + 9),
          whole: at(scan(index) + 10),
          tested: at(scan(index) + 11),
          withExceptions: at(scan(index) + 12),
          withoutCodes: at(scan(index) + 13),
        },
        offsets: at(scan(index) + 14),
      })),
      memoryPeakBytes: node(this.nodes)(WORD.memoryPeak),
    };
  }

  private add(index: number, amount: number): number {
    const by = BigInt(Math.round(amount));
    return Number(Atomics.add(this.heap.i64, this.first + index, by) + by);
  }

  /** The context for the node's operator: its memory is counted, also on other threads. */
  contextOf(node: number, context: QueryContext): QueryContext {
    const { parallel } = context;
    const counted: ParallelRunner | undefined = parallel && {
      workerCount: parallel.workerCount,
      run: (task, data, morselCount) => {
        const results = parallel.run(task, data, morselCount, node);
        this.raise(this.first + node * NODE_WORDS + WORD.workers, BigInt(results.length));
        return results;
      },
    };
    const spill = context.spill && new NodeSpill(context.spill, (word, amount) => {
      this.add(node * NODE_WORDS + WORD[word], amount);
    });
    const chose = (choice: MeasuredChoice) => this.chose(node, choice);
    return { ...context, memory: new NodeMemory(context.memory, this, node), parallel: counted, spill, chose };
  }

  /** Returns the operator with its calls counted from now on. */
  measured(node: number, operator: Operator): Operator {
    const next = operator.next.bind(operator);
    const first = node * NODE_WORDS;
    this.count(node, "given", WORD.rows, 0);
    operator.next = () => {
      const start = performance.now();
      try {
        const batch = next();
        if (batch !== undefined) {
          this.add(first + WORD.rows, batch.rowCount);
          this.add(first + WORD.bytes, bytesOf(batch, this.heap));
        }
        return batch;
      } finally {
        this.add(first + WORD.nanos, (performance.now() - start) * 1e6);
      }
    };
    return operator;
  }

  countTaken(node: number, rows: number): void {
    this.count(node, "taken", WORD.taken, rows);
  }

  countPassed(node: number, rows: number): void {
    this.count(node, "passed", WORD.passed, rows);
  }

  countPairs(node: number, rows: number): void {
    this.count(node, "pairs", WORD.pairs, rows);
  }

  chose(node: number, choice: MeasuredChoice): void {
    const bit = 1n << BigInt(MEASURED_CHOICES.indexOf(choice));
    Atomics.or(this.heap.i64, this.first + node * NODE_WORDS + WORD.chosen, bit);
  }

  private count(node: number, what: keyof typeof COUNTED, word: number, rows: number): void {
    const first = node * NODE_WORDS;
    this.add(first + word, rows);
    Atomics.or(this.heap.i64, this.first + first + WORD.counted, COUNTED[what]);
  }

  countScanned(scan: number, rows: number, bytes: number): void {
    const first = (this.nodes + 1) * NODE_WORDS + scan * SCAN_WORDS;
    this.add(first, rows);
    this.add(first + 1, bytes);
  }

  countLookup(scan: number, isSkipped: boolean): void {
    const first = (this.nodes + 1) * NODE_WORDS + scan * SCAN_WORDS;
    this.add(first + 2, 1);
    if (isSkipped) this.add(first + 3, 1);
  }

  countSummarised(scan: number, vectors: number): void {
    this.add((this.nodes + 1) * NODE_WORDS + scan * SCAN_WORDS + 4, vectors);
  }

  countOffsets(scan: number, vectors: number): void {
    this.add((this.nodes + 1) * NODE_WORDS + scan * SCAN_WORDS + 14, vectors);
  }

  countSelected(scan: number, rows: number, vectors: VectorCounts): void {
    const first = (this.nodes + 1) * NODE_WORDS + scan * SCAN_WORDS;
    this.add(first + 5, 1);
    this.add(first + 6, rows);
    this.countVectors(scan, vectors);
  }

  countVectors(scan: number, vectors: VectorCounts): void {
    const first = (this.nodes + 1) * NODE_WORDS + scan * SCAN_WORDS;
    this.add(first + 9, vectors.skipped);
    this.add(first + 10, vectors.whole);
    this.add(first + 11, vectors.tested);
    this.add(first + 12, vectors.withExceptions);
    this.add(first + 13, vectors.withoutCodes);
  }

  countFrames(scan: number, { found, read }: FrameCounts): void {
    const first = (this.nodes + 1) * NODE_WORDS + scan * SCAN_WORDS;
    this.add(first + 7, found);
    this.add(first + 8, read);
  }

  hold(node: number, bytes: number): void {
    for (const each of [node, this.nodes]) {
      const first = each * NODE_WORDS;
      const held = BigInt(this.add(first + WORD.memory, bytes));
      this.raise(this.first + first + WORD.memoryPeak, held);
    }
  }

  /** Sets a word to `value` unless it is greater. */
  private raise(place: number, value: bigint): void {
    for (
      let peak = Atomics.load(this.heap.i64, place);
      value > peak && Atomics.compareExchange(this.heap.i64, place, peak, value) !== peak;
      peak = Atomics.load(this.heap.i64, place)
    );
  }
}

function allocate(heap: SharedHeap, sizeBytes: number): number {
  try {
    return heap.allocate(sizeBytes, "query");
  } catch (error) {
    if (!(error instanceof HeapFullError)) throw error;
    const message = `EXPLAIN ANALYZE needs ${sizeBytes} bytes: the server's shared memory is full (${error.message})`;
    throw new SqlError(message, 0, SQLSTATE.outOfMemory);
  }
}

/** The memory of one node. Blocks that other threads pass to the leader stay counted for the node. */
class NodeMemory implements QueryMemory {
  constructor(
    private readonly inner: QueryMemory,
    private readonly analysis: Analysis,
    private readonly node: number,
  ) {}

  get usedBytes(): number {
    return this.inner.usedBytes;
  }

  get limitBytes(): number {
    return this.inner.limitBytes;
  }

  allocate(sizeBytes: number, operator: string): number {
    const address = this.inner.allocate(sizeBytes, operator);
    this.analysis.hold(this.node, SharedHeap.blockBytes(sizeBytes));
    return address;
  }

  free(address: number, sizeBytes: number): void {
    this.inner.free(address, sizeBytes);
    this.analysis.hold(this.node, -SharedHeap.blockBytes(sizeBytes));
  }

  account(sizeBytes: number, operator: string): void {
    this.inner.account(sizeBytes, operator);
    this.analysis.hold(this.node, sizeBytes);
  }

  need(sizeBytes: number, operator: string): void {
    this.inner.need(sizeBytes, operator);
  }

  share(address: number): void {
    this.inner.share(address);
  }

  onRelease(free: () => void): () => void {
    return this.inner.onRelease(free);
  }

  mark(): ReadonlySet<number> {
    return this.inner.mark();
  }

  freeSince(mark: ReadonlySet<number>): void {
    this.inner.freeSince(mark);
  }

  release(): void {
    this.inner.release();
  }
}

/** Blocks of one node on disk. */
class NodeSpill implements Spill {
  constructor(
    private readonly inner: Spill,
    private readonly count: (word: "spilled" | "spilledParts", amount: number) => void,
  ) {}

  write(pieces: readonly Piece[]): SpilledBlock {
    const block = this.inner.write(pieces);
    this.count("spilled", block.sizeBytes);
    return block;
  }

  flush(): void {
    this.inner.flush();
  }

  read(block: SpilledBlock, address: number): void {
    this.inner.read(block, address);
  }

  countPart(): void {
    this.inner.countPart();
    this.count("spilledParts", 1);
  }
}

function bytesOf({ rowCount, columns }: Batch, { i32 }: SharedHeap): number {
  let bytes = 0;
  for (const { type, address } of columns) {
    bytes += rowCount * typeOf(type).width;
    if (layoutOf(type) !== "text" || address === 0) continue;
    for (let row = 0, at = address / 4 + 1; row < rowCount; row++, at += 2) bytes += Math.max(0, i32[at]);
  }
  return bytes;
}
