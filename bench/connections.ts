/**
 * 500 connections at once, half HTTP and half PostgreSQL: small queries, inserts, exports, and clients that read slowly. Counts the acknowledged
 * rows at the end.
 *
 *     deno run -A --lock=dev.lock bench/connections.ts [--connections=500] [--seconds=60]
 */
import { parseArgs } from "node:util";
import type { HealthAnswer } from "../tests/fuzz/times.ts";
import { residentBytes } from "../tests/memory.ts";
import { startServer } from "./server.ts";
import { describeMachine, median, percentile, table } from "./report.ts";
import { pgClient } from "../tests/pg-client.ts";

const { values: options } = parseArgs({
  options: { connections: { type: "string", default: "500" }, seconds: { type: "string", default: "60" } },
});
const each = Math.floor(Number(options.connections) / 2);
/** Of these many on each wire, one reads a large answer slowly, over and over. */
const SLOW_OF = 10;
const isSlow = (k: number) => k % SLOW_OF === 0;
const CLIENT_COUNT = 2 * each - Math.ceil(each / SLOW_OF);
const PAUSE_MS = 50;
const LARGE = "select * from trades limit 200000";
const QUERIES = [
  { name: "LATEST ON", sql: "select * from trades latest on timestamp partition by symbol" },
  {
    name: "a day by symbol",
    sql: "select symbol, count(), avg(price) from trades where timestamp in '2024-01-02' group by symbol",
  },
  { name: "6 hours", sql: "select timestamp, max(price) from trades where symbol = 'S7' sample by 6h" },
  { name: "count", sql: "select count() from written" },
];

/** Milliseconds of answers by their kind. */
const times: Record<string, number[]> = {};
const errors = new Map<string, number>();
let acknowledged = 0, slowBytes = 0;

await using server = await startServer({
  env: {
    SVC_HTTP_NET_CONNECTION_LIMIT: `${each + 20}`,
    SVC_PG_NET_CONNECTION_LIMIT: `${each + 20}`,
  },
});
const run = async (sql: string) => {
  const { error, dataset } = await server.exec(sql);
  if (error !== undefined) throw new Error(`${sql}: ${error}`);
  return dataset;
};
console.log(describeMachine());
await run(
  "create table trades as (select timestamp_sequence('2024-01-01', 100000) timestamp, rnd_symbol('S1','S2','S3','S4','S5','S6','S7') symbol, rnd_double() price from long_sequence(2000000)) timestamp(timestamp) partition by day",
);
await run("create table written (who symbol, n long, timestamp timestamp) timestamp(timestamp) partition by day");
const resident = (field: "VmRSS" | "VmHWM") => Math.round(residentBytes(server.process.pid, field) / 2 ** 20);
const residentBefore = resident("VmRSS");
const health = new Worker(import.meta.resolve("../tests/fuzz/health-probe.ts"), { type: "module" });
health.postMessage(`http://127.0.0.1:${server.minPort}/status`);

let endMs = Infinity;
const isOver = () => performance.now() > endMs;
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE_MS * 2 * Math.random()));
const one = <T>(list: readonly T[]) => list[Math.floor(Math.random() * list.length)];

/** Starts the time when all clients have connected: that keeps the process of the benchmark busy, not the server. */
const connected = Promise.withResolvers<void>();
let waitingCount = 0;
async function allConnected(): Promise<void> {
  if (++waitingCount === CLIENT_COUNT) {
    endMs = performance.now() + 1000 * Number(options.seconds);
    connected.resolve();
  }
  await connected.promise;
}

async function timed(kind: string, action: () => Promise<void>): Promise<void> {
  const startMs = performance.now();
  try {
    await action();
    (times[kind] ??= []).push(performance.now() - startMs);
  } catch (error) {
    const text = `${kind}: ${(error as Error).message}`.slice(0, 120);
    errors.set(text, (errors.get(text) ?? 0) + 1);
  }
}

/** Each has its own connection, because a client of Deno's fetch may share them. */
async function httpClient(k: number): Promise<void> {
  using client = Deno.createHttpClient({ poolMaxIdlePerHost: 1 });
  const ask = async (path: string, init: RequestInit = {}) => {
    const reply = await fetch(server.http + path, { ...init, client });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${reply.status} ${text}`);
  };
  await ask("/exec?query=select%201");
  await allConnected();
  for (let n = 0; !isOver(); n++) {
    const dice = Math.random();
    if (dice < 0.7) {
      const { name, sql } = one(QUERIES);
      await timed(`HTTP: ${name}`, () => ask(`/exec?${new URLSearchParams({ query: sql })}`));
    } else if (dice < 0.99) {
      await timed("HTTP write", async () => {
        await ask("/write", { method: "POST", body: `written,who=h${k} n=${n}i\nwritten,who=h${k} n=${n}i\n` });
        acknowledged += 2;
      });
    } else await timed("export", () => ask(`/exp?${new URLSearchParams({ query: LARGE })}`));
    await pause();
  }
}

async function pgReader(k: number): Promise<void> {
  const client = pgClient(server);
  await client.connect();
  await allConnected();
  for (let n = 0; !isOver(); n++) {
    if (Math.random() < 0.7) {
      const { name, sql } = one(QUERIES);
      await timed(`PG: ${name}`, async () => void await client.query(sql));
    } else {
      await timed("PG insert", async () => {
        await client.query("insert into written values ($1, $2, now())", [`p${k}`, n]);
        acknowledged++;
      });
    }
    await pause();
  }
  await client.end();
}

/** Reads some kilobytes of a large answer at a time. */
async function slowClient(): Promise<void> {
  await connected.promise;
  while (!isOver()) {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.httpPort });
    const path = `/exp?${new URLSearchParams({ query: LARGE })}`;
    await connection.write(new TextEncoder().encode(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`));
    const bytes = new Uint8Array(4096);
    while (!isOver()) {
      const count = await connection.read(bytes);
      if (count === null) break;
      slowBytes += count;
      await pause();
    }
  }
}

await Promise.all(
  Array.from({ length: each }, (_, k) => [isSlow(k) ? slowClient() : httpClient(k), pgReader(k)]).flat(),
);
const { promise, resolve } = Promise.withResolvers<HealthAnswer[]>();
health.onmessage = ({ data }: MessageEvent<HealthAnswer[]>) => resolve(data);
health.postMessage("end");
const answers = await promise;
times["health"] = answers.map(({ ms }) => ms);
const latest = answers.reduce((worst, answer) => answer.ms > worst.ms ? answer : worst);
console.log(`health was worst after ${((latest.start - answers[0].start) / 1000).toFixed(1)} s`);
health.terminate();
const rows = Object.entries(times).sort().map(([kind, list]) => [
  kind,
  `${list.length}`,
  ...(list.length === 0
    ? ["", "", ""]
    : [median(list), percentile(list, 0.99), list.reduce((a, b) => Math.max(a, b))].map((ms) => ms.toFixed(1))),
]);
console.log(
  `${2 * each} connections for ${options.seconds} s, each pausing ${PAUSE_MS} ms on average; ${
    Math.ceil(each / SLOW_OF)
  } slow readers`,
);
console.log(table(["", "count", "p50 ms", "p99 ms", "worst ms"], rows));
console.log(
  `slow readers took ${(slowBytes / 2 ** 20).toFixed(0)} MiB; resident ${residentBefore} → ${
    resident("VmHWM")
  } MiB at most`,
);
for (const [text, count] of errors) console.log(`${count} times: ${text}`);
const stored = (await run("select count() from written"))![0][0];
console.log(`${stored} rows stored, ${acknowledged} acknowledged`);
if (stored !== acknowledged) throw new Error("rows are missing, or there are more than were acknowledged");
