/**
 * Rows that arrive in batches and go directly into segments on disk, not through the log. They stay invisible until a manifest that
 * lists them is durable.
 */
import { unpackAppendBatch } from "./packed.ts";
import { checkBatch, inOrder, isSorted, type Rows, slicedRows, timeAt, toRows } from "./rows.ts";
import type { Table } from "./table.ts";

/**
 * Rows that are out of order are collected up to these limits, because each group of late rows may touch every segment.
 */
const WAITING_ROWS_MAX = 4_000_000;
const WAITING_BYTES_MAX = 256 << 20;
/** Segments are flushed after this many rows. */
const STORE_ROWS = 524_288;
/** Rows of a step, which takes some tens of milliseconds. */
const STEP_ROWS = 131_072;

export class Load {
  private waiting: Rows[] = [];
  /** In order, and not in segments yet. */
  private sorted: Rows[] = [];
  private waitingRows = 0;
  private waitingBytes = 0;
  private rowsInMemory = 0;

  /** `columnIds`: of the batches, in order. */
  constructor(readonly table: Table, private readonly columnIds: readonly number[]) {}

  /**
   * @throws {SqlError} for values that the table does not accept.
   */
  add(packed: Uint8Array): void {
    const { table } = this;
    if (this.sorted.length > 0) this.appendSorted();
    const batch = unpackAppendBatch(packed, this.columnIds);
    if (batch.rowCount === 0) return;
    checkBatch(table.schema, batch);
    const rows = toRows(table.schema, batch, (id) => table.dictionary(id));
    if (this.waiting.length === 0 && this.sorted.length === 0 && this.isNext(rows)) return this.append(rows);
    this.waiting.push(rows);
    this.waitingRows += rows.rowCount;
    this.waitingBytes += packed.length;
    if (this.waitingRows >= WAITING_ROWS_MAX || this.waitingBytes >= WAITING_BYTES_MAX) this.sortWaiting();
  }

  /** Does a step of `finish`. Returns false if nothing is left. */
  prepare(): boolean {
    return !this.steps()[Symbol.iterator]().next().done;
  }

  /** Writes all rows to the data files. */
  finish(): void {
    for (const _ of this.steps());
  }

  /** The same in steps. */
  *steps(): Iterable<void> {
    while (this.waiting.length > 0 || this.sorted.length > 0) {
      if (this.sorted.length > 0) this.appendSorted();
      else this.sortWaiting();
      yield;
    }
    this.table.flush(true, Infinity, false);
    this.table.seal(true);
  }

  private isNext({ times }: Rows): boolean {
    const last = this.table.segments.bounds?.[1];
    return times === undefined || (isSorted(times) && (last === undefined || timeAt(times, 0) >= last.timestampMax));
  }

  private sortWaiting(): void {
    this.sorted.push(...inOrder(this.table.schema, this.waiting));
    this.waiting = [];
    this.waitingRows = this.waitingBytes = 0;
  }

  /** Puts some of the sorted rows into segments. Twice as many as a batch has, so that they do not become more. */
  private appendSorted(): void {
    const { schema } = this.table;
    const [first] = this.sorted, { rowCount } = first;
    if (rowCount <= STEP_ROWS) this.sorted.shift();
    else this.sorted[0] = slicedRows(schema, first, STEP_ROWS, rowCount);
    this.append(slicedRows(schema, first, 0, Math.min(rowCount, STEP_ROWS)));
  }

  private append(rows: Rows): void {
    this.table.append([rows]);
    this.rowsInMemory += rows.rowCount;
    if (this.rowsInMemory < STORE_ROWS) return;
    this.table.flush(false);
    this.rowsInMemory = 0;
  }
}
