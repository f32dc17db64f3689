/**
 * The right side of a WINDOW or HORIZON join: the rows that some left rows need, by key and time. It is read in time order, along with the
 * left side, and rows before all windows are dropped. So memory is bounded by the rows of the windows and by the number of keys.
 */
import { assert, VERIFY } from "../../assert.ts";
import type { Expr } from "../../sql/plan.ts";
import { ColumnStore, endOfTexts, gather, POLL_ROWS, type Workspace } from "../columns.ts";
import type { Batch, Operator, QueryContext, Vector } from "../contract.ts";
import { KeyTable } from "../keys.ts";
import { typesOf } from "../physical/reading.ts";
import { Expressions, textsOf } from "./input.ts";
import { advance } from "./scan.ts";
import { widthOf } from "./spilled-rows.ts";
import { stepTextBytesOf } from "./time-sides.ts";

const NULL_TIME = -(1n << 63n);

/** Right rows that are read at a time. */
const READ_ROWS = 8_192;
/** With this many rows, or a share of the query's memory, fewer left rows are taken at a time. */
const ROWS_MAX = 65_536, MEMORY_SHARE = 1 / 16;
/** Of a row in the lists. */
const LISTED_BYTES = 16;

/** What the rows are needed for. `columns`: of the right side, those that are kept. */
export interface SlidingNeeds {
  time: Expr;
  keys: readonly Expr[];
  columns: readonly number[];
  /** The last row of a key before a window may belong to it. */
  lastBefore: boolean;
}

/** The next left rows, at least one, with what is computed of them. */
export function nextLeftRows(left: Operator, expressions: Expressions): (Batch & { computed: Vector[] }) | undefined {
  let batch: Batch | undefined;
  do batch = left.next(); while (batch?.rowCount === 0);
  return batch && { ...batch, computed: expressions.run(batch) };
}

export class SlidingRows {
  /** The needed columns, then the time. In time order. */
  private readonly store: ColumnStore;
  private readonly expressions: Expressions;
  private readonly table: KeyTable;
  /** By row. */
  private groups: Int32Array;
  /** The rows, ordered by group and time, and where each group begins. */
  private listed: Int32Array;
  private startsOf: Int32Array;
  /** The times in the order of the list. */
  private listedTimes = 0;
  private listedTimesRows = 0;
  private readonly stepTextBytes: number;
  private readonly rowsMax: number;

  /** The columns of the input, then the time and the keys. */
  private batch?: Batch;
  /** The first row of the batch that is not in the store. */
  private batchRow = 0;
  private lastTime = NULL_TIME;
  private isAtEnd = false;

  constructor(
    private readonly input: Operator,
    private readonly needs: SlidingNeeds,
    private readonly space: Workspace,
    private readonly context: QueryContext,
  ) {
    const types = typesOf(input.columns);
    this.expressions = new Expressions([needs.time, ...needs.keys], types, context);
    this.table = new KeyTable(needs.keys.map((key) => key.type), space, () => context.poll());
    this.store = new ColumnStore([...needs.columns.map((index) => types[index]), needs.time.type], space);
    this.groups = space.words(READ_ROWS);
    this.listed = space.words(READ_ROWS);
    this.startsOf = space.words(2).fill(0);
    this.stepTextBytes = stepTextBytesOf(context);
    // By the limit, not by what is free: how left rows are divided tells in which order sums add up.
    const { limitBytes } = context.memory, rowBytes = widthOf(this.store.types) + LISTED_BYTES;
    const fitting = limitBytes === 0 ? ROWS_MAX : Math.floor(limitBytes * MEMORY_SHARE / rowBytes);
    this.rowsMax = Math.max(READ_ROWS, Math.min(ROWS_MAX, fitting));
  }

  /** The needed columns. */
  get columns(): readonly Vector[] {
    return this.store.vectors;
  }

  /** Addresses, for `WindowRowsKernels`. */
  get starts(): number {
    return this.startsOf.byteOffset;
  }

  get times(): number {
    return this.hasKeys() ? this.listedTimes : this.storedTimes();
  }

  /** The rows of the store by position in the list. */
  get rows(): Int32Array {
    return this.listed;
  }

  private hasKeys(): boolean {
    return this.needs.keys.length > 0;
  }

  private storedTimes(): number {
    return this.store.vectors[this.store.vectors.length - 1].address;
  }

  /** The group of each row, -1 for keys that no right row has so far. Valid until the next call. */
  groupsOf(keys: readonly Vector[], rowCount: number): Int32Array {
    return this.table.groups(keys, rowCount, false);
  }

  /**
   * Reads the rows up to a time. Rows before `before` will not be needed. With many rows it ends before, but not before `enough`, and returns up to which time all rows
   * are there. If rows are read, those of the store get other numbers, and at least
   * half as many are read as there are, so that listing them takes time in proportion to the rows of the input.
   */
  readTo(time: bigint, before: bigint | undefined, enough: bigint): bigint {
    if (this.isAtEnd || this.lastTime > time) return time;
    if (before !== undefined) this.drop(before);
    const least = this.store.rowCount + Math.max(this.store.rowCount, this.table.count) / 2;
    let dropsAt = this.rowsToDropAt();
    while (!this.isAtEnd && (this.lastTime <= time || this.store.rowCount < least)) {
      this.readStep();
      const { rowCount } = this.store;
      if (rowCount >= this.rowsMax && rowCount >= least && this.lastTime > enough) {
        if (before !== undefined) this.drop(before);
        if (this.store.rowCount >= this.rowsMax) break;
      }
      // There may be any number of rows before the first window, and between two.
      if (before === undefined || this.store.rowCount < dropsAt) continue;
      this.drop(before);
      dropsAt = this.rowsToDropAt();
    }
    this.list();
    return this.isAtEnd || this.lastTime > time ? time : this.lastTime - 1n;
  }

  private rowsToDropAt(): number {
    return 2 * Math.max(this.store.rowCount, READ_ROWS);
  }

  private readStep(): void {
    this.context.poll();
    if (this.batch === undefined || this.batchRow === this.batch.rowCount) {
      const batch = this.input.next();
      const columns = batch &&
        [...this.needs.columns.map((index) => batch.columns[index]), ...this.expressions.run(batch)];
      this.batch = batch && { rowCount: batch.rowCount, columns: columns! };
      this.batchRow = 0;
    }
    if (this.batch === undefined) {
      this.isAtEnd = true;
      return;
    }
    const { store, space, batchRow: first, context: { heap } } = this, { columns, rowCount } = this.batch;
    const width = store.types.length, kept = columns.slice(0, width);
    const end = endOfTexts(heap, textsOf(kept), first, Math.min(rowCount, first + READ_ROWS), this.stepTextBytes);
    this.batchRow = end;
    const times = kept[width - 1].address / 8;
    let from = first;
    // Rows without a time come first, and belong to no window.
    while (from < end && heap.i64[times + from] === NULL_TIME) from++;
    const n = end - from, at = store.rowCount;
    if (n === 0) return;
    if (VERIFY) {
      for (let row = from + 1; row < end; row++) {
        assert(heap.i64[times + row - 1] <= heap.i64[times + row], "right rows are in time order");
      }
      assert(this.lastTime <= heap.i64[times + from], "right batches are in time order");
    }
    if (at + n > this.groups.length) this.groups = space.grow(this.groups, Math.max(at + n, 2 * this.groups.length));
    this.groups.set(this.table.groups(advance(columns.slice(width), from), n, true).subarray(0, n), at);
    store.append(kept, n, from);
    this.lastTime = heap.i64[times + end - 1];
  }

  /** Orders the rows by group and time. */
  private list(): void {
    const { store: { rowCount }, table, space, context } = this, groupCount = Math.max(1, table.count);
    if (rowCount > this.listed.length) this.listed = this.replaced(this.listed, rowCount);
    if (groupCount >= this.startsOf.length) this.startsOf = this.replaced(this.startsOf, groupCount + 1);
    const { groups, listed, startsOf: starts } = this;
    if (!this.hasKeys()) {
      for (let row = 0; row < rowCount; row++) listed[row] = row;
      starts[0] = 0;
      starts[1] = rowCount;
      return;
    }
    starts.fill(0, 0, groupCount + 1);
    this.eachRow(rowCount, (row) => starts[groups[row] + 1]++);
    for (let group = 1; group <= groupCount; group++) starts[group] += starts[group - 1];
    this.eachRow(rowCount, (row) => listed[starts[groups[row]]++] = row);
    starts.copyWithin(1, 0, groupCount);
    starts[0] = 0;
    if (rowCount > this.listedTimesRows) {
      if (this.listedTimes !== 0) space.free(this.listedTimes);
      this.listedTimes = space.allocate(8 * listed.length);
      this.listedTimesRows = listed.length;
    }
    gather(context.heap, this.needs.time.type, this.storedTimes(), listed, rowCount, this.listedTimes, false);
  }

  private eachRow(rowCount: number, visit: (row: number) => void): void {
    for (let from = 0; from < rowCount; from += POLL_ROWS) {
      this.context.poll();
      for (let row = from, end = Math.min(rowCount, from + POLL_ROWS); row < end; row++) visit(row);
    }
  }

  private replaced(view: Int32Array, count: number): Int32Array {
    this.space.freeWords(view);
    return this.space.words(Math.max(count, 2 * view.length));
  }

  /** Drops rows before a time, if these are most. */
  private drop(before: bigint): void {
    const { store, groups, table, space, context: { heap: { i64 } } } = this, { rowCount } = store;
    const times = this.storedTimes() / 8;
    let old = 0;
    for (let high = rowCount; old < high;) {
      const middle = (old + high) >>> 1;
      if (i64[times + middle] < before) old = middle + 1;
      else high = middle;
    }
    const { lastBefore } = this.needs;
    if (old * 2 < rowCount || old < READ_ROWS || (lastBefore && old < 2 * table.count)) return;
    const kept = space.words(rowCount);
    let n = 0;
    if (lastBefore) {
      const last = space.words(Math.max(1, table.count)).fill(-1);
      this.eachRow(old, (row) => last[groups[row]] = row);
      this.eachRow(old, (row) => {
        if (last[groups[row]] === row) kept[n++] = row;
      });
      space.freeWords(last);
    }
    for (let row = old; row < rowCount; row++) kept[n++] = row;
    for (let k = 0; k < n; k++) groups[k] = groups[kept[k]];
    store.compact(kept, n);
    space.freeWords(kept);
  }

  /** The workspace frees the memory. */
  close(): void {
    this.expressions.close();
    this.input.close();
  }
}
