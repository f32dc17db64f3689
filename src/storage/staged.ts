/**
 * Many changes of an existing table that do not go through the log. They arrive in batches, go into segments in the table's data files,
 * and become a part of the table at the end, by one edit of its manifest. Until then no manifest lists them, so nothing remains of them
 * after a crash.
 */
import { CorruptFileError, DiskFullError, SqlError, SQLSTATE } from "../errors.ts";
import { storeState } from "./checkpoint.ts";
import { HeapFullError } from "./heap.ts";
import type { Store } from "./store.ts";
import type { Table } from "./table.ts";
import type { Log } from "./wal/log.ts";

export abstract class Staged {
  /** The tables of the segments, which no reader sees. */
  private readonly stages = new Set<Table>();
  /** The work of `prepare` that is under way. */
  private underway: Iterator<void> | undefined;

  constructor(protected readonly store: Store, protected readonly table: Table) {}

  /** An empty table for segments of the change. */
  protected newStage(): Table {
    const stage = this.table.stage();
    stage.onStep = () => this.store.flusher.duringLoad(stage);
    this.stages.add(stage);
    return stage;
  }

  /** How the log marks the changes. */
  readonly mark: "rows" | "type" = "rows";

  /** The changes free space, so they may use the disk reserve. */
  readonly makesRoom: boolean = false;

  protected abstract addBatch(packed: Uint8Array): void;
  /** Does in steps what a commit would have to do, as far as others do not change the table meanwhile. */
  protected *preparation(): Iterable<void> {}
  /** Does what is left to be done, and writes all segments to the data files. */
  protected abstract finish(): void;
  /** Makes the segments a part of the table. Returns the number of rows added. */
  protected abstract move(): number;

  get tableId(): number {
    return this.table.schema.id;
  }

  /** @throws {SqlError} for values that the table does not accept, or if the table was dropped. */
  add(packed: Uint8Array): void {
    this.checkTable();
    this.addBatch(packed);
    this.hold();
  }

  /**
   * Does a step of the work of the commit, once all changes have been added. Other commits may run between steps. Returns false if
   * nothing is left.
   */
  prepare(): boolean {
    this.checkTable();
    this.underway ??= this.preparation()[Symbol.iterator]();
    const { done } = this.underway.next();
    if (done) this.underway = undefined;
    this.hold();
    return !done;
  }

  /**
   * Makes the changes a part of the table, durable and visible. Returns the number of rows added. `lsn`: of their mark in the log. The
   * caller discards the stage if it fails.
   */
  commit(log: Log, lsn: number): number {
    this.checkTable();
    this.underway?.return?.();
    this.finish();
    this.hold();
    const { table, store } = this;
    const { state } = table;
    let addedRows: number;
    try {
      addedRows = this.move();
      table.lsn = lsn;
      table.disk.flush(true);
      storeState(store.options.files, table, log);
    } catch (error) {
      table.restore(state);
      store.publisher.settle();
      const isHarmless = [DiskFullError, HeapFullError, SqlError, CorruptFileError].some((kind) =>
        error instanceof kind
      );
      if (!isHarmless) store.seal.set(`staged changes could not be made durable: ${(error as Error).message}`);
      throw error;
    }
    store.stored(table);
    this.discard();
    return addedRows;
  }

  /** Discards the stage. Its extents stay in the data files until compaction removes them. */
  discard(): void {
    for (const stage of this.stages) stage.truncate();
    this.hold();
  }

  /** Keeps the memory of the segments until they change, and frees what they no longer use. */
  protected hold(): void {
    this.store.publisher.holdStaged(this.stages, this.table);
  }

  private checkTable(): void {
    if (this.store.tables.get(this.tableId) === this.table && this.table.damage === undefined) return;
    throw new SqlError("Cannot change the table: it was dropped in the meantime", 0, SQLSTATE.undefinedTable);
  }
}
