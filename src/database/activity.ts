/**
 * Tracks persistent connections and running statements: their users and their progress. CANCEL QUERY cancels
 * statements.
 */
import {
  type Client,
  type ExecuteOptions,
  type Identity,
  type Session,
  shownUser,
  type StatementProgress,
} from "../api.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { QueryStatistics, RunningQuery } from "../engine/mod.ts";
import { shownText } from "../log/mod.ts";
import type { Value } from "../types/mod.ts";

/** The parts of the engine's query that a statement needs. */
type Query = Pick<RunningQuery, "statistics" | "cancel" | "ended">;

const NO_STATISTICS: QueryStatistics = { state: "ended", worker: -1, rowsRead: 0, rowsToRead: 0, memoryBytes: 0 };

export class Activity {
  /** In no order. A map would be made anew from time to time, as statements come and go. */
  private readonly running: RunningStatement[] = [];
  private readonly connections = new Map<Client, Connection>();
  private nextId = 1;

  /** `mayManage`: true if the user may see and cancel the statements of others. Undefined without access control. */
  constructor(
    private readonly nowMicros: () => bigint,
    private readonly mayManage?: (identity: Identity) => boolean,
  ) {}

  /** Lists the session's connection until it ends, if it is persistent. */
  connect(session: Pick<Session, "identity" | "transaction"> & { readonly client?: Client }): void {
    const { identity, client } = session;
    if (client?.pid === undefined) return;
    this.connections.set(client, new Connection(client.pid, identity, client, () => session.transaction));
  }

  disconnect(client: Client | undefined): void {
    if (client !== undefined) this.connections.delete(client);
  }

  begin(text: string, identity: Identity, client: Client | undefined, options: ExecuteOptions): RunningStatement {
    const id = this.nextId++;
    const connection = client && this.connections.get(client);
    const startedMs = options.startedMs ?? performance.now();
    const statement = new RunningStatement(id, text, identity, client, startedMs, this.ended, connection);
    statement.place = this.running.length;
    this.running.push(statement);
    connection?.begins(statement);
    if (options.progress !== undefined) statement.reportProgress(options.progress);
    options.onBegin?.(() => statement.progress);
    return statement;
  }

  private readonly ended = (statement: RunningStatement): void => {
    const { place } = statement;
    if (this.running[place] !== statement) return;
    const last = this.running.pop()!;
    if (last !== statement) {
      this.running[place] = last;
      last.place = place;
    }
    statement.connection?.ends(statement);
  };

  /** Oldest first. */
  private statementsOf(identity: Identity): RunningStatement[] {
    return this.running.filter((statement) => this.isSeen(statement.identity, identity)).sort((a, b) => a.id - b.id);
  }

  /** Returns false if there is no such statement. @throws at `at` if it cannot be cancelled. */
  cancel(id: number, by: { identity: Identity; canWrite: boolean }, at: number): boolean {
    const statement = this.running.find((each) => each.id === id);
    if (statement === undefined || !this.isSeen(statement.identity, by.identity)) return false;
    if (!isSameUser(statement.identity, by.identity) && !by.canWrite) {
      const message = `query ${id} belongs to another user: a read-only connection can cancel only its own queries`;
      throw new SqlError(message, at, SQLSTATE.insufficientPrivilege);
    }
    if (!statement.cancel(shownUser(by.identity))) {
      const why = statement.phase === "writing" ? "it is writing its rows" : "no query thread is running it";
      throw new SqlError(`query ${id} cannot be cancelled now: ${why}`, at, SQLSTATE.objectNotInState);
    }
    return true;
  }

  private isSeen(user: Identity, identity: Identity): boolean {
    return isSameUser(user, identity) || this.mayManage === undefined || this.mayManage(identity);
  }

  /** The rows of query_activity(), oldest first. */
  rows(identity: Identity): Value[][] {
    const nowMicros = this.nowMicros(), nowMs = performance.now();
    const micros = (ms: number) => nowMicros - BigInt(Math.round((nowMs - ms) * 1000));
    return this.statementsOf(identity).map((statement) => {
      const { worker, rowsRead, rowsToRead, memoryBytes } = statement.statistics;
      const { id, identity: user, client, text, startedMs, changedMs, rowsWritten } = statement;
      return [
        ...[BigInt(id), worker < 0 ? null : BigInt(worker), worker < 0 ? "main" : "query", user.name],
        ...[micros(startedMs), micros(changedMs), statement.isCancelled ? "cancelled" : "active", false],
        ...[
          shownText(text),
          client?.wire ?? null,
          client?.address() ?? null,
          client?.settings?.get("application_name") ?? null,
        ],
        ...[statement.phase, BigInt(rowsRead), rowsToRead === 0 ? null : BigInt(rowsToRead), BigInt(rowsWritten)],
        ...[BigInt(memoryBytes), (nowMs - startedMs) / 1000, user.external?.fullName ?? null],
      ];
    });
  }

  /** The rows of pg_stat_activity, by column: persistent connections, then statements without one. */
  catalogRows(identity: Identity): Record<string, Value>[] {
    const nowMicros = this.nowMicros(), nowMs = performance.now();
    const micros = (ms: number | undefined) =>
      ms === undefined ? null : nowMicros - BigInt(Math.round((nowMs - ms) * 1000));
    const connections = [...this.connections.values()].filter((connection) =>
      this.isSeen(connection.identity, identity)
    );
    const ofConnections = connections.map((connection) => ({
      ...clientRow(connection.identity.name, connection.client),
      pid: connection.pid,
      backend_start: micros(connection.startedMs),
      xact_start: micros(connection.transactionStartedMs),
      query_start: micros(connection.queryStartedMs),
      state_change: micros(connection.changedMs),
      ...waitOf(connection.statement),
      state: connection.state,
      query_id: connection.statement === undefined ? null : BigInt(connection.statement.id),
      query: shownText(connection.text),
    }));
    const others = this.statementsOf(identity).filter(({ client }) =>
      client === undefined || !this.connections.has(client)
    );
    const ofStatements = others.map((statement) => ({
      ...clientRow(statement.identity.name, statement.client),
      xact_start: micros(statement.startedMs),
      query_start: micros(statement.startedMs),
      state_change: micros(statement.changedMs),
      ...waitOf(statement),
      state: "active",
      query_id: BigInt(statement.id),
      query: shownText(statement.text),
    }));
    return [...ofConnections, ...ofStatements];
  }
}

/** A user of the identity provider may have the same name as a user of the database. */
function isSameUser(one: Identity, other: Identity): boolean {
  return one.name === other.name && one.id === other.id;
}

function clientRow(user: string, client: Client | undefined): Record<string, Value> {
  const [, host, port] = /^(.*):(\d+)$/.exec(String(client?.address())) ?? [];
  return {
    datid: 1,
    datname: "qdb",
    usesysid: 1,
    usename: user,
    application_name: client?.settings?.get("application_name") ?? "",
    client_addr: host?.replace(/^\[(.*)\]$/, "$1") ?? null,
    client_port: port === undefined ? null : Number(port),
    backend_type: "client backend",
  };
}

function waitOf(statement: RunningStatement | undefined): Record<string, Value> {
  if (statement === undefined) return { wait_event_type: "Client", wait_event: "ClientRead" };
  return statement.phase === "sending" ? { wait_event_type: "Client", wait_event: "ClientWrite" } : {};
}

/** A connection that remains open between statements. */
class Connection {
  readonly startedMs = performance.now();
  queryStartedMs: number | undefined;
  transactionStartedMs: number | undefined;
  /** The running statement. */
  statement: RunningStatement | undefined;
  /** The text of the last statement. */
  text = "";

  constructor(
    readonly pid: number,
    readonly identity: Identity,
    readonly client: Client,
    private readonly transaction: () => Session["transaction"],
  ) {}

  /** Time of the last change of its state. */
  get changedMs(): number {
    const idleSinceMs = this.statement === undefined ? this.client.idleSinceMs?.() : undefined;
    return idleSinceMs ?? this.queryStartedMs ?? this.startedMs;
  }

  get state(): string {
    if (this.statement !== undefined) return "active";
    const transaction = this.transaction();
    if (transaction === "idle") return "idle";
    return transaction === "open" ? "idle in transaction" : "idle in transaction (aborted)";
  }

  begins(statement: RunningStatement): void {
    this.statement = statement;
    this.text = statement.text;
    this.queryStartedMs = statement.startedMs;
    this.transactionStartedMs ??= statement.startedMs;
  }

  ends(statement: RunningStatement): void {
    if (this.statement !== statement) return;
    this.statement = undefined;
    if (this.transaction() === "idle") this.transactionStartedMs = undefined;
  }
}

/** "writing": all rows have been computed, and the statement writes them. */
export type Phase = "waiting" | "running" | "sending" | "writing";

export class RunningStatement {
  /** Time of cancellation, or of the start. */
  changedMs: number;
  rowsWritten = 0;
  private query: Query | undefined;
  private endsWithQuery = false;
  private cancelledBy: string | undefined;
  private timer: ReturnType<typeof setInterval> | undefined;
  /** Its index among the running ones. */
  place = 0;

  constructor(
    readonly id: number,
    readonly text: string,
    readonly identity: Identity,
    readonly client: Client | undefined,
    readonly startedMs: number,
    private readonly ended: (statement: RunningStatement) => void,
    readonly connection?: Connection,
  ) {
    this.changedMs = startedMs;
  }

  /** Name of the user, for logs. */
  get user(): string {
    return shownUser(this.identity);
  }

  get statistics(): QueryStatistics {
    return this.query?.statistics() ?? NO_STATISTICS;
  }

  get isCancelled(): boolean {
    return this.cancelledBy !== undefined;
  }

  get phase(): Phase {
    if (this.query === undefined) return "running";
    const { state } = this.statistics;
    return state === "ended" ? "writing" : state;
  }

  get progress(): StatementProgress {
    const { rowsRead, rowsToRead, memoryBytes } = this.statistics;
    return {
      seconds: (performance.now() - this.startedMs) / 1000,
      rowsRead,
      rowsToRead: rowsToRead === 0 ? undefined : rowsToRead,
      rowsWritten: this.rowsWritten,
      memoryBytes,
    };
  }

  /** Called when the engine has started the query. */
  attach(query: Query): void {
    this.query = query;
    query.ended.then(() => {
      if (this.endsWithQuery) this.end();
    });
  }

  /** The statement ends when the engine has sent the last row. */
  endWithQuery(): void {
    this.endsWithQuery = true;
    if (this.query === undefined || this.query.statistics().state === "ended") this.end();
  }

  end(): void {
    if (this.timer !== undefined) clearInterval(this.timer);
    this.ended(this);
  }

  /** Returns false if it cannot be cancelled: it has not started yet, or its rows are being written. */
  cancel(by: string): boolean {
    if (this.statistics.state === "ended") return false;
    this.cancelledBy ??= by;
    this.changedMs = performance.now();
    this.query!.cancel();
    return true;
  }

  /** Converts an error of its query for the client. */
  errorOf(error: unknown): unknown {
    const isOfCancel = error instanceof SqlError && error.sqlState === SQLSTATE.queryCanceled;
    if (this.cancelledBy === undefined || !isOfCancel) return error;
    const message = `query ${this.id} was cancelled by ${this.cancelledBy} with CANCEL QUERY`;
    return new SqlError(message, 0, SQLSTATE.queryCanceled, { cause: error });
  }

  reportProgress({ everyMs, report }: NonNullable<ExecuteOptions["progress"]>): void {
    this.timer = setInterval(() => report(this.progressText()), everyMs);
  }

  /** Progress for the log: `query 7: 5,000,000 of 20,000,000 rows read (25 %), …`. */
  private progressText(): string {
    const { rowsRead, rowsToRead, memoryBytes } = this.statistics;
    const number = (value: number) => value.toLocaleString("en");
    const share = rowsToRead === 0 ? "" : ` (${Math.floor(100 * rowsRead / rowsToRead)} %)`;
    const parts = [
      this.phase,
      `${number(rowsRead)}${rowsToRead === 0 ? "" : ` of ${number(rowsToRead)}`} rows read${share}`,
      ...this.rowsWritten > 0 ? [`${number(this.rowsWritten)} rows written`] : [],
      `${number(Math.ceil(memoryBytes / 2 ** 20))} MiB of memory`,
    ];
    return `query ${this.id}: ${parts.join(", ")}`;
  }
}
