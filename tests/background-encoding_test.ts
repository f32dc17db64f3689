/** Columns are encoded by query threads while the writer goes on with commits, and a thread that fails meanwhile loses nothing. */
import assert from "node:assert/strict";
import { startServer, type TestServer } from "./server.ts";

const ENV = {
  SVC_DEV_MODE_ENABLED: "true",
  SVC_METRICS_ENABLED: "true",
  SVC_SHARED_WORKER_COUNT: "2",
  // Checkpoints, and flushes ahead of them, begin while rows come.
  SVC_CAIRO_CHECKPOINT_LOG_SIZE: "16m",
};
const BATCH = 10_000;

async function metric(server: TestServer, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
  const found = new RegExp(`^${name} (\\S+)$`, "m").exec(text);
  assert.ok(found, `${name} is in the metrics`);
  return Number(found[1]);
}

/** Rows with texts, of which row `k` has the time `k` milliseconds. */
async function send(server: TestServer, from: number, count: number): Promise<void> {
  const lines = Array.from({ length: count }, (_, n) => {
    const k = from + n;
    return `logs,level=${k % 3} message="request ${k * 7919 % 1000} took ${k} ms at host-${k % 50}",path="/a/${
      k % 9
    }" ${k}`;
  });
  const reply = await fetch(`${server.http}/write?precision=ms`, { method: "POST", body: lines.join("\n") });
  assert.equal(reply.status, 204, await reply.text());
}

/** Ends a query worker. Main knows of it before anything else is sent, which would fail with the worker otherwise. */
async function failWorker(server: TestServer): Promise<void> {
  const failures = () => server.output().split("failed and is replaced").length;
  const before = failures();
  await server.exec("select simulate_crash('out of luck', 'query')");
  while (failures() === before) await new Promise((resolve) => setTimeout(resolve, 10));
}

async function expectRows(server: TestServer, count: number): Promise<void> {
  const { dataset, error } = await server.exec(
    "select count(), count_distinct(message), sum(length(path)), max(timestamp) from logs where message ~ 'took .* ms at host-'",
  );
  assert.equal(error, undefined);
  assert.deepEqual(dataset![0], [count, count, 4 * count, new Date(count - 1).toISOString().replace("Z", "000Z")]);
}

Deno.test("flushes under load encode their columns on query threads, also if one fails meanwhile", async () => {
  const rowsMin = 600_000, rowsMax = 2_400_000, encodedMin = 3;
  let root: string, rows = 0;
  {
    await using server = await startServer({ env: ENV, keepRoot: true });
    root = server.root;
    const encodedElsewhere = () => metric(server, "service_flushed_segments_encoded_by_query_threads_total");
    // While other programs need the processor, query threads get little of it.
    for (; rows < rowsMin || rows < rowsMax && await encodedElsewhere() < encodedMin; rows += BATCH) {
      await send(server, rows, BATCH);
      if (rows < rowsMin && rows % 200_000 === 100_000) await failWorker(server);
    }
    await expectRows(server, rows);
    const encoded = await encodedElsewhere(), all = await metric(server, "service_flushed_segments_total");
    assert.ok(encoded >= encodedMin, `${encoded} of ${all} segments`);
    await server.stop();
  }
  {
    await using server = await startServer({ env: ENV, root });
    await expectRows(server, rows);
    const { dataset } = await server.exec(
      "select encodings from table_column_storage('logs') where column = 'message'",
    );
    assert.deepEqual([...new Set(dataset!.map(([encodings]) => encodings))], ["zstd"]);
  }
});

Deno.test("columns that were stored raw are encoded while the server is idle", async () => {
  const create =
    "create table t as (select timestamp_sequence('2024-01-01', 1000000) ts, x, 'text ' || x % 1000 s, rnd_uuid4() id from long_sequence(300000)) timestamp(ts) partition by day";
  const query = "select count(), sum(x), sum(length(s)), max(ts), count_distinct(id) from t";
  // Three full days and the rest of the rows, at most 65,536 in a segment.
  const segments = 7;
  let root: string, rows: unknown[][];
  {
    await using server = await startServer({
      env: { ...ENV, SVC_CAIRO_COLUMN_ENCODING: "raw" },
      keepRoot: true,
    });
    root = server.root;
    assert.equal((await server.exec(create)).error, undefined);
    rows = (await server.exec(query)).dataset!;
    await server.stop();
  }
  for (const round of ["first", "second"]) {
    await using server = await startServer({ env: ENV, root, keepRoot: round === "first" });
    const encodings = async () => {
      const { dataset } = await server.exec("select column, encodings from table_column_storage('t') order by column");
      return [...new Set(dataset!.map((row) => row.join(" ").trim()))].sort();
    };
    if (round === "first") {
      // The metric is polled, as each query makes the server wait until it is idle again.
      for (let left = 120; left > 0 && (await metric(server, "service_repacked_segments_total")) < segments; left--) {
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    } else await new Promise((resolve) => setTimeout(resolve, 3000));
    assert.deepEqual((await server.exec(query)).dataset, rows);
    assert.deepEqual(await encodings(), ["id raw", "s dictionary, zstd", "ts frame", "x frame"]);
    if (round === "second") assert.equal(await metric(server, "service_repacked_segments_total"), 0);
    await server.stop();
  }
});
