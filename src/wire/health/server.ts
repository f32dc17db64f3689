/**
 * The minimal HTTP server: tells that the process lives, and its metrics. On node:http, for its limits of connections,
 * idle time and heads, which Deno.serve does not have.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { LogInDelays } from "../log-in-delays.ts";
import { basicCredentials, type Credentials, equalInConstantTime } from "../passwords.ts";

export interface HealthOptions {
  hostname: string;
  /** 0 takes any free one. */
  port: number;
  /** Connections served at a time; the others wait for a slot. */
  connectionLimit: number;
  /** A connection without a request for this long is closed. */
  connectionTimeoutMs: number;
  /** A connection that waits for a slot for longer is closed. */
  queueTimeoutMs: number;
  /** Connections that the system keeps before they are accepted. */
  backlog?: number;
  /** What every request must bring; undefined: nothing. */
  credentials?: Credentials;
  /** False: the answer is 500. */
  healthy(): boolean;
  /** Undefined: /metrics is a path like any other. */
  metricsText?: () => Promise<string>;
  onError(error: unknown): void;
  /** Told of each answer. */
  onAnswer?(line: string): void;
}

export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** More waiting connections than this are refused: each one costs memory. */
const WAITING_MAX = 1024;
const HEAD_BYTES_MAX = 64 * 1024;

/** What timers can hold, and the second that node:http adds: 24 days. */
const TIMER_MAX_MS = 2 ** 31 - 1001;

export function serveHealth(options: HealthOptions): Promise<HealthServer> {
  const slots = new Slots(options.connectionLimit, Math.min(TIMER_MAX_MS, options.queueTimeoutMs));
  const delays = new LogInDelays();
  const connectionTimeoutMs = Math.min(TIMER_MAX_MS, options.connectionTimeoutMs);
  const server = createServer({
    requireHostHeader: false,
    maxHeaderSize: HEAD_BYTES_MAX,
    keepAliveTimeout: connectionTimeoutMs,
    headersTimeout: connectionTimeoutMs,
    requestTimeout: connectionTimeoutMs,
  }, (request, response) => {
    response.on("error", () => request.socket.destroy());
    slots.wait(request.socket).then(() => answer(request, response, delays, options)).catch((error) => {
      options.onError(error);
      if (response.headersSent) request.socket.destroy();
      else reply(response, 500, "Internal server error", "text/plain");
    });
  });
  server.timeout = connectionTimeoutMs;
  server.maxConnections = options.connectionLimit + WAITING_MAX;
  server.on("connection", (socket: Socket) => slots.enter(socket));
  // A request that is no HTTP gets no answer.
  server.on("clientError", (_error: Error, socket: Socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: options.hostname, port: options.port, backlog: options.backlog ?? 256 }, () => {
      server.off("error", reject);
      server.on("error", options.onError);
      const address = server.address() as { port: number };
      resolve({
        port: address.port,
        close: () =>
          new Promise((closed) => {
            delays.close();
            server.close(() => closed());
            server.closeAllConnections();
          }),
      });
    });
  });
}

/**
 * Who is served. A connection above the limit is accepted, but its first request is not looked at before another connection
 * has closed; first come, first served.
 */
class Slots {
  #free: number;
  readonly #admitted = new WeakSet<Socket>();
  readonly #waiting: { socket: Socket; admit: () => void }[] = [];
  readonly #admission = new WeakMap<Socket, Promise<void>>();

  constructor(limit: number, readonly queueTimeoutMs: number) {
    this.#free = limit;
  }

  enter(socket: Socket): void {
    socket.once("close", () => this.#leave(socket));
    socket.on("error", () => socket.destroy());
    if (this.#free > 0) {
      this.#free--;
      this.#admitted.add(socket);
      this.#admission.set(socket, Promise.resolve());
      return;
    }
    const timer = setTimeout(() => socket.destroy(), this.queueTimeoutMs);
    this.#admission.set(
      socket,
      new Promise((resolve) => {
        const admit = () => {
          clearTimeout(timer);
          this.#admitted.add(socket);
          resolve();
        };
        socket.once("close", () => clearTimeout(timer));
        this.#waiting.push({ socket, admit });
      }),
    );
  }

  wait(socket: Socket): Promise<void> {
    return this.#admission.get(socket) ?? Promise.resolve();
  }

  #leave(socket: Socket): void {
    const at = this.#waiting.findIndex((entry) => entry.socket === socket);
    if (at >= 0) this.#waiting.splice(at, 1);
    if (!this.#admitted.delete(socket)) return;
    const next = this.#waiting.shift();
    if (next) next.admit();
    else this.#free++;
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  delays: LogInDelays,
  options: HealthOptions,
): Promise<void> {
  const { onAnswer } = options;
  if (onAnswer) {
    const { remoteAddress, remotePort } = request.socket;
    const path = request.url?.split("?", 1)[0];
    response.once(
      "finish",
      () => onAnswer(`${response.statusCode} ${request.method} ${path} [client=${remoteAddress}:${remotePort}]`),
    );
  }
  request.resume();
  if (options.credentials !== undefined && !await authorized(request, options.credentials, delays)) {
    return reply(response, 401, "Unauthorized\r\n", "text/plain; charset=utf-8");
  }
  const { method = "" } = request;
  if (method !== "GET" && method !== "HEAD") {
    const sized = request.headers["content-length"] !== undefined || request.headers["transfer-encoding"] !== undefined;
    if ((method === "POST" || method === "PUT") && !sized) {
      return reply(response, 400, "Content-length not specified for POST/PUT request\r\n", "text/plain; charset=utf-8");
    }
    return reply(response, 405, `Method ${method} not supported\r\n`, "text/plain; charset=utf-8");
  }
  const path = (request.url ?? "/").split("?", 1)[0];
  if (options.metricsText && path === "/metrics") {
    return reply(response, 200, await options.metricsText(), "text/plain; version=0.0.4; charset=utf-8");
  }
  reply(response, options.healthy() ? 200 : 500, "", "text/plain");
}

function reply(response: ServerResponse, status: number, body: string, contentType: string): void {
  // The connection stays open without saying so: load balancers of this port compare bytes.
  response.removeHeader("connection");
  response.removeHeader("keep-alive");
  response.setHeader("Server", "Sundial");
  response.setHeader("Date", new Date().toUTCString());
  response.setHeader("Transfer-Encoding", "chunked");
  response.setHeader("Content-Type", contentType);
  response.writeHead(status);
  response.end(body);
}

async function authorized(request: IncomingMessage, wanted: Credentials, delays: LogInDelays): Promise<boolean> {
  const given = basicCredentials(request.headers.authorization ?? "");
  if (given === undefined) return false;
  const user = given.user === wanted.user ? given.user : "", address = request.socket.remoteAddress ?? "";
  const before = delays.before(user, address);
  if (before !== undefined && !(before instanceof Promise)) return false;
  await before;
  const isUser = equalInConstantTime(given.user, wanted.user);
  const isRight = equalInConstantTime(given.password, wanted.password) && isUser;
  if (isRight) delays.right(user, address);
  else delays.wrong(user, address, given.password);
  return isRight;
}
