/** One execution of a statement: what its kind uses of the session and the database. */
import type { Answer, Client, ConnectionState, ExecuteOptions, Identity, ResultColumn, Session } from "../api.ts";
import { assert } from "../assert.ts";
import {
  type AnalyzedStatement,
  type ChangedTable,
  type ExplainNode,
  kindOf,
  type RetypedColumn,
  type RowCalls,
  type Savepoints,
  type StatementRun,
  type StatementServices,
} from "../sql/mod.ts";
import { type PostedPlan, scansOf, treeOf, unpackChangedBatch } from "../engine/mod.ts";
import type { BoundStatement, NewTable } from "../sql/plan.ts";
import type { Catalogue, Change, PartitionChange, PartitionMove } from "../storage/contract.ts";
import type { Value } from "../types/mod.ts";
import type { RunningStatement } from "./activity.ts";
import { RowChanges } from "./changes.ts";
import { constantRows, mayHaveConstantRows } from "./constant-rows.ts";
import type { Core } from "./core.ts";
import { type PlanKey, ReadyRows } from "./direct.ts";
import type { Analyzed, Execution, Run as ExecutionRun, RunOptions } from "./execution.ts";
import { rowsOutput } from "./execution.ts";
import type { OutputOptions } from "./output.ts";
import { plansOf } from "./planning.ts";
import { RunPlans } from "./run-plans.ts";
import type { Statement, StatementCache } from "./statements.ts";
import { notInTransaction, type Transaction } from "./transaction.ts";

/** The parts of the session that an execution needs. */
export interface RunSession {
  readonly identity: Identity;
  readonly client?: Client;
  readonly transaction: Session["transaction"];
  readonly current: Transaction | undefined;
  readonly statements: StatementCache;
  readonly catalogue: Catalogue;
  assume(account: string | undefined): void;
  begin(): void;
  commit(): Promise<string>;
  close(): Promise<void>;
  readonly savepoints: Savepoints;
}

/** One execution. */
export class Run implements StatementRun {
  private readonly execution: Execution;
  private readonly plans: RunPlans;
  private madeChanges: RowChanges | undefined;
  /** Set while EXPLAIN ANALYZE runs its statement. */
  analyzed: Analyzed | undefined;

  constructor(
    private readonly session: RunSession,
    private readonly core: Core,
    private readonly statement: Statement,
    private readonly values: Value[],
    private readonly options: ExecuteOptions,
    readonly running?: RunningStatement,
  ) {
    this.execution = core.execution;
    this.plans = new RunPlans(session, core, statement, values, options);
  }

  /** Made when it is needed: most statements only read. */
  private get changes(): RowChanges {
    return this.madeChanges ??= new RowChanges(this.core, this.session, {
      signal: this.options.signal,
      running: this.running,
      constantRows: (given, targets) => {
        const tree = treeOf(given);
        if (tree === undefined || !mayHaveConstantRows(tree)) return undefined;
        return constantRows(this.plans.completedTree(tree), targets);
      },
      run: async (plan, targets) => {
        const options = this.runOptions({ kind: "append", targets }, plan.columns);
        return this.execution.run(await this.plans.completed(plan), options);
      },
    });
  }

  answer(): Answer | Promise<Answer> {
    const { transaction, statement: { bound, category } } = this;
    const kind = kindOf(bound);
    if (transaction === undefined || category === "transaction") return kind.execute(bound, this);
    if (kind.notInTransaction !== undefined) throw notInTransaction(kind.notInTransaction);
    return transaction.hasPendingRows ? this.answerIn(transaction) : kind.execute(bound, this);
  }

  private answerIn(transaction: Transaction): Answer | Promise<Answer> {
    const { bound } = this.statement, showing = transaction.show(this.tablesRead());
    const answer = () => kindOf(bound).execute(bound, this);
    return showing === undefined ? answer() : showing.then(answer);
  }

  private get transaction(): Transaction | undefined {
    return this.session.current;
  }

  /** The tables that it reads. Metadata may describe every table. */
  private tablesRead(): number[] | "all" {
    const { bound, hasMetadata } = this.statement;
    if (hasMetadata) return "all";
    return plansOf(bound).flatMap((plan) => scansOf(plan).map(({ tableId }) => tableId));
  }

  get identity(): Identity {
    return this.session.identity;
  }

  get client(): Client | undefined {
    return this.session.client;
  }

  get signal(): AbortSignal | undefined {
    return this.options.signal;
  }

  get catalogue(): Catalogue {
    return this.session.catalogue;
  }

  get isInTransaction(): boolean {
    return this.transaction !== undefined;
  }

  get services(): StatementServices {
    return this.core;
  }

  assume(account: string | undefined): void {
    this.session.assume(account);
  }

  begin(): void {
    this.session.begin();
  }

  commit(): Promise<string> {
    return this.session.commit();
  }

  rollback(): Promise<void> {
    return this.session.close();
  }

  get savepoints(): Savepoints {
    return this.session.savepoints;
  }

  get connection(): ConnectionState | undefined {
    return this.options.connection;
  }

  query(plan: PostedPlan): Answer | Promise<Answer> {
    const calls = this.plans.rowCalls(plan);
    if (calls !== undefined) return this.answeredByRow(calls);
    const completed = this.plans.completed(plan);
    return completed instanceof Promise ? this.rowsLater(completed, plan) : this.rowsOf(completed, plan);
  }

  private async answeredByRow(calls: RowCalls): Promise<Answer> {
    const { identity, catalogue, running } = this;
    const { arguments: plan } = calls, output: OutputOptions = { kind: "append", targets: ["LONG"] };
    const options = new OptionsOfRun({ identity, catalogue }, this.options, output, plan.columns, undefined);
    const args = new Set<bigint>();
    for await (const { bytes } of this.execution.run(plan, options).chunks) {
      for (const arg of unpackChangedBatch(bytes, []).rowIds) args.add(arg);
    }
    const answered = this.plans.answered(calls, args, running && BigInt(running.id));
    return await this.rowsOf(answered, answered);
  }

  private async rowsLater(completed: Promise<PostedPlan>, key: PlanKey): Promise<Answer> {
    return await this.rowsOf(await completed, key);
  }

  define(change: Change | PartitionChange): Promise<void> {
    return this.changes.define(change);
  }

  defined(tag: string): Answer {
    return this.changes.defined(tag);
  }

  createTable(table: NewTable, rows: PostedPlan, owner?: string): Promise<number> {
    return this.changes.createTable(table, rows, owner);
  }

  append(target: ChangedTable): number | Promise<number> {
    return this.changes.append(target);
  }

  changeRows(target: ChangedTable, change: "update" | "delete"): Promise<number> {
    return this.changes.changeRows(target, change);
  }

  changeType(target: RetypedColumn): Promise<void> {
    return this.changes.changeType(target);
  }

  movePartitions(target: ChangedTable, movesOf: (starts: readonly bigint[]) => PartitionMove[]): Promise<number> {
    return this.changes.movePartitions(target, movesOf);
  }

  private rowsOf(plan: PostedPlan, key: PlanKey): RowsAnswer | Promise<RowsAnswer> {
    const run = this.execution.answer(plan, this.runOptions(rowsOutput(this.options), plan.columns, key));
    return run instanceof Promise ? rowsAnswerLater(plan, run) : rowsAnswer(plan, run);
  }

  private runOptions(output: OutputOptions, columns: ResultColumn[], key?: PlanKey): RunOptions {
    return new OptionsOfRun(this, this.options, output, columns, key);
  }

  explain(statement: BoundStatement<PostedPlan>): Promise<ExplainNode[]> {
    return this.plans.explain(statement);
  }

  async analyze(statement: BoundStatement<PostedPlan>): Promise<AnalyzedStatement> {
    const [given] = plansOf(statement);
    assert(given !== undefined, "EXPLAIN ANALYZE refuses statements without a plan");
    const analyzed: Analyzed = this.analyzed = {};
    const start = performance.now();
    const { category } = this.statement;
    const changed = category === "query" ? undefined : await kindOf(statement).execute(statement, this);
    if (category === "query") await this.runForNothing(await this.plans.completed(given));
    const nanos = (performance.now() - start) * 1e6;
    this.analyzed = undefined;
    const nodes = await this.plans.describe({ ...statement, plan: analyzed.plan ?? given }, analyzed);
    const statistics = await analyzed.statistics;
    return { nodes, nanos, statistics, changedRows: changed?.kind === "done" ? changed.rows : undefined };
  }

  private async runForNothing(plan: PostedPlan): Promise<void> {
    const run = this.execution.run(plan, this.runOptions({ kind: "nothing" }, plan.columns));
    for await (const _ of run.chunks);
  }
}

type RowsAnswer = Extract<Answer, { kind: "rows" }>;

function rowsAnswer(plan: PostedPlan, run: ExecutionRun): RowsAnswer {
  if (run instanceof ReadyRows) return run;
  return {
    kind: "rows",
    columns: plan.columns,
    timestamp: plan.timestamp,
    chunks: run.chunks,
    ready: run.ready,
    totalRows: run.totalRows,
  };
}

async function rowsAnswerLater(plan: PostedPlan, run: Promise<ExecutionRun>): Promise<RowsAnswer> {
  return rowsAnswer(plan, await run);
}

/** Its signal is made when it is asked for: queries without a worker ask for none. */
class OptionsOfRun implements RunOptions {
  readonly user: string;
  readonly catalogue: Catalogue;
  readonly running: RunningStatement | undefined;
  readonly analyzed: Analyzed | undefined;

  constructor(
    { identity, catalogue, running, analyzed }:
      & Pick<Run, "identity" | "catalogue">
      & Partial<Pick<Run, "running" | "analyzed">>,
    private readonly options: ExecuteOptions,
    readonly output: OutputOptions,
    readonly columns: ResultColumn[],
    readonly key: PlanKey | undefined,
  ) {
    this.user = identity.name;
    this.catalogue = catalogue;
    this.running = running;
    this.analyzed = analyzed;
  }

  get signal(): AbortSignal | undefined {
    return this.options.signal;
  }

  get timeoutMs(): number | undefined {
    return this.options.timeoutMs;
  }
}
