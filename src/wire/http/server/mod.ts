/**
 * HTTP/1.1 over TCP, with the bounds that Deno.serve does not have: connections, their kinds, idle time, heads. Connections
 * are accepted and admitted here; `connection.ts` is what happens on one, `head.ts` the text of heads.
 */
import { Connection, type ConnectionBounds, type ConnectionOptions } from "./connection.ts";
import type { ServedConnection } from "./message.ts";

export type { HeaderList } from "./head.ts";
export { HttpRequest, type Reply, type ReplyBody, type ServedConnection } from "./message.ts";

export interface ServerBounds extends ConnectionBounds {
  /** Connections that are served at a time; one more waits until one of them is closed. */
  readonly connectionLimit: number;
  /** A connection that sends nothing for so long is closed; 0: never. */
  readonly idleTimeoutMs: number;
  /** A connection that waits for its turn for so long is closed. */
  readonly queueTimeoutMs: number;
}

export interface ServeOptions extends ConnectionOptions {
  hostname: string;
  /** 0 takes any free one. */
  port: number;
  config: ServerBounds;
  onClose(connection: ServedConnection): void;
}

export interface HttpListener {
  port: number;
  connectionCount(): number;
  /** Lets replies end, and closes all others. */
  close(): Promise<void>;
}

/** More waiting connections than this are refused: each one costs memory. */
const WAITING_MAX = 1024;
const LOOK_AROUND_MS = 1000;

export function serve(options: ServeOptions): HttpListener {
  const listener = Deno.listen({ hostname: options.hostname, port: options.port });
  const server = new Server(listener, options);
  return {
    port: (listener.addr as Deno.NetAddr).port,
    connectionCount: () => server.served.size,
    close: () => server.close(),
  };
}

interface Waiting {
  socket: Deno.TcpConn;
  since: number;
}

class Server {
  readonly served = new Map<Connection, Promise<void>>();
  /** First come, first served. */
  private waiting: Waiting[] = [];
  private isClosing = false;
  private readonly accepting: Promise<void>;
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(private readonly listener: Deno.TcpListener, private readonly options: ServeOptions) {
    this.accepting = this.accept();
    const shortest = Math.min(...[options.config.idleTimeoutMs, options.config.queueTimeoutMs].filter((ms) => ms > 0));
    this.timer = setInterval(() => this.lookAround(), Math.max(10, Math.min(LOOK_AROUND_MS, shortest / 4)));
  }

  async close(): Promise<void> {
    this.isClosing = true;
    clearInterval(this.timer);
    this.listener.close();
    for (const { socket } of this.waiting.splice(0)) closeQuietly(socket);
    for (const connection of this.served.keys()) connection.finish();
    await Promise.all([this.accepting, ...this.served.values()]);
  }

  private async accept(): Promise<void> {
    while (!this.isClosing) {
      let socket: Deno.TcpConn;
      try {
        socket = await this.listener.accept();
      } catch (error) {
        if (this.isClosing) return;
        this.options.onError(error);
        // Out of descriptors, for instance: trying again at once would only burn time.
        await new Promise((resolve) => setTimeout(resolve, 100));
        continue;
      }
      if (this.served.size < this.options.config.connectionLimit && this.waiting.length === 0) this.admit(socket);
      else if (this.waiting.length < WAITING_MAX) this.waiting.push({ socket, since: performance.now() });
      else closeQuietly(socket);
    }
  }

  private admit(socket: Deno.TcpConn): void {
    try {
      // A small answer must not wait for the acknowledgement of the one before.
      socket.setNoDelay(true);
    } catch {
      return closeQuietly(socket);
    }
    const connection = new Connection(socket, this.options);
    const done = connection.run().finally(() => {
      this.served.delete(connection);
      this.options.onClose(connection);
      this.admitWaiting();
    });
    this.served.set(connection, done);
  }

  private admitWaiting(): void {
    while (this.served.size < this.options.config.connectionLimit) {
      const next = this.waiting.shift();
      if (next === undefined) return;
      this.admit(next.socket);
    }
  }

  private lookAround(): void {
    const now = performance.now();
    const { idleTimeoutMs, queueTimeoutMs } = this.options.config;
    if (idleTimeoutMs > 0) {
      for (const connection of this.served.keys()) {
        const { waitingSince } = connection;
        if (waitingSince !== undefined && now - waitingSince > idleTimeoutMs) connection.close();
      }
    }
    this.waiting = this.waiting.filter(({ socket, since }) => {
      const stays = now - since <= queueTimeoutMs;
      if (!stays) closeQuietly(socket);
      return stays;
    });
    // The limit may have been raised.
    this.admitWaiting();
  }
}

function closeQuietly(socket: Deno.Conn): void {
  try {
    socket.close();
  } catch {
    // It is closed already.
  }
}
