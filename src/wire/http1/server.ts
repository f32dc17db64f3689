/** Accepts connections up to the number of slots. Further ones wait for a slot and are refused after a while. */
import { acceptAll } from "../accept.ts";
import { Connection } from "./connection.ts";
import type { ByteConnection } from "../byte-connection.ts";
import type { HeaderList, Server, ServerOptions } from "./contract.ts";
import { textReply } from "./reply.ts";

/** More waiting connections than this are refused at once, because each one costs memory. */
const WAITING_MAX = 1024;
const TICK_MS = 250;
/** While clients wait, a head that is still incomplete after this time loses its slot. */
const SPARE_HEAD_MS = 1000;

interface Waiting {
  connection: Deno.Conn;
  untilMs: number;
}

export function startServer(options: ServerOptions): Server {
  const listener = Deno.listen({ hostname: options.hostname, port: options.port });
  return new HttpServer(listener, options);
}

class HttpServer implements Server {
  /** Connections with a slot. */
  readonly #served = new Set<Connection>();
  /** Connections whose last reply is sent. */
  readonly #ending = new Set<Connection>();
  readonly #running = new Set<Promise<void>>();
  readonly #waiting: Waiting[] = [];
  readonly #ticks: ReturnType<typeof setInterval>;
  readonly #accepting: Promise<void>;
  #isClosing = false;

  constructor(private readonly listener: Deno.TcpListener, private readonly options: ServerOptions) {
    this.#ticks = setInterval(() => this.#tick(), TICK_MS);
    this.#accepting = acceptAll(listener, {
      welcome: (connection) => this.#welcome(connection),
      failed: (error) => options.onError(error),
      isClosing: () => this.#isClosing,
    });
  }

  get port(): number {
    return (this.listener.addr as Deno.NetAddr).port;
  }

  connectionCount(): number {
    return this.#served.size;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.listener.close();
    await this.#accepting;
    for (const { connection } of this.#waiting.splice(0)) closeQuietly(connection);
    for (const connection of [...this.#served, ...this.#ending]) connection.finish();
    await Promise.all(this.#running);
    clearInterval(this.#ticks);
  }

  #welcome(connection: Deno.Conn): void {
    const { limits } = this.options;
    const nowMs = performance.now();
    if (this.#served.size >= limits.connectionsMax) this.#makeRoom(nowMs);
    if (this.#served.size < limits.connectionsMax) return this.#serve(connection);
    if (this.#waiting.length >= WAITING_MAX) return this.#refuse(connection);
    this.#waiting.push({ connection, untilMs: nowMs + limits.queueTimeoutMs });
  }

  #serve(connection: Deno.Conn): void {
    const served = this.#connectionOf(connection);
    this.#served.add(served);
    served.onSlotFree = () => {
      if (!this.#served.delete(served)) return;
      this.#ending.add(served);
      this.#admit();
    };
    this.#track(served, served.run());
  }

  #connectionOf(connection: Deno.Conn): Connection {
    // Replies are written completely, so Nagle's algorithm would only delay them.
    if ("setNoDelay" in connection) (connection as Deno.TcpConn).setNoDelay(true);
    const { secure, sockets } = this.options;
    const bytes: ByteConnection = sockets?.direct(connection) ?? connection;
    return new Connection(secure?.(bytes) ?? bytes, this.options, secure !== undefined);
  }

  #track(connection: Connection, run: Promise<void>): void {
    const running = run.finally(() => {
      this.#running.delete(running);
      this.#ending.delete(connection);
    });
    this.#running.add(running);
  }

  #admit(): void {
    while (!this.#isClosing && this.#served.size < this.options.limits.connectionsMax) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#serve(next.connection);
    }
  }

  #refuse(connection: Deno.Conn): void {
    if (this.#ending.size >= WAITING_MAX) return closeQuietly(connection);
    const refused = this.#connectionOf(connection);
    this.#ending.add(refused);
    const { limits: { connectionsMax }, ownHeaders = [] } = this.options;
    const headers: HeaderList = [["Retry-After", "1"], ...ownHeaders];
    const reply = textReply(503, `too many connections: the limit is ${connectionsMax}`, headers);
    this.#track(refused, refused.refuse(reply));
  }

  /** Closes the connection that has been idle or incomplete for the longest time, if there is one. */
  #makeRoom(nowMs: number): void {
    let longest: Connection | undefined, longestMs = 0;
    for (const connection of this.#served) {
      const unused = connection.unusedMs(nowMs);
      if (unused === undefined) continue;
      const spareMs = unused.kind === "idle" ? this.options.limits.spareIdleMs : SPARE_HEAD_MS;
      if (unused.ms - spareMs > longestMs) [longest, longestMs] = [connection, unused.ms - spareMs];
    }
    if (longest === undefined) return;
    longest.giveWay();
    // The slot is free now, although the connection ends later.
    longest.onSlotFree();
  }

  #tick(): void {
    const nowMs = performance.now();
    for (const connection of this.#served) connection.checkTimes(nowMs);
    for (const connection of this.#ending) connection.checkTimes(nowMs);
    for (let size = -1; this.#waiting.length > 0 && size !== this.#waiting.length;) {
      size = this.#waiting.length;
      this.#makeRoom(nowMs);
    }
    while (this.#waiting[0] !== undefined && this.#waiting[0].untilMs <= nowMs) {
      this.#refuse(this.#waiting.shift()!.connection);
    }
  }
}

function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // already closed by the client
  }
}
