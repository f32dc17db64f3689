/** Queries that do not fit into their memory write to disk, give the same answers, and leave nothing there. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { FULL } from "../src/testing.ts";
import { startServer, type TestServer } from "./server.ts";
import { smallDisk } from "./small-disk.ts";
import { pgClient } from "./pg-client.ts";
import { CREATE, MERGED, QUERIES, REFUSED, ROWS } from "./spill-queries.ts";

const spillRoot = (server: TestServer) => join(server.root, "tmp", "spill");
const leftovers = (server: TestServer) => [...Deno.readDirSync(spillRoot(server))].map(({ name }) => name);

/** Names of operators in EXPLAIN, and queries in which they spill. */
const SPILLING = [
  ["Aggregate", "GROUP BY two keys"],
  ["Aggregate", "GROUP BY text"],
  ["Sort", "ORDER BY"],
  ["Left join", "left join"],
  ["ASOF join", "asof join with many keys"],
  ["LT join", "lt join by texts with a tolerance, in order"],
  ["Union", "union"],
  ["Window", "window functions by partition"],
  ["Window", "window functions over all rows, by several orders"],
];

async function metric(server: TestServer, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

/** `spills`: whether each query must write to disk. `isAsked`: which of the queries run. */
async function answers(
  server: TestServer,
  spills: boolean,
  isAsked = (_: [string, string], _k: number) => true,
): Promise<unknown[]> {
  const found = [];
  for (const [shape, sql] of QUERIES.filter(isAsked)) {
    const before = await metric(server, "service_query_spilled_bytes_total");
    const { error, dataset } = await server.exec(sql);
    assert.equal(error, undefined, shape);
    assert.equal(await metric(server, "service_query_spilled_bytes_total") > before, spills, `${shape} spills`);
    found.push([shape, dataset]);
  }
  return found;
}

Deno.test("queries that outgrow their memory spill, with any number of workers", async (t) => {
  const root = await Deno.makeTempDir({ prefix: "sundial-spill-" });
  try {
    // A busy machine takes long for some of the queries.
    const started = (env: Record<string, string>) =>
      startServer({ root, keepRoot: true, env: { SVC_QUERY_TIMEOUT: "10m", ...env } });
    const small = {
      SVC_CAIRO_QUERY_MEMORY_LIMIT: "24m",
      SVC_DEV_MODE_ENABLED: "true",
      SVC_METRICS_ENABLED: "true",
    };
    let expected: unknown[] = [], merged: unknown[] = [];
    const datasets = (server: TestServer, queries: string[]) =>
      Promise.all(queries.map(async (sql) => {
        const { error, dataset } = await server.exec(sql);
        assert.equal(error, undefined, sql);
        return dataset;
      }));
    await t.step("answers in memory", async () => {
      await using server = await started({ SVC_CAIRO_QUERY_MEMORY_LIMIT: "1g", SVC_METRICS_ENABLED: "true" });
      for (const create of CREATE) assert.equal((await server.exec(create)).error, undefined);
      expected = await answers(server, false);
      merged = await datasets(server, MERGED);
      const lines = (await server.exec(`explain analyze ${MERGED[0]}`)).dataset!.join("\n");
      assert.match(lines, /ASOF join.*; chose .*all right rows/);
    });
    for (const workers of ["1", "4"]) {
      await t.step(`the same answers within 24 MiB, ${workers} workers`, async () => {
        await Deno.mkdir(join(root, "tmp", "spill", "query-7"), { recursive: true });
        await using server = await started({ ...small, SVC_SHARED_WORKER_COUNT: workers });
        assert.deepEqual(leftovers(server), [], "a start removes what was left");
        // Otherwise half of the queries run with each number of workers, and EXPLAIN ANALYZE runs its own with one.
        const isAsked = ([shape]: [string, string], k: number) =>
          FULL || (k % 2 === 0 && !SPILLING.some(([, name]) => name === shape)) === (workers === "1");
        assert.deepEqual(
          await answers(server, true, isAsked),
          expected.filter((_, k) => isAsked(QUERIES[k], k)),
        );
        if (FULL || workers === "4") assert.deepEqual(await datasets(server, MERGED), merged);
        assert.match(
          (await server.exec(`explain analyze ${MERGED[0]}`)).dataset!.join("\n"),
          /chose .*last right rows/,
        );
        assert.deepEqual(leftovers(server), []);
        for (const [operator, shape] of workers === "1" ? SPILLING : []) {
          const sql = QUERIES.find(([name]) => name === shape)![1];
          const lines = (await server.exec(`explain analyze ${sql}`)).dataset!.join("\n");
          assert.match(lines, new RegExp(`${operator}.*; spilled \\d+ (K|M)iB of \\d+ partitions`), shape);
        }
        for (const [sql, error] of workers === "1" ? REFUSED : []) {
          assert.match((await server.exec(sql)).error!, error, sql);
        }
        assert.deepEqual(leftovers(server), []);
        assert.ok(await metric(server, "service_query_spilled_bytes_total") > 1_000_000);
        assert.ok(await metric(server, "service_query_spilled_parts_total") > 1);
        assert.equal(await metric(server, "service_query_spill_size"), 0);
      });
    }
    await t.step("a cancelled query and a failed worker leave nothing on disk", async () => {
      await using server = await started({ ...small, SVC_SHARED_WORKER_COUNT: "2" });
      const spills = async () => {
        for (const end = Date.now() + 20_000; Date.now() < end;) {
          if (leftovers(server).length > 0) return;
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        throw new Error(`nothing was spilled: ${server.output()}`);
      };
      const isEmpty = async () => {
        for (const end = Date.now() + 20_000; leftovers(server).length > 0;) {
          assert.ok(Date.now() < end, `${leftovers(server)} stay`);
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      };
      const query = (sql: string, signal?: AbortSignal) =>
        fetch(`${server.http}/exp?${new URLSearchParams({ query: sql })}`, { signal });
      // More than sockets buffer.
      const all = "select k, sum(d) s, count() c, first(x) f, rpad('', 60, 'x') pad from t group by k";
      const joined = "select a.x, b.x y, b.d, rpad('', 60, 'x') pad from t a asof join t b on (k)";
      for (const sql of [all, joined]) {
        const controller = new AbortController();
        const cancelled = query(sql, controller.signal).then((reply) => reply.text()).catch(() => "cancelled");
        await spills();
        controller.abort();
        assert.equal(await cancelled, "cancelled");
        await isEmpty();
      }
      // Its reader does not read: the query waits, with its groups on disk.
      const stalled = await query(all);
      await spills();
      await server.exec("select simulate_crash('out of luck', 'query')");
      for (const end = Date.now() + 20_000; !server.output().includes("failed and is replaced");) {
        assert.ok(Date.now() < end, "the worker fails when it is done with its part of the query");
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      await stalled.body!.cancel();
      await isEmpty();
      assert.deepEqual((await server.exec(QUERIES[2][1])).dataset, (expected[2] as unknown[])[1], "the others go on");
    });
    await t.step("the space of all queries is limited", async () => {
      await using server = await started({ ...small, SVC_QUERY_SPILL_LIMIT: "2m" });
      const { error } = await server.exec(QUERIES[0][1]);
      assert.match(error!, /2097152 bytes \(query\.spill\.limit\)/);
      assert.deepEqual(leftovers(server), []);
      assert.equal((await server.exec("select count() from t")).dataset![0][0], ROWS);
    });
    await t.step("a full disk fails the query with 53100, and nothing else", async () => {
      const disk = smallDisk(2);
      if (disk === undefined) return;
      try {
        await using server = await started({ ...small, SVC_QUERY_SPILL_ROOT: disk.directory });
        const reserve = (await Deno.stat(join(root, "db", "reserve"))).size;
        const reply = await fetch(`${server.http}/exec?${new URLSearchParams({ query: QUERIES[0][1] })}`);
        assert.equal(reply.status, 507);
        assert.match(
          (await reply.json()).error,
          /memory limit \(cairo\.query\.memory\.limit\) is reached, and the disk is full/,
        );
        const client = pgClient(server);
        await client.connect();
        const joined = QUERIES.find(([shape]) => shape === "asof join with many keys")![1];
        for (const sql of [QUERIES[0][1], joined]) await assert.rejects(client.query(sql), { code: "53100" });
        await client.end();
        assert.deepEqual([...Deno.readDirSync(disk.directory)], []);
        assert.equal((await server.exec("select count() from t where i = -1")).dataset![0][0], 0);
        assert.deepEqual(await server.exec("insert into t select * from t limit 0"), { dml: "OK" });
        assert.equal((await Deno.stat(join(root, "db", "reserve"))).size, reserve);
        assert.equal(await metric(server, "service_disk_full"), 0);
      } finally {
        disk.remove();
      }
    });
    await t.step("without space nothing spills", async () => {
      await using server = await started({ ...small, SVC_QUERY_SPILL_LIMIT: "0" });
      assert.doesNotMatch((await server.exec(`explain ${QUERIES[0][1]}`)).dataset!.join("\n"), /spill/);
      assert.match((await server.exec(QUERIES[0][1])).error!, /GROUP BY needs \d+ more bytes: .*memory limit/);
    });
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
