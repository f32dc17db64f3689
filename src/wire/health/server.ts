/** The minimal HTTP server: health and metrics. */
import { type HttpRequest, type Reply, startServer, textReply } from "../http1/mod.ts";
import { HEALTH_WORD } from "../../metrics/mod.ts";
import type { Certificate } from "../tls/mod.ts";
import { LogInDelays } from "../log-in-delays.ts";
import { securityHeaders } from "../security-headers.ts";
import { basicCredentials, type Credentials, equalInConstantTime } from "../passwords.ts";

export interface HealthOptions {
  hostname: string;
  /** 0 selects any free port. */
  port: number;
  /** Maximum number of connections served at a time; others wait for a slot. */
  connectionLimit: number;
  /** A connection without a request for this long is closed. */
  connectionTimeoutMs: number;
  /** A connection that waits longer for a slot is refused. */
  queueTimeoutMs: number;
  /** Credentials required of every request. Undefined: none. */
  credentials?: Credentials;
  /** Undefined if TLS is off. */
  certificate?: Pick<Certificate, "secure">;
  /** Returns the body of a 500 answer, or undefined if the answer is 200. */
  fault(): string | undefined;
  /** Undefined if /metrics is an ordinary path. */
  metricsText?: () => Promise<string>;
  onError(error: unknown): void;
  /** Called for each answer. */
  onAnswer?(line: string): void;
}

/** The fault that a pessimistic health check reports; "" for unhandled errors, whose reasons are in the log. */
export function faultOf(words: Int32Array): string | undefined {
  if (Atomics.load(words, HEALTH_WORD.diskFull) !== 0) return "the disk is full: changes are refused\r\n";
  return Atomics.load(words, HEALTH_WORD.unhandledErrors) === 0 ? undefined : "";
}

export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Monitoring requests are short. */
const REQUEST_TIMEOUT_MS = 10_000;
const HEAD_SIZE_MAX = 64 * 1024;
const encoder = new TextEncoder();

export function serveHealth(options: HealthOptions): HealthServer {
  const delays = new LogInDelays();
  const { certificate } = options, security = securityHeaders();
  const server = startServer({
    hostname: options.hostname,
    port: options.port,
    secure: certificate && ((connection) => certificate.secure(connection)),
    limits: {
      connectionsMax: options.connectionLimit,
      queueTimeoutMs: options.queueTimeoutMs,
      idleTimeoutMs: options.connectionTimeoutMs,
      // Load balancers keep their connections open as long as possible.
      spareIdleMs: Infinity,
      headTimeoutMs: REQUEST_TIMEOUT_MS,
      headSizeMax: HEAD_SIZE_MAX,
      bodyTimeoutMs: REQUEST_TIMEOUT_MS,
      bodyRateMin: 1024,
    },
    ownHeaders: security,
    onError: options.onError,
    async handle(request) {
      const reply = await answer(request, delays, options);
      options.onAnswer?.(`${reply.status} ${request.method} ${pathOf(request)} [client=${clientOf(request)}]`);
      return { ...reply, headers: [...reply.headers, ...security] };
    },
  });
  return {
    port: server.port,
    close() {
      delays.close();
      return server.close();
    },
  };
}

function clientOf({ remoteAddr }: HttpRequest): string {
  const { hostname, port } = remoteAddr as Deno.NetAddr;
  return `${hostname}:${port}`;
}

function pathOf({ target }: HttpRequest): string {
  return target.split("?", 1)[0]!;
}

async function answer(request: HttpRequest, delays: LogInDelays, options: HealthOptions): Promise<Reply> {
  const { method, headers } = request;
  if (options.credentials !== undefined && !await authorized(request, options.credentials, delays)) {
    return textReply(401, "Unauthorized");
  }
  if (method !== "GET" && method !== "HEAD") {
    const sized = headers.has("content-length") || headers.has("transfer-encoding");
    if ((method === "POST" || method === "PUT") && !sized) {
      return textReply(400, "Content-length not specified for POST/PUT request");
    }
    return textReply(405, `Method ${method} not supported`);
  }
  if (options.metricsText && pathOf(request) === "/metrics") {
    return reply(200, await options.metricsText(), "text/plain; version=0.0.4; charset=utf-8");
  }
  const fault = options.fault();
  return reply(fault === undefined ? 200 : 500, fault ?? "", "text/plain");
}

/** Chunked, because load balancers of this port compare bytes. */
function reply(status: number, body: string, contentType: string): Reply {
  return { status, headers: [["Content-Type", contentType]], body: encoder.encode(body), isChunked: true };
}

async function authorized(
  { headers, remoteAddr }: HttpRequest,
  wanted: Credentials,
  delays: LogInDelays,
): Promise<boolean> {
  const given = basicCredentials(headers.get("authorization") ?? "");
  if (given === undefined) return false;
  const user = given.user === wanted.user ? given.user : "", address = (remoteAddr as Deno.NetAddr).hostname;
  const before = delays.before(user, address);
  if (before !== undefined && !(before instanceof Promise)) return false;
  await before;
  const isUser = equalInConstantTime(given.user, wanted.user);
  const isRight = equalInConstantTime(given.password, wanted.password) && isUser;
  if (isRight) delays.right(user, address);
  else delays.wrong(user, address, given.password);
  return isRight;
}
