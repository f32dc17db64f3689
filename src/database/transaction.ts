/**
 * An open transaction of a session. Added rows wait here until one of its statements reads them. All other changes are
 * sent to the writer immediately, which keeps a private state of the changed tables for this session until COMMIT.
 */
import { SqlError, SQLSTATE } from "../errors.ts";
import { type AppendBatch, type Catalogue, type Change, checkBatch, type OrderedChange } from "../storage/mod.ts";
import type { RowBatch, StorageTransaction, TableRows, TableSnapshot } from "../storage/contract.ts";
import { type ConstantRow, RowsToAdd } from "./constant-rows.ts";
import type { Core } from "./core.ts";
import type { StatementCache } from "./statements.ts";

/** More rows do not wait here, but go to the writer, which holds the transaction's state of its tables. */
const PENDING_BYTES_MAX = 16 << 20;
/** This many rows that are added one by one become a batch. */
const BATCH_ROWS = 256;
/** For each value of a row. */
const VALUE_BYTES = 16;

interface Added {
  ordinal: number;
  tableId: number;
  batch: RowBatch;
  /** The time of the last row, if it is known. */
  latest?: bigint;
}

export class Transaction {
  hasFailed = false;
  private storage: StorageTransaction | undefined;
  /** Rows that have not been sent to the writer yet, in order. */
  private pending: Added[] = [];
  /** Later rows, added one by one. They become a batch when they are many, or before anything else is done. */
  private growing: RowsToAdd | undefined;
  /** The tables of `pending` and `growing`. */
  private pendingIds = new Set<number>();
  private pendingBytes = 0;
  /** Number of the last change, and of the last one that the writer has. */
  private ordinal = 0;
  private toldOrdinal = 0;
  private savepoints: { name: string; ordinal: number }[] = [];
  private readonly tableIds = new Set<number>();
  /** Statements bound with the tables as this transaction sees them. Created once it has its own state of a table. */
  private ownStatements: StatementCache | undefined;
  /** A unique version of the definitions that this transaction sees, and the committed version when it was taken. */
  private schemaVersion = { own: 0, committed: 0 };
  private hasDefined = false;
  /** Audit lines to be written after the commit. */
  private audits: { ordinal: number; write: () => void }[] = [];

  /** `isBlock`: begun by BEGIN. Otherwise the transaction lasts for one request of several statements. */
  constructor(private readonly core: Core, public isBlock: boolean) {}

  /** The tables as the transaction sees them. */
  get catalogue(): Catalogue {
    return this.storage?.catalogue ?? this.core.catalogue;
  }

  get statements(): StatementCache {
    return this.ownStatements ?? this.core.statements;
  }

  get limitBytes(): number {
    return this.core.options.queryMemoryLimitBytes;
  }

  /** Adds rows to a table. Errors in them are thrown here, not at COMMIT. */
  async append(tableId: number, batches: AppendBatch[]): Promise<void> {
    const table = this.catalogue.tableById(tableId);
    for (const batch of table === undefined ? [] : batches) checkBatch(table!.schema, batch);
    this.settle();
    const ordinal = ++this.ordinal;
    let bytes = 0;
    for (const batch of batches) {
      this.pending.push({ ordinal, tableId, batch });
      for (const { values, heap } of batch.columns) bytes += values.length + (heap?.length ?? 0);
    }
    await this.added(tableId, bytes);
  }

  /**
   * Adds constant rows to a table. `types`: of the columns. `latest`: the time of the last row, in a table whose rows are in the order of
   * time. Synchronous, unless many rows have to be sent to the writer.
   */
  appendRows(
    tableId: number,
    columnIds: readonly number[],
    types: readonly string[],
    rows: readonly ConstantRow[],
    latest?: bigint,
  ): Promise<void> | undefined {
    if (!this.growing?.isOf(tableId, columnIds)) {
      this.settle();
      this.growing = new RowsToAdd(tableId, columnIds, types);
    }
    this.growing.add(rows);
    this.growing.ordinal = ++this.ordinal;
    this.growing.latest = latest;
    if (this.growing.rows.length >= BATCH_ROWS) this.settle();
    let bytes = 0;
    for (const row of rows) {
      bytes += VALUE_BYTES * row.length;
      for (const value of row) if (typeof value === "string") bytes += value.length;
    }
    return this.added(tableId, bytes);
  }

  private added(tableId: number, bytes: number): Promise<void> | undefined {
    this.tableIds.add(tableId);
    this.pendingIds.add(tableId);
    this.pendingBytes += bytes;
    this.checkSize(this.pendingBytes);
    return this.pendingBytes > PENDING_BYTES_MAX ? this.show("all") : undefined;
  }

  /**
   * The time of the last row of a table whose rows are in the order of time, with those that the writer does not know of; null if there is none,
   * undefined if they have to be shown to tell.
   */
  latestTime({ schema: { id }, timestampMax }: TableSnapshot): bigint | null | undefined {
    if (!this.pendingIds.has(id)) return timestampMax;
    if (this.growing?.tableId === id) return this.growing.latest;
    return this.pending.findLast(({ tableId }) => tableId === id)?.latest;
  }

  /** True if it has rows that the writer does not know of. */
  get hasPendingRows(): boolean {
    return this.pendingIds.size > 0;
  }

  /** Makes a batch of the rows that were added one by one. */
  private settle(): void {
    const { growing } = this;
    this.growing = undefined;
    if (growing === undefined) return;
    const { ordinal, tableId, latest } = growing;
    this.pending.push({ ordinal, tableId, batch: growing.batch(), latest });
  }

  /** Makes any other change. `definesTable`: statements must be bound again. Returns the id of a new table. */
  async change(change: Change, definesTable: boolean, audit?: () => void): Promise<number | undefined> {
    const ordinal = ++this.ordinal;
    if ("tableId" in change) this.tableIds.add(change.tableId);
    const newTableId = await this.send([...this.taken().map(changeOf), { ...change, ordinal }]);
    this.toldOrdinal = ordinal;
    if (audit !== undefined) this.audits.push({ ordinal, write: audit });
    if (definesTable) {
      this.hasDefined = true;
      this.redefine();
    }
    return newTableId;
  }

  /** Sends the added rows of the tables that will be read to the writer. Undefined if there are none. */
  show(tableIds: readonly number[] | "all"): Promise<void> | undefined {
    const isSeen = tableIds === "all" ? this.hasPendingRows : tableIds.some((id) => this.pendingIds.has(id));
    if (!isSeen) return undefined;
    this.toldOrdinal = this.ordinal;
    return this.send(this.taken().map(changeOf)).then(() => {});
  }

  /**
   * Prepares a table whose rows will be identified by number: they must be those of this transaction's own state of it.
   */
  async fork(tableId: number): Promise<void> {
    await this.show("all");
    await this.opened().fork(tableId);
  }

  savepoint(name: string): void {
    this.settle();
    this.savepoints.push({ name, ordinal: this.ordinal });
  }

  release(name: string, at: number): void {
    this.savepoints.length = this.indexOf(name, at);
  }

  async rollbackTo(name: string, at: number): Promise<void> {
    const index = this.indexOf(name, at);
    this.savepoints.length = index + 1;
    const { ordinal } = this.savepoints[index]!;
    this.settle();
    this.pending = this.pending.filter((change) => change.ordinal <= ordinal);
    this.pendingIds = new Set(this.pending.map(({ tableId }) => tableId));
    this.audits = this.audits.filter((audit) => audit.ordinal <= ordinal);
    if (this.toldOrdinal > ordinal) {
      this.toldOrdinal = ordinal;
      await this.storage!.rollbackTo(ordinal);
      this.redefine();
    }
    this.hasFailed = false;
  }

  /** Ends the transaction, even if the commit fails. */
  async commit(): Promise<void> {
    const { core, storage, growing } = this;
    if (storage === undefined && this.pending.length === 0 && growing !== undefined) {
      this.growing = undefined;
      this.taken();
      return await core.appendRows(growing);
    }
    const added = this.taken();
    if (storage === undefined) {
      if (added.length > 0) await core.append(added.map(tableRowsOf));
      return;
    }
    await core.locks.shared([...this.tableIds], () => storage.commit(added.map(changeOf)));
    for (const { write } of this.audits) write();
    if (this.hasDefined) core.schemaChanged("");
  }

  async rollback(): Promise<void> {
    this.taken();
    await this.storage?.rollback();
  }

  checkSize(bytes: number): void {
    if (bytes <= this.limitBytes) return;
    throw new SqlError(
      `Cannot hold the changes of the transaction: they take more than ${this.limitBytes} bytes (cairo.query.memory.limit): commit in smaller steps, or run the statement outside of a transaction`,
      0,
      SQLSTATE.outOfMemory,
    );
  }

  private opened(): StorageTransaction {
    if (this.storage === undefined) {
      const { core } = this;
      this.storage = core.writer.begin(this.limitBytes);
      this.redefine();
      this.ownStatements = core.statementsOf(this.storage.catalogue, () => {
        if (this.schemaVersion.committed !== core.schemaVersion()) this.redefine();
        return this.schemaVersion.own;
      });
    }
    return this.storage;
  }

  /** Forces cached statements to be bound again. */
  private redefine(): void {
    const { core } = this;
    this.schemaVersion = { own: core.privateSchemaVersion(), committed: core.schemaVersion() };
  }

  private taken(): Added[] {
    this.settle();
    this.pendingBytes = 0;
    this.pendingIds.clear();
    return this.pending.splice(0);
  }

  private async send(changes: OrderedChange[]): Promise<number | undefined> {
    return await this.opened().change(changes);
  }

  private indexOf(name: string, at: number): number {
    const index = this.savepoints.findLastIndex((savepoint) => savepoint.name === name);
    if (index < 0) throw new SqlError(`there is no savepoint ${name}`, at, SQLSTATE.invalidSavepoint);
    return index;
  }
}

function tableRowsOf({ tableId, batch }: Added): TableRows {
  return { tableId, batches: [batch] };
}

function changeOf(rows: Added): OrderedChange {
  return { kind: "append", ordinal: rows.ordinal, changes: [tableRowsOf(rows)] };
}

/** SQLSTATE 25001. */
export function notInTransaction(statement: string): SqlError {
  return new SqlError(
    `${statement} cannot run in a transaction, or with other statements in one request`,
    -1,
    SQLSTATE.activeTransaction,
  );
}

/** SQLSTATE 25P01. */
export function noTransaction(statement: string): SqlError {
  return new SqlError(
    `${statement} can only be used in a transaction: none is open`,
    -1,
    SQLSTATE.noActiveTransaction,
  );
}
