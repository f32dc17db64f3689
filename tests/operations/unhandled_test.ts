/** Each kind of unhandled error counts once, and clients' errors do not count. */
import assert from "node:assert/strict";
import pg from "pg";
import { type DatabaseOptions, databaseSettings, openDatabase } from "../../src/database/mod.ts";
import { SqlError } from "../../src/errors.ts";
import { createMetrics } from "../../src/metrics/mod.ts";
import { configOf } from "../../src/command/testing.ts";
import { startHttp } from "../../src/wire/http/mod.ts";
import { FAKE_CONSOLE } from "../../src/wire/testing/fake-console.ts";
import { startPg } from "../../src/wire/pg/mod.ts";
import { FakeDatabase } from "../../src/wire/testing/fake-database.ts";
import { until } from "../programs.ts";
import { CRITICAL, startServer, type TestServer } from "../server.ts";
import { pgClient } from "../pg-client.ts";

async function count(server: TestServer): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
  return Number(/^service_unhandled_errors_total (\d+)$/m.exec(text)![1]);
}

Deno.test("unhandled: an error and a rejection at the top of the main thread, and an error of a query worker", async () => {
  await using server = await startServer({
    env: { SVC_METRICS_ENABLED: "true", SVC_DEV_MODE_ENABLED: "true", SVC_SHARED_WORKER_COUNT: "2" },
  });
  const crashes: [string, RegExp][] = [
    ["select simulate_crash('one')", / C server-main unhandled error: Error: simulated crash: one/],
    ["select simulate_crash('two', 'promise')", / C server-main unhandled rejection: Error: simulated crash: two/],
    ["select simulate_crash('three', 'query')", / C database query worker \d failed and is replaced.*three/],
  ];
  let expected = 0;
  for (const [sql, line] of crashes) {
    assert.equal(await count(server), expected++);
    await server.exec(sql);
    await until("the log tells of it", () => line.test(server.output()));
    assert.equal(await count(server), expected);
    assert.deepEqual((await server.exec("select 1")).dataset, [[1]], "the server goes on");
  }
});

Deno.test("unhandled: no error of a client, and no exceeded limit, counts", async () => {
  await using server = await startServer({
    env: { SVC_METRICS_ENABLED: "true", SVC_QUERY_TIMEOUT: "300ms", SVC_CAIRO_QUERY_MEMORY_LIMIT: "16m" },
  });
  await server.exec("create table t (x long, ts timestamp) timestamp(ts) partition by day");
  const faults = [
    "selec",
    "select 'open",
    "select nothing from t",
    "select x from nowhere",
    "select nofunction(x) from t",
    "select 'a'::uuid",
    "create table t (x long)",
    "insert into t values ('a', 'b')",
    "insert into t values (1)",
    "select * from read_parquet('../../etc/passwd')",
    "select * from read_parquet('none.parquet')",
    "select count() from long_sequence(3000000) a cross join long_sequence(3000000) b where a.x + b.x = -1",
    "select x, count() from long_sequence(20000000) group by x order by 2 desc limit 3",
  ];
  for (const sql of faults) assert.notEqual((await server.exec(sql)).error, undefined, sql);
  const post = (path: string, body: string) => fetch(`${server.http}${path}`, { method: "POST", body });
  for (
    const reply of await Promise.all([
      post("/write", "this is no line"),
      post("/write", 't x=1i\nt x="text"'),
      post("/exec", "x"),
      fetch(`${server.http}/nowhere`),
      fetch(`${server.http}/exec?query=%ff`),
    ])
  ) {
    await reply.body?.cancel();
    assert.ok(reply.status >= 400 && reply.status < 500, `${reply.url}: ${reply.status}`);
  }
  const settings = { host: "127.0.0.1", port: server.pgPort, user: "admin", database: "qdb" };
  await assert.rejects(new pg.Client({ ...settings, password: "wrong" }).connect());
  const client = new pg.Client({ ...settings, password: "quest" });
  await client.connect();
  for (const sql of faults.slice(0, 6)) await assert.rejects(client.query(sql), sql);
  await assert.rejects(client.query("select $1::long", ["a"]));
  await client.end();
  assert.equal(await count(server), 0, server.output());
  assert.doesNotMatch(server.output(), CRITICAL);
});

const statements = {
  ours: { prepareError: new TypeError("ours") as unknown as SqlError },
  "the client's": { prepareError: new SqlError("the client's", 0) },
};
const outcomes: [statement: keyof typeof statements, status: number, unhandled: number][] = [
  ["ours", 500, 1],
  ["the client's", 400, 0],
];
for (const [statement, status, unhandled] of outcomes) {
  Deno.test(`unhandled: ${unhandled} after a statement that fails by ${statement} fault, over HTTP and over PG`, async () => {
    const metrics = createMetrics();
    const database = new FakeDatabase((text) => statements[text as keyof typeof statements] ?? {});
    const silent = {
      debug() {},
      info() {},
      error() {},
      critical() {},
      advisory() {},
      log() {},
      name: "x",
      isDebug: false,
    };
    const at = { hostname: "127.0.0.1", port: 0, database, log: silent, metrics };
    const http = await startHttp({ ...at, config: configOf(), console: FAKE_CONSOLE });
    const wire = await startPg({ ...at, user: "admin", password: "quest" });
    try {
      const query = new URLSearchParams({ query: statement });
      const reply = await fetch(`http://127.0.0.1:${http.port}/exec?${query}`);
      await reply.body?.cancel();
      assert.deepEqual([reply.status, metrics.unhandledErrors.value], [status, unhandled]);
      const client = pgClient({ pgPort: wire.port });
      await client.connect();
      await assert.rejects(client.query(statement));
      await client.end();
      assert.equal(metrics.unhandledErrors.value, 2 * unhandled);
    } finally {
      await Promise.all([http.close(), wire.close()]);
    }
  });
}

Deno.test("unhandled: a commit that could not be applied counts; damage found on the disk does not", async () => {
  // A writer whose log cannot be synced, from the other threads' point of view.
  const writer = `
    const tell = (message) => postMessage({ kind: "log", level: "CRITICAL", message });
    self.onmessage = () => {
      postMessage({ kind: "damage", message: "table t is unusable: its file is too short" });
      postMessage({ kind: "ready", report: [] });
      setTimeout(() => tell("the database is read-only from now on: the log could not be synced: EIO"), 50);
    };`;
  const writerThread = new Worker(`data:application/javascript,${encodeURIComponent(writer)}`, { type: "module" });
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  const metrics = createMetrics();
  const told: string[] = [];
  const settings = configOf({
    "cairo.root": root,
    "cairo.memory.size": "64m",
    "cairo.pool.size": "16m",
    "shared.worker.count": "0",
  }).view(databaseSettings);
  const options: DatabaseOptions = Object.assign(settings, {
    logsDebug: false,
    parameters: () => [],
    writerThread,
    log: (_level: string, message: string) => void told.push(message),
    onUnhandledError: () => metrics.unhandledErrors.inc(),
  });
  await openDatabase(options);
  assert.deepEqual([told.length, metrics.unhandledErrors.value], [1, 0]);
  await until("the log tells of it", () => told.length === 2);
  assert.equal(metrics.unhandledErrors.value, 1);
  writerThread.terminate();
  await Deno.remove(root, { recursive: true });
});
