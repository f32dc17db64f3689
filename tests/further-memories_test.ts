/**
 * A pool in several tiny memories, which are too small for the columns even as they are stored: answers, cancels and failed workers. Takes some 20 s.
 */
import assert from "node:assert/strict";
import { residentBytes } from "./memory.ts";
import { startServer, type TestServer } from "./server.ts";

const ROWS = 3_000_000;
/** Some 45 MB as they are stored. */
const TABLE = `create table t as (select timestamp_sequence('2024-01-01', 700000 + x * 7919 % 100000) ts,
  ('S' || x * 7919 % 97)::symbol sym, (x * 7919 % 10000019) / 100.0 price, x * 1000003 % 500000003 l,
  case when x % 5 = 0 then null else (x * 37 % 90000049)::int end i, x * 15485863 % 2000000011 m
  from long_sequence(${ROWS})) timestamp(ts) partition by day`;

/** The pool's part of the first memory is 32 MiB, and there are five memories of 3 MiB or less. */
const SMALL = {
  SVC_CAIRO_MEMORY_SIZE: "79m",
  SVC_CAIRO_POOL_SIZE: "47m",
  SVC_CAIRO_QUERY_MEMORY_LIMIT: "8m",
  SVC_DEV_MEMORY_FIRST_SIZE: "64m",
  SVC_DEV_MEMORY_FURTHER_SIZE: "3m",
  // Queries on the main thread fail when so small a memory is in pieces.
  SVC_QUERY_DIRECT_ROWS_MAX: "-1",
};

const QUERIES = [
  "select count(), sum(price), avg(l), min(i), max(m) from t where price > 10",
  "select sym, count(), sum(l), max(ts), avg(price) from t order by sym",
  "select sum(l), count() from t where price > 40000 and price < 40100",
  "select ts, sym, l, m from t where i between 5000 and 5100 order by ts limit 40",
  "select ts, avg(price), last(l) from t where ts in '2024-01-11' sample by 1h",
  "select * from t order by m desc, ts limit 20",
  "select * from t latest on ts partition by sym",
  "select ts, price, i from t limit 1999990, 2000010",
  "select count(), sum(m) from t where sym in ('S3', 'S77') and l < 100000000",
];

async function metrics(server: TestServer): Promise<Map<string, number>> {
  const { dataset } = await server.exec("select name, label, value from server_metrics()");
  return new Map(dataset!.map(([name, label, value]) => [`${name}${label ? ` ${label}` : ""}`, value as number]));
}

async function answer(server: TestServer, query: string): Promise<string> {
  const { dataset, error } = await server.exec(query);
  assert.equal(error, undefined, query);
  return JSON.stringify(dataset);
}

Deno.test("answers of a pool in tiny memories, beside cancelled queries and failed workers, are those of a large one", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  const env = { SVC_SHARED_WORKER_COUNT: "2", SVC_DEV_MODE_ENABLED: "true" };
  const expected: string[] = [];
  {
    await using server = await startServer({ root, env: { ...env, SVC_CAIRO_POOL_SIZE: "512m" } });
    assert.equal((await server.exec(TABLE)).error, undefined);
    for (const query of QUERIES) expected.push(await answer(server, query));
    assert.equal((await metrics(server)).get("service_memory_further_limit"), 0);
    await server.stop();
  }
  await using server = await startServer({ root, env: { ...env, ...SMALL } });
  const check = (k: number) => answer(server, QUERIES[k]).then((got) => assert.equal(got, expected[k], QUERIES[k]));
  for (let round = 0; round < 2; round++) for (const k of QUERIES.keys()) await check(k);
  const filled = await metrics(server);
  const limit = filled.get("service_memory_further_limit")!, used = filled.get("service_memory_further_used")!;
  assert.ok(limit > 14 << 20 && limit <= 15 << 20, `${limit} bytes`);
  // A memory holds two or three segments' columns, so that some of it stays free.
  assert.ok(used > limit / 4 && used <= limit, `${used} of ${limit} bytes are used`);
  assert.ok(filled.get("service_pool_evictions_total")! > 0);
  assert.ok(filled.get("service_memory_tag_bytes packed")! > used, "the first memory has some packed frames");
  // Half of these are cancelled, some when they wait and some while they run.
  for (let round = 0; round < 4; round++) {
    await Promise.all(Array.from({ length: 12 }, async (_, k) => {
      const at = (5 * round + k) % QUERIES.length;
      if (k % 2 === 0) return check(at);
      const cancel = new AbortController(), query = new URLSearchParams({ query: QUERIES[at] });
      setTimeout(() => cancel.abort(), 20 * k);
      await fetch(`${server.http}/exec?${query}`, { signal: cancel.signal }).then((reply) => reply.text(), () => {});
    }));
  }
  // A worker that fails while it leads a query.
  for (let round = 0; round < 2; round++) {
    const running = server.exec(`${QUERIES[1]} -- ${round}`);
    await server.exec("select simulate_crash('out of luck', 'query')");
    await running;
    for (const k of QUERIES.keys()) await check(k);
  }
  const pins = async () => (await metrics(server)).get("service_pool_pins")!;
  // Main keeps what it reads pages with for the length of a call.
  for (let tries = 0; await pins() > 0; tries++) {
    assert.ok(tries < 400, `${await pins()} pins are left`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { dataset } = await server.exec("select * from memory_metrics()");
  const parts = new Map(dataset as [string, number][]);
  assert.equal(parts.get("FURTHER_SIZE"), limit);
  assert.ok(parts.get("SHARED_SIZE")! <= 79 << 20 && parts.get("SHARED_SIZE")! > 78 << 20);
  if (Deno.build.os === "linux") {
    const peakMiB = residentBytes(server.process.pid, "VmHWM") >> 20;
    assert.ok(peakMiB <= 79 + 400, `${peakMiB} MiB were resident`);
  }
  await server.stop();
  await Deno.remove(root, { recursive: true });
});
