/** Starts the real server like `deno task start`, on free ports and with its own root. */
import { START_FLAGS } from "../scripts/flags.ts";
import { askToStop } from "../src/config/mod.ts";
import { fromFileUrl } from "./paths.ts";

export interface TestServer {
  http: string;
  httpPort: number;
  pgPort: number;
  minPort: number;
  /** Port of the line protocol over TCP. */
  linePort: number;
  root: string;
  /** Everything that the server has printed so far. */
  output: () => string;
  process: Deno.ChildProcess;
  exec: (sql: string, parameters?: Record<string, string>) => Promise<ExecReply>;
  /** Sends SIGTERM and returns the exit status. */
  stop: () => Promise<number>;
  [Symbol.asyncDispose]: () => Promise<void>;
}

/** A line of level CRITICAL in the output of a server. Text of a client in another line is no match. */
export const CRITICAL = /^\S+ C /m;

export interface ExecReply {
  error?: string;
  position?: number;
  columns?: { name: string; type: string }[];
  dataset?: unknown[][];
  count?: number;
  ddl?: string;
  dml?: string;
  timestamp?: number;
}

/**
 * Distinct ports that are free at the moment. The system gives out other ports, from 32768 or 49152 on, to programs that leave the choice to it, so
 * none of them takes one of these before a slow program listens.
 */
export function freePorts(count: number): number[] {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    if (ports.includes(port)) continue;
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      ports.push(port);
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
  return ports;
}

export function freePort(): number {
  return freePorts(1)[0];
}

export interface StartOptions {
  root?: string;
  env?: Record<string, string>;
  args?: string[];
  keepRoot?: boolean;
  /** To start one again where another has stopped. */
  httpPort?: number;
  /** The Authorization header for requests. */
  authorization?: string;
  /** HTTP uses TLS, with a certificate of this authority for localhost. */
  caPath?: string;
}

/** Resolves when the server is ready. If another process takes a port first, other ports are tried. */
export async function startServer(options: StartOptions = {}): Promise<TestServer> {
  for (let attempt = 1;; attempt++) {
    try {
      return await tryToStart(options);
    } catch (error) {
      if (attempt === 3 || !/is in use by another process/.test((error as Error).message)) throw error;
    }
  }
}

async function tryToStart(options: StartOptions): Promise<TestServer> {
  const root = options.root ?? await Deno.makeTempDir({ prefix: "sundial-" });
  const [freeHttpPort, pgPort, minPort, linePort] = freePorts(4);
  const httpPort = options.httpPort ?? freeHttpPort;
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", ...START_FLAGS, fromFileUrl("../main.ts"), "start", "-d", root, ...options.args ?? []],
    env: {
      // bench/server.ts switches it off.
      SUNDIAL_VERIFY: Deno.env.get("SUNDIAL_VERIFY") ?? "true",
      SVC_HTTP_NET_BIND_TO: `127.0.0.1:${httpPort}`,
      SVC_PG_NET_BIND_TO: `127.0.0.1:${pgPort}`,
      SVC_HTTP_MIN_BIND_TO: `127.0.0.1:${minPort}`,
      SVC_LINE_TCP_NET_BIND_TO: `127.0.0.1:${linePort}`,
      ...options.env,
    },
    stdout: "piped",
    stderr: "piped",
    stdin: "null",
  }).spawn();
  let output = "";
  const drain = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) output += decoder.decode(chunk, { stream: true });
  };
  const drained = Promise.all([drain(process.stdout), drain(process.stderr)]);
  let status: Deno.CommandStatus | undefined;
  const ended = process.status.then((s) => (status = s));
  const isTls = options.caPath !== undefined;
  const http = isTls ? `https://localhost:${httpPort}` : `http://127.0.0.1:${httpPort}`;
  const client = isTls ? Deno.createHttpClient({ caCerts: [Deno.readTextFileSync(options.caPath!)] }) : undefined;
  const headers: HeadersInit = options.authorization === undefined ? {} : { authorization: options.authorization };
  const deadline = Date.now() + 120_000;
  for (;;) {
    if (status) {
      await drained;
      throw new Error(`the server ended with status ${(status as Deno.CommandStatus).code}:\n${output}`);
    }
    if (Date.now() > deadline) throw new Error(`the server is not ready after 120 s:\n${output}`);
    try {
      const reply = await fetch(`${http}/exec?query=select%201`, { headers, client });
      await reply.body?.cancel();
      if (reply.ok || reply.status === 401) break;
    } catch {
      // not listening yet
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  const stop = async () => {
    if (!status) {
      // Windows has no SIGTERM: the signal of that name kills the process there.
      if (Deno.build.os === "windows") askToStop(root);
      else process.kill("SIGTERM");
      const timer = setTimeout(() => process.kill("SIGKILL"), 60_000);
      await ended;
      clearTimeout(timer);
    }
    await drained;
    return status!.code;
  };
  return {
    http,
    httpPort,
    pgPort,
    minPort,
    linePort,
    root,
    output: () => output,
    process,
    stop,
    exec: async (sql, parameters = {}) => {
      const reply = await fetch(`${http}/exec?${new URLSearchParams({ query: sql, ...parameters })}`, { client });
      return await reply.json();
    },
    [Symbol.asyncDispose]: async () => {
      client?.close();
      await stop();
      if (!options.root && !options.keepRoot) await Deno.remove(root, { recursive: true });
    },
  };
}
