/** Changes of tables and their definitions, immediately or within the session's transaction. */
import type { Answer, Client, Identity } from "../api.ts";
import { type PostedPlan, unpackAppendBatch, unpackChangedBatch } from "../engine/mod.ts";
import { assert } from "../assert.ts";
import { SqlError, SQLSTATE, TableChangedError } from "../errors.ts";
import type { ChangedTable, RetypedColumn } from "../sql/mod.ts";
import type { NewTable } from "../sql/plan.ts";
import type {
  BulkLoad,
  Catalogue,
  Change,
  PartitionChange,
  PartitionMove,
  TableSnapshot,
} from "../storage/contract.ts";
import { checkTime } from "../storage/mod.ts";
import { auditOf } from "./access/definitions.ts";
import type { RunningStatement } from "./activity.ts";
import { type ConstantRow, RowsToAdd } from "./constant-rows.ts";
import type { Core } from "./core.ts";
import type { Run as ExecutionRun } from "./execution.ts";
import type { Transaction } from "./transaction.ts";

/** Smaller sets of rows for a new table go through the log together with the table. Larger ones are loaded. */
const LOAD_BYTES_MIN = 16 << 20;

/** The same for changed rows: segments are rewritten as a whole, which would delay other commits if it was done at once. */
const CHANGE_BYTES_MIN = 2 << 20;

/** The parts of the session that changes need. */
export interface ChangeSession {
  readonly identity: Identity;
  readonly client?: Client;
  readonly current: Transaction | undefined;
  readonly catalogue: Catalogue;
}

/** The parts of the execution that changes need. */
export interface ChangeRun {
  readonly signal: AbortSignal | undefined;
  readonly running: RunningStatement | undefined;
  /** The rows of the plan for columns of the types `targets`, if they are constants with the values of this execution. */
  constantRows(plan: PostedPlan, targets: string[]): ConstantRow[] | undefined;
  /** Runs the plan with the values of this execution. Its chunks are packed rows for columns of the types `targets`. */
  run(plan: PostedPlan, targets: string[]): Promise<ExecutionRun>;
}

export class RowChanges {
  constructor(private readonly core: Core, private readonly session: ChangeSession, private readonly run: ChangeRun) {}

  private get transaction(): Transaction | undefined {
    return this.session.current;
  }

  /** The principal that gets the rights on new objects. Undefined without access control. */
  private get creator(): string | undefined {
    return this.core.access?.creatorOf(this.session.identity);
  }

  /** Changes a definition, immediately or with the transaction. */
  async define(change: Change | PartitionChange): Promise<void> {
    const makes = change.kind === "createTable" || change.kind === "addColumns";
    const made = makes ? { ...change, creator: change.creator ?? this.creator } : change;
    const audit = this.auditOf(made);
    if (this.transaction === undefined) {
      await this.core.writer.change(made);
      audit();
    } else await this.transaction.change(inTransaction(made), true, audit);
  }

  private auditOf(change: Change | PartitionChange): () => void {
    return auditOf(this.core.access, this.session, change, this.session.catalogue);
  }

  /** The result of a definition. Other sessions see the definitions of a transaction only after COMMIT. */
  defined(tag: string): Answer {
    return this.transaction === undefined
      ? this.core.schemaChanged(tag)
      : { kind: "done", category: "ddl", tag, rows: 0 };
  }

  /** Creates a table from the rows of a query. Returns the number of rows. */
  async createTable(table: NewTable, query: PostedPlan, creator = this.creator): Promise<number> {
    return this.transaction === undefined
      ? await this.createFilled(table, query, creator)
      : await this.createInTransaction(table, query, creator, this.transaction);
  }

  /**
   * Creates a table from the rows of a query. Many rows are sent to the writer while the query runs. Returns the number
   * of rows.
   */
  private async createFilled(table: NewTable, query: PostedPlan, creator: string | undefined): Promise<number> {
    const { writer } = this.core;
    const columnIds = newColumnIds(table);
    const audit = this.auditOf({ kind: "createTable", table, creator });
    return await this.stream(
      await this.run.run(query, table.columns.map((column) => column.type)),
      () => writer.beginLoad(table, creator),
      async (held, load) => {
        if (load === undefined) {
          await writer.createTable(table, held.map((bytes) => unpackAppendBatch(bytes, columnIds)), creator);
        } else {
          // An external copy may have passed the table's directory before it copies the log that names the table.
          await this.core.backups.released(this.run.signal);
          await load.commit();
        }
        audit();
      },
    );
  }

  /**
   * Hands the rows of a query on: few of them to `finish`, many to the load that `begin` begins, while the query runs, unless there
   * cannot be one now. Returns the number of rows.
   */
  private async stream(
    run: ExecutionRun,
    begin: () => Promise<BulkLoad | undefined>,
    finish: (held: readonly Uint8Array[], load: BulkLoad | undefined) => Promise<void>,
    bytesMin = LOAD_BYTES_MIN,
  ): Promise<number> {
    const held: Uint8Array[] = [];
    let heldBytes = 0;
    let load: BulkLoad | undefined;
    try {
      for await (const chunk of run.chunks) {
        this.countWritten(chunk.rows);
        if (load !== undefined) {
          await load.add(chunk.bytes);
          continue;
        }
        held.push(chunk.bytes);
        heldBytes += chunk.bytes.length;
        this.transaction?.checkSize(heldBytes);
        if (heldBytes < bytesMin) continue;
        load = await begin();
        if (load !== undefined) { for (const bytes of held.splice(0)) await load.add(bytes); }
        else if (this.transaction === undefined) this.checkSizeDuringCopy(heldBytes);
      }
      await load?.added(this.run.signal);
      await finish(held, load);
    } catch (error) {
      await load?.abort();
      throw error;
    }
    return run.totalRows();
  }

  private checkSizeDuringCopy(bytes: number): void {
    const { queryMemoryLimitBytes } = this.core.options;
    if (bytes <= queryMemoryLimitBytes) return;
    throw new SqlError(
      `Cannot hold the changes while files are being copied: they take more than ${queryMemoryLimitBytes} bytes (cairo.query.memory.limit): change fewer rows, or wait for the end of the backup or CHECKPOINT RELEASE`,
      0,
      SQLSTATE.outOfMemory,
    );
  }

  private async createInTransaction(
    table: NewTable,
    query: PostedPlan,
    creator: string | undefined,
    transaction: Transaction,
  ): Promise<number> {
    const types = table.columns.map((column) => column.type);
    const change: Change = { kind: "createTable", table, creator };
    const begin = async () => (await transaction.change(change, true, this.auditOf(change)))!;
    return await this.streamInto(transaction, begin, await this.run.run(query, types), newColumnIds(table));
  }

  /** Adds the rows of a query in a transaction, to the table that `begin` returns. */
  private async streamInto(
    transaction: Transaction,
    begin: () => Promise<number>,
    run: ExecutionRun,
    columnIds: number[],
  ): Promise<number> {
    let tableId: number | undefined;
    for await (const chunk of run.chunks) {
      tableId ??= await begin();
      this.countWritten(chunk.rows);
      const batch = unpackAppendBatch(chunk.bytes, columnIds);
      if (batch.rowCount > 0) await transaction.append(tableId, [batch]);
    }
    if (tableId === undefined) await begin();
    return run.totalRows();
  }

  private countWritten(rows: number): void {
    if (this.run.running !== undefined) this.run.running.rowsWritten += rows;
  }

  private tableOf(tableId: number, at: number): TableSnapshot {
    const table = this.session.catalogue.tableById(tableId);
    if (!table) {
      throw new SqlError("Cannot change the table: it was dropped in the meantime", at, SQLSTATE.undefinedTable);
    }
    return table;
  }

  private typesOf(table: TableSnapshot, columnIds: number[]): string[] {
    return columnIds.map((id) => {
      const column = table.schema.columns.find((column) => column.id === id);
      if (column === undefined) throw new TableChangedError(table.schema.id);
      return column.type;
    });
  }

  /** Synchronous for constant rows in a transaction. */
  append(target: ChangedTable): number | Promise<number> {
    const { tableId, columnIds, plan, at } = target, table = this.tableOf(tableId, at);
    const types = this.typesOf(table, columnIds), rows = this.run.constantRows(plan, types);
    if (rows === undefined) return this.appendQuery(target, types);
    const time = columnIds.indexOf(table.schema.timestampId), { timesAt } = target;
    if (time >= 0) { for (const row of rows) checkTime(row[time]!); }
    let last: bigint | undefined;
    if (timesAt !== undefined) {
      const before = this.transaction === undefined ? table.timestampMax : this.transaction.latestTime(table);
      if (before === undefined) return this.transaction!.show([tableId])!.then(() => this.append(target));
      const order = new RowOrder(timesAt, before);
      for (const row of rows) order.check(row[time] as bigint);
      last = rows.at(-1)![time] as bigint;
    }
    this.countWritten(rows.length);
    const adding = this.transaction === undefined
      ? this.core.appendRows(new RowsToAdd(tableId, columnIds, types, rows))
      : this.transaction.appendRows(tableId, columnIds, types, rows, last);
    return adding === undefined ? rows.length : adding.then(() => rows.length);
  }

  private async appendQuery(target: ChangedTable, types: string[]): Promise<number> {
    const { tableId, columnIds, plan, timesAt } = target, { core, transaction } = this;
    const run = await (timesAt === undefined ? this.run.run(plan, types) : this.runInOrder(target, timesAt, types));
    if (transaction !== undefined) {
      return await this.streamInto(transaction, () => Promise.resolve(tableId), run, columnIds);
    }
    return await this.stream(
      run,
      () => core.writer.beginAppend(tableId, columnIds),
      async (held, load) => {
        const batches = held.map((bytes) => unpackAppendBatch(bytes, columnIds)).filter(({ rowCount }) => rowCount > 0);
        if (load === undefined) return batches.length === 0 ? undefined : await core.append([{ tableId, batches }]);
        await core.locks.shared([tableId], async () => {
          // The rows change files that an external copy may have passed.
          await core.backups.released(this.run.signal);
          await load.commit();
        });
      },
    );
  }

  private async runInOrder(
    { tableId, columnIds, plan, at }: ChangedTable,
    timesAt: readonly number[],
    types: string[],
  ): Promise<ExecutionRun> {
    await this.transaction?.show([tableId]);
    const { schema, timestampMax } = this.tableOf(tableId, at), order = new RowOrder(timesAt, timestampMax);
    const run = await this.run.run(plan, types);
    return { chunks: inOrder(run.chunks, columnIds, schema.timestampId, order), totalRows: () => run.totalRows() };
  }

  /**
   * Changes the rows that the plan identifies: in the transaction's own state of the table, or in the table itself
   * while no rows are added to it.
   */
  async changeRows({ tableId, columnIds, plan, at }: ChangedTable, kind: "update" | "delete"): Promise<number> {
    const { core, transaction } = this;
    const work = async () => {
      const table = this.tableOf(tableId, at);
      return await this.stream(
        await this.run.run(plan, [...this.typesOf(table, columnIds), "LONG"]),
        () => this.beginChange(kind, tableId, columnIds),
        async (held, load) => {
          if (load !== undefined) {
            await core.backups.released(this.run.signal);
            return void await load.commit();
          }
          const batches = held.map((bytes) => unpackChangedBatch(bytes, columnIds));
          if (batches.every(({ rowIds }) => rowIds.length === 0)) return;
          const change: Change = { kind, tableId, batches };
          if (transaction === undefined) await core.writer.change(change);
          else await transaction.change(change, false);
        },
        CHANGE_BYTES_MIN,
      );
    };
    if (transaction === undefined) return await core.exclusively(tableId, work);
    await transaction.fork(tableId);
    return await work();
  }

  /**
   * Undefined in a transaction, which keeps its changes in memory, and while files are being copied: no rows could be added to the table
   * until the end of the copy.
   */
  private async beginChange(
    kind: "update" | "delete",
    tableId: number,
    columnIds: readonly number[],
  ): Promise<BulkLoad | undefined> {
    const { backups, writer } = this.core;
    return this.transaction === undefined && !backups.isCopying
      ? await writer.beginChange(kind, tableId, columnIds)
      : undefined;
  }

  /** Converts a column, while others read and change the table. */
  async changeType({ tableId, columnId, column, at }: RetypedColumn): Promise<void> {
    const { core, run: { signal } } = this;
    this.tableOf(tableId, at);
    const load = await core.writer.beginTypeChange(tableId, columnId, column);
    try {
      await load.added(signal);
      // A statement that computes the ids of rows goes first, as it has been bound to the old type.
      await core.locks.shared([tableId], async () => {
        await core.backups.released(signal);
        await load.commit();
      });
    } catch (error) {
      await load.abort();
      throw error;
    }
  }

  /** Moves the partitions whose starts the plan returns. */
  async movePartitions(
    { tableId, plan, at }: ChangedTable,
    movesOf: (starts: readonly bigint[]) => PartitionMove[],
  ): Promise<number> {
    return await this.core.exclusively(tableId, async () => {
      this.tableOf(tableId, at);
      const { chunks } = await this.run.run(plan, ["LONG"]);
      const starts: bigint[] = [];
      for await (const { bytes } of chunks) starts.push(...unpackChangedBatch(bytes, []).rowIds);
      if (starts.length > 0) await this.core.writer.change({ kind: "partitions", tableId, moves: movesOf(starts) });
      return starts.length;
    });
  }
}

/** Refuses statements that move partitions in transactions. */
function inTransaction(change: Change | PartitionChange): Change {
  assert(change.kind !== "partitions", "partitions are not moved in a transaction");
  return change;
}

/** Columns of a new table are numbered from 0. */
function newColumnIds(table: NewTable): number[] {
  return table.columns.map((_, index) => index);
}

/** The order of time, in which a table without partitions accepts rows. */
class RowOrder {
  private row = 0;

  /** `timesAt`: positions of the rows' times in the statement. `latest`: the time of the table's last row. */
  constructor(private readonly timesAt: readonly number[], private latest: bigint | null) {}

  /** @throws {SqlError} if the time of the next row is before that of the last one */
  check(time: bigint): void {
    if (this.latest !== null && time < this.latest) {
      throw new SqlError(
        "the row is older than the table's last row: a table without partitions accepts rows only in the order of time",
        this.timesAt[this.row]!,
        SQLSTATE.invalidParameter,
      );
    }
    this.latest = time;
    this.row++;
  }
}

/** Checks the rows of each chunk before it is used. */
async function* inOrder(
  chunks: ExecutionRun["chunks"],
  columnIds: number[],
  timestampId: number,
  order: RowOrder,
): ExecutionRun["chunks"] {
  for await (const chunk of chunks) {
    const { columns, rowCount } = unpackAppendBatch(chunk.bytes, columnIds);
    const { values } = columns.find(({ columnId }) => columnId === timestampId)!;
    for (const time of new BigInt64Array(values.buffer, values.byteOffset, rowCount)) order.check(time);
    yield chunk;
  }
}
