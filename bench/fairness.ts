/**
 * Small queries of many connections, half over HTTP and half prepared over the PostgreSQL protocol, and health checks, beside two long
 * queries and a bulk load over the line protocol. Clients speak over raw sockets in processes of their own.
 *
 *     deno run -A --lock=dev.lock bench/fairness.ts [--connections=500] [--seconds=10] [--pause=100] [--warm-up=0]
 *
 * `--pause`: average time in ms between two queries of a connection. `--warm-up`: share of the time before the measurement.
 */
import { parseArgs } from "node:util";
import { startServer } from "./server.ts";
import { startClient } from "./client-process.ts";
import type { Order } from "./latency-client.ts";
import { describeMachine, table } from "./report.ts";

const { values: options } = parseArgs({
  options: {
    connections: { type: "string", default: "500" },
    seconds: { type: "string", default: "10" },
    pause: { type: "string", default: "100" },
    "warm-up": { type: "string", default: "0" },
  },
});
const each = Math.floor(Number(options.connections) / 2), seconds = Number(options.seconds);
const QUERIES = [
  "select timestamp, price from trades where timestamp in '2024-01-02T03:04:05'",
  "select * from trades latest on timestamp partition by symbol",
  "select avg(price) from trades where symbol = 'S7' and timestamp in '2024-01-02T03'",
];
const LONG = "select count() from long_sequence(3000000) a cross join long_sequence(3000000) b where a.x + b.x = -1";
const BATCH_ROWS = 10_000, BATCHES = 8;

await using server = await startServer({
  env: {
    SVC_PG_AUTH_METHOD: "password",
    SVC_QUERY_TIMEOUT: `${seconds + 2}s`,
    SVC_HTTP_NET_CONNECTION_LIMIT: `${each + 20}`,
    SVC_PG_NET_CONNECTION_LIMIT: `${each + 20}`,
  },
});
console.log(describeMachine());
const made = await server.exec(
  "create table trades as (select timestamp_sequence('2024-01-01', 100000) timestamp, rnd_symbol('S1','S2','S3','S4','S5','S6','S7') symbol, rnd_double() price from long_sequence(2000000)) timestamp(timestamp) partition by day",
);
if (made.error !== undefined) throw new Error(made.error);

const bodies = Array.from({ length: BATCHES }, (_, batch) =>
  new TextEncoder().encode(
    Array.from(
      { length: BATCH_ROWS },
      (_, k) => `bulk,sym=s${k % 100},side=buy price=${k}.5,amount=${k}i ${batch * BATCH_ROWS + k}`,
    ).join("\n"),
  ));
// Without a warm-up what is asked first is measured, too: then the server gets to know the queries, and starts workers.
const common = { depth: 1, ms: seconds * 1000, warmUp: Number(options["warm-up"]) };
const orders: [string, Order][] = [
  ...QUERIES.flatMap((query, k): [string, Order][] =>
    (["http", "pg"] as const).map((protocol) => {
      const connections = Math.floor((each * (k + 1)) / QUERIES.length) - Math.floor((each * k) / QUERIES.length);
      const port = protocol === "http" ? server.httpPort : server.pgPort;
      const name = `${protocol}: ${["rows of a second", "LATEST ON", "average of an hour"][k]}`;
      return [name, { protocol, port, query, connections, pauseMs: Number(options.pause), ...common }];
    })
  ),
  ["health", {
    protocol: "http",
    port: server.minPort,
    query: "",
    path: "/status",
    connections: 1,
    pauseMs: 5,
    ...common,
  }],
];
// Each client is a process. They start before the load does, because starting takes a core longer than a query waits.
const clients = await Promise.all(orders.map(async ([, { protocol, port, path, query }]) => {
  const client = startClient();
  await client.ask({ protocol, port, path, query: query && "select 1", connections: 1, depth: 1, ms: 50 });
  return client;
}));

let isOver = false, written = 0;
const load = (async () => {
  for (let k = 0; !isOver; k++) {
    const reply = await fetch(`${server.http}/write?precision=u`, { method: "POST", body: bodies[k % BATCHES] });
    if (reply.status !== 204) throw new Error(await reply.text());
    written += BATCH_ROWS;
  }
})();
const long = [1, 2].map(() => server.exec(LONG));
const results = await Promise.all(orders.map(async ([name, order], k) => ({ name, ...await clients[k].ask(order) })));
isOver = true;
await load;
await Promise.all(long);
for (const client of clients) await client[Symbol.asyncDispose]();
console.log(table(
  ["", "p50 ms", "p99 ms", "worst ms", "a second"],
  results.map(({ name, p50Ms, p99Ms, worstMs, perSecond }) => [
    name,
    p50Ms.toFixed(1),
    p99Ms.toFixed(1),
    worstMs.toFixed(1),
    perSecond.toFixed(0),
  ]),
));
console.log(`${(written / seconds / 1000).toFixed(0)}k rows a second by line protocol`);
