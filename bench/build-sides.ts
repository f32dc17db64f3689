/**
 * Joins with large right sides: their index is filled in parts on all threads, and SPLICE joins are merged by ranges of time. Asks two servers
 * with the same rows in turn, one with a single worker and one with several. Asserts that the answers are equal.
 *
 *     deno run -A --lock=dev.lock bench/build-sides.ts [--rows 5000000] [--rounds 5] [--workers 2] [--only TEXT]
 */
import assert from "node:assert/strict";
import { parseArgs } from "node:util";
import { startServer, type TestServer } from "./server.ts";
import { describeMachine, median, table } from "./report.ts";

const { values: options } = parseArgs({
  options: {
    rows: { type: "string", default: "5000000" },
    rounds: { type: "string", default: "5" },
    workers: { type: "string", default: String(navigator.hardwareConcurrency) },
    only: { type: "string", default: "" },
  },
});
const buildRows = Number(options.rows), probeRows = Math.ceil(buildRows / 5);

/** Scattered keys, each of which occurs once on the right side; 7,919 is coprime to powers of ten. */
const create = (name: string, rowCount: number, stepMicros: number) =>
  `create table ${name} as (
    select timestamp_sequence('2024-01-01', ${stepMicros}) ts, x, (x * 7919) % ${buildRows} k, ((x * 7919) % ${buildRows}) * 1000003 w,
      'key ' || (x * 7919) % ${buildRows} v, cast('S' || x % 100 as symbol) sym, (x % 1000) / 8.0 d
    from long_sequence(${rowCount})
  ) timestamp(ts) partition by day`;

const RIGHT_SIDE = "(select * from b where x % 2 = 0)";
const QUERIES: [name: string, sql: string][] = [
  ["join, keys of a small range", "select count(), sum(a.d * b.d) from a join b on a.k = b.k"],
  ["join, hashed keys", "select count(), sum(a.d * b.d) from a join b on a.w = b.w"],
  ["join, texts", "select count(), sum(a.d * b.d) from a join b on a.v = b.v"],
  ["join, two keys", "select count(), sum(a.d * b.d) from a join b on a.w = b.w and a.sym = b.sym"],
  [
    "join, many rows of a key",
    "select count(), sum(b.x) from (select * from a where x <= 1000) a join b on a.sym = b.sym",
  ],
  ["left join", `select count(), count(b.x), sum(b.d) from a left join ${RIGHT_SIDE} b on a.w = b.w`],
  ["right join", "select count(), count(a.x), sum(b.d) from a right join b on a.w = b.w"],
  [
    "full join, by symbol",
    "select b.sym, count() c, sum(a.x) s from a full join b on a.w = b.w group by b.sym order by b.sym",
  ],
  ["asof join", "select count(), sum(b.d - a.d) from a asof join b on (sym)"],
  ["splice join", "select count(), sum(b.d - a.d) from a splice join b on (sym)"],
  ["splice join, many keys", "select count(), sum(b.d - a.d) from a splice join b on (k)"],
];

async function ask(server: TestServer, sql: string): Promise<{ ms: number; dataset: unknown }> {
  const start = performance.now(), { error, dataset } = await server.exec(sql);
  assert.equal(error, undefined, sql);
  return { ms: performance.now() - start, dataset };
}

console.log(describeMachine());
const started = (workers: string) =>
  startServer({
    env: { SVC_SHARED_WORKER_COUNT: workers, SVC_CAIRO_QUERY_MEMORY_LIMIT: "2g", SVC_QUERY_TIMEOUT: "10m" },
  });
await using alone = await started("1");
await using several = await started(options.workers);
const servers = [alone, several];
for (const server of servers) {
  await ask(server, create("a", probeRows, 500_000));
  await ask(server, create("b", buildRows, 100_000));
}
const lines: string[][] = [];
for (const [name, sql] of QUERIES.filter(([name]) => name.includes(options.only))) {
  const times: number[][] = servers.map(() => []);
  // The first round reads the columns.
  for (let round = 0; round <= Number(options.rounds); round++) {
    const answers: unknown[] = [];
    for (const [k, server] of servers.entries()) {
      const { ms, dataset } = await ask(server, sql);
      if (round > 0) times[k].push(ms);
      answers.push(dataset);
    }
    assert.deepEqual(answers[1], answers[0], name);
  }
  const [one, more] = times.map(median);
  lines.push([name, one.toFixed(0), more.toFixed(0), (one / more).toFixed(2)]);
}
const head = ["ms", "1 worker", `${options.workers} workers`, "ratio"];
console.log(`${probeRows} left and ${buildRows} right rows, medians of ${options.rounds}\n${table(head, lines)}`);
