/** A bound statement of a session: its description for the client, and its executions. */
import type { Answer, ExecuteOptions, Prepared, ResultColumn } from "../api.ts";
import { asClientFault, failedTransaction, TableChangedError, TableClosedError } from "../errors.ts";
import type { Value } from "../types/mod.ts";
import type { RunningStatement } from "./activity.ts";
import { type Core, SERVER } from "./core.ts";
import { Run, type RunSession } from "./run.ts";
import type { Statement } from "./statements.ts";
import { ViewsUnknownError } from "./view-facts.ts";

export class PreparedStatement implements Prepared {
  readonly columns: ResultColumn[] | undefined;
  readonly timestamp: number;
  readonly rowsTag: Prepared["rowsTag"];
  readonly parameters: string[];
  readonly parameterArrays: Prepared["parameterArrays"];
  readonly notices: readonly string[];
  readonly category: Prepared["category"];
  readonly isRead: boolean;

  constructor(
    private readonly session: RunSession,
    private readonly core: Core,
    private readonly prepared: Statement,
    readonly compileNs: number,
  ) {
    this.columns = prepared.rows?.columns;
    this.timestamp = prepared.rows?.timestamp ?? -1;
    this.rowsTag = prepared.rows?.tag;
    this.parameters = prepared.parameters;
    this.parameterArrays = prepared.parameterArrays;
    this.notices = prepared.notices;
    this.category = prepared.category;
    this.isRead = prepared.category === "empty" || prepared.category === "query" && !prepared.asksServer;
  }

  execute(values: Value[], options: ExecuteOptions): Answer | Promise<Answer> {
    const { progress, activity, execution: { direct } } = this.core;
    const { identity, client, transaction } = this.session;
    if (transaction === "failed" && this.category !== "transaction" && this.category !== "empty") {
      throw failedTransaction();
    }
    const isServer = identity === SERVER, isWatched = !isServer && progress.isWatched;
    const running = isServer ? undefined : activity.begin(this.prepared.text, identity, client, options);
    // Rows are lent within this call only. Another statement may run within it.
    const { lends: lendsBefore, lent: lentBefore } = direct;
    direct.lends = options.lends === true && !isWatched;
    direct.lent = undefined;
    try {
      const answer = isWatched
        ? progress.watch(running!, () => this.answer(values, options, running))
        : this.answer(values, options, running);
      if (answer instanceof Promise) {
        if (direct.lends) direct.own();
        return running === undefined ? answer : ended(answer, running);
      }
      if (running !== undefined) endStatement(answer, running);
      return answer;
    } catch (error) {
      if (running === undefined) throw error;
      running.end();
      throw asClientFault(error);
    } finally {
      direct.lends = lendsBefore;
      direct.lent = lentBefore;
    }
  }

  /**
   * Executes the statement. Tables that have not been opened since the start are opened, and a statement that was bound to columns
   * that its table no longer has is bound again. Both are detected before the statement has any effect.
   */
  private answer(values: Value[], options: ExecuteOptions, running?: RunningStatement): Answer | Promise<Answer> {
    try {
      const answer = this.answerOnce(values, options, running);
      return answer instanceof Promise ? this.opened(answer, values, options, running) : answer;
    } catch (error) {
      if (!isForAnotherTry(error)) throw error;
      return this.repeated(error, values, options, running);
    }
  }

  private async opened(
    answer: Promise<Answer>,
    values: Value[],
    options: ExecuteOptions,
    running?: RunningStatement,
  ): Promise<Answer> {
    try {
      return await answer;
    } catch (error) {
      if (!isForAnotherTry(error)) throw error;
      return await this.repeated(error, values, options, running);
    }
  }

  private async repeated(
    error: TableClosedError | TableChangedError | ViewsUnknownError,
    values: Value[],
    options: ExecuteOptions,
    running?: RunningStatement,
  ): Promise<Answer> {
    if (error instanceof TableClosedError) await this.core.writer.open(error.tableId);
    else if (error instanceof ViewsUnknownError) await this.core.viewFacts.complete();
    else this.core.schemaChanged("");
    options.signal?.throwIfAborted();
    return await this.answer(values, options, running);
  }

  private answerOnce(values: Value[], options: ExecuteOptions, running?: RunningStatement): Answer | Promise<Answer> {
    const { session } = this, { statements } = session;
    // Another statement may have changed a table since this one was bound. Then it is bound again, as a new one.
    const refreshed = statements.refreshed(this.prepared, session, options);
    if (refreshed instanceof Promise) return this.answerLater(refreshed, values, options, running);
    const valued = statements.withValues(refreshed, values, session, options);
    return valued instanceof Promise
      ? this.runLater(valued, values, options, running)
      : this.runNow(valued, values, options, running);
  }

  private async answerLater(
    refreshed: Promise<Statement>,
    values: Value[],
    options: ExecuteOptions,
    running?: RunningStatement,
  ): Promise<Answer> {
    const { session } = this;
    const valued = await session.statements.withValues(await refreshed, values, session, options);
    return await this.runNow(valued, values, options, running);
  }

  private async runLater(
    valued: Promise<Statement>,
    values: Value[],
    options: ExecuteOptions,
    running?: RunningStatement,
  ): Promise<Answer> {
    return await this.runNow(await valued, values, options, running);
  }

  /** All executions pass here, except those of line protocol. */
  private runNow(
    statement: Statement,
    values: Value[],
    options: ExecuteOptions,
    running?: RunningStatement,
  ): Answer | Promise<Answer> {
    const { session, core } = this;
    if (session.identity !== SERVER) {
      core.access?.authorize(session.identity, session.client, statement.requires, session.catalogue);
    }
    return new Run(session, core, statement, values, options, running).answer();
  }
}

function isForAnotherTry(error: unknown): error is TableClosedError | TableChangedError | ViewsUnknownError {
  return error instanceof TableClosedError || error instanceof TableChangedError || error instanceof ViewsUnknownError;
}

function endStatement(answer: Answer, running: RunningStatement): void {
  if (answer.kind === "rows") running.endWithQuery();
  else running.end();
}

async function ended(answering: Promise<Answer>, running: RunningStatement): Promise<Answer> {
  try {
    const answer = await answering;
    endStatement(answer, running);
    return answer;
  } catch (error) {
    running.end();
    throw asClientFault(error);
  }
}
