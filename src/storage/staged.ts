/**
 * Many changes of an existing table that do not go through the log. They arrive in batches, go into segments in the table's data files,
 * and become a part of the table at the end, by one edit of its manifest. Until then no manifest lists them, so nothing remains of them
 * after a crash.
 */
import { CorruptFileError, DiskFullError, SqlError, SQLSTATE } from "../errors.ts";
import { storeState } from "./checkpoint.ts";
import { HeapFullError } from "./heap.ts";
import { Load } from "./load.ts";
import type { Store } from "./store.ts";
import type { Table } from "./table.ts";
import type { Log } from "./wal/log.ts";

export abstract class Staged {
  /** The segments, which no reader sees. */
  protected readonly stage: Table;

  constructor(protected readonly store: Store, protected readonly table: Table) {
    this.stage = table.stage();
    this.stage.onStep = () => store.flusher.duringLoad(this.stage);
  }

  /** The changes free space, so they may use the disk reserve. */
  readonly makesRoom: boolean = false;

  protected abstract addBatch(packed: Uint8Array): void;
  /** Writes all segments to the data files. */
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
   * Makes the changes a part of the table, durable and visible. Returns the number of rows added. `lsn`: of their mark in the log. The
   * caller discards the stage if it fails.
   */
  commit(log: Log, lsn: number): number {
    this.checkTable();
    this.finish();
    this.hold();
    const { table, store } = this;
    const { state } = table;
    let addedRows: number;
    try {
      addedRows = this.move();
      table.lsn = lsn;
      table.flush(true);
      storeState(store.options.files, table, log);
    } catch (error) {
      table.restore(state);
      store.memory.settle();
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
    this.stage.truncate();
    this.hold();
  }

  private hold(): void {
    this.store.publisher.holdStaged(this.stage, this.table);
  }

  private checkTable(): void {
    if (this.store.tables.get(this.tableId) === this.table && this.table.damage === undefined) return;
    throw new SqlError("Cannot change the table: it was dropped in the meantime", 0, SQLSTATE.undefinedTable);
  }
}

/** Rows to be added. */
export class StagedRows extends Staged {
  private readonly rows: Load;

  /** `columnIds`: of the batches, in order. */
  constructor(store: Store, table: Table, columnIds: readonly number[]) {
    super(store, table);
    this.rows = new Load(this.stage, columnIds);
  }

  protected override addBatch(packed: Uint8Array): void {
    this.rows.add(packed);
  }

  protected override finish(): void {
    this.rows.finish();
  }

  protected override move(): number {
    this.table.appendStaged(this.stage);
    return this.stage.rowCount;
  }
}
