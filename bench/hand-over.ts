/**
 * What it costs that a query thread runs a small query and not the main thread: two servers with the same rows, of which one runs no query
 * on the main thread, asked in turn over one connection each. The difference includes the request and the answer in shared memory, both
 * wakes, and the work of the query thread.
 *
 * The first row is the same for two bare servers (`bare-server.ts`), of which one hands each request to a bare worker: what the machine takes
 * for waking two threads.
 */
import { startBareServer } from "./bare.ts";
import type { startClient } from "./client-process.ts";
import { median, table } from "./report.ts";
import { startServer } from "./server.ts";

const SECOND = "timestamp in '2024-01-01T00:30:00'";
const QUERIES = [
  { name: "select 1", sql: "select 1" },
  { name: "two columns of one second", sql: `select price, amount from trades where ${SECOND}` },
  { name: "average of a second", sql: `select avg(price) from trades where ${SECOND}` },
];
const MEASURED_MS = 400;

export async function measureHandOver(client: ReturnType<typeof startClient>, rounds: number): Promise<void> {
  await using bare = await startBareServer();
  await using handsOver = await startBareServer({ handsOver: true });
  await using onMain = await start({});
  await using onThread = await start({ SVC_QUERY_DIRECT_ROWS_MAX: "-1" });
  const ours = { main: onMain.pgPort, thread: onThread.pgPort };
  const cases = [
    { name: "two bare threads", query: "", main: bare.ports.pg, thread: handsOver.ports.pg },
    ...QUERIES.map(({ name, sql }) => ({ name, query: sql, ...ours })),
  ];
  const rows: string[][] = [];
  for (const { name, query, ...ports } of cases) {
    const pairs: [main: number, thread: number][] = [];
    for (let round = 0; round < rounds; round++) {
      const micros = async (port: number) => {
        const order = { protocol: "pg", port, query, connections: 1, depth: 1, ms: MEASURED_MS } as const;
        return 1000 * (await client.ask(order)).p50Ms;
      };
      if (round % 2) {
        const thread = await micros(ports.thread);
        pairs.push([await micros(ports.main), thread]);
      } else pairs.push([await micros(ports.main), await micros(ports.thread)]);
    }
    const of = (value: (pair: [number, number]) => number) => median(pairs.map(value)).toFixed(0);
    const least = Math.min(...pairs.map(([, thread]) => thread)) - Math.min(...pairs.map(([main]) => main));
    rows.push([name, of(([main]) => main), of(([, thread]) => thread), of(([a, b]) => b - a), least.toFixed(0)]);
  }
  console.log(`\nhanding over to a query thread, prepared over PG, one connection, p50, ${rounds} rounds in turn`);
  console.log(table(["query", "main us", "query thread us", "difference us", "of the least us"], rows));
}

async function start(env: Record<string, string>) {
  const server = await startServer({ env: { SVC_PG_AUTH_METHOD: "password", ...env } });
  const { error } = await server.exec(
    "create table trades as (select timestamp_sequence('2024-01-01', 50000) timestamp, rnd_double() price, rnd_double() amount from long_sequence(200000)) timestamp(timestamp) partition by day",
  );
  if (error !== undefined) throw new Error(error);
  return server;
}
