/**
 * Many rows that are added to an existing table without going through the log. They arrive in batches, go into segments in the table's
 * data files, and become a part of the table at the end, by one edit of its manifest. Until then no manifest lists them, so nothing
 * remains of them after a crash.
 */
import { CorruptFileError, DiskFullError, SqlError, SQLSTATE } from "../errors.ts";
import { storeState } from "./checkpoint.ts";
import { HeapFullError } from "./heap.ts";
import { Load } from "./load.ts";
import type { Store } from "./store.ts";
import type { Table } from "./table.ts";
import type { Log } from "./wal/log.ts";

export class StagedRows {
  private readonly stage: Table;
  private readonly rows: Load;

  constructor(private readonly store: Store, private readonly table: Table, columnIds: readonly number[]) {
    this.stage = table.stage();
    this.stage.onStep = () => store.flusher.duringLoad(this.stage);
    this.rows = new Load(this.stage, columnIds);
  }

  get tableId(): number {
    return this.table.schema.id;
  }

  /** @throws {SqlError} for values that the table does not accept, or if the table was dropped. */
  add(packed: Uint8Array): void {
    this.checkTable();
    this.rows.add(packed);
    this.hold();
  }

  /** Makes the rows a part of the table, durable and visible. `lsn`: of their mark in the log. The caller discards the stage if it fails. */
  commit(log: Log, lsn: number): number {
    this.checkTable();
    this.rows.finish();
    this.hold();
    const { table, stage, store } = this;
    const { rowCount } = stage;
    if (rowCount === 0) return 0;
    const { state } = table;
    try {
      table.appendStaged(stage);
      table.lsn = lsn;
      table.flush(true);
      storeState(store.options.files, table, log);
    } catch (error) {
      table.restore(state);
      store.memory.settle();
      const isHarmless = [DiskFullError, HeapFullError, SqlError, CorruptFileError].some((kind) =>
        error instanceof kind
      );
      if (!isHarmless) store.seal.set(`added rows could not be made durable: ${(error as Error).message}`);
      throw error;
    }
    store.stored(table);
    this.discard();
    return rowCount;
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
    throw new SqlError("Cannot add the rows: the table was dropped in the meantime", 0, SQLSTATE.undefinedTable);
  }
}
