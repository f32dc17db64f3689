/** One statement and its rows, which are spooled as fast as they are produced. */
import type {
  Answer,
  Chunk,
  ExplainedPlan,
  Identity,
  ResultColumn,
  SpooledRows,
  StatementProgress,
} from "../../../api.ts";
import { SqlError, SQLSTATE } from "../../../errors.ts";
import type { Spool } from "./spool.ts";

export class SpooledResult {
  readonly id = crypto.randomUUID();
  /** Cancels the statement. */
  readonly controller = new AbortController();
  columns: readonly ResultColumn[] | undefined;
  timestamp = -1;
  /** For EXPLAIN. */
  explained: ExplainedPlan | undefined;
  /** The answer of a statement without rows. */
  done: Extract<Answer, { kind: "done" }> | undefined;
  /** The error with which the statement failed. */
  error: unknown;
  /** Key of the setting that limited the rows. */
  cutBy: string | undefined;
  progress: (() => StatementProgress) | undefined;
  executeNs = 0;
  lastReadMs: number;
  private readonly end = Promise.withResolvers<void>();
  private isOver = false;

  constructor(readonly owner: Identity, readonly statement: string, readonly spool: Spool, nowMs: number) {
    this.lastReadMs = nowMs;
  }

  get state(): "running" | "done" | "failed" {
    return !this.isOver ? "running" : this.error === undefined ? "done" : "failed";
  }

  isOf({ name, id, assumed }: Identity): boolean {
    return this.owner.name === name && this.owner.id === id && this.owner.assumed === assumed;
  }

  /**
   * Runs the statement to its end. Failures are stored in `error`. `limit`: called after each chunk; returns the
   * setting that forbids more rows.
   */
  async fill(execute: () => Answer | Promise<Answer>, limit: (chunk: Chunk) => string | undefined): Promise<void> {
    const startedMs = performance.now();
    try {
      const answer = await execute();
      if (answer.kind === "done") this.done = answer;
      else await this.keep(answer, limit);
    } catch (error) {
      this.error = error;
      await this.spool.remove();
    } finally {
      if (this.controller.signal.aborted) this.error = new SqlError("Cancelled.", 0, SQLSTATE.queryCanceled);
      this.executeNs = Math.round((performance.now() - startedMs) * 1e6);
      this.isOver = true;
      this.end.resolve();
    }
  }

  private async keep(
    { columns, timestamp, explained, chunks }: Extract<Answer, { kind: "rows" }>,
    limit: (chunk: Chunk) => string | undefined,
  ): Promise<void> {
    this.columns = columns;
    this.timestamp = timestamp;
    this.explained = explained;
    for await (const chunk of chunks) {
      await this.spool.add(chunk.bytes, chunk.rows);
      if (this.controller.signal.aborted) break;
      const limitedBy = limit(chunk);
      if (limitedBy === undefined) continue;
      this.cutBy = limitedBy;
      // The end of the loop cancels the query.
      break;
    }
    await this.spool.end();
  }

  /**
   * All rows, for the database to read them again.
   * @throws {SqlError} while the statement runs, and if it has no rows.
   */
  async rows(): Promise<SpooledRows> {
    const { state, columns, spool, statement } = this;
    if (state !== "done" || columns === undefined) {
      const why = state === "done" ? "it has no rows" : state === "running" ? "its rows are still coming" : "it failed";
      throw new SqlError(`the result cannot be read as a whole: ${why}`, 0, SQLSTATE.objectNotInState);
    }
    const sizeBytes = await spool.store();
    return { path: spool.path, sizeBytes, rowCount: spool.rowCount, columns, statement };
  }

  /** Resolves at the end of the statement, after a time, or when `signal` aborts. */
  async ended(waitMs: number, signal: AbortSignal): Promise<void> {
    if (this.isOver || waitMs <= 0 || signal.aborted) return;
    const over = Promise.withResolvers<void>();
    const timer = setTimeout(over.resolve, waitMs), stop = () => over.resolve();
    signal.addEventListener("abort", stop, { once: true });
    await Promise.race([this.end.promise, over.promise]);
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }

  /** Cancels the statement and removes the rows. */
  async remove(): Promise<void> {
    this.controller.abort();
    await this.spool.remove();
  }
}
