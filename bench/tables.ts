/**
 * Many tables: creates them by SQL and by line protocol, writes to each, and measures small queries, `tables()`, memory and the next start.
 *
 *     deno run -A --lock=dev.lock bench/tables.ts [--tables=10000]
 */
import { parseArgs } from "node:util";
import { residentBytes } from "../tests/memory.ts";
import { startServer, type TestServer } from "./server.ts";
import { describeMachine, median, percentile } from "./report.ts";

const { values: options } = parseArgs({ options: { tables: { type: "string", default: "10000" } } });
const tableCount = Number(options.tables);
const QUERIES = 1_000;
/** Memory is given back after five to ten seconds without work. */
const REST_MS = 15_000;

const seconds = (sinceMs: number) => `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;

function resident(server: TestServer): string {
  return `${Math.round(residentBytes(server.process.pid) / 2 ** 20)} MiB resident`;
}

async function exec(server: TestServer, sql: string): Promise<unknown[][]> {
  const { error, dataset } = await server.exec(sql);
  if (error !== undefined) throw new Error(`${sql}: ${error}`);
  return dataset ?? [];
}

/** Returns the description of the times of `select count()` of random tables. */
async function smallQueries(server: TestServer): Promise<string> {
  const times: number[] = [];
  for (let k = 0; k < QUERIES; k++) {
    const table = `t${Math.floor(Math.random() * tableCount)}`;
    const startMs = performance.now();
    await exec(server, `select count(), max(usage) from ${table}`);
    times.push(performance.now() - startMs);
  }
  return `p50 ${median(times).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms, worst ${
    Math.max(...times).toFixed(0)
  } ms`;
}

/** A row for each table in each request. */
async function write(server: TestServer, round: number): Promise<void> {
  const time = 1_700_006_400_000_000_000n + BigInt(round) * 1_000_000_000n;
  const lines = Array.from(
    { length: tableCount },
    (_, k) => `t${k},host=h${round} usage=${k}.5,count=${round}i ${time}\n`,
  );
  for (let from = 0; from < tableCount; from += 500) {
    const body = lines.slice(from, from + 500).join("");
    const reply = await fetch(`${server.http}/write`, { method: "POST", body });
    if (reply.status !== 204) throw new Error(await reply.text());
    await reply.body?.cancel();
  }
}

console.log(describeMachine());
const root = await Deno.makeTempDir({ prefix: "sundial-tables-" });
try {
  let server = await startServer({ root });
  console.log(`before: ${resident(server)}`);
  let startMs = performance.now();
  for (let k = 0; k < tableCount / 2; k++) {
    await exec(
      server,
      `create table t${k} (host symbol, usage double, count long, timestamp timestamp) timestamp(timestamp) partition by day`,
    );
  }
  console.log(`${tableCount / 2} tables by CREATE TABLE: ${seconds(startMs)}; ${resident(server)}`);
  startMs = performance.now();
  await write(server, 0);
  console.log(`the other half by line protocol, and a row for each table: ${seconds(startMs)}; ${resident(server)}`);
  startMs = performance.now();
  for (let round = 1; round <= 5; round++) await write(server, round);
  console.log(`five more rows for each table: ${seconds(startMs)}; ${resident(server)}`);
  console.log(`${QUERIES} small queries: ${await smallQueries(server)}`);
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  console.log(`at rest: ${resident(server)}`);
  startMs = performance.now();
  const tables = await exec(server, "tables()");
  console.log(`tables(): ${tables.length} rows in ${seconds(startMs)}`);
  startMs = performance.now();
  const columns = await exec(server, "select count() from information_schema.columns");
  console.log(`count of information_schema.columns, ${columns[0][0]}: ${seconds(startMs)}`);
  startMs = performance.now();
  await server.stop();
  console.log(`stop: ${seconds(startMs)}`);
  for (const how of ["SIGTERM", "SIGKILL"] as const) {
    startMs = performance.now();
    server = await startServer({ root });
    console.log(`start after ${how}: ${seconds(startMs)}; ${resident(server)}`);
    console.log(`${QUERIES} small queries: ${await smallQueries(server)}; ${resident(server)}`);
    startMs = performance.now();
    await write(server, how === "SIGTERM" ? 6 : 7);
    console.log(`a row for each table: ${seconds(startMs)}; ${resident(server)}`);
    if (how === "SIGTERM") {
      server.process.kill("SIGKILL");
      await server.process.status;
    }
  }
  const [[rows]] = await exec(server, `select count() from t${tableCount - 1}`);
  if (rows !== 8) throw new Error(`the last table has ${rows} rows instead of 8`);
  await server.stop();
} finally {
  await Deno.remove(root, { recursive: true });
}
