/**
 * Bulk loads that are under way: rows of new tables, and many changes of existing ones. They go into segments in data files, not
 * through the log, and become visible by one commit at the end:
 *
 *     begin  →  add rows, in batches  →  prepare, in steps  →  end: files, then a mark in the log  →  publish
 *
 * A step that fails ends its load, and nothing of it remains.
 */
import { CorruptFileError, DiskFullError, SqlError, SQLSTATE } from "../errors.ts";
import type { NewTable } from "../sql/plan.ts";
import type { Table } from "./table.ts";
import type { Definition } from "./blocks.ts";
import { toJson } from "./bytes.ts";
import { storeState } from "./checkpoint.ts";
import type { Command } from "./commands.ts";
import { asSqlError } from "./commits.ts";
import { creation } from "./definitions.ts";
import { HeapFullError } from "./heap.ts";
import { Load } from "./load.ts";
import type { Staged } from "./staged.ts";
import { StagedChanges } from "./staged-changes.ts";
import { StagedRows } from "./staged-rows.ts";
import { StagedTypeChange } from "./staged-type-change.ts";
import type { Store } from "./store.ts";
import { BLOCK_KIND, FLAG_LAST } from "./wal/format.ts";

export type OfLoad = Extract<
  Command,
  | { loadId: number }
  | { kind: "beginLoad" }
  | { kind: "beginAppend" }
  | { kind: "beginChange" }
  | { kind: "beginTypeChange" }
>;

export class Loads {
  /** Loads of new tables, by the ids that the tables will have. */
  private readonly tables = new Map<number, { rows: Load; creator: string | undefined }>();
  /** Changes of existing tables, by negative numbers. */
  private readonly stages = new Map<number, Staged>();
  private lastStageId = 0;

  /** `checkpoint` makes a whole checkpoint, unless files are being copied. */
  constructor(private readonly store: Store, private readonly checkpoint: () => void) {}

  /** Existing tables are being changed. */
  get areUnderway(): boolean {
    return this.stages.size > 0;
  }

  /** The id of the change of an existing table that began last. */
  get newestStageId(): number {
    return this.lastStageId;
  }

  /** What it returns is said in `commands.ts`. */
  execute(command: OfLoad): number | undefined {
    switch (command.kind) {
      case "beginLoad":
        return this.beginTable(command.table, command.creator);
      case "beginAppend":
        return this.beginStage(new StagedRows(this.store, this.store.table(command.tableId), command.columnIds));
      case "beginChange": {
        const { tableId, change, columnIds } = command;
        return this.beginStage(new StagedChanges(this.store, this.store.table(tableId), change, columnIds));
      }
      case "beginTypeChange": {
        const { tableId, columnId, column } = command;
        return this.beginStage(new StagedTypeChange(this.store, this.store.table(tableId), columnId, column));
      }
      case "load":
        this.step(command.loadId, (load) => load.add(command.packed));
        return;
      case "prepareLoad":
        return Number(this.step(command.loadId, (load) => load.prepare()));
      case "endLoad":
        return command.loadId < 0 ? this.endStage(command.loadId) : this.endTable(command.loadId);
      case "abortLoad":
        return this.abort(command.loadId);
    }
  }

  abortAll(): void {
    for (const id of [...this.tables.keys(), ...this.stages.keys()]) this.abort(id);
  }

  /** The table is being loaded, and is not one of the database yet. */
  has({ schema }: Table): boolean {
    return this.tables.has(schema.id);
  }

  private abort(id: number): undefined {
    if (id < 0) this.abortStage(id);
    else this.abortTable(id);
  }

  /** Runs a step of a load; a failed step ends it. */
  private step<T>(id: number, step: (load: Load | Staged) => T): T {
    return id < 0 ? this.stepOfStage(id, step) : this.stepOfTable(id, ({ rows }) => step(rows));
  }

  // ---- new tables

  private beginTable(newTable: NewTable, creator: string | undefined): number {
    const { store } = this;
    const schema = store.newSchema(newTable);
    const table = store.newTable(schema);
    store.makeDirectory(table);
    this.tables.set(schema.id, {
      rows: new Load(table, schema.columns.map((column) => column.id), store.background),
      creator,
    });
    return store.numbers.takeTableId();
  }

  private stepOfTable<T>(id: number, step: (load: { rows: Load }) => T): T {
    const load = this.tables.get(id);
    if (load === undefined) throw new Error(`load ${id} has ended`);
    try {
      this.store.seal.check();
      const result = step(load);
      this.store.publisher.holdUnpublished(load.rows.table);
      return result;
    } catch (error) {
      this.abortTable(id);
      throw asSqlError(error);
    }
  }

  private endTable(id: number): number {
    const { store } = this;
    this.stepOfTable(id, ({ rows }) => {
      store.checkNameIsFree(rows.table.schema.name);
      this.finish(rows);
    });
    const { rows: { table }, creator } = this.tables.get(id)!;
    const { schema, generation } = table;
    const definition: Definition = { ...creation(schema, creator), generation };
    try {
      table.lsn = this.writeMark(id, 0, definition);
    } catch (error) {
      // After a failed sync the block may be durable nevertheless. Then the files that it names must exist.
      if (!store.seal.isSet) this.abortTable(id);
      throw error;
    }
    this.tables.delete(id);
    table.isListed = true;
    store.tables.set(id, table);
    store.access.follow(definition.access, table.lsn);
    store.publisher.touch(table);
    store.publisher.publish();
    store.commits.count(1, [table]);
    store.expiry.drop([table]);
    return id;
  }

  /** Makes the files of the table durable. */
  private finish(rows: Load): void {
    const { options: { files, root }, commits: { log }, seal } = this.store;
    const { table } = rows;
    try {
      rows.finish();
      table.lsn = log.lastLsn;
      storeState(files, table, log);
      table.changed = false;
      files.syncDirectory(root);
    } catch (error) {
      // Failures outside the load: the root directory is shared, and nothing is known after a failed sync (see
      // `Seal.sync`).
      const ofThisLoad = [DiskFullError, HeapFullError, SqlError, CorruptFileError];
      if (!ofThisLoad.some((kind) => error instanceof kind)) {
        seal.set(`a bulk load failed: ${(error as Error).message}`);
      }
      throw error;
    }
  }

  private abortTable(id: number): void {
    const load = this.tables.get(id);
    if (load === undefined) return;
    this.tables.delete(id);
    const { options: { files, log }, publisher } = this.store;
    const { table } = load.rows;
    table.truncate();
    publisher.holdUnpublished(table);
    for (const dictionary of table.dictionaries.values()) dictionary.retire(publisher.version);
    table.data.close();
    try {
      files.removeDirectory(table.directory);
    } catch (error) {
      log("ERROR", `what a failed load has left could not be removed: ${(error as Error).message}`);
    }
  }

  // ---- existing tables

  private beginStage(stage: Staged): number {
    this.store.seal.check();
    this.stages.set(--this.lastStageId, stage);
    return this.lastStageId;
  }

  private stepOfStage<T>(id: number, step: (stage: Staged) => T): T {
    const stage = this.stages.get(id);
    if (stage === undefined) throw new Error(`load ${id} has ended`);
    try {
      this.store.seal.check();
      return step(stage);
    } catch (error) {
      this.abortStage(id);
      throw asSqlError(error);
    }
  }

  private endStage(id: number): number {
    return this.stepOfStage(id, (stage) => {
      const { store } = this;
      const table = store.table(stage.tableId);
      // Recovery begins a table that it finds in the log alone without its manifest.
      if (!table.isListed) this.checkpoint();
      if (!table.isListed || store.publisher.holds > 0) {
        throw new SqlError("Cannot change the rows: the files are being copied", 0, SQLSTATE.objectNotInState);
      }
      const commit = () =>
        stage.commit(
          store.commits.log,
          this.writeMark(table.schema.id, table.schema.schemaVersion, { op: stage.mark }),
        );
      const rowCount = stage.makesRoom ? store.reserve.use(commit) : commit();
      this.stages.delete(id);
      store.releaseDictionaries(table);
      store.commits.count(1, [{ rowCount }]);
      store.expiry.drop([table]);
      return stage.tableId;
    });
  }

  private abortStage(id: number): void {
    this.stages.get(id)?.discard();
    this.stages.delete(id);
  }

  /** A block without rows: they are in the files. Returns its LSN. */
  private writeMark(tableId: number, schemaVersion: number, definition: Definition): number {
    const info = { kind: BLOCK_KIND.definition, flags: FLAG_LAST, tableId, schemaVersion };
    return this.store.commits.write((log) => [log.add(info, [toJson(definition)])])[0];
  }
}
