/**
 * Rows that arrive in batches and go directly into segments on disk, not through the log. They stay invisible until a manifest that
 * lists them is durable.
 */
import { unpackAppendBatch } from "./packed.ts";
import { checkBatch, isSorted, type Rows, timeAt, toRows } from "./rows.ts";
import type { Table } from "./table.ts";

/**
 * Rows that are out of order are collected up to these limits, because each group of late rows may touch every segment.
 */
const WAITING_ROWS_MAX = 4_000_000;
const WAITING_BYTES_MAX = 256 << 20;
/** Segments are flushed after this many rows. */
const STORE_ROWS = 524_288;

export class Load {
  private waiting: Rows[] = [];
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
    const batch = unpackAppendBatch(packed, this.columnIds);
    if (batch.rowCount === 0) return;
    checkBatch(table.schema, batch);
    const rows = toRows(table.schema, batch, (id) => table.dictionary(id));
    if (this.waiting.length === 0 && this.isNext(rows)) return this.append([rows]);
    this.waiting.push(rows);
    this.waitingRows += rows.rowCount;
    this.waitingBytes += packed.length;
    if (this.waitingRows >= WAITING_ROWS_MAX || this.waitingBytes >= WAITING_BYTES_MAX) this.appendWaiting();
  }

  /** Writes all rows to the data files. */
  finish(): void {
    this.appendWaiting();
    this.table.flush(true, Infinity, false);
    this.table.seal(true);
  }

  private isNext({ times }: Rows): boolean {
    const last = this.table.segments.bounds?.[1];
    return times === undefined || (isSorted(times) && (last === undefined || timeAt(times, 0) >= last.timestampMax));
  }

  private appendWaiting(): void {
    if (this.waiting.length > 0) this.append(this.waiting);
    this.waiting = [];
    this.waitingRows = this.waitingBytes = 0;
  }

  private append(parts: Rows[]): void {
    this.table.append(parts);
    for (const { rowCount } of parts) this.rowsInMemory += rowCount;
    if (this.rowsInMemory < STORE_ROWS) return;
    this.table.flush(false);
    this.rowsInMemory = 0;
  }
}
