/**
 * Rows that arrive in batches and go directly into segments on disk, not through the log. They stay invisible until a manifest that
 * lists them is durable.
 */
import type { BackgroundFlush } from "./background-flush.ts";
import { unpackAppendBatch } from "./packed.ts";
import { checkBatch, isSorted, type Rows, slicedRows, sorting, timeAt, toRows } from "./rows.ts";
import type { Table } from "./table.ts";

/**
 * Rows that are out of order are collected up to these limits, because each group of late rows may touch every segment.
 */
const WAITING_ROWS_MAX = 4_000_000;
const WAITING_BYTES_MAX = 256 << 20;
/** Rows of a step, and rows after which segments are flushed: other commits wait until then. Tests set fewer. */
export const LOAD_STEP = { rows: 131_072 };
/** Bytes on disk that are flushed in a step at most: more than the rows of a step, but not all that others may have been too slow for. */
const FLUSH_BYTES = 16 << 20;
/** Steps of the work under way that are done with each batch. */
const STEPS_OF_BATCH = 4;

export class Load {
  private waiting: Rows[] = [];
  /** Sorts rows and puts them into segments, in steps. */
  private work: Iterator<void> | undefined;
  private waitingRows = 0;
  private waitingBytes = 0;
  private rowsInMemory = 0;

  /** `columnIds`: of the batches, in order. */
  constructor(
    readonly table: Table,
    private readonly columnIds: readonly number[],
    private readonly background: BackgroundFlush,
  ) {}

  /**
   * @throws {SqlError} for values that the table does not accept.
   */
  add(packed: Uint8Array): void {
    const { table } = this;
    // This many that the work is done before as many rows wait again.
    for (let k = 0; k < STEPS_OF_BATCH && this.work !== undefined; k++) this.step();
    const batch = unpackAppendBatch(packed, this.columnIds);
    if (batch.rowCount === 0) return;
    checkBatch(table.schema, batch);
    const rows = toRows(table.schema, batch, (id) => table.dictionary(id));
    if (this.waiting.length === 0 && this.work === undefined && this.isNext(rows)) return this.append(rows);
    this.waiting.push(rows);
    this.waitingRows += rows.rowCount;
    this.waitingBytes += packed.length;
    if (this.waitingRows >= WAITING_ROWS_MAX || this.waitingBytes >= WAITING_BYTES_MAX) this.begin();
  }

  /** Does a step of `finish`. Returns false if nothing is left. */
  prepare(): boolean {
    return !this.steps()[Symbol.iterator]().next().done;
  }

  /** Writes all rows to the data files. */
  finish(): void {
    this.background.withoutWaiting(() => {
      for (const _ of this.steps());
    });
  }

  /** The same in steps. */
  *steps(): Iterable<void> {
    while (this.work !== undefined || this.waiting.length > 0) {
      this.step();
      yield;
    }
    this.flush();
    while (this.background.isAwaited(this.table)) {
      this.background.wait();
      yield;
    }
    // What takes too long elsewhere.
    const { takeBack } = this.background;
    while (this.table.disk.flush(false, FLUSH_BYTES, true, takeBack) >= FLUSH_BYTES) yield;
    this.table.disk.flush(true, Infinity, false, takeBack);
    this.table.disk.seal(true);
  }

  private isNext({ times }: Rows): boolean {
    const last = this.table.segments.bounds?.[1];
    return times === undefined || (isSorted(times) && (last === undefined || timeAt(times, 0) >= last.timestampMax));
  }

  private step(): void {
    if (this.work === undefined) this.begin();
    if (this.work!.next().done) this.work = undefined;
  }

  /** Begins to put the waiting rows into segments, once the former ones are there. */
  private begin(): void {
    while (this.work !== undefined) this.step();
    this.work = this.arrange(sorting(this.table.schema, this.waiting));
    this.waiting = [];
    this.waitingRows = this.waitingBytes = 0;
  }

  private *arrange(sorted: Generator<void, Rows[]>): Generator<void, void> {
    const { schema } = this.table;
    for (const rows of yield* sorted) {
      for (let from = 0; from < rows.rowCount; from += LOAD_STEP.rows) {
        yield;
        this.append(slicedRows(schema, rows, from, Math.min(rows.rowCount, from + LOAD_STEP.rows)));
      }
    }
  }

  private append(rows: Rows): void {
    // Before the rows, because segments of this step cannot be handed over yet.
    if (this.rowsInMemory >= LOAD_STEP.rows) this.flush();
    this.table.append([rows]);
    this.rowsInMemory += rows.rowCount;
  }

  private flush(): void {
    this.table.disk.flush(false, FLUSH_BYTES, true, this.background.handOver(this.table, false, false));
    this.rowsInMemory = 0;
  }
}
