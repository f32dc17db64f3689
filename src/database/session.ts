/** One client's conversation: statements, prepared once and executed often, and its transaction. */
import type { Answer, Chunk, ExecuteOptions, Identity, Prepared, ResultColumn, Session } from "../door.ts";
import { asClientFault, SqlError, SQLSTATE, TableClosedError } from "../errors.ts";
import { concatAppendBatches, packAppendBatch, unpackAppendBatch, valuesToAppendBatch } from "../engine/mod.ts";
import { explain, splitScript, substituteCalls } from "../sql/mod.ts";
import type { BoundStatement, NewTable, PackedNode, Plan } from "../sql/plan.ts";
import type { AppendBatch, BulkLoad, TableSnapshot } from "../storage/contract.ts";
import type { Value } from "../types/mod.ts";
import type { Execution, Run as ExecutionRun } from "./execution.ts";
import { listed, rowsOutput } from "./execution.ts";
import { resolveMetadata } from "./metadata.ts";
import type { Core } from "./mod.ts";
import type { StatementOrder, WaitOptions } from "./planner.ts";
import { planOfRun, plansOf } from "./planning.ts";
import { resolveSources } from "./sources.ts";
import { QUICK_TEXT_LENGTH_MAX, type Statement } from "./statements.ts";

/** A new table's rows of fewer bytes go through the log with the table; more are loaded. */
const LOAD_BYTES_MIN = 16 << 20;

/** Statements of the server itself are not watched. */
export const SERVER: Identity = { name: "server", groups: [] };

/** Rows that an INSERT in an open transaction has put aside. */
interface PendingChange {
  tableId: number;
  batches: AppendBatch[];
}

export class DatabaseSession implements Session {
  transaction: Session["transaction"] = "idle";
  private pending: PendingChange[] = [];

  constructor(private readonly core: Core, readonly identity: Identity) {}

  prepare(
    text: string,
    parameterTypes: (string | undefined)[] = [],
    options: WaitOptions = {},
  ): Prepared | Promise<Prepared> {
    const start = performance.now();
    const ready = (statement: Statement): Prepared =>
      new PreparedStatement(this, this.core, statement, Math.round((performance.now() - start) * 1e6));
    // What little of a table has to be known to bind a statement may be in one that is not open yet.
    const opened = async (error: unknown): Promise<Prepared> => {
      if (!(error instanceof TableClosedError)) throw error;
      await this.core.writer.open(error.tableId);
      return await this.prepare(text, parameterTypes, options);
    };
    try {
      const statement = this.core.statements.get(text, parameterTypes, this.identity, options);
      return statement instanceof Promise ? statement.then(ready).catch(opened) : ready(statement);
    } catch (error) {
      if (!(error instanceof TableClosedError)) throw error;
      return opened(error);
    }
  }

  split(
    text: string,
    options: WaitOptions = {},
  ): { text: string; at: number }[] | Promise<{ text: string; at: number }[]> {
    return text.length <= QUICK_TEXT_LENGTH_MAX ? splitScript(text) : this.core.planner.parts(text, options);
  }

  fail(): void {
    if (this.transaction === "open") this.transaction = "failed";
  }

  close(): void {
    this.pending = [];
    this.transaction = "idle";
  }

  /** Adds rows: at once, or at COMMIT inside a transaction. Nothing is kept of a failed one. */
  async append(tableId: number, batches: AppendBatch[]): Promise<void> {
    if (this.transaction === "failed") return;
    if (this.transaction === "open") this.pending.push({ tableId, batches });
    else await this.core.append([{ tableId, batches }]);
  }

  begin(): void {
    if (this.transaction === "idle") this.transaction = "open";
  }

  async commit(): Promise<void> {
    const { pending, transaction } = this;
    this.close();
    if (transaction === "open" && pending.length > 0) await this.core.append(pending);
  }
}

class PreparedStatement implements Prepared {
  readonly columns: ResultColumn[] | undefined;
  readonly timestamp: number;
  readonly parameters: string[];
  readonly notices: readonly string[];
  readonly category: Prepared["category"];
  readonly isRead: boolean;

  constructor(
    private readonly session: DatabaseSession,
    private readonly core: Core,
    private readonly prepared: Statement,
    readonly compileNs: number,
  ) {
    this.columns = prepared.columns;
    this.timestamp = prepared.bound.kind === "query" ? prepared.bound.plan.timestamp : -1;
    this.parameters = prepared.parameters;
    this.notices = prepared.notices;
    this.category = prepared.category;
    this.isRead = prepared.category === "empty" || prepared.category === "query" && !prepared.asksServer;
  }

  async execute(values: Value[], options: ExecuteOptions): Promise<Answer> {
    const { progress } = this.core;
    const { identity } = this.session;
    try {
      if (identity === SERVER || !progress.isWatched) return await this.answer(values, options);
      return await progress.watch(this.prepared.text, identity, () => this.answer(values, options));
    } catch (error) {
      throw asClientFault(error);
    }
  }

  /** Tables that nobody has asked for since the start are opened on the way: nothing has happened yet when that shows. */
  private async answer(values: Value[], options: ExecuteOptions): Promise<Answer> {
    for (;;) {
      // Another statement may have changed a table since this one was bound: bind it again, as a fresh one.
      const { statements } = this.core, { identity } = this.session;
      const known = await statements.refreshed(this.prepared, identity, options);
      try {
        const statement = await statements.withValues(known, values, identity, options);
        return await new Run(this.session, this.core, statement, values, options).answer();
      } catch (error) {
        if (!(error instanceof TableClosedError)) throw error;
        await this.core.writer.open(error.tableId);
        options.signal?.throwIfAborted();
      }
    }
  }
}

/** One execution. */
class Run {
  private readonly execution: Execution;

  constructor(
    private readonly session: DatabaseSession,
    private readonly core: Core,
    private readonly statement: Statement,
    private readonly values: Value[],
    private readonly options: ExecuteOptions,
  ) {
    this.execution = core.execution;
  }

  answer(): Answer | Promise<Answer> {
    const bound = this.statement.bound;
    switch (bound.kind) {
      case "query":
        return bound.plan.node === "packed"
          ? this.packedPlanOf(bound.plan).then((plan) => this.query(plan))
          : this.query(this.served(this.planOf(bound.plan)));
      case "explain":
        return this.explain(bound.statement);
      case "empty":
        return { kind: "done", category: "empty", tag: "", rows: 0 };
      case "set":
        return { kind: "done", category: "ddl", tag: "SET", rows: 0 };
      case "transaction":
        return this.transaction(bound.action);
      default:
        return this.change(bound);
    }
  }

  /** The plan with its parameters' values and metadata rows. */
  private planOf(plan: Plan): Plan {
    const { name } = this.session.identity;
    const known = planOfRun(plan, this.statement, {
      values: this.values,
      nowMicros: () => this.execution.nowMicros(),
      user: name,
    });
    return this.statement.hasMetadata ? resolveMetadata(known, this.core, this.session.identity) : known;
  }

  /** The same of a long statement: what made its plan fills it in. */
  private async packedPlanOf(plan: PackedNode): Promise<Plan> {
    return plan.isOpen ? await this.core.planner.want("plan", this.order(), this.options) : plan;
  }

  private order(): StatementOrder {
    const { text, parameterTypes, schemaVersion } = this.statement;
    const { values, execution, session } = this;
    return {
      text,
      parameterTypes,
      values,
      user: session.identity.name,
      nowMicros: execution.nowMicros(),
      schemaVersion,
    };
  }

  private finalPlanOf(plan: Plan): Plan | Promise<Plan> {
    return plan.node === "packed" ? this.packedPlanOf(plan) : this.planOf(plan);
  }

  /** With the answers of the server itself in the plan. */
  private served(plan: Plan): Plan {
    const { reloadConfig } = this.core.options;
    return this.statement.asksServer
      ? substituteCalls(plan, { "reload_config()": reloadConfig ?? (() => false) })
      : plan;
  }

  private query(plan: Plan): Answer {
    const run = this.execution.run(plan, {
      output: rowsOutput(this.options),
      columns: plan.columns,
      ...this.runOptions(),
    });
    return {
      kind: "rows",
      columns: plan.columns,
      timestamp: plan.timestamp,
      chunks: run.chunks,
      totalRows: run.totalRows,
    };
  }

  private runOptions() {
    return { user: this.session.identity.name, signal: this.options.signal, timeoutMs: this.options.timeoutMs };
  }

  private async explain(statement: BoundStatement): Promise<Answer> {
    if (plansOf(statement).some(({ node }) => node === "packed")) {
      return this.lines(await this.core.planner.want("explain", this.order(), this.options));
    }
    const plan = "plan" in statement ? this.planOf(statement.plan) : "query" in statement ? statement.query : undefined;
    const { catalogue } = this.core;
    const lines = explain(plan && "plan" in statement ? { ...statement, plan } : statement, {
      sources: plan && resolveSources(plan, catalogue),
      catalogue,
    });
    return this.lines(lines);
  }

  private lines(lines: string[]): Answer {
    const columns = [{ name: "QUERY PLAN", type: "STRING" }];
    return this.query({ node: "values", columns, timestamp: -1, order: "none", rows: lines.map((line) => [line]) });
  }

  private async transaction(action: "begin" | "commit" | "rollback"): Promise<Answer> {
    if (action === "begin") this.session.begin();
    else if (action === "commit") await this.session.commit();
    else this.session.close();
    return { kind: "done", category: "transaction", tag: action.toUpperCase(), rows: 0 };
  }

  private async change(bound: BoundStatement): Promise<Answer> {
    const { core } = this;
    const { writer } = core;
    switch (bound.kind) {
      case "createTable":
        return await this.createTable(bound);
      case "dropTable":
        for (const { name, at } of bound.names) {
          const table = core.catalogue.table(name);
          if (!table && !bound.ifExists) {
            throw new SqlError(`Cannot drop table ${name}: there is none of that name`, at, SQLSTATE.undefinedTable);
          }
          if (table) await writer.dropTable(table.schema.id);
        }
        return core.schemaChanged("DROP TABLE");
      case "truncate":
        for (const id of bound.tableIds) await writer.truncate(id);
        return core.schemaChanged("TRUNCATE TABLE");
      case "rename":
        if (core.catalogue.table(bound.to)) {
          throw new SqlError(
            `Cannot rename to ${bound.to}: a table of that name exists`,
            bound.at,
            SQLSTATE.duplicateTable,
          );
        }
        await writer.rename(bound.tableId, bound.to);
        return core.schemaChanged("ALTER TABLE");
      case "addColumns":
        await writer.addColumns(bound.tableId, bound.columns);
        return core.schemaChanged("ALTER TABLE");
      case "dropColumns":
        await writer.dropColumns(bound.tableId, bound.columnIds);
        return core.schemaChanged("ALTER TABLE");
      case "renameColumn":
        await writer.renameColumn(bound.tableId, bound.columnId, bound.to);
        return core.schemaChanged("ALTER TABLE");
      case "insert":
        return await this.insert(bound);
      case "update":
        return await this.update(bound);
      case "delete":
        return await this.delete(bound);
      case "checkpoint":
        if (bound.action === "create") await core.backups.begin(bound.at);
        else await core.backups.end();
        return { kind: "done", category: "ddl", tag: "CHECKPOINT", rows: 0 };
      case "backup":
        await core.backups.backup(bound.name, bound.at, this.options.signal);
        return { kind: "done", category: "ddl", tag: "BACKUP", rows: 0 };
      default:
        throw new Error(`no way to run ${bound.kind}`);
    }
  }

  private async createTable(bound: Extract<BoundStatement, { kind: "createTable" }>): Promise<Answer> {
    const { table, query } = bound;
    if (this.core.catalogue.table(table.name)) {
      if (bound.ifNotExists) return { kind: "done", category: "ddl", tag: "CREATE TABLE", rows: 0 };
      throw new SqlError(
        `Cannot create table ${table.name}: there is one of that name`,
        bound.at,
        SQLSTATE.duplicateTable,
      );
    }
    if (!query) {
      await this.core.writer.createTable(table);
      return this.core.schemaChanged("CREATE TABLE");
    }
    const rows = await this.createFilled(table, query);
    this.core.schemaChanged("CREATE TABLE");
    return { kind: "done", category: "ddl", tag: `SELECT ${rows}`, rows };
  }

  /** A table of a query's rows; many of them go to the writer while the query runs. Gives their count. */
  private async createFilled(table: NewTable, query: Plan): Promise<number> {
    const { writer } = this.core;
    const columnIds = newColumnIds(table);
    const { chunks, totalRows } = this.rowsFor(
      await this.finalPlanOf(query),
      table.columns.map((column) => column.type),
      columnIds,
    );
    const held: Chunk[] = [];
    let heldBytes = 0;
    let load: BulkLoad | undefined;
    try {
      for await (const chunk of chunks) {
        if (load !== undefined) {
          await load.add(chunk.bytes);
          continue;
        }
        held.push(chunk);
        heldBytes += chunk.bytes.length;
        if (heldBytes < LOAD_BYTES_MIN) continue;
        load = await writer.beginLoad(table);
        for (const { bytes } of held.splice(0)) await load.add(bytes);
      }
      if (load === undefined) {
        await writer.createTable(
          table,
          held.map(({ bytes }) => unpackAppendBatch(bytes, columnIds)),
        );
      } else {
        // A copy by other means may have passed the table's directory before it comes to the log that names it.
        await this.core.backups.released(this.options.signal);
        await load.commit();
      }
    } catch (error) {
      await load?.abort();
      throw error;
    }
    return totalRows();
  }

  /** The packed rows of a plan whose values are known, on their way into columns of these types. */
  private rowsFor(plan: Plan, targets: string[], columnIds: number[]): ExecutionRun {
    if (
      plan.node === "values" && plan.rows.length > 0 &&
      plan.columns.every((column, i) => column.type === targets[i] || column.type === "NULL")
    ) {
      const { rows } = plan;
      const bytes = packAppendBatch(valuesToAppendBatch(rows, columnIds, targets));
      return { chunks: listed([{ bytes, rows: rows.length }]), totalRows: () => rows.length };
    }
    return this.execution.run(plan, {
      output: { kind: "append", targets },
      columns: plan.columns,
      ...this.runOptions(),
    });
  }

  /** All rows of a query, on their way into columns of these types. */
  private async collect(
    plan: Plan,
    targets: string[],
    columnIds: number[],
  ): Promise<{ batches: AppendBatch[]; rows: number }> {
    const { chunks, totalRows } = this.rowsFor(await this.finalPlanOf(plan), targets, columnIds);
    const batches: AppendBatch[] = [];
    for await (const chunk of chunks) batches.push(unpackAppendBatch(chunk.bytes, columnIds));
    return { batches, rows: totalRows() };
  }

  private tableOf(tableId: number, at: number): TableSnapshot {
    const table = this.core.catalogue.tableById(tableId);
    if (!table) throw new SqlError("Cannot change the table: it was dropped meanwhile", at, SQLSTATE.undefinedTable);
    return table;
  }

  private typesOf(table: TableSnapshot, columnIds: number[]): string[] {
    return columnIds.map((id) => table.schema.columns.find((column) => column.id === id)!.type);
  }

  private async insert(bound: Extract<BoundStatement, { kind: "insert" }>): Promise<Answer> {
    const table = this.tableOf(bound.tableId, bound.at);
    const { batches, rows } = await this.collect(bound.plan, this.typesOf(table, bound.columnIds), bound.columnIds);
    const failed = this.session.transaction === "failed";
    if (rows > 0) await this.session.append(bound.tableId, batches);
    return { kind: "done", category: "dml", tag: `INSERT 0 ${failed ? 0 : rows}`, rows: failed ? 0 : rows };
  }

  private async update(bound: Extract<BoundStatement, { kind: "update" }>): Promise<Answer> {
    return await this.core.exclusively(bound.tableId, async () => {
      const table = this.tableOf(bound.tableId, bound.at);
      const ids = [...bound.columnIds, -1];
      const unpin = this.core.catalogue.pin(); // row ids are those of this version
      try {
        const types = [...this.typesOf(table, bound.columnIds), "LONG"];
        const { batches, rows } = await this.collect(bound.plan, types, ids);
        if (rows > 0) {
          const batch = concatAppendBatches(batches);
          await this.core.writer.update(bound.tableId, table.version, {
            rowIds: rowIdsOf(batch),
            columns: batch.columns.slice(0, -1),
          });
        }
        return { kind: "done", category: "dml", tag: `UPDATE ${rows}`, rows } as const;
      } finally {
        unpin();
      }
    });
  }

  private async delete(bound: Extract<BoundStatement, { kind: "delete" }>): Promise<Answer> {
    return await this.core.exclusively(bound.tableId, async () => {
      const table = this.tableOf(bound.tableId, bound.at);
      const unpin = this.core.catalogue.pin();
      try {
        const { batches, rows } = await this.collect(bound.plan, ["LONG"], [-1]);
        const rowIds = () => rowIdsOf(concatAppendBatches(batches));
        if (rows > 0) await this.core.writer.delete(bound.tableId, table.version, rowIds());
        return { kind: "done", category: "dml", tag: `DELETE ${rows}`, rows } as const;
      } finally {
        unpin();
      }
    });
  }
}

/** The row ids that a plan gave as its last column. */
function rowIdsOf(batch: AppendBatch): BigInt64Array {
  const { values } = batch.columns[batch.columns.length - 1];
  return new BigInt64Array(values.buffer, values.byteOffset, batch.rowCount);
}

/** A new table's columns are numbered from 0. */
function newColumnIds(table: NewTable): number[] {
  return table.columns.map((_, index) => index);
}
