/**
 * The plan of one execution: with the values of its parameters, the clock and rows of metadata, and as EXPLAIN shows it. The planner's
 * thread does this for long plans, whose trees do not come to main.
 */
import type { Client, ExecuteOptions, Identity, Session } from "../api.ts";
import { isOpen, type PostedPlan, scansOf, treeOf } from "../engine/mod.ts";
import {
  answerCall,
  type ExplainNode,
  explainNodes,
  mapStatement,
  type RowCalls,
  rowCalls,
  substituteCalls,
} from "../sql/mod.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { BoundStatement, Plan } from "../sql/plan.ts";
import type { Catalogue } from "../storage/contract.ts";
import type { Value } from "../types/mod.ts";
import { type Core, SERVER } from "./core.ts";
import type { Analyzed } from "./execution.ts";
import { resolveMetadata } from "./metadata.ts";
import type { StatementOrder, WaitOptions } from "./planner.ts";
import { planOfRun, plansOf, type RunValues } from "./planning.ts";
import { serverFacts } from "./server-facts.ts";
import { marksOf, resolveSources } from "./sources.ts";
import { factsOf, type Statement } from "./statements.ts";

/** The parts of the session that plans need. */
export interface PlansSession {
  readonly identity: Identity;
  readonly client?: Client;
  readonly transaction: Session["transaction"];
  readonly catalogue: Catalogue;
}

export class RunPlans implements RunValues {
  constructor(
    private readonly session: PlansSession,
    private readonly core: Core,
    private readonly statement: Statement,
    readonly values: Value[],
    private readonly options: ExecuteOptions,
  ) {}

  get user(): string {
    return this.session.identity.name;
  }

  nowMicros(): bigint {
    return this.statement.timeMicros ?? this.core.execution.nowMicros();
  }

  /** The plan as it runs. Synchronous for plans whose tree is here. */
  completed(plan: PostedPlan): PostedPlan | Promise<PostedPlan> {
    const tree = treeOf(plan);
    if (tree !== undefined) return this.completedTree(tree);
    return isOpen(plan) ? this.core.planner.want("plan", this.order(), this.waitOptions) : plan;
  }

  completedTree(tree: Plan): Plan {
    return this.served(this.known(tree));
  }

  /** The calls of functions that the server evaluates by row. */
  rowCalls(plan: PostedPlan): RowCalls | undefined {
    if (!this.statement.asksServer) return undefined;
    const tree = treeOf(plan);
    return tree && rowCalls(this.known(tree));
  }

  /** The plan with the results for these arguments, those of `own` excepted. */
  answered(calls: RowCalls, args: Iterable<bigint>, own: bigint | undefined): Plan {
    const server = serverFacts(this.core, this.session.catalogue, this.session);
    const accepted = [...args].filter((arg) => {
      if (arg === own) return false;
      try {
        return answerCall({ name: calls.name, args: [arg], at: calls.at }, server) === true;
      } catch (error) {
        // One that is about to end.
        if (error instanceof SqlError && error.sqlState === SQLSTATE.objectNotInState) return false;
        throw error;
      }
    });
    return this.served(calls.answered(accepted));
  }

  /** The nodes of EXPLAIN. */
  async explain(statement: BoundStatement<PostedPlan>): Promise<ExplainNode[]> {
    const [given] = plansOf(statement);
    if (given === undefined) return explainNodes(statement as BoundStatement);
    const tree = treeOf(given);
    if (tree === undefined) return await this.core.planner.want("explain", this.order(), this.waitOptions);
    const { catalogue } = this.session, known = this.known(tree);
    const { execution } = this.core, { spills } = execution;
    const sources = resolveSources(known, catalogue), plan = execution.answered(known, sources);
    return explainNodes(mapStatement(statement, () => plan), { sources, catalogue, spills });
  }

  /** The nodes of EXPLAIN ANALYZE. The statement has the plan that has run. */
  async describe(statement: BoundStatement<PostedPlan>, analyzed: Analyzed): Promise<ExplainNode[]> {
    const { catalogue } = this.session, { sources } = analyzed, { plan } = statement;
    const statistics = await analyzed.statistics, tree = plan && treeOf(plan), { spills } = this.core.execution;
    if (plan === undefined || tree !== undefined) {
      return explainNodes({ ...statement, plan: tree } as BoundStatement, { sources, catalogue, spills, statistics });
    }
    const details = { ...marksOf(scansOf(plan), catalogue, sources), spills, statistics };
    return await this.core.planner.analysis(this.statement.text, { statement, details }, this.waitOptions);
  }

  /** The plan with the values of parameters and the rows of metadata. */
  private known(plan: Plan): Plan {
    const known = planOfRun(plan, this.statement, this);
    return this.statement.hasMetadata
      ? resolveMetadata(known, { ...this.core, catalogue: this.session.catalogue }, this.session)
      : known;
  }

  /** Replaces functions that the server evaluates by their results. */
  private served(plan: Plan): Plan {
    if (!this.statement.asksServer) return plan;
    const server = serverFacts(this.core, this.session.catalogue, this.session);
    return substituteCalls(plan, (call) => answerCall(call, server));
  }

  private get waitOptions(): WaitOptions {
    const { identity, client, catalogue } = this.session;
    const { signal, timeoutMs } = this.options;
    return { signal, timeoutMs, catalogue, asker: { identity, client } };
  }

  private order(): StatementOrder {
    const { text, parameterTypes, schemaVersion } = this.statement;
    return {
      text,
      parameterTypes,
      values: this.values,
      user: this.user,
      isOwn: this.session.identity === SERVER,
      client: factsOf(this.session.client),
      nowMicros: this.nowMicros(),
      schemaVersion,
    };
  }
}
