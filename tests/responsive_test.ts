/** The main thread stays free: heavy queries and a bulk insert hold up neither small queries nor health. Reports times, asserts answers. */
import assert from "node:assert/strict";
import { startServer } from "./server.ts";

Deno.test("select 1 and health answer while heavy queries and a bulk insert run", async () => {
  await using server = await startServer({ env: { SVC_QUERY_TIMEOUT: "3s" } });
  let heavyRunning = true;
  const heavy = Promise.all(
    [1, 2].map(() =>
      server.exec(
        "select count() from long_sequence(3000000) a cross join long_sequence(3000000) b where a.x + b.x = -1",
      )
    ),
  );
  const bulk = server.exec(
    "create table bulk as (select x, x * 0.5 d, timestamp_sequence(0, 1000) ts from long_sequence(2000000)) timestamp(ts) partition by day",
  );
  heavy.finally(() => heavyRunning = false);
  const times: number[] = [];
  while (heavyRunning) {
    const start = performance.now();
    const [one, health] = await Promise.all([server.exec("select 1"), fetch(`http://127.0.0.1:${server.minPort}/`)]);
    await health.body?.cancel();
    times.push(performance.now() - start);
    assert.deepEqual(one.dataset, [[1]]);
    assert.equal(health.status, 200);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  for (const reply of await heavy) {
    assert.match(reply.error ?? "", /time/i, "a query that runs longer than query.timeout is ended by it");
  }
  assert.equal((await bulk).error, undefined);
  times.sort((a, b) => a - b);
  console.log(
    `  ${times.length} rounds; p50 ${times[times.length >> 1].toFixed(1)} ms, p99 ${
      times[Math.floor(times.length * 0.99)].toFixed(1)
    } ms`,
  );
});

Deno.test("a query over its memory limit fails with the limit and the operator; the server lives", async () => {
  await using server = await startServer({ env: { SVC_CAIRO_QUERY_MEMORY_LIMIT: "16m" } });
  const reply = await server.exec("select x, count() from long_sequence(20000000) group by x order by 2 desc limit 3");
  assert.match(reply.error ?? "", /16/);
  assert.match(reply.error ?? "", /aggregate|group|sort/i);
  assert.deepEqual((await server.exec("select 1")).dataset, [[1]]);
});

Deno.test("a large result to a slow reader keeps the server small", async () => {
  await using server = await startServer();
  const before = residentBytes(server.process.pid);
  const reply = await fetch(
    `${server.http}/exp?query=${encodeURIComponent("select x, x * 0.5, 'some text' from long_sequence(10000000)")}`,
  );
  const reader = reply.body!.getReader();
  let size = 0, peak = 0, reads = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (++reads < 20) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      peak = Math.max(peak, residentBytes(server.process.pid));
    }
  }
  assert.ok(size > 200_000_000, `${size} bytes`);
  if (before > 0) {
    assert.ok(peak - before < 200 * 2 ** 20, `the server grew by ${((peak - before) / 2 ** 20).toFixed(0)} MiB`);
  }
});

function residentBytes(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1] ?? 0) * 1024;
  } catch {
    return 0; // not Linux
  }
}
