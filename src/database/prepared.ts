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

  /**
   * Executes the statement after opening tables that have not been opened since the start. A closed table is detected
   * before the statement has any effect.
   */
  private async answer(values: Value[], options: ExecuteOptions, running?: RunningStatement): Promise<Answer> {
    for (;;) {
      // Another statement may have changed a table since this one was bound. Then it is bound again, as a new one.
      const { session } = this, { statements } = session;
      const refreshed = statements.refreshed(this.prepared, session, options);
      const known = refreshed instanceof Promise ? await refreshed : refreshed;
      try {
        const valued = statements.withValues(known, values, session, options);
        const statement = valued instanceof Promise ? await valued : valued;
        // All executions pass here, except those of line protocol.
        if (session.identity !== SERVER) {
          this.core.access?.authorize(session.identity, session.client, statement.requires, session.catalogue);
        }
        return await new Run(session, this.core, statement, values, options, running).answer();
      } catch (error) {
        if (!(error instanceof TableClosedError)) throw error;
        await this.core.writer.open(error.tableId);
        options.signal?.throwIfAborted();
      }
    }
  }
}
