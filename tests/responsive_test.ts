/** Heavy queries and a bulk insert delay neither small queries nor health. Reports times, asserts answers. */
import assert from "node:assert/strict";
import { residentBytes } from "./memory.ts";
import { startServer } from "./server.ts";
import { pgClient } from "./pg-client.ts";

/** Duration of the heavy queries: SUNDIAL_HEAVY_SECONDS=10 for a thorough run. */
const HEAVY_SECONDS = Number(Deno.env.get("SUNDIAL_HEAVY_SECONDS") ?? 3);

const BATCH_ROWS = 10_000;

/** More work than the main thread takes. */
const SMALL_FOR_WORKER = "select sum(x) from long_sequence(100000)";

Deno.test("select 1 and health answer while heavy queries and a bulk insert run", async () => {
  await using server = await startServer({
    env: { SVC_QUERY_TIMEOUT: `${HEAVY_SECONDS}s`, SVC_SHARED_WORKER_COUNT: "2" },
  });
  // Prepared in advance, because this thread also measures the times.
  const bodies = Array.from({ length: 16 }, (_, batch) =>
    new TextEncoder().encode(
      Array.from(
        { length: BATCH_ROWS },
        (_, k) => `bulk,sym=s${k % 100},side=buy price=${k}.5,amount=${k}i ${batch * BATCH_ROWS + k}`,
      ).join("\n"),
    ));
  let heavyRunning = true;
  const heavy = Promise.all(
    [1, 2].map(() =>
      server.exec(
        "select count() from long_sequence(3000000) a cross join long_sequence(3000000) b where a.x + b.x = -1",
      )
    ),
  );
  heavy.finally(() => heavyRunning = false);
  // The queries occupy all workers; the writes must not wait for them.
  let written = 0;
  const bulk = (async () => {
    for (let k = 0; heavyRunning; k++) {
      const reply = await fetch(`${server.http}/write?precision=u`, {
        method: "POST",
        body: bodies[k % bodies.length],
      });
      assert.equal(reply.status, 204, await reply.text());
      written += BATCH_ROWS;
    }
  })();
  const probe = async (title: string, ask: () => Promise<void>, timesMin = 21) => {
    const times: number[] = [];
    while (heavyRunning) {
      const start = performance.now();
      await ask();
      times.push(performance.now() - start);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    times.sort((a, b) => a - b);
    const at = (share: number) => times[Math.floor((times.length - 1) * share)].toFixed(1);
    console.log(`  ${title}: ${times.length} times; p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms`);
    assert.ok(times.length >= timesMin);
  };
  const pg = pgClient(server);
  await pg.connect();
  await Promise.all([
    probe("select 1 over HTTP", async () => assert.deepEqual((await server.exec("select 1")).dataset, [[1]])),
    probe("select 1 over PG", async () => assert.equal((await pg.query("select 1::int n")).rows[0].n, 1)),
    probe("health", async () => {
      const reply = await fetch(`http://127.0.0.1:${server.minPort}/`);
      await reply.body?.cancel();
      assert.equal(reply.status, 200);
    }),
    // The heavy queries hold both workers, so a third one runs it.
    probe("a small query that needs a worker", async () => {
      assert.deepEqual((await server.exec(SMALL_FOR_WORKER)).dataset, [[5000050000]]);
    }, 1),
  ]);
  await pg.end();
  for (const reply of await heavy) {
    assert.match(reply.error ?? "", /time/i, "a query that runs longer than query.timeout is ended by it");
  }
  await bulk;
  assert.ok(written > 0);
  assert.deepEqual((await server.exec("select count() from bulk")).dataset, [[written]]);
  console.log(`  ${written} rows were written meanwhile`);
});

Deno.test("readers that stop reading keep neither workers nor places from other queries", async () => {
  await using server = await startServer({ env: { SVC_SHARED_WORKER_COUNT: "2" } });
  using connections = new DisposableStack();
  const query = encodeURIComponent("select x, x::string s from long_sequence(3000000)");
  for (let k = 0; k < 20; k++) {
    const connection = connections.use(await Deno.connect({ hostname: "127.0.0.1", port: server.httpPort }));
    await connection.write(new TextEncoder().encode(`GET /exp?query=${query} HTTP/1.1\r\nHost: x\r\n\r\n`));
    await connection.read(new Uint8Array(1));
  }
  assert.deepEqual((await server.exec(SMALL_FOR_WORKER)).dataset, [[5000050000]]);
  assert.deepEqual((await server.exec("select count() from query_activity()")).dataset, [[21]]);
});

Deno.test("a query over its memory limit fails with the limit and the operator, and the server continues", async () => {
  await using server = await startServer({ env: { SVC_CAIRO_QUERY_MEMORY_LIMIT: "16m", SVC_QUERY_SPILL_LIMIT: "0" } });
  const reply = await server.exec("select x, count() from long_sequence(20000000) group by x order by 2 desc limit 3");
  assert.match(reply.error ?? "", /16/);
  assert.match(reply.error ?? "", /aggregate|group|sort/i);
  assert.deepEqual((await server.exec("select 1")).dataset, [[1]]);
});

Deno.test("a large result to a slow reader takes little memory", async () => {
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
