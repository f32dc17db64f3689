/**
 * The first rows of ORDER BY … LIMIT, for rows in any order. Whenever enough rows are collected they are reduced to the best ones, and
 * from then on rows behind the last of these are skipped. A base that can be read by morsels is read by all workers. When the memory is
 * short, the rows collected so far are written to disk as a sorted run.
 */
import { assert } from "../../assert.ts";
import type { Expr, SortKey } from "../../sql/plan.ts";
import { ColumnStore, compareText, isNullAt, textPair, Workspace } from "../columns.ts";
import { beyondInputs, beyondKernel } from "../compiler/beyond.ts";
import { BoundKernel, flushKernelRows } from "../compiler/binding.ts";
import { FORM_WIDTH, formOf } from "../compiler/expression.ts";
import { type Batch, MORSEL_ROWS, type ParallelRunner, type QueryContext, type Vector } from "../contract.ts";
import { compareRows, sortedRows } from "../order.ts";
import { isOutOfMemory } from "../memory.ts";
import { registerTask } from "../parallel.ts";
import type { Reading, SkipWay } from "../physical/plan.ts";
import { columnAt, typesOf, unnamedColumns } from "../physical/reading.ts";
import { layoutOf } from "../../types/mod.ts";
import { rowsBeforeFirstCut } from "../physical/sort.ts";
import { FIRST_CUT_ROWS } from "../physical/thresholds.ts";
import { morselsOfPlan } from "./base.ts";
import { ComputedMorsels } from "./computed-morsels.ts";
import { stagesOf } from "./morsels.ts";
import { appendRowsWithin, appendWithin, Expressions, type Overflow } from "./input.ts";
import type { MergedRows } from "./merged-rows.ts";
import { SortedRuns } from "./sorted-runs.ts";
import type { BasePlan } from "./base-plan.ts";
import type { Morsel } from "./morsel.ts";

const OPERATOR = "sort";
/** The ordinal of a row in the input, as the last sort key. */
const ORDINAL: SortKey = { expression: { kind: "column", index: 0, type: "LONG" }, descending: false };

/** The rows that are kept. */
export interface Best {
  keys: readonly SortKey[];
  limit: number;
  skip: SkipWay;
}

/** Keys of a row that is not better than any wanted one. */
interface Last {
  keys: readonly Vector[];
  row: number;
}

/** Less than the prefix of any text. */
const NULL_PREFIX = -1;

/** The first four bytes of a text as a number, whose order is that of the texts if they differ. */
function prefixOf(u8: Uint8Array, address: number, length: number): number {
  if (length >= 4) {
    return u8[address] * 0x1000000 + (u8[address + 1] << 16 | u8[address + 2] << 8 | u8[address + 3]);
  }
  let prefix = 0;
  for (let k = 0; k < 4; k++) prefix = prefix * 256 + (k < length ? u8[address + k] : 0);
  return prefix;
}

export class BestRows {
  /** The rows' columns, then their keys, and with `ordinal` their ordinals in the input. */
  readonly store: ColumnStore;
  private readonly keyCount: number;
  private readonly kept: Int32Array;
  private readonly expressions: Expressions;
  private readonly ordinal?: { vector: Vector; words: Int32Array };
  private kernel?: BoundKernel;
  private isFull = false;
  private orderSpace?: Workspace;
  private readonly runs?: SortedRuns;
  private readonly overflow?: Overflow;

  constructor(
    private readonly types: readonly string[],
    readonly wanted: Best,
    private readonly space: Workspace,
    private readonly context: QueryContext,
    { hasOrdinals, spills }: { hasOrdinals: boolean; spills: boolean },
    private readonly parallel?: ParallelRunner,
  ) {
    const { keys, limit } = wanted;
    this.expressions = new Expressions(keys.map((key) => key.expression), types, context);
    this.keyCount = keys.length;
    this.store = new ColumnStore([...types, ...this.expressions.types, ...(hasOrdinals ? ["LONG"] : [])], space);
    this.kept = space.words(MORSEL_ROWS);
    if (hasOrdinals) {
      const words = space.words(2 * MORSEL_ROWS);
      this.ordinal = { words, vector: { type: "LONG", address: words.byteOffset } };
    }
    if (spills) {
      assert(!hasOrdinals, "runs are in the order of the input");
      const ofStore = keys.map((key, k) => ({ ...key, expression: columnAt(types.length + k, key.expression.type) }));
      const runs = this.runs = new SortedRuns(unnamedColumns(this.store.types), ofStore, context, OPERATOR, limit);
      const { bytesPerRow, bytesBesides } = runs;
      this.overflow = { bytesPerRow, bytesBesides, take: () => this.writeRun() };
    }
  }

  /** Adds the rows of a batch; the first of them was row `row` of morsel `morsel`. */
  take(batch: Batch, morsel = 0, row = 0): void {
    const { store, wanted: { limit }, kept, ordinal, overflow, context } = this;
    const computed = this.expressions.run(batch), columns = [...batch.columns, ...computed];
    if (ordinal !== undefined) {
      columns.push(ordinal.vector);
      for (let k = 0; k < batch.rowCount; k++) {
        ordinal.words[2 * k] = row + k;
        ordinal.words[2 * k + 1] = morsel;
      }
    }
    const enough = rowsBeforeFirstCut(limit);
    for (let from = 0; from < batch.rowCount;) {
      const last = this.last();
      if (last === undefined) {
        const rowCount = Math.min(enough - store.rowCount, batch.rowCount - from);
        if (overflow === undefined) store.append(columns, rowCount, from);
        else appendWithin(store, columns, from + rowCount, overflow, context, from);
        from += rowCount;
      } else {
        // In small portions: if rows arrive in ascending quality, all of them would be kept.
        const to = Math.min(batch.rowCount, from + Math.max(enough, 2 * FIRST_CUT_ROWS));
        const n = this.reaching(computed, from, to, last);
        if (overflow === undefined) store.appendRows(columns, kept, n);
        else appendRowsWithin(store, columns, kept, n, overflow, context);
        from = to;
      }
      if (store.rowCount >= enough) this.cut();
    }
  }

  /** The keys of a row that the wanted ones do not exceed. */
  private last(): Last | undefined {
    const { store, types, keyCount, wanted: { limit }, runs } = this;
    const keysOf = (columns: readonly Vector[]) => columns.slice(types.length, types.length + keyCount);
    // After a reduction the best rows are in order.
    if (this.isFull) return { keys: keysOf(store.vectors), row: limit - 1 };
    return runs?.last && { keys: keysOf(runs.last), row: 0 };
  }

  private writeRun(): void {
    this.runs!.take(this.store);
    this.store.release();
    this.isFull = false;
    this.runs!.cut();
  }

  /** All rows that may be wanted, if some of them are on disk. */
  merged(): MergedRows | undefined {
    const { runs, store, types } = this;
    if (runs === undefined || runs.isEmpty) return undefined;
    if (store.rowCount > 0) this.writeRun();
    return runs.merged(types.length);
  }

  /** Adds rows kept by another instance. */
  takeKept(columns: readonly Vector[], rowCount: number): void {
    this.store.append(columns, rowCount);
  }

  cut(): void {
    const { store, wanted: { limit } } = this;
    if (store.rowCount <= limit) return;
    const space = Workspace.of(this.context, OPERATOR);
    try {
      store.compact(this.orderIn(space), limit);
      this.isFull = true;
    } catch (error) {
      if (this.runs === undefined || !isOutOfMemory(error)) throw error;
      space.release();
      this.writeRun();
    } finally {
      space.release();
    }
  }

  /** The row numbers in order; undefined if there is not enough memory and the rows have been written to disk. */
  order(): Int32Array | undefined {
    const space = this.orderSpace = Workspace.of(this.context, OPERATOR);
    try {
      return this.orderIn(space);
    } catch (error) {
      if (this.runs === undefined || !isOutOfMemory(error)) throw error;
      space.release();
      this.writeRun();
      return undefined;
    }
  }

  private orderIn(space: Workspace): Int32Array {
    const { store, types, wanted: { keys }, context } = this;
    const all = this.ordinal === undefined ? keys : [...keys, ORDINAL];
    return sortedRows(
      store.vectors.slice(types.length),
      all,
      store.rowCount,
      space,
      () => context.poll(),
      this.parallel,
    );
  }

  /** Lists in `kept` the rows of a batch that may be better than `last`; returns their number. */
  private reaching(keys: readonly Vector[], from: number, to: number, last: Last): number {
    const { kept, wanted: { skip } } = this, [{ type, address }] = last.keys;
    switch (skip) {
      case "kernel":
        // A kernel compares numbers, and null is not a number.
        return isNullAt(this.context.heap, type, address, last.row)
          ? this.compare(keys, from, to, last)
          : this.byKernel(keys[0], from, to, last.keys[0], last.row);
      case "row by row":
        return layoutOf(type) === "text" ? this.compareTexts(keys, from, to, last) : this.compare(keys, from, to, last);
      case "none":
        for (let row = from; row < to; row++) kept[row - from] = row;
        return to - from;
    }
  }

  /** Rows that equal row `last` pass too. */
  private byKernel(key: Vector, from: number, to: number, store: Vector, last: number): number {
    const { context, space, kept, wanted: { keys: [{ descending }] } } = this, { heap } = context;
    const form = formOf(key.type);
    assert(form === "i32" || form === "i64" || form === "f64", "kernels skip by numbers");
    if (this.kernel === undefined) {
      const kernel = beyondKernel(heap.memory, form, descending);
      this.kernel = new BoundKernel(kernel, beyondInputs(form, 0), context, space);
    }
    const { kernel } = this;
    kernel.setConstant(1, heap[form][store.address / FORM_WIDTH[form] + last]);
    kernel.setI32(kernel.cells.rows, kept.byteOffset);
    kernel.setColumns([key]);
    return kernel.run(from, to);
  }

  private compare(keys: readonly Vector[], from: number, to: number, last: Last): number {
    const { context: { heap }, kept, wanted: { keys: [{ descending }] } } = this;
    let n = 0;
    for (let row = from; row < to; row++) {
      const order = compareRows(heap, keys[0], row, last.keys[0], last.row);
      if (order === 0 ? this.isBefore(keys, row, last) : descending ? order > 0 : order < 0) kept[n++] = row;
    }
    return n;
  }

  /** As `compare`, by the first bytes of texts. Most rows differ there. */
  private compareTexts(keys: readonly Vector[], from: number, to: number, last: Last): number {
    const { context: { heap }, kept, wanted: { keys: [{ descending }] } } = this, { u8, i32, u32 } = heap;
    const [lastAddress, lastLength] = textPair(heap, last.keys[0], last.row);
    const lastPrefix = lastLength < 0 ? NULL_PREFIX : prefixOf(u8, lastAddress, lastLength);
    let n = 0;
    for (let row = from, at = (keys[0].address >>> 2) + 2 * from; row < to; row++, at += 2) {
      const address = u32[at], length = i32[at + 1];
      let order = (length < 0 ? NULL_PREFIX : prefixOf(u8, address, length)) - lastPrefix;
      if (order === 0) order = compareText(u8, address, length, lastAddress, lastLength);
      if (order === 0 ? this.isBefore(keys, row, last) : descending ? order > 0 : order < 0) kept[n++] = row;
    }
    return n;
  }

  /** Compares rows with the same first key. Those that equal `last` are skipped, because earlier rows come first. */
  private isBefore(keys: readonly Vector[], row: number, last: Last): boolean {
    const { context: { heap }, keyCount, wanted } = this;
    for (let k = 1; k < keyCount; k++) {
      const { descending, nulls } = wanted.keys[k];
      // Nulls may not be in the order of values.
      if (nulls !== undefined) return true;
      const order = compareRows(heap, keys[k], row, last.keys[k], last.row);
      if (order !== 0) return descending === order > 0;
    }
    return false;
  }

  close(): void {
    this.expressions.close();
    this.orderSpace?.release();
    this.runs?.close();
  }
}

interface BestTask {
  base: BasePlan;
  predicates: readonly Expr[];
  exprs: readonly Expr[];
  types: readonly string[];
  best: Best;
  reader?: number;
  /** The task's first morsel. */
  first: number;
}

/** Rows that a participant has kept. The leader frees its blocks. */
interface KeptPart {
  rowCount: number;
  columns: Vector[];
  blocks: [address: number, sizeBytes: number][];
}

/** Collects the best rows of all workers. */
export function gatherBestRows(
  best: BestRows,
  base: BasePlan,
  { predicates, exprs, columns, reader }: Reading,
  context: QueryContext,
): void {
  const { parallel } = context, types = typesOf(columns);
  const task: BestTask = { base, predicates, exprs, types, best: best.wanted, reader, first: 0 };
  const morsels = morselsOfPlan(base, predicates, context);
  const takeIn = ({ rowCount, columns, blocks }: KeptPart) => {
    best.takeKept(columns, rowCount);
    for (const [address, sizeBytes] of blocks) context.memory.free(address, sizeBytes);
  };
  if (parallel !== undefined && morsels.length > 1) {
    for (const { first, count } of stagesOf(morsels.map((morsel) => [morsel]))) {
      (parallel.run(TASK, { ...task, first }, count) as KeptPart[]).forEach(takeIn);
    }
    return;
  }
  const alone = new Participant(task, context);
  try {
    for (let morsel = 0; morsel < morsels.length; morsel++) alone.run(morsel);
    takeIn(alone.finish());
  } finally {
    alone.close();
  }
}

class Participant {
  private readonly space: Workspace;
  private readonly best: BestRows;
  private readonly computed: ComputedMorsels;
  private readonly morsels: Morsel[];

  constructor(private readonly task: BestTask, private readonly context: QueryContext) {
    const { base, predicates, exprs, types, best } = task;
    this.space = Workspace.of(context, OPERATOR);
    this.best = new BestRows(types, best, this.space, context, { hasOrdinals: true, spills: false });
    this.morsels = morselsOfPlan(base, predicates, context);
    this.computed = new ComputedMorsels(base, predicates, exprs, OPERATOR, context, false);
  }

  run(k: number): void {
    const morsel = this.task.first + k;
    let row = 0;
    for (const batch of this.computed.batches(this.morsels[morsel])) {
      this.context.poll();
      if (batch.rowCount > 0) this.best.take(batch, morsel, row);
      if (this.task.reader !== undefined) this.context.analysis?.countPassed(this.task.reader, batch.rowCount);
      row += batch.rowCount;
    }
  }

  finish(): KeptPart {
    this.best.cut();
    const { rowCount, vectors } = this.best.store;
    return { rowCount, columns: vectors, blocks: this.space.leave() };
  }

  close(): void {
    this.best.close();
    this.computed.close();
    this.space.release();
    flushKernelRows(this.context.heap.i64);
  }
}

const TASK = "best rows";
registerTask(TASK, (data, context) => new Participant(data as BestTask, context));
