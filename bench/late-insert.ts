/**
 * How long an INSERT … SELECT of many late rows takes, and how long it delays commits of one row to another table meanwhile.
 *
 *     deno run -A --lock=dev.lock bench/late-insert.ts [stored rows, default 5000000] [late rows, default 1250000] [cairo.memory.size, default 512m]
 */
import { describeMachine } from "./report.ts";
import { startServer } from "./server.ts";

const [storedRows, lateRows] = [5_000_000, 1_250_000].map((n, k) => Number(Deno.args[k] ?? n));
const DAYS = 5, DAY_MICROS = 86_400_000_000;

await using server = await startServer({ env: { CAIRO_MEMORY_SIZE: Deno.args[2] ?? "512m" } });
async function exec(sql: string): Promise<unknown[][] | undefined> {
  const { error, dataset } = await server.exec(sql);
  if (error !== undefined) throw new Error(`${sql}: ${error}`);
  return dataset;
}
/** Rows over all days, from this microsecond on. */
const rowsFrom = (start: number, count: number) =>
  `select rnd_symbol('a','b','c','d') s, rnd_double() price, x, 'text of row ' || x note,` +
  ` timestamp_sequence(${start}, ${Math.floor(DAYS * DAY_MICROS / count)}) ts from long_sequence(${count})`;

console.log(describeMachine());
await exec(`create table late as (${rowsFrom(1, lateRows)}) timestamp(ts) partition by day`);
await exec("create table other (ts timestamp, x int) timestamp(ts) partition by day");
for (const { title, order } of [{ title: "by time", order: "" }, { title: "in no order", order: " order by price" }]) {
  await exec(`create table t as (${rowsFrom(0, storedRows)}) timestamp(ts) partition by day`);
  const commits: number[] = [];
  let isOver = false;
  const others = (async () => {
    while (!isOver) {
      const start = performance.now();
      await exec(`insert into other values (${commits.length}, 1)`);
      commits.push(performance.now() - start);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  const start = performance.now();
  await exec(`insert into t select s, price, x, note, ts from late${order}`);
  const tookMs = performance.now() - start;
  isOver = true;
  await others;
  const [[count, sum]] = (await exec("select count(), sum(x) from t"))!;
  const [[unordered]] = (await exec("select count() from (select ts, lag(ts) over () b from t) where b > ts"))!;
  const sumOf = (n: number) => n * (n + 1) / 2;
  if (count !== storedRows + lateRows || sum !== sumOf(storedRows) + sumOf(lateRows) || unordered !== 0) {
    throw new Error(`wrong rows: ${count}, ${sum}, ${unordered}`);
  }
  commits.sort((a, b) => a - b);
  console.log(
    `${lateRows} late rows ${title} into ${storedRows}: ${Math.round(tookMs)} ms; commits of one row meanwhile: ` +
      `${commits.length}, median ${commits[commits.length >> 1].toFixed(1)} ms, longest ${
        Math.round(commits.at(-1)!)
      } ms`,
  );
  await exec("drop table t");
}
