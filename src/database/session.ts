/** One client's conversation: statements, prepared once and executed often, and its transaction. */
import type { Answer, Chunk, Client, ExecuteOptions, Identity, Prepared, ResultColumn, Session } from "../door.ts";
import { asClientFault, failedTransaction, notSupported, SqlError, SQLSTATE, TableClosedError } from "../errors.ts";
import { concatAppendBatches, packAppendBatch, unpackAppendBatch, valuesToAppendBatch } from "../engine/mod.ts";
import { explain, sizeText, splitScript, substituteCalls, timeText } from "../sql/mod.ts";
import type { BoundStatement, NewTable, PackedNode, Plan } from "../sql/plan.ts";
import type { AppendBatch, BulkLoad, Catalogue, Change, TableSnapshot } from "../storage/contract.ts";
import type { Value } from "../types/mod.ts";
import type { RunningStatement } from "./activity.ts";
import type { Analyzed, Execution, Run as ExecutionRun } from "./execution.ts";
import { listed, rowsOutput } from "./execution.ts";
import { resolveMetadata } from "./metadata.ts";
import type { Core } from "./core.ts";
import type { StatementOrder, WaitOptions } from "./planner.ts";
import { planOfRun, plansOf } from "./planning.ts";
import { resolveSources, scansOf } from "./sources.ts";
import { QUICK_TEXT_LENGTH_MAX, type Statement, type StatementCache } from "./statements.ts";
import { notInTransaction, noTransaction, Transaction } from "./transaction.ts";

/** A new table's rows of fewer bytes go through the log with the table; more are loaded. */
const LOAD_BYTES_MIN = 16 << 20;

/** Statements of the server itself are not watched. */
export const SERVER: Identity = { name: "server", groups: [] };

export class DatabaseSession implements Session {
  /** What is open, by BEGIN or as a request of several statements. */
  current: Transaction | undefined;

  constructor(private readonly core: Core, readonly identity: Identity, readonly client?: Client) {}

  get transaction(): Session["transaction"] {
    if (!this.current?.isBlock) return "idle";
    return this.current.hasFailed ? "failed" : "open";
  }

  get statements(): StatementCache {
    return this.current?.statements ?? this.core.statements;
  }

  get catalogue(): Catalogue {
    return this.current?.catalogue ?? this.core.catalogue;
  }

  prepare(
    text: string,
    parameterTypes: (string | undefined)[] = [],
    options: WaitOptions = {},
  ): Prepared | Promise<Prepared> {
    if (this.transaction === "failed") return this.prepareEnd(text, parameterTypes);
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
      const statement = this.statements.get(text, parameterTypes, this.identity, options);
      return statement instanceof Promise ? statement.then(ready).catch(opened) : ready(statement);
    } catch (error) {
      if (!(error instanceof TableClosedError)) throw error;
      return opened(error);
    }
  }

  /** In a transaction that has failed: only what ends it is to be run, so that it does not matter what is wrong with others. */
  private prepareEnd(text: string, parameterTypes: (string | undefined)[]): Prepared {
    try {
      const statement = this.core.statements.get(text, parameterTypes, this.identity);
      if (!(statement instanceof Promise)) return new PreparedStatement(this, this.core, statement, 0);
      statement.catch(() => {});
    } catch {
      // It is refused all the same.
    }
    throw failedTransaction();
  }

  split(
    text: string,
    options: WaitOptions = {},
  ): { text: string; at: number }[] | Promise<{ text: string; at: number }[]> {
    return text.length <= QUICK_TEXT_LENGTH_MAX ? splitScript(text) : this.core.planner.parts(text, options);
  }

  beginRequest(): void {
    this.current ??= new Transaction(this.core, false);
  }

  async endRequest(): Promise<void> {
    if (this.current?.isBlock === false) await this.commit();
  }

  begin(): void {
    if (this.current === undefined) this.current = new Transaction(this.core, true);
    else this.current.isBlock = true;
  }

  /** Gives the command tag: nothing is committed of a transaction that has failed. */
  async commit(): Promise<string> {
    const { current } = this;
    this.current = undefined;
    if (current?.hasFailed) {
      await current.rollback();
      return "ROLLBACK";
    }
    await current?.commit();
    return "COMMIT";
  }

  async close(): Promise<void> {
    const { current } = this;
    this.current = undefined;
    await current?.rollback();
  }

  async fail(): Promise<void> {
    if (this.current?.isBlock === false) await this.close();
    else if (this.current !== undefined) this.current.hasFailed = true;
  }

  savepoint(name: string): void {
    this.block("SAVEPOINT").savepoint(name);
  }

  release(name: string): void {
    this.block("RELEASE").release(name);
  }

  async rollbackTo(name: string): Promise<void> {
    if (!this.current?.isBlock) throw noTransaction("ROLLBACK TO");
    await this.current.rollbackTo(name);
  }

  private block(statement: string): Transaction {
    if (!this.current?.isBlock) throw noTransaction(statement);
    if (this.current.hasFailed) throw failedTransaction();
    return this.current;
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
    const { progress, activity } = this.core;
    const { identity, client, transaction } = this.session;
    if (transaction === "failed" && this.category !== "transaction" && this.category !== "empty") {
      throw failedTransaction();
    }
    if (identity === SERVER) return await this.answer(values, options);
    const running = activity.begin(this.prepared.text, identity, client, options);
    try {
      const execute = () => this.answer(values, options, running);
      const answer = await (progress.isWatched ? progress.watch(running, execute) : execute());
      if (answer.kind === "rows") running.endWithQuery();
      else running.end();
      return answer;
    } catch (error) {
      running.end();
      throw asClientFault(error);
    }
  }

  /** Tables that nobody has asked for since the start are opened on the way: nothing has happened yet when that shows. */
  private async answer(values: Value[], options: ExecuteOptions, running?: RunningStatement): Promise<Answer> {
    for (;;) {
      // Another statement may have changed a table since this one was bound: bind it again, as a fresh one.
      const { statements, identity } = this.session;
      const known = await statements.refreshed(this.prepared, identity, options);
      try {
        const statement = await statements.withValues(known, values, identity, options);
        return await new Run(this.session, this.core, statement, values, options, running).answer();
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
  private analyzed: Analyzed | undefined;

  constructor(
    private readonly session: DatabaseSession,
    private readonly core: Core,
    private readonly statement: Statement,
    private readonly values: Value[],
    private readonly options: ExecuteOptions,
    private readonly running?: RunningStatement,
  ) {
    this.execution = core.execution;
  }

  answer(): Answer | Promise<Answer> {
    const { transaction, statement: { bound } } = this;
    if (transaction === undefined || bound.kind === "transaction") return this.answerFor(bound);
    return transaction.show(this.tablesRead()).then(() => this.answerFor(bound));
  }

  private get transaction(): Transaction | undefined {
    return this.session.current;
  }

  /** What it says of the database itself may be about every table. */
  private tablesRead(): number[] | "all" {
    const { bound, hasMetadata } = this.statement;
    if (hasMetadata) return "all";
    return plansOf(bound).flatMap((plan) => scansOf(plan).map(({ tableId }) => tableId));
  }

  private answerFor(bound: BoundStatement): Answer | Promise<Answer> {
    switch (bound.kind) {
      case "query":
        return bound.plan.node === "packed"
          ? this.packedPlanOf(bound.plan).then((plan) => this.query(plan))
          : this.query(this.served(this.planOf(bound.plan)));
      case "explain":
        return bound.analyze ? this.explainAnalyze(bound.statement) : this.explain(bound.statement);
      case "empty":
        return { kind: "done", category: "empty", tag: "", rows: 0 };
      case "set":
        return { kind: "done", category: "ddl", tag: "SET", rows: 0 };
      case "transaction":
        return this.endOrBegin(bound.action);
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
    return this.statement.hasMetadata
      ? resolveMetadata(known, { ...this.core, catalogue: this.session.catalogue }, this.session.identity)
      : known;
  }

  /** The same of a long statement: what made its plan fills it in. */
  private async packedPlanOf(plan: PackedNode): Promise<Plan> {
    return plan.isOpen ? await this.core.planner.want("plan", this.order(), this.waitOptions) : plan;
  }

  private get waitOptions(): WaitOptions {
    return { ...this.options, catalogue: this.session.catalogue };
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
    const { session: { identity, catalogue }, options: { signal, timeoutMs }, running, analyzed } = this;
    return { user: identity.name, catalogue, signal, timeoutMs, running, analyzed };
  }

  private async explain(statement: BoundStatement): Promise<Answer> {
    if (plansOf(statement).some(({ node }) => node === "packed")) {
      return this.lines(await this.core.planner.want("explain", this.order(), this.waitOptions));
    }
    const plan = "plan" in statement ? this.planOf(statement.plan) : "query" in statement ? statement.query : undefined;
    const { catalogue } = this.session;
    const lines = explain(plan && "plan" in statement ? { ...statement, plan } : statement, {
      sources: plan && resolveSources(plan, catalogue),
      catalogue,
    });
    return this.lines(lines);
  }

  /** Does what the statement says, and tells what each operator did. */
  private async explainAnalyze(statement: BoundStatement): Promise<Answer> {
    const [given] = plansOf(statement);
    if (given === undefined) throw notSupported("EXPLAIN ANALYZE of a statement that reads nothing", 0);
    if (given.node === "packed") throw notSupported("EXPLAIN ANALYZE of a statement of so many words", 0);
    const analyzed: Analyzed = this.analyzed = {};
    const start = performance.now();
    const changed = statement.kind === "query" ? undefined : await this.change(statement);
    if (statement.kind === "query") await this.runForNothing(this.served(this.planOf(given)));
    const nanos = (performance.now() - start) * 1e6;
    this.analyzed = undefined;
    const { plan = given, sources } = analyzed;
    const figures = await analyzed.figures;
    const subject = "plan" in statement ? { ...statement, plan } : { ...statement, query: plan };
    const lines = explain(subject as BoundStatement, { sources, catalogue: this.session.catalogue, figures });
    if (changed?.kind === "done") {
      lines.push(
        `Changed ${changed.rows} rows, time besides reading ${timeText(nanos - (figures?.nodes[0].nanos ?? 0))}`,
      );
    }
    const memory = figures === undefined ? "" : `, peak memory ${sizeText(figures.memoryPeakBytes)}`;
    return this.lines([...lines, `Execution time ${timeText(nanos)}${memory}`]);
  }

  private async runForNothing(plan: Plan): Promise<void> {
    const run = this.execution.run(plan, { output: { kind: "nothing" }, columns: plan.columns, ...this.runOptions() });
    for await (const _ of run.chunks);
  }

  private lines(lines: string[]): Answer {
    const columns = [{ name: "QUERY PLAN", type: "STRING" }];
    return this.query({ node: "values", columns, timestamp: -1, order: "none", rows: lines.map((line) => [line]) });
  }

  private async endOrBegin(action: "begin" | "commit" | "rollback"): Promise<Answer> {
    let tag = action.toUpperCase();
    if (action === "begin") this.session.begin();
    else if (action === "commit") tag = await this.session.commit();
    else await this.session.close();
    return { kind: "done", category: "transaction", tag, rows: 0 };
  }

  private async change(bound: BoundStatement): Promise<Answer> {
    const { core, transaction, session: { identity, client } } = this;
    switch (bound.kind) {
      case "createTable":
        return await this.createTable(bound);
      case "dropTable":
        for (const { name, at } of bound.names) {
          const table = this.session.catalogue.table(name);
          if (!table && !bound.ifExists) {
            throw new SqlError(`Cannot drop table ${name}: there is none of that name`, at, SQLSTATE.undefinedTable);
          }
          if (table) await this.define({ kind: "dropTable", tableId: table.schema.id });
        }
        return this.schemaChanged("DROP TABLE");
      case "truncate":
        for (const tableId of bound.tableIds) await this.define({ kind: "truncate", tableId });
        return this.schemaChanged("TRUNCATE TABLE");
      case "rename":
        if (this.session.catalogue.table(bound.to)) {
          throw new SqlError(
            `Cannot rename to ${bound.to}: a table of that name exists`,
            bound.at,
            SQLSTATE.duplicateTable,
          );
        }
        await this.define({ kind: "rename", tableId: bound.tableId, to: bound.to });
        return this.schemaChanged("ALTER TABLE");
      case "addColumns":
        await this.define({ kind: "addColumns", tableId: bound.tableId, columns: bound.columns });
        return this.schemaChanged("ALTER TABLE");
      case "dropColumns":
        await this.define({ kind: "dropColumns", tableId: bound.tableId, columnIds: bound.columnIds });
        return this.schemaChanged("ALTER TABLE");
      case "renameColumn":
        await this.define({
          kind: "renameColumn",
          tableId: bound.tableId,
          columnId: bound.columnId,
          to: bound.to,
        });
        return this.schemaChanged("ALTER TABLE");
      case "insert":
        return await this.insert(bound);
      case "update":
        return await this.update(bound);
      case "delete":
        return await this.delete(bound);
      case "cancelQuery":
        core.activity.cancel(bound.id, { identity, canWrite: client?.canWrite ?? true }, bound.at);
        return { kind: "done", category: "ddl", tag: "CANCEL QUERY", rows: 0 };
      case "checkpoint":
        if (transaction !== undefined) throw notInTransaction("CHECKPOINT");
        if (bound.action === "create") await core.backups.begin(bound.at);
        else await core.backups.end();
        return { kind: "done", category: "ddl", tag: "CHECKPOINT", rows: 0 };
      case "backup":
        if (transaction !== undefined) throw notInTransaction("BACKUP");
        await core.backups.backup(bound.name, bound.at, this.options.signal);
        return { kind: "done", category: "ddl", tag: "BACKUP", rows: 0 };
      default:
        throw new Error(`no way to run ${bound.kind}`);
    }
  }

  /** Changes a definition: now, or with the transaction. */
  private async define(change: Change): Promise<void> {
    if (this.transaction === undefined) await this.core.writer.change(change);
    else await this.transaction.change(change, true);
  }

  /** Others do not see a transaction's new definitions before COMMIT. */
  private schemaChanged(tag: string): Answer {
    return this.transaction === undefined
      ? this.core.schemaChanged(tag)
      : { kind: "done", category: "ddl", tag, rows: 0 };
  }

  private async createTable(bound: Extract<BoundStatement, { kind: "createTable" }>): Promise<Answer> {
    const { table, query } = bound;
    if (this.session.catalogue.table(table.name)) {
      if (bound.ifNotExists) return { kind: "done", category: "ddl", tag: "CREATE TABLE", rows: 0 };
      throw new SqlError(
        `Cannot create table ${table.name}: there is one of that name`,
        bound.at,
        SQLSTATE.duplicateTable,
      );
    }
    if (!query) {
      await this.define({ kind: "createTable", table });
      return this.schemaChanged("CREATE TABLE");
    }
    const rows = this.transaction === undefined
      ? await this.createFilled(table, query)
      : await this.createInTransaction(table, query, this.transaction);
    this.schemaChanged("CREATE TABLE");
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
        this.countWritten(chunk);
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

  private async createInTransaction(table: NewTable, query: Plan, transaction: Transaction): Promise<number> {
    const types = table.columns.map((column) => column.type);
    const { batches, rows } = await this.collect(query, types, newColumnIds(table));
    await transaction.change({ kind: "createTable", table, rows: batches }, true);
    return rows;
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
    let bytes = 0;
    for await (const chunk of chunks) {
      batches.push(unpackAppendBatch(chunk.bytes, columnIds));
      this.countWritten(chunk);
      this.transaction?.checkSize(bytes += chunk.bytes.length);
    }
    return { batches, rows: totalRows() };
  }

  private countWritten({ rows }: Chunk): void {
    if (this.running !== undefined) this.running.rowsWritten += rows;
  }

  private tableOf(tableId: number, at: number): TableSnapshot {
    const table = this.session.catalogue.tableById(tableId);
    if (!table) throw new SqlError("Cannot change the table: it was dropped meanwhile", at, SQLSTATE.undefinedTable);
    return table;
  }

  private typesOf(table: TableSnapshot, columnIds: number[]): string[] {
    return columnIds.map((id) => table.schema.columns.find((column) => column.id === id)!.type);
  }

  private async insert(bound: Extract<BoundStatement, { kind: "insert" }>): Promise<Answer> {
    const table = this.tableOf(bound.tableId, bound.at);
    const { batches, rows } = await this.collect(bound.plan, this.typesOf(table, bound.columnIds), bound.columnIds);
    if (rows > 0) {
      if (this.transaction === undefined) await this.core.append([{ tableId: bound.tableId, batches }]);
      else await this.transaction.append(bound.tableId, batches);
    }
    return { kind: "done", category: "dml", tag: `INSERT 0 ${rows}`, rows };
  }

  private async update(bound: Extract<BoundStatement, { kind: "update" }>): Promise<Answer> {
    const rows = await this.changeRows(bound, bound.columnIds, (version, batch) => ({
      kind: "update",
      tableId: bound.tableId,
      version,
      batch: { rowIds: rowIdsOf(batch), columns: batch.columns.slice(0, -1) },
    }));
    return { kind: "done", category: "dml", tag: `UPDATE ${rows}`, rows };
  }

  private async delete(bound: Extract<BoundStatement, { kind: "delete" }>): Promise<Answer> {
    const rows = await this.changeRows(bound, [], (version, batch) => ({
      kind: "delete",
      tableId: bound.tableId,
      version,
      rowIds: rowIdsOf(batch),
    }));
    return { kind: "done", category: "dml", tag: `DELETE ${rows}`, rows };
  }

  /** Changes the rows that the plan names: a transaction's own state of the table, or the table itself while no rows are added. */
  private async changeRows(
    { tableId, plan, at }: Extract<BoundStatement, { kind: "update" | "delete" }>,
    columnIds: number[],
    changeOf: (version: number, batch: AppendBatch) => Change,
  ): Promise<number> {
    const { core, session, transaction } = this;
    const work = async () => {
      const table = this.tableOf(tableId, at);
      const unpin = session.catalogue.pin(); // row ids are those of this version
      try {
        const types = [...this.typesOf(table, columnIds), "LONG"];
        const { batches, rows } = await this.collect(plan, types, [...columnIds, -1]);
        if (rows > 0) {
          const change = changeOf(table.version, concatAppendBatches(batches));
          if (transaction === undefined) await core.writer.change(change);
          else await transaction.change(change, false);
        }
        return rows;
      } finally {
        unpin();
      }
    };
    if (transaction === undefined) return await core.exclusively(tableId, work);
    await transaction.fork(tableId);
    return await work();
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
