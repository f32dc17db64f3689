/** Measures the latency of the smallest query, the throughput of the largest answer, and the start. */
import pg from "pg";
import { startServer } from "../tests/server.ts";
import { median, percentile } from "./report.ts";

const QUERIES = 5_000;

/** Baseline of client and runtime: a minimal Deno.serve that sends the same number of bytes. */
const BARE = `Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: ({ port }) => console.log(port) }, () =>
  new Response(new Uint8Array(110), { headers: [["transfer-encoding", "chunked"]] }))`;

export async function latencySuite(work: string): Promise<void> {
  await using server = await startServer({ root: `${work}/latency` });
  const bare = new Deno.Command(Deno.execPath(), { args: ["eval", BARE], stdout: "piped" }).spawn();
  const { value } = await bare.stdout.getReader().read();
  const barePort = new TextDecoder().decode(value).trim();
  // Alternate both, as the machine's speed changes.
  const [http, floor] = await fetchTimes([`${server.http}/exec?query=select%201`, `http://127.0.0.1:${barePort}/`]);
  bare.kill("SIGKILL");
  await bare.status;
  const said = (times: number[]) => `p50 ${median(times).toFixed(3)} ms, p99 ${percentile(times, 0.99).toFixed(3)} ms`;
  console.log(`\nselect 1 over /exec, one connection (with this client's fetch): ${said(http)}`);
  console.log(`as many bytes of a bare Deno.serve, in turn with it: ${said(floor)}`);
  const client = new pg.Client({
    host: "127.0.0.1",
    port: server.pgPort,
    user: "admin",
    password: "quest",
    database: "qdb",
  });
  await client.connect();
  const wire: number[] = [];
  for (let i = 0; i < QUERIES; i++) {
    const start = performance.now();
    await client.query({ name: "one", text: "select 1" });
    if (i >= 500) wire.push(performance.now() - start);
  }
  await client.end();
  console.log(`prepared select 1 over PG wire (node-postgres): ${said(wire)}`);
}

async function fetchTimes(urls: string[]): Promise<number[][]> {
  const times: number[][] = urls.map(() => []);
  for (let i = 0; i < QUERIES; i++) {
    for (const [k, url] of urls.entries()) {
      const start = performance.now();
      await (await fetch(url)).arrayBuffer();
      if (i >= 500) times[k].push(performance.now() - start);
    }
  }
  return times;
}

export async function exportSuite(work: string): Promise<void> {
  await using server = await startServer({ root: `${work}/export` });
  await server.exec(
    "create table big as (select x, x * 0.25 price, timestamp_sequence(0, 1000000) ts, rnd_symbol('BTC-USD', 'ETH-USD') symbol, x % 1000 small from long_sequence(1000000)) timestamp(ts) partition by month",
  );
  const times: number[] = [];
  let size = 0;
  for (let round = 0; round < 4; round++) {
    const start = performance.now();
    size = 0;
    const reply = await fetch(`${server.http}/exp?query=big`);
    for await (const chunk of reply.body!) size += chunk.length;
    times.push(performance.now() - start);
  }
  console.log(
    `\n/exp of 1M rows (${(size / 1e6).toFixed(0)} MB): ${(size / 1000 / median(times.slice(1))).toFixed(0)} MB/s`,
  );
}

export async function startSuite(work: string): Promise<void> {
  const root = `${work}/start`;
  await (await startServer({ root })).stop();
  const times: number[] = [];
  let rss = 0;
  for (let round = 0; round < 5; round++) {
    const start = performance.now();
    const server = await startServer({ root, env: { SVC_SHARED_WORKER_COUNT: "4" } });
    times.push(performance.now() - start);
    await new Promise((resolve) => setTimeout(resolve, 500));
    rss = residentBytes(server.process.pid);
    await server.stop();
  }
  console.log(
    `\nstart to first answer: ${median(times).toFixed(0)} ms; idle RSS with 4 workers ${
      (rss / 2 ** 20).toFixed(0)
    } MiB`,
  );
}

function residentBytes(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1] ?? 0) * 1024;
  } catch {
    return 0; // not Linux
  }
}
