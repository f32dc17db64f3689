/**
 * A thread that ends by an error: its query gets an error, others continue, and nothing that was acknowledged is lost.
 */
import assert from "node:assert/strict";
import { startServer, type TestServer } from "./server.ts";

const DEVELOPMENT = { SVC_DEV_MODE_ENABLED: "true", SVC_METRICS_ENABLED: "true" };

async function metric(server: TestServer, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
  const found = new RegExp(`^${name} (\\S+)$`, "m").exec(text);
  assert.ok(found, `${name} is in the metrics`);
  return Number(found[1]);
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 20_000; Date.now() < deadline;) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`after 20 s still not: ${what}`);
}

Deno.test("a failed query worker: its query gets an error, others continue, pins and memory are freed, and it is replaced", async () => {
  await using server = await startServer({
    env: { ...DEVELOPMENT, SVC_SHARED_WORKER_COUNT: "2", SVC_QUERY_DIRECT_ROWS_MAX: "0" },
  });
  await server.exec(
    "create table t as (select x, 'text ' || x s, timestamp_sequence(0, 1000000) ts from long_sequence(500000)) timestamp(ts) partition by day",
  );
  const queryMemory = () => metric(server, 'service_memory_tag_bytes\\{tag="query"\\}');
  const pins = () => metric(server, "service_pool_pins");
  const [memoryBefore, pinsBefore] = [await queryMemory(), await pins()];
  for (let round = 0; round < 3; round++) {
    // Its reader does not read, and the result exceeds the socket buffers: the query waits with pinned frames and
    // memory.
    const stalled = await fetch(
      `${server.http}/exp?${new URLSearchParams({
        query: "select a.x, a.s, a.ts, b.x x2, b.s s2, b.ts ts2, a.s s3, b.s s4 from t a join t b on x",
      })}`,
    );
    await until("the query holds something", async () => await queryMemory() > memoryBefore);
    await until("the query waits for its reader", async () => {
      const { dataset } = await server.exec("select count() from query_activity() where phase = 'sending'");
      return dataset?.[0][0] === 1;
    });
    await server.exec("select simulate_crash('out of luck', 'query')");
    await assert.rejects(async () => {
      for await (const _ of stalled.body!);
    }, "its reader sees that the result is not whole");
    assert.deepEqual((await server.exec("select count(), max(x) from t where s ~ '9'")).dataset?.[0][1], 500000 - 1);
    // What threads keep for further executions is freed after some seconds.
    await until("its memory is free", async () => await queryMemory() <= memoryBefore);
    await until("its pins are gone", async () => await pins() === pinsBefore);
  }
  await until(
    "the log tells of it",
    () => / C .*query worker \d failed and is replaced: .*out of luck/.test(server.output()),
  );
  const both = await Promise.all([1, 2, 3, 4].map((k) => server.exec(`select count() from t where x > ${k}`)));
  assert.deepEqual(both.map(({ dataset }) => dataset?.[0][0]), [499999, 499998, 499997, 499996]);
  assert.equal(await metric(server, "service_unhandled_errors_total"), 3);
});

Deno.test("a failed writer: writes are refused, the process ends with a critical message, and a restart has everything acknowledged", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-writer-" });
  try {
    // Slow syncs, so that some client is always waiting for the writer.
    const server = await startServer({ root, env: { ...DEVELOPMENT, SVC_DEV_SYNC_DELAY: "30ms" } });
    await server.exec("create table t (client long, n long, ts timestamp) timestamp(ts) partition by hour");
    const acknowledged = new Set<string>();
    const clients = [0, 1, 2, 3].map(async (client) => {
      for (let n = 0;; n++) {
        try {
          const { error } = await server.exec(`insert into t values (${client}, ${n}, ${n * 1000})`);
          if (error !== undefined) return error;
          acknowledged.add(`${client} ${n}`);
        } catch {
          return "the connection broke";
        }
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 500));
    await server.exec("select simulate_crash('out of luck', 'writer')").catch(() => {});
    const ends = await Promise.all(clients);
    assert.ok(ends.some((end) => /writer has failed.*out of luck/.test(end)), ends.join("; "));
    assert.equal((await server.process.status).code, 1);
    await server.stop();
    assert.match(server.output(), / C .*the writer has failed: .*out of luck/);
    assert.match(server.output(), /stopping the server, so that the next start recovers/);

    await using again = await startServer({ root });
    const { dataset } = await again.exec("select client, n from t");
    const found = new Set(dataset!.map(([client, n]) => `${client} ${n}`));
    assert.ok(acknowledged.size > 0);
    for (const key of acknowledged) assert.ok(found.has(key), `${key} was acknowledged`);
    assert.equal((await again.exec("insert into t values (9, 9, 9)")).error, undefined);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
