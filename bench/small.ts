/** Measures the throughput of the largest answer, and the start. */
import { residentBytes } from "../tests/memory.ts";
import { startServer } from "./server.ts";
import { median } from "./report.ts";

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
