/** One execution of a statement: queries, EXPLAIN and transactions here, changes in `changes.ts`. */
import type { Answer, Client, ExecuteOptions, Identity, Session } from "../api.ts";
import { notSupported } from "../errors.ts";
import { explain, isListed, kindOf, mapStatement, sizeText, substituteCalls, timeText } from "../sql/mod.ts";
import { isPacked, type PackedPlan, type PostedPlan } from "../engine/mod.ts";
import type { BoundStatement, OtherBound, Plan } from "../sql/plan.ts";
import type { Catalogue } from "../storage/contract.ts";
import type { Value } from "../types/mod.ts";
import type { RunningStatement } from "./activity.ts";
import { Changes } from "./changes.ts";
import type { Core } from "./core.ts";
import type { Analyzed, Execution } from "./execution.ts";
import { rowsOutput } from "./execution.ts";
import { resolveMetadata } from "./metadata.ts";
import type { StatementOrder, WaitOptions } from "./planner.ts";
import { planOfRun, plansOf } from "./planning.ts";
import { resolveSources, scansOf } from "./sources.ts";
import { factsOf, type Statement, type StatementCache } from "./statements.ts";
import type { Transaction } from "./transaction.ts";

/** What an execution uses of its session. */
export interface RunSession {
  readonly identity: Identity;
  readonly client?: Client;
  readonly transaction: Session["transaction"];
  readonly current: Transaction | undefined;
  readonly statements: StatementCache;
  readonly catalogue: Catalogue;
  begin(): void;
  commit(): Promise<string>;
  close(): Promise<void>;
}

/** One execution. */
export class Run {
  private readonly execution: Execution;
  private analyzed: Analyzed | undefined;

  constructor(
    private readonly session: RunSession,
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

  private answerFor(statement: BoundStatement<PostedPlan>): Answer | Promise<Answer> {
    if (isListed(statement)) return kindOf(statement).execute(statement, this.changes());
    const bound = statement as OtherBound<PostedPlan>;
    switch (bound.kind) {
      case "query":
        return isPacked(bound.plan)
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
        return this.changes().answer(bound);
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
      ? resolveMetadata(known, { ...this.core, catalogue: this.session.catalogue }, this.session)
      : known;
  }

  /** The same of a long statement: what made its plan fills it in. */
  private async packedPlanOf(plan: PackedPlan): Promise<PostedPlan> {
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
      client: factsOf(session.client),
      nowMicros: execution.nowMicros(),
      schemaVersion,
    };
  }

  private finalPlanOf(plan: PostedPlan): PostedPlan | Promise<PostedPlan> {
    return isPacked(plan) ? this.packedPlanOf(plan) : this.planOf(plan);
  }

  /** With the answers of the server itself in the plan. */
  private served(plan: Plan): Plan {
    const { reloadConfig } = this.core.options;
    return this.statement.asksServer ? substituteCalls(plan, () => reloadConfig?.() ?? false) : plan;
  }

  private query(plan: PostedPlan): Answer {
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

  private async explain(statement: BoundStatement<PostedPlan>): Promise<Answer> {
    const [given] = plansOf(statement);
    if (given !== undefined && isPacked(given)) {
      return this.lines(await this.core.planner.want("explain", this.order(), this.waitOptions));
    }
    if (given === undefined) return this.lines(explain(statement as BoundStatement));
    const { catalogue } = this.session, known = this.planOf(given);
    const sources = resolveSources(known, catalogue), plan = this.execution.answered(known, sources);
    return this.lines(explain(mapStatement(statement, () => plan), { sources, catalogue }));
  }

  /** Does what the statement says, and tells what each operator did. */
  private async explainAnalyze(statement: BoundStatement<PostedPlan>): Promise<Answer> {
    const [given] = plansOf(statement);
    if (given === undefined) throw notSupported("EXPLAIN ANALYZE of a statement that reads nothing", 0);
    if (isPacked(given)) throw notSupported("EXPLAIN ANALYZE of a statement of so many words", 0);
    const analyzed: Analyzed = this.analyzed = {};
    const start = performance.now();
    const changed = statement.kind === "query"
      ? undefined
      : await this.changes().answer(statement as OtherBound<PostedPlan>);
    if (statement.kind === "query") await this.runForNothing(this.served(this.planOf(given)));
    const nanos = (performance.now() - start) * 1e6;
    this.analyzed = undefined;
    const { plan = given, sources } = analyzed;
    const statistics = await analyzed.statistics;
    const lines = explain({ ...statement, plan } as BoundStatement, {
      sources,
      catalogue: this.session.catalogue,
      statistics,
    });
    if (changed?.kind === "done") {
      lines.push(
        `Changed ${changed.rows} rows, time besides reading ${timeText(nanos - (statistics?.nodes[0].nanos ?? 0))}`,
      );
    }
    const memory = statistics === undefined ? "" : `, peak memory ${sizeText(statistics.memoryPeakBytes)}`;
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

  private changes(): Changes {
    const { core, session, options, running } = this;
    return new Changes(core, session, {
      signal: options.signal,
      running,
      finalPlanOf: (plan) => this.finalPlanOf(plan),
      run: (plan, targets) =>
        this.execution.run(plan, { output: { kind: "append", targets }, columns: plan.columns, ...this.runOptions() }),
    });
  }
}
