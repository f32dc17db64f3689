/**
 * ASOF and LT joins in order: merges two inputs in time order and remembers the last right row of each key. Earlier rows are dropped from
 * time to time: memory is bounded by the number of keys, not of rows. If there are too many keys for it, see `merged-time-join.ts`.
 */
import type { TimeJoinNode } from "../../sql/plan.ts";
import { ColumnStore, endOfTexts, OutputColumns, Workspace } from "../columns.ts";
import { type Batch, type Changes, MORSEL_ROWS, type Operator, type QueryContext } from "../contract.ts";
import { KeyTable } from "../keys.ts";
import { typesOf } from "../physical/reading.ts";
import { type LastRowsKernel, lastRowsKernel } from "../wasm/last-rows.ts";
import { Expressions, textsOf } from "./input.ts";
import { advance } from "./scan.ts";
import { SpareMemory, stepTextBytesOf } from "./time-sides.ts";

const NULL_HIGH = -0x80000000, NO_TOLERANCE = -1n;

/** More rows than an input has: the walk of the kernel stops at the last row so far. */
const MORE_ROWS = 0x7fffffff;

/** Old rows are dropped when the store exceeds twice the number of keys by this many rows; similarly for texts. */
const SLACK_ROWS = 16_384;

/** Right rows that are read at a time. */
const READ_ROWS = 8_192;

/** Rows of a batch at most: the operators above keep buffers for as many rows. */
const OUTPUT_ROWS = 16_384;

/** Initial capacity, in rows. */
const FIRST_ROWS = 256;

/** Its name in errors. */
export function operatorOf({ type }: TimeJoinNode): string {
  return `${type} join`;
}

export class AsofJoin implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private readonly spare: SpareMemory;
  private readonly table: KeyTable;
  private readonly leftExpressions: Expressions;
  private readonly rightExpressions: Expressions;
  private readonly kernel: LastRowsKernel;
  /** The next right row to walk to, and where to stop. */
  private readonly state: Int32Array;
  /** The right columns, for the rows of a batch. The lists have the capacity of the largest left batch so far. */
  private output: OutputColumns;
  /** 0, 1, 2 and so on. */
  private leftRows: Int32Array;
  /** The left rows' groups, replaced by their right rows. */
  private rightRows: Int32Array;

  /** The right columns that are output, in this order. */
  private readonly rightColumns: readonly number[];
  /** These columns, then the time. */
  private readonly rightStore: ColumnStore;
  private rightGroups: Int32Array;
  /** These columns, then the time and the keys. */
  private rightBatch?: Batch;
  /** The first row of the batch that is not in the store. */
  private rightBatchRow = 0;
  /** Rows of the store before this one are in `last`. */
  private rightRow = 0;
  private rightAtEnd = false;
  /** Texts of right rows that are read at a time, and those of the rows that were kept when old ones were dropped. */
  private readonly stepTextBytes: number;
  private keptTextBytes = 0;
  /** By group: the last right row up to now, or -1. */
  private last: Int32Array;

  private leftBatch?: Batch;
  private leftTime = 0;
  private leftRow = 0;

  /**
   * `plan`: over the inputs. `from`: for each column of the plan, the one of both inputs. `canRestart`: if it throws for want of memory,
   * another operator takes its place.
   */
  constructor(
    private readonly plan: TimeJoinNode,
    private readonly left: Operator,
    private readonly right: Operator,
    private readonly from: readonly number[],
    private readonly context: QueryContext,
    canRestart = false,
  ) {
    this.columns = plan.columns;
    this.space = Workspace.of(context, operatorOf(plan));
    this.spare = new SpareMemory(operatorOf(plan), canRestart, context);
    this.table = new KeyTable(plan.rightKeys.map((key) => key.type), this.space, () => context.poll());
    const leftTypes = typesOf(left.columns), rightTypes = typesOf(right.columns);
    this.leftExpressions = new Expressions([plan.leftTime, ...plan.leftKeys], leftTypes, context);
    this.rightExpressions = new Expressions([plan.rightTime, ...plan.rightKeys], rightTypes, context);
    const rule = { isStrict: plan.type === "lt", isLimited: plan.tolerance !== undefined };
    this.kernel = lastRowsKernel(context.heap.memory, rule);
    this.state = this.space.words(2);
    const leftCount = leftTypes.length;
    this.rightColumns = from.filter((index) => index >= leftCount).map((index) => index - leftCount);
    const outputTypes = this.rightColumns.map((index) => rightTypes[index]);
    this.output = new OutputColumns(outputTypes, this.space, FIRST_ROWS);
    this.leftRows = this.rowNumbers(FIRST_ROWS);
    this.rightRows = this.space.words(FIRST_ROWS);
    this.rightStore = new ColumnStore([...outputTypes, plan.rightTime.type], this.space);
    this.rightGroups = this.space.words(FIRST_ROWS);
    this.last = this.space.words(256).fill(-1);
    this.stepTextBytes = stepTextBytesOf(context);
  }

  next(): Batch | undefined {
    for (;;) {
      this.context.poll();
      const batch = this.leftBatch ??= this.nextLeft();
      if (batch === undefined) return undefined;
      const first = this.leftRow, most = Math.min(batch.rowCount, first + OUTPUT_ROWS);
      const end = this.leftRow = this.walk(first, most), n = end - first;
      if (end === batch.rowCount) this.leftBatch = undefined;
      if (n === 0) continue;
      const { output, rightStore } = this, rows = this.rightRows.subarray(first);
      output.vectors.forEach((_, c) => output.gather(c, rightStore.vectors[c], rows, n, true));
      const left = advance(batch.columns, first), right = output.vectors.values();
      return { rowCount: n, columns: this.from.map((index) => left[index] ?? right.next().value!) };
    }
  }

  private nextLeft(): Batch | undefined {
    const batch = this.left.next();
    if (batch === undefined) return undefined;
    const [time, ...keys] = this.leftExpressions.run(batch), { rowCount } = batch;
    this.leftTime = time.address;
    this.leftRow = 0;
    if (rowCount > this.leftRows.length) this.makeRoom(rowCount);
    // The right side may still have keys that it has not had so far.
    this.rightRows.set(this.table.groups(keys, rowCount, true).subarray(0, rowCount));
    this.growLast();
    return batch;
  }

  private makeRoom(rowCount: number): void {
    const { space } = this, count = Math.min(MORSEL_ROWS, 2 ** Math.ceil(Math.log2(rowCount)));
    for (const list of [this.leftRows, this.rightRows]) space.freeWords(list);
    for (const { address } of this.output.vectors) space.free(address);
    this.leftRows = this.rowNumbers(count);
    this.rightRows = space.words(count);
    this.output = new OutputColumns(this.output.types, space, Math.min(count, OUTPUT_ROWS));
  }

  private rowNumbers(count: number): Int32Array {
    const numbers = this.space.words(count);
    for (let row = 0; row < count; row++) numbers[row] = row;
    return numbers;
  }

  /**
   * Finds the right rows of left rows first … end-1, and reads the right side up to them. Returns the end of those that it has found: the
   * others need right rows for which old ones have to be dropped first.
   */
  private walk(first: number, end: number): number {
    const { kernel, state, rightStore: store, plan: { tolerance = NO_TOLERANCE } } = this;
    for (let row = first;;) {
      state[0] = this.rightRow;
      state[1] = store.rowCount;
      row = kernel(
        this.leftTime,
        this.leftRows.byteOffset,
        this.rightRows.byteOffset,
        row,
        end,
        store.vectors[store.vectors.length - 1].address,
        this.rightGroups.byteOffset,
        this.last.byteOffset,
        state.byteOffset,
        this.rightAtEnd ? store.rowCount : MORE_ROWS,
        tolerance,
      );
      this.rightRow = state[0];
      if (row === end) return row;
      if (this.hasOldRows()) {
        if (row > first) return row;
        this.dropOldRows();
      }
      this.readRight();
    }
  }

  private hasOldRows(): boolean {
    const { rightStore: { rowCount, textBytes }, table, keptTextBytes, stepTextBytes } = this;
    return rowCount > 2 * table.count + SLACK_ROWS || textBytes > 2 * keptTextBytes + stepTextBytes;
  }

  private readRight(): void {
    this.context.poll();
    if (this.rightBatch === undefined || this.rightBatchRow === this.rightBatch.rowCount) {
      const batch = this.right.next();
      this.rightBatch = batch && {
        ...batch,
        columns: [...this.rightColumns.map((index) => batch.columns[index]), ...this.rightExpressions.run(batch)],
      };
      this.rightBatchRow = 0;
    }
    if (this.rightBatch === undefined) {
      this.rightAtEnd = true;
      return;
    }
    const { rightStore: store, rightBatchRow: first } = this, { columns, rowCount } = this.rightBatch;
    const end = Math.min(rowCount, first + READ_ROWS), texts = textsOf(columns.slice(0, store.types.length));
    const n = endOfTexts(this.context.heap, texts, first, end, this.stepTextBytes) - first;
    const from = store.rowCount, to = from + n;
    const bytes = store.bytesToReserve(to);
    if (bytes > 0) this.spare.check(bytes);
    if (to > this.rightGroups.length) {
      this.rightGroups = this.space.grow(this.rightGroups, Math.max(to, 2 * this.rightGroups.length));
    }
    const keys = advance(columns.slice(store.types.length), first);
    this.rightGroups.set(this.table.groups(keys, n, true).subarray(0, n), from);
    store.append(columns.slice(0, store.types.length), n, first);
    this.rightBatchRow += n;
    this.growLast();
    this.skipRowsWithoutTime();
  }

  /** Keeps only the last row of each group. */
  private dropOldRows(): void {
    const { table, last, space } = this;
    const kept = space.words(Math.max(1, table.count));
    let n = 0;
    for (let group = 0; group < table.count; group++) {
      if (last[group] < 0) continue;
      kept[n] = last[group];
      last[group] = n++;
    }
    this.rightStore.compact(kept, n);
    space.freeWords(kept);
    this.rightRow = n;
    this.keptTextBytes = this.rightStore.textBytes;
  }

  private growLast(): void {
    if (this.table.count <= this.last.length) return;
    this.last = this.space.grow(this.last, Math.max(this.table.count, 2 * this.last.length), -1);
    // The table of keys has grown as well.
    this.spare.check();
  }

  /** They come first, and match no row. */
  private skipRowsWithoutTime(): void {
    const { rightStore: { vectors, rowCount }, context: { heap: { i32 } } } = this;
    const times = vectors[vectors.length - 1].address >>> 2;
    const isNull = (row: number) => i32[times + 2 * row + 1] === NULL_HIGH && i32[times + 2 * row] === 0;
    while (this.rightRow < rowCount && isNull(this.rightRow)) this.rightRow++;
  }

  /** Keys keep their groups. */
  rewind(): boolean {
    this.leftBatch = this.rightBatch = undefined;
    this.leftRow = this.rightRow = 0;
    this.rightAtEnd = false;
    this.rightStore.clear();
    this.keptTextBytes = 0;
    this.last.fill(-1);
    return this.left.rewind?.() === true && this.right.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    return this.left.rebind?.(changes) === true && this.right.rebind?.(changes) === true;
  }

  close(): void {
    this.leftExpressions.close();
    this.rightExpressions.close();
    this.space.release();
    this.left.close();
    this.right.close();
  }
}
