/** A bound statement of a session: its description for the client, and its executions. */
import type { Answer, ExecuteOptions, Prepared, ResultColumn } from "../api.ts";
import { asClientFault, failedTransaction, TableClosedError } from "../errors.ts";
import type { Value } from "../types/mod.ts";
import type { RunningStatement } from "./activity.ts";
import { type Core, SERVER } from "./core.ts";
import { Run, type RunSession } from "./run.ts";
import type { Statement } from "./statements.ts";

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
    const { progress, activity } = this.core;
    const { identity, client, transaction } = this.session;
    if (transaction === "failed" && this.category !== "transaction" && this.category !== "empty") {
      throw failedTransaction();
    }
    if (identity === SERVER) return this.answer(values, options);
    const running = activity.begin(this.prepared.text, identity, client, options);
    try {
      const answer = progress.isWatched
        ? progress.watch(running, () => this.answer(values, options, running))
        : this.answer(values, options, running);
      if (answer instanceof Promise) return ended(answer, running);
      endStatement(answer, running);
      return answer;
    } catch (error) {
      running.end();
      throw asClientFault(error);
    }
  }

  /**
   * Executes the statement after opening tables that have not been opened since the start. A closed table is detected
   * before the statement has any effect.
   */
  private answer(values: Value[], options: ExecuteOptions, running?: RunningStatement): Answer | Promise<Answer> {
    const reopened = async (error: unknown): Promise<Answer> => {
      if (!(error instanceof TableClosedError)) throw error;
      await this.core.writer.open(error.tableId);
      options.signal?.throwIfAborted();
      return await this.answer(values, options, running);
    };
    try {
      const answer = this.answerOnce(values, options, running);
      return answer instanceof Promise ? answer.catch(reopened) : answer;
    } catch (error) {
      if (!(error instanceof TableClosedError)) throw error;
      return reopened(error);
    }
  }

  private answerOnce(values: Value[], options: ExecuteOptions, running?: RunningStatement): Answer | Promise<Answer> {
    const { session, core } = this, { statements } = session;
    const run = (statement: Statement): Answer | Promise<Answer> => {
      // All executions pass here, except those of line protocol.
      if (session.identity !== SERVER) {
        core.access?.authorize(session.identity, session.client, statement.requires, session.catalogue);
      }
      return new Run(session, core, statement, values, options, running).answer();
    };
    const withValues = (statement: Statement): Answer | Promise<Answer> => {
      const valued = statements.withValues(statement, values, session, options);
      return valued instanceof Promise ? valued.then(run) : run(valued);
    };
    // Another statement may have changed a table since this one was bound. Then it is bound again, as a new one.
    const refreshed = statements.refreshed(this.prepared, session, options);
    return refreshed instanceof Promise ? refreshed.then(withValues) : withValues(refreshed);
  }
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
