/**
 * Queries over rows that do not fit into the memory of a query: in memory, and on disk with one worker and with all. Asserts that the answers
 * are equal.
 *
 *     deno run -A --lock=dev.lock bench/spill.ts [--rows 5000000] [--rounds 3] [--limit 64m] [--only TEXT]
 */
import assert from "node:assert/strict";
import { parseArgs } from "node:util";
import { startServer, type TestServer } from "./server.ts";
import { median, table } from "./report.ts";

const { values: options } = parseArgs({
  options: {
    rows: { type: "string", default: "5000000" },
    rounds: { type: "string", default: "3" },
    limit: { type: "string", default: "64m" },
    only: { type: "string", default: "" },
  },
});
const rows = Number(options.rows);

const CREATE = `create table t as (
  select timestamp_sequence('2024-01-01', 100000) ts, x, rnd_long(0, ${rows}, 0) k, rnd_double() d
  from long_sequence(${rows}, 3, 4)
) timestamp(ts) partition by day`;

const QUERIES: [name: string, sql: string][] = [
  ["GROUP BY a number", "select count(), max(s), sum(c) from (select k, sum(d) s, count() c from t group by k)"],
  ["GROUP BY a text", "select count(), max(s), sum(c) from (select k || '' t, sum(d) s, count() c from t group by t)"],
  ["DISTINCT", "select count(), sum(k) from (select distinct k, d from t)"],
  ["join", "select count(), sum(a.x), max(b.d) from t a join t b on a.k = b.x"],
  ["full join", "select count(), sum(a.x), max(b.d) from t a full join t b on a.k = b.x"],
  [
    "ASOF join",
    "select count(), sum(b.x), max(b.d) from (select ts, x, k from t where x % 2 = 0) a asof join t b on (k)",
  ],
  ["UNION", "select count(), sum(k) from (select k, d from t union select x, d from t)"],
  [
    "window functions",
    "select sum(n), sum(s) from (select rank() over (partition by k order by d) n, sum(x) over (partition by k order by d) s from t)",
  ],
  ["ORDER BY", "select count(), last(x) from (select * from t order by d)"],
  ["ORDER BY with a limit", `select count(), last(x) from (select * from t order by d limit ${rows / 4})`],
];

async function ask(server: TestServer, sql: string): Promise<{ ms: number; dataset: unknown }> {
  const start = performance.now();
  const { error, dataset } = await server.exec(sql);
  assert.equal(error, undefined, sql);
  return { ms: performance.now() - start, dataset };
}

const root = await Deno.makeTempDir({ prefix: "sundial-spill-" });
try {
  const queries = QUERIES.filter(([name]) => name.includes(options.only));
  const answers: unknown[] = [], times: string[][] = queries.map(([name]) => [name]);
  const all = String(navigator.hardwareConcurrency);
  for (const [limit, workers] of [["1g", all], [options.limit, "1"], [options.limit, all]]) {
    const env = {
      SVC_CAIRO_QUERY_MEMORY_LIMIT: limit,
      SVC_SHARED_WORKER_COUNT: workers,
      SVC_QUERY_TIMEOUT: "30m",
    };
    await using server = await startServer({ root, keepRoot: true, env });
    if (answers.length === 0) await ask(server, CREATE);
    for (const [k, [name, sql]] of queries.entries()) {
      const measured: number[] = [];
      for (let round = 0; round < Number(options.rounds); round++) {
        const { ms, dataset } = await ask(server, sql);
        measured.push(ms);
        assert.deepEqual(dataset, answers[k] ??= dataset, name);
      }
      times[k].push(median(measured).toFixed(0));
    }
  }
  const head = ["ms", "in memory", `${options.limit}, 1 worker`, `${options.limit}, ${all} workers`];
  console.log(`${rows} rows, medians of ${options.rounds}\n${table(head, times)}`);
} finally {
  await Deno.remove(root, { recursive: true });
}
