/**
 * Rows of a scan that a pipeline reads ahead on all threads: conditions and expressions of a stage of morsels are computed by whichever thread is free, and the
 * rows that pass are kept until the pipeline outputs them, morsel by morsel, as it would without help. So the operators above get the same batches.
 *
 * The pipeline reads the first morsels itself, and goes on alone if to keep the rows would take a large part of the time, as if all rows pass a cheap condition,
 * or if a stage was not faster: each participant may need tables over whole dictionaries.
 * Below a limit, which may end the reading at any time, each stage takes twice as long as the one before.
 */
import type { Expr, ScanNode } from "../../sql/plan.ts";
import { layoutOf } from "../../types/mod.ts";
import { ColumnStore, Workspace } from "../columns.ts";
import { flushKernelRows } from "../compiler/binding.ts";
import type { Batch, QueryContext, Vector } from "../contract.ts";
import { isOutOfMemory } from "../memory.ts";
import { registerTask } from "../parallel.ts";
import type { AheadLimits, Reading } from "../physical/plan.ts";
import { typesOf } from "../physical/reading.ts";
import { ComputedMorsels } from "./computed-morsels.ts";
import type { Morsel } from "./morsel.ts";
import { advance } from "./scan.ts";
import { roomOf, widthOf } from "./spilled-rows.ts";

const OPERATOR = "scan";
/** About the most time of a stage. */
const STAGE_MS_MAX = 100;
/** The first stage of a limit. */
const FIRST_STAGE_MS = 4;
/** For each thread. */
const STAGE_MORSELS_MAX = 32;
/** Bytes of the rows that a stage keeps: at most, and as a share of the memory that the query may still take. */
const STAGE_BYTES_MAX = 32 << 20, ROOM_SHARE = 8;
/** Writing and reading kept rows, in a millisecond. */
const KEPT_BYTES_PER_MS = 1 << 20;
/** The first runs that the pipeline reads alone: the first one compiles kernels. */
const RUNS_ALONE = 2;
/** A text whose length is not known yet. */
const TEXT_BYTES = 64;

interface AheadTask {
  node: ScanNode;
  reader?: number;
  predicates: readonly Expr[];
  exprs: readonly Expr[];
  types: readonly string[];
  morsels: readonly Morsel[];
  /** A participant that keeps so much takes no further morsel. */
  bytesMax: number;
}

/** The rows of a morsel of the stage that a participant keeps. */
interface Piece {
  morsel: number;
  from: number;
  rowCount: number;
}

interface KeptPart {
  columns: Vector[];
  pieces: Piece[];
  usedBytes: number;
  blocks: [address: number, sizeBytes: number][];
}

export class ReadAhead {
  private readonly types: readonly string[];
  private runsAlone = 0;
  /** What a row takes one thread, and the bytes that are kept of it. */
  private msPerRow = 0;
  private bytesPerRow = 0;
  /** Most time of the next stage on one thread. */
  private stageMs: number;
  /** The first morsel after the stage, and what is kept of the stage's morsels, by position. */
  private end = 0;
  private readonly kept = new Map<number, { columns: readonly Vector[]; piece: Piece }>();
  private blocks: [address: number, sizeBytes: number][] = [];
  private isEnded = false;

  /** `context`: with other threads. */
  constructor(
    private readonly node: ScanNode,
    private readonly reading: Reading,
    private readonly limits: AheadLimits,
    isLimited: boolean,
    private readonly context: QueryContext,
  ) {
    this.types = typesOf(reading.columns);
    this.stageMs = isLimited ? FIRST_STAGE_MS : Infinity;
  }

  /** The rows of a whole morsel that pass; undefined if the pipeline has to read it. It asks for one after the other. */
  read(morsels: readonly Morsel[], position: number): Batch | undefined {
    if (position >= this.end) {
      this.release();
      const count = this.countOf(morsels, position);
      if (count > 1) this.readStage(morsels.slice(position, position + count), position);
    }
    const found = this.kept.get(position);
    if (found === undefined) return undefined;
    const { columns, piece: { from, rowCount } } = found;
    return { rowCount, columns: advance(columns, from) };
  }

  /** The pipeline has read rows itself, of which `passed` are left. */
  learn(rowCount: number, passed: number, ms: number): void {
    const texts = this.types.filter((type) => layoutOf(type) === "text").length;
    this.bytesPerRow = passed * (widthOf(this.types) + texts * TEXT_BYTES) / rowCount;
    this.msPerRow = ms / rowCount;
    this.runsAlone++;
  }

  /** Morsels of the next stage. */
  private countOf(morsels: readonly Morsel[], position: number): number {
    const { context, stageMs, limits: { stageMsMin, keepingShareMax } } = this;
    if (this.runsAlone < RUNS_ALONE || this.isEnded) return 0;
    const { workerCount } = context.parallel!, bytesMax = this.bytesMax();
    const msMax = Math.min(stageMs, STAGE_MS_MAX * workerCount), countMax = STAGE_MORSELS_MAX * workerCount;
    let count = 0, ms = 0, bytes = 0;
    for (let k = position; k < morsels.length && count < countMax; k++, count++) {
      const { start, end, lookup } = morsels[k]!, rowCount = end - start;
      ms += rowCount * this.msPerRow;
      bytes += rowCount * this.bytesPerRow;
      if (lookup !== undefined || bytes > bytesMax || (count > 0 && ms > msMax)) break;
    }
    const isWorthWhile = ms >= stageMsMin && bytes / KEPT_BYTES_PER_MS <= ms * keepingShareMax;
    return isWorthWhile ? count : 0;
  }

  private bytesMax(): number {
    return Math.min(STAGE_BYTES_MAX, roomOf(this.context) / ROOM_SHARE);
  }

  private readStage(morsels: readonly Morsel[], position: number): void {
    const { node, reading: { predicates, exprs, reader }, types, context } = this, { memory, parallel } = context;
    const bytesMax = this.bytesMax() / parallel!.workerCount;
    const task: AheadTask = { node, reader, predicates, exprs, types, morsels, bytesMax };
    const before = memory.mark(), start = performance.now();
    let parts: KeptPart[];
    try {
      parts = parallel!.run(TASK, task, morsels.length) as KeptPart[];
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
      // What one thread needs may still be there.
      memory.freeSince(before);
      this.isEnded = true;
      return;
    }
    const ms = performance.now() - start;
    let rowsRead = 0, usedBytes = 0;
    for (const part of parts) {
      this.blocks.push(...part.blocks);
      usedBytes += part.usedBytes;
      for (const piece of part.pieces) {
        this.kept.set(position + piece.morsel, { columns: part.columns, piece });
        const { start, end } = morsels[piece.morsel]!;
        rowsRead += end - start;
      }
    }
    this.end = position + morsels.length;
    this.isEnded = ms > rowsRead * this.msPerRow * this.limits.stageShareMax;
    if (rowsRead > 0) this.bytesPerRow = usedBytes / rowsRead;
    this.stageMs *= 2;
    context.chose?.("all threads");
  }

  /** Frees what is kept. */
  release(): void {
    for (const [address, sizeBytes] of this.blocks) this.context.memory.free(address, sizeBytes);
    this.blocks = [];
    this.kept.clear();
  }
}

class Participant {
  private readonly space: Workspace;
  private readonly store: ColumnStore;
  private readonly computed: ComputedMorsels;
  private readonly pieces: Piece[] = [];
  private isFull = false;

  constructor(private readonly task: AheadTask, private readonly context: QueryContext) {
    const { node, reader, predicates, exprs, types } = task, base = { kind: "scan", node, reader } as const;
    this.space = Workspace.of(context, OPERATOR);
    this.store = new ColumnStore(types, this.space);
    this.computed = new ComputedMorsels(base, predicates, exprs, OPERATOR, context, true);
  }

  run(morsel: number): void {
    if (this.isFull) return;
    const { store, context, task } = this, from = store.rowCount;
    try {
      for (const batch of this.computed.batches(task.morsels[morsel]!)) {
        if (batch.rowCount > 0) store.append(batch.columns, batch.rowCount);
      }
    } catch {
      // A cancel ends the query. Other errors are raised when the pipeline comes to the morsel, if it does.
      context.poll();
      store.rowCount = from;
      this.isFull = true;
      return;
    }
    this.pieces.push({ morsel, from, rowCount: store.rowCount - from });
    this.isFull = this.usedBytes() > task.bytesMax;
  }

  private usedBytes(): number {
    return this.store.rowCount * widthOf(this.task.types) + this.store.textBytes;
  }

  finish(): KeptPart {
    return {
      columns: this.store.vectors,
      pieces: this.pieces,
      usedBytes: this.usedBytes(),
      blocks: this.space.leave(),
    };
  }

  close(): void {
    this.computed.close();
    this.space.release();
    flushKernelRows(this.context.heap.i64);
  }
}

const TASK = "rows ahead";
registerTask(TASK, (data, context) => new Participant(data as AheadTask, context));
