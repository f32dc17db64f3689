/**
 * The client of the latency suite, a process of its own, so that its work does not delay the servers' more than necessary. It speaks
 * HTTP and the PostgreSQL protocol over raw sockets, because `fetch` and drivers take longer than the servers.
 *
 * Reads orders from stdin and writes results to stdout, one JSON object a line.
 */

import { connect, endOfHttp, isRefusal, larger, requestOf, writeAll } from "./http.ts";

export interface Order {
  protocol: "http" | "pg";
  port: number;
  query: string;
  connections: number;
  /** Requests that a connection sends at once. The next ones follow when all are answered. */
  depth: number;
  /** Executions of a request over PG, before its Sync. Default: 1. */
  executions?: number;
  ms: number;
  /** A connection waits for up to twice this time between its requests. */
  pauseMs?: number;
  /** Path that is asked over HTTP instead of a query. */
  path?: string;
  /** Share of the time before the measurement starts. */
  warmUp?: number;
}

export interface Result {
  /** Of the time that a connection's requests take from sending to the last byte of their answers. */
  p50Ms: number;
  p99Ms: number;
  worstMs: number;
  perSecond: number;
  /** Including those before the measurement. */
  answers: number;
  /** The first answer. */
  text: string;
}

/** The default of `warmUp`. */
const WARM_UP = 0.25;
const READ_BYTES = 65_536;

/** A connection that sends the same requests again and again. */
interface Wire {
  /** Bytes of one request. */
  request: Uint8Array<ArrayBuffer>;
  /** Offset after the answer that starts at `at`; -1 while it is incomplete. @throws if it tells an error */
  endOf(bytes: Uint8Array, at: number, end: number): number;
  connection: Deno.TcpConn;
}

async function measure(order: Order): Promise<Result> {
  const wires = await Promise.all(Array.from({ length: order.connections }, () => open(order)));
  const startMs = performance.now();
  const fromMs = startMs + (order.warmUp ?? WARM_UP) * order.ms, endMs = startMs + order.ms;
  const times: number[] = [];
  let answers = 0, text = "";
  await Promise.all(wires.map(async ({ connection, request, endOf }) => {
    const requests = repeated(request, order.depth);
    let bytes = new Uint8Array(READ_BYTES);
    for (let now = startMs; now < endMs || times.length === 0;) {
      if (order.pauseMs !== undefined) {
        await new Promise((resolve) => setTimeout(resolve, 2 * order.pauseMs! * Math.random()));
        now = performance.now();
      }
      await writeAll(connection, requests);
      let size = 0, at = 0;
      for (let left = order.depth; left > 0;) {
        if (size === bytes.length) bytes = larger(bytes);
        const count = await connection.read(bytes.subarray(size));
        if (count === null) throw new Error("the server has closed the connection");
        size += count;
        for (let end; left > 0 && (end = endOf(bytes, at, size)) >= 0; left--) at = end;
      }
      if (at !== size) throw new Error("the server has sent more than an answer");
      if (text === "") text = decoder.decode(bytes.subarray(0, at));
      answers += order.depth;
      const sent = now;
      now = performance.now();
      if (sent >= fromMs) times.push(now - sent);
    }
  }));
  const seconds = (performance.now() - fromMs) / 1000;
  for (const { connection } of wires) connection.close();
  times.sort((a, b) => a - b);
  const quantile = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))];
  const perSecond = times.length * order.depth / seconds;
  return { p50Ms: quantile(0.5), p99Ms: quantile(0.99), worstMs: quantile(1), perSecond, answers, text };
}

const encoder = new TextEncoder(), decoder = new TextDecoder();

async function open({ protocol, port, query, path, executions }: Order): Promise<Wire> {
  const connection = await connect(port);
  if (protocol === "pg") return { connection, request: await preparePg(connection, query, executions), endOf: endOfPg };
  const target = path ?? `/exec?query=${encodeURIComponent(query)}`;
  const endOf = (bytes: Uint8Array, at: number, size: number) => {
    if (isRefusal(bytes, at, size)) throw new Error(decoder.decode(bytes.subarray(at, size)));
    return endOfHttp(bytes, at, size);
  };
  return { connection, request: requestOf(target, port), endOf };
}

function repeated(bytes: Uint8Array, times: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(bytes.length * times);
  for (let k = 0; k < times; k++) all.set(bytes, k * bytes.length);
  return all;
}

// PostgreSQL

const READY = 0x5a, ERROR = 0x45, AUTHENTICATION = 0x52;

/** Logs in with a password in clear text, prepares the statement, and returns the messages that run it. */
async function preparePg(connection: Deno.TcpConn, query: string, executions = 1): Promise<Uint8Array<ArrayBuffer>> {
  const startUp = [0, 3, 0, 0, ...text("user"), ...text("admin"), ...text("database"), ...text("qdb"), 0];
  await writeAll(connection, Uint8Array.from([...int32(startUp.length + 4), ...startUp]));
  const bytes = new Uint8Array(READ_BYTES);
  let size = 0;
  for (let at = 0, isReady = false; !isReady;) {
    size += await connection.read(bytes.subarray(size)) ?? 0;
    for (; at + 5 <= size && at + 1 + int32At(bytes, at + 1) <= size; at += 1 + int32At(bytes, at + 1)) {
      refusePgError(bytes, at, size);
      if (bytes[at] === READY) isReady = true;
      if (bytes[at] !== AUTHENTICATION) continue;
      const kind = int32At(bytes, at + 5);
      if (kind === 3) await writeAll(connection, message("p", text("quest")));
      else if (kind !== 0) throw new Error(`authentication ${kind} is not one in clear text`);
    }
  }
  const parse = [...message("P", [...text("s"), ...text(query), 0, 0]), ...message("S", [])];
  await writeAll(connection, Uint8Array.from(parse));
  size = 0;
  do size += await connection.read(bytes.subarray(size)) ?? 0; while (endOfPg(bytes, 0, size) < 0);
  const bind = message("B", [0, ...text("s"), 0, 0, 0, 0, 0, 0]);
  const execution = Uint8Array.from([...bind, ...message("E", [0, 0, 0, 0, 0])]);
  return Uint8Array.from([...repeated(execution, executions), ...message("S", [])]);
}

function endOfPg(bytes: Uint8Array, from: number, size: number): number {
  for (let at = from; at + 5 <= size;) {
    const end = at + 1 + int32At(bytes, at + 1);
    if (end > size) return -1;
    refusePgError(bytes, at, size);
    if (bytes[at] === READY) return end;
    at = end;
  }
  return -1;
}

function refusePgError(bytes: Uint8Array, at: number, size: number): void {
  if (bytes[at] === ERROR) throw new Error(decoder.decode(bytes.subarray(at, size)));
}

function int32At(bytes: Uint8Array, at: number): number {
  return bytes[at] << 24 | bytes[at + 1] << 16 | bytes[at + 2] << 8 | bytes[at + 3];
}

function int32(value: number): number[] {
  return [value >>> 24, value >>> 16 & 255, value >>> 8 & 255, value & 255];
}

function text(value: string): number[] {
  return [...encoder.encode(value), 0];
}

function message(type: string, body: number[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([type.charCodeAt(0), ...int32(body.length + 4), ...body]);
}

if (import.meta.main) {
  let rest = "";
  for await (const piece of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop()!;
    for (const line of lines) console.log(JSON.stringify(await measure(JSON.parse(line))));
  }
}
