/**
 * Simulates a long time of service: cycles of connecting, ingesting, changing, querying and resting. Resident memory after each rest shows
 * whether anything is left behind.
 *
 *     deno run -A --lock=dev.lock bench/uptime.ts [--cycles=20]
 */
import { parseArgs } from "node:util";
import { residentBytes } from "../tests/memory.ts";
import { startServer } from "./server.ts";
import { describeMachine } from "./report.ts";
import { pgClient } from "../tests/pg-client.ts";

const { values: options } = parseArgs({ options: { cycles: { type: "string", default: "20" } } });
/** Memory is given back after five to ten seconds without work. */
const REST_MS = 11_000;
const CONNECTIONS = 40;

console.log(describeMachine());
await using server = await startServer({ env: { SVC_PG_NET_CONNECTION_LIMIT: `${CONNECTIONS + 10}` } });
const run = async (sql: string) => {
  const { error, dataset } = await server.exec(sql);
  if (error !== undefined) throw new Error(`${sql}: ${error}`);
  return dataset;
};
const status = (field: string) =>
  Number(new RegExp(`${field}:\\s+(\\d+)`).exec(Deno.readTextFileSync(`/proc/${server.process.pid}/status`))![1]);
const openFiles = () => [...Deno.readDirSync(`/proc/${server.process.pid}/fd`)].length;
await run("create table kept (who symbol, n long, timestamp timestamp) timestamp(timestamp) partition by hour");

async function connectAndLeave(cycle: number, k: number): Promise<void> {
  const client = pgClient(server);
  client.on("error", () => {}); // of those that leave without a word
  await client.connect();
  await client.query({ name: "one", text: "insert into kept values ($1, $2, now())", values: [`p${k}`, cycle] });
  await client.query(`begin; set local statement_timeout = ${1_000 + k}; select count() from kept; rollback`);
  // Some close the connection without a Terminate message.
  if (k % 4 === 0) (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  else await client.end();
}

for (let cycle = 1; cycle <= Number(options.cycles); cycle++) {
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, k) => connectAndLeave(cycle, k)));
  const time = 1_700_000_000_000_000_000n + BigInt(cycle) * 3_600_000_000_000n;
  for (let body = 0; body < 10; body++) {
    const lines = Array.from({ length: 10_000 }, (_, k) => {
      return `kept,who=w${cycle}x${k % 50} n=${k}i ${time + BigInt(body * 10_000 + k) * 1_000n}\n`;
    });
    const reply = await fetch(`${server.http}/write`, { method: "POST", body: lines.join("") });
    if (reply.status !== 204) throw new Error(await reply.text());
  }
  await run(`create table passing${cycle} as (select x, x::string s, rnd_double() d from long_sequence(100000))`);
  for (let k = 0; k < 50; k++) {
    await run(`select who, count(), avg(n + ${k}) from kept where n > ${cycle} group by who`);
  }
  await run("update kept set n = n + 1 where who = 'p1'");
  await run(`select count() from (select * from passing${cycle} order by d, s)`);
  await run(`drop table passing${cycle}`);
  await run(
    `alter table kept drop partition where timestamp < dateadd('h', -5, '${
      new Date(Number(time / 1_000_000n)).toISOString()
    }')`,
  );
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  console.log(
    `cycle ${cycle}: ${Math.round(residentBytes(server.process.pid) / 2 ** 20)} MiB resident, ${
      status("Threads")
    } threads, ${openFiles()} open files`,
  );
}
