/**
 * The PostgreSQL server: accepts connections, authenticates them and limits their number. `connection.ts` serves a
 * connection; `messages.ts` and `output.ts` are the two directions of the protocol.
 */
import { shownUser } from "../../api.ts";
import { shownAddress, shownText } from "../../log/mod.ts";
import { ProtocolError } from "../../errors.ts";
import { AccessAccounts, type Accounts } from "./accounts.ts";
import type { Gate } from "./authentication.ts";
import { acceptAll } from "../accept.ts";
import { Connection } from "./connection.ts";
import type { ByteConnection } from "../byte-connection.ts";
import { DEFAULT_LIMITS, type PgOptions } from "./contract.ts";
import { type Agreed, agreeOnEncryption } from "./encryption.ts";
import { LogInDelays } from "../log-in-delays.ts";
import { ConnectionLost, errorFields, FatalError, PG_SQLSTATE } from "./failure.ts";
import { Input } from "./input.ts";
import { KeptMemory } from "./kept.ts";
import { Output } from "./output.ts";
import { SharedTurn } from "./shared-turn.ts";
import { parameterStatuses, START_UP_SIZE_MAX, startUp } from "./start-up.ts";
import { ConfiguredAccounts } from "./users.ts";

export type { PgOptions } from "./contract.ts";

/**
 * Limit of connections that have not logged in, in addition to the limit of those that have. It allows for cancel
 * requests.
 */
const NEWCOMERS_MAX = 100;
const LOOK_AROUND_MS = 1_000;

export interface RunningPg {
  port: number;
  close(): Promise<void>;
  /** Number of logged-in clients. */
  connectionCount(): number;
}

/** Serves until `close`, which lets running statements finish within a grace time and then cancels them. */
export async function startPg(options: PgOptions): Promise<RunningPg> {
  const listener = Deno.listen({ hostname: options.hostname, port: options.port });
  const { access } = options.database;
  const accounts: Accounts = access === undefined
    ? new ConfiguredAccounts(options)
    : new AccessAccounts(access, !options.readOnly);
  accounts.warmUp();
  const server = new PgServer(listener, { options, accounts, delays: new LogInDelays() });
  return {
    port: (listener.addr as Deno.NetAddr).port,
    close: () => server.close(),
    connectionCount: () => server.connectionCount,
  };
}

/** One client, from accept to close. */
interface Client {
  /** The connection, with TLS after the handshake. */
  conn: ByteConnection;
  since: number;
  key: number;
  /** Set when it is served. */
  output?: Output;
  /** When it was last seen to take an answer. */
  seenSendingMs: number;
  /** Set after log-in. */
  connection?: Connection;
  done: Promise<void>;
}

class PgServer {
  private readonly clients = new Map<number, Client>();
  private readonly accepting: Promise<void>;
  private readonly timer: ReturnType<typeof setInterval>;
  private nextPid = 1;
  /** Number of logged-in clients. */
  connectionCount = 0;
  private isClosing = false;
  private readonly options: PgOptions;
  private readonly kept: KeptMemory;
  private readonly turn = new SharedTurn();

  constructor(private readonly listener: Deno.TcpListener, private readonly gate: Gate) {
    this.options = gate.options;
    this.kept = new KeptMemory(this.options.statementMemoryBytes ?? DEFAULT_LIMITS.statementMemoryBytes);
    this.accepting = acceptAll(listener, {
      welcome: (conn) => this.welcome(conn),
      failed: (error) => this.options.log.error(`accepting a PG client failed: ${error}`),
      isClosing: () => this.isClosing,
    });
    this.timer = setInterval(() => this.lookAround(), LOOK_AROUND_MS);
  }

  async close(): Promise<void> {
    this.isClosing = true;
    this.listener.close();
    clearInterval(this.timer);
    this.gate.delays.close();
    const reason = new FatalError("the server is shutting down", PG_SQLSTATE.adminShutdown);
    for (const client of this.clients.values()) this.dismiss(client, reason);
    const grace = setTimeout(() => {
      for (const { connection } of this.clients.values()) connection?.cancel();
    }, this.options.closeGraceMs ?? DEFAULT_LIMITS.closeGraceMs);
    // Clients that do not even read the error are disconnected.
    const end = setTimeout(() => {
      for (const { conn } of this.clients.values()) closeQuietly(conn);
    }, (this.options.closeGraceMs ?? DEFAULT_LIMITS.closeGraceMs) + 500);
    await Promise.all([this.accepting, ...[...this.clients.values()].map((client) => client.done)]);
    clearTimeout(grace);
    clearTimeout(end);
  }

  private welcome(conn: Deno.TcpConn): void {
    const limit = this.options.connectionLimit ?? DEFAULT_LIMITS.connectionLimit;
    if (this.clients.size >= limit + NEWCOMERS_MAX) return closeQuietly(conn);
    // Without this, a small answer would wait for the acknowledgement of the previous one.
    conn.setNoDelay(true);
    const pid = this.nextPid;
    this.nextPid = this.nextPid === 0x7fffffff ? 1 : this.nextPid + 1;
    const key = crypto.getRandomValues(new Int32Array(1))[0]!;
    const direct = this.options.sockets?.direct(conn) ?? conn;
    const client: Client = { conn: direct, since: performance.now(), key, seenSendingMs: 0, done: Promise.resolve() };
    this.clients.set(pid, client);
    client.done = this.serve(pid, client).catch((error) => {
      this.options.metrics?.unhandledErrors.inc();
      this.options.log.error(`a PG connection failed: ${error instanceof Error ? error.stack : error}`);
    }).finally(() => {
      closeQuietly(client.conn);
      this.clients.delete(pid);
    });
  }

  private async serve(pid: number, client: Client): Promise<void> {
    // The handshake of TLS replaces the connection.
    const writer = { write: (bytes: Uint8Array) => client.conn.write(bytes) };
    const output = client.output = new Output(writer, this.options.sendSizeBytes ?? DEFAULT_LIMITS.sendSizeBytes);
    try {
      const agreed = await this.agree(client);
      if (agreed === undefined) return;
      client.conn = agreed.connection;
      await this.logIn(pid, client, output, agreed);
    } catch (error) {
      if (error instanceof ConnectionLost) return;
      if (!(error instanceof ProtocolError)) throw error;
      this.options.log.clientRefused?.(client.conn.remoteAddr, error.message);
      output.errorResponse({ ...errorFields(error), severity: "FATAL" });
      await output.flush().catch(() => {});
    }
  }

  /** Undefined if the client has disconnected or its handshake failed. */
  private async agree({ conn }: Client): Promise<Agreed | undefined> {
    try {
      return await agreeOnEncryption(conn, this.options.certificate);
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      this.options.log.clientRefused?.(conn.remoteAddr, (error as Error).message);
    }
  }

  private async logIn(
    pid: number,
    client: Client,
    output: Output,
    { connection, first, isEncrypted }: Agreed,
  ): Promise<void> {
    const input = new Input(
      connection,
      START_UP_SIZE_MAX,
      () => client.connection?.gone(),
      this.options.receiveSizeBytes ?? DEFAULT_LIMITS.receiveSizeBytes,
      first,
      this.options.largeStatements,
    );
    const { remoteAddr } = connection;
    try {
      const who = await startUp(input, output, remoteAddr as Deno.NetAddr, this.gate, isEncrypted);
      if (who === undefined) return;
      if ("tag" in who) return this.cancel(who.pid, who.key);
      await this.converse(pid, client, input, output, who);
    } finally {
      input.close();
    }
  }

  private async converse(pid: number, client: Client, input: Input, output: Output, who: LoggedIn): Promise<void> {
    const limit = this.options.connectionLimit ?? DEFAULT_LIMITS.connectionLimit;
    if (this.connectionCount >= limit) {
      throw new FatalError(
        `too many connections: the limit is ${limit} (pg.net.connection.limit)`,
        PG_SQLSTATE.tooManyConnections,
      );
    }
    if (this.isClosing) throw new FatalError("the server is shutting down", PG_SQLSTATE.adminShutdown);
    this.connectionCount++;
    const { log } = this.options;
    const address = shownAddress(client.conn.remoteAddr);
    log.debug?.(() =>
      `connected [client=${address}, principal=${
        shownText(shownUser(who.identity))
      }, connections=${this.connectionCount}]`
    );
    try {
      for (const [name, value] of parameterStatuses(who.settings.values.get("application_name"))) {
        output.parameterStatus(name, value);
      }
      output.backendKeyData(pid, client.key);
      input.endStartUp(this.options.messageSizeMax ?? DEFAULT_LIMITS.messageSizeMax);
      const namedStatementLimit = this.options.namedStatementLimit ?? DEFAULT_LIMITS.namedStatementLimit;
      const session = this.options.database.session(who.identity, {
        wire: "pg",
        address: () => address,
        settings: who.settings.values,
        pid,
        idleSinceMs: () => client.connection?.idleSince,
        canWrite: who.canWrite,
      });
      client.connection = new Connection(input, output, session, who, {
        ...this.options,
        namedStatementLimit,
        kept: this.kept,
        turn: this.turn,
      });
      await client.connection.run();
    } finally {
      this.connectionCount--;
      log.debug?.(() => `disconnected [client=${address}, connections=${this.connectionCount}]`);
    }
  }

  /** The client gets no answer, as the protocol requires. */
  private cancel(pid: number, key: number): void {
    const client = this.clients.get(pid);
    if (client?.key === key) client.connection?.cancel();
  }

  private lookAround(): void {
    const now = performance.now();
    const idleTimeoutMs = this.options.idleTimeoutMs ?? DEFAULT_LIMITS.idleTimeoutMs;
    for (const client of this.clients.values()) {
      const { connection } = client, sendingSince = client.output?.sendingSince;
      if (sendingSince !== undefined) client.seenSendingMs = now;
      // It may have been idle for a shorter time than since the end of its last statement.
      const idleSince = connection?.idleSince && Math.max(connection.idleSince, client.seenSendingMs);
      if (idleTimeoutMs > 0 && sendingSince !== undefined && now - sendingSince > idleTimeoutMs) {
        closeQuietly(client.conn);
      } else if (connection === undefined) {
        const logInTimeoutMs = this.options.logInTimeoutMs ?? DEFAULT_LIMITS.logInTimeoutMs;
        if (logInTimeoutMs === 0 || now - client.since <= logInTimeoutMs) continue;
        this.options.log.clientRefused?.(client.conn.remoteAddr, `no log-in within ${logInTimeoutMs} ms`);
        closeQuietly(client.conn);
      } else if (
        idleTimeoutMs > 0 && idleSince !== undefined && now - idleSince > idleTimeoutMs
      ) {
        this.dismiss(
          client,
          new FatalError(`idle for ${idleTimeoutMs} ms`, PG_SQLSTATE.idleSessionTimeout),
        );
      }
    }
  }

  /** Immediately, or after the current answer. */
  private dismiss({ conn, connection }: Client, reason: FatalError): void {
    if (connection === undefined) closeQuietly(conn);
    else if (connection.idleSince === undefined) connection.end(reason);
    else connection.dismiss(reason).catch(() => {}).finally(() => closeQuietly(conn));
  }
}

type LoggedIn = Exclude<Awaited<ReturnType<typeof startUp>>, undefined | { tag: "cancel" }>;

function closeQuietly(conn: Pick<Deno.Conn, "close">): void {
  try {
    conn.close();
  } catch {
    // Already closed.
  }
}
