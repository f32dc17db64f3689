/** Conditions on stored columns are tested on their codes, with the answers of a scan of the values. */
import assert from "node:assert/strict";
import { FULL } from "../src/testing.ts";
import { startServer, type TestServer } from "./server.ts";

/** More than one thread reads them (`HELP_ROWS_MIN`), and two days have two segments each. */
const ROWS = 210_000;
const CREATE = `create table t as (select timestamp_sequence('2024-01-01', 1000000) ts,
  case when x % 11 = 0 then null else ('S' || x * 7919 % 97)::symbol end sym, ('V' || x % 3)::symbol venue,
  case when x % 13 = 0 then null else (x * 7919 % 100003) / 100.0 end price,
  case when x % 400 = 0 then -0.0 when x % 401 = 0 then 1 / 3.0 when x % 402 = 0 then 1e300 else x % 7001 / 1000.0 end amount,
  case when x % 5 = 0 then null else (x * 37 % 100003)::int end i, x * 1000003 % 5000011 l, x + x % 3 slope,
  cast(case when x % 17 = 0 then null else x * 41 % 100003 / 100.0 - 200 end as decimal(18,4)) dec,
  cast(x % 1000 / 8.0 as float) f, (x % 100)::byte b, x % 3 = 0 flag, x * 6364136223846793005 random, sin(x) full, 7 same, cast(null as long) nothing, 'text ' || x % 1000 text
  from long_sequence(${ROWS})) timestamp(ts) partition by day`;

/** Conditions that become ranges of codes, and the same over expressions that do not. */
const CONDITIONS: [byCodes: string, byValues: string][] = [
  ["sym = 'S5'", "sym || '' = 'S5'"],
  ["sym in ('S5', 'S7')", "sym || '' in ('S5', 'S7')"],
  ["sym = 'S5' and venue = 'V1' and price < 500", "sym || '' = 'S5' and venue || '' = 'V1' and price + 0.0 < 500"],
  ["venue = 'V1'", "venue || '' = 'V1'"],
  ["price < 10.5", "price + 0.0 < 10.5"],
  ["price <= 10.5", "price + 0.0 <= 10.5"],
  ["price = 10.5", "price + 0.0 = 10.5"],
  ["price = 10.50000000001", "price + 0.0 = 10.50000000001"],
  ["999.99 < price", "999.99 < price + 0.0"],
  ["price >= 999.99", "price + 0.0 >= 999.99"],
  ["price >= 300.25 and price <= 301", "price + 0.0 >= 300.25 and price + 0.0 <= 301"],
  ["price > 100000", "price + 0.0 > 100000"],
  ["price > -5", "price + 0.0 > -5"],
  ["amount > 7 and price > 500", "amount + 0.0 > 7 and price + 0.0 > 500"],
  ["amount = 0", "amount + 0.0 = 0"],
  ["amount < 0.001", "amount + 0.0 < 0.001"],
  ["i = 4711", "i + 0 = 4711"],
  ["i > 100000", "i + 0 > 100000"],
  ["i < 50 and l > 2500000", "i + 0 < 50 and l + 0 > 2500000"],
  ["l >= 5000 and l <= 9000", "l + 0 >= 5000 and l + 0 <= 9000"],
  ["l < 2.5e4", "l + 0 < 2.5e4"],
  ["slope > 150000 and slope < 150900", "slope + 0 > 150000 and slope + 0 < 150900"],
  ["same = 7 and i < 30", "same + 0 = 7 and i + 0 < 30"],
  ["same = 8", "same + 0 = 8"],
  ["nothing > 5", "nothing + 0 > 5"],
  ["full > 0.999 and price < 500", "full * 1 > 0.999 and price + 0.0 < 500"],
  ["late > 10", "late + 0.0 > 10"],
  ["f = 12.125", "f + 0.0 = 12.125"],
  ["f > 124.8 and price < 500", "f + 0.0 > 124.8 and price + 0.0 < 500"],
  ["f < 0.125", "f + 0.0 < 0.125"],
  ["dec > 100.5m", "dec + 0m > 100.5m"],
  ["dec > 799.9m", "dec + 0m > 799.9m"],
  ["dec = 100.12m", "dec + 0m = 100.12m"],
  ["dec = 100.12005m", "dec + 0m = 100.12005m"],
  ["dec <= -199.98005m", "dec + 0m <= -199.98005m"],
  ["-199.5m > dec and price < 500", "-199.5m > dec + 0m and price + 0.0 < 500"],
  ["dec >= 99m and dec < 101.55555m", "dec + 0m >= 99m and dec + 0m < 101.55555m"],
  ["dec > 12345678901234567890.1m", "dec + 0m > 12345678901234567890.1m"],
  ["dec < 9223372036854775807m and i < 500", "dec + 0m < 9223372036854775807m and i + 0 < 500"],
  ["dec < -100 and i < 500", "dec + 0m < -100 and i + 0 < 500"],
  ["i < 500 and late is null", "i + 0 < 500 and late + 0.0 is null"],
  ["b = 7", "b * 1 = 7"],
  ["b < 3 and i > 90000", "b * 1 < 3 and i + 0 > 90000"],
  ["b in (0, 4) and venue = 'V2'", "b * 1 in (0, 4) and venue || '' = 'V2'"],
  ["b <= 0", "b * 1 <= 0"],
  ["i in (4711, 77, 100002)", "i + 0 in (4711, 77, 100002)"],
  ["random = 6364136223846793005", "random + 0 = 6364136223846793005"],
  ["random > 9200000000000000000", "random + 0 > 9200000000000000000"],
];
const TIME = " and ts between '2024-01-01T05:20:01' and '2024-01-03T03:40:59'";
/** One in this many pairs of a condition and a query is asked with an interval, too. */
const TIMED = 3;
/** One in this many pairs is asked, and after changes. */
const [STORED, CHANGED] = FULL ? [1, 1] : [2, 3];

const QUERIES = [
  "select count(), min(price), max(l), sum(i), sum(b), min(sym::string), max(ts), count(late) from t where $",
  "select sym, flag, count(), max(price), sum(i), first(text), last(f) from t where $ order by sym, flag",
  "select l, count() from t where $ order by l limit 50",
  "select ts, count(), first(price), last(i), sum(l) from t where $ sample by 3h",
  "select ts, venue, max(amount) from t where $ sample by 1d order by ts, venue",
  "select * from t where $ limit 30",
  "select * from t where $ limit -30",
  "select ts, i, text from t where $ order by price desc, ts limit 20",
  "select count_distinct(i) from t where $",
  "select count(), sum(a.i - b.i) from (select * from t where $) a asof join (select * from t where venue = 'V2') b",
  "select count(), sum(a.i), sum(b.i) from t a join (select i, l, price from t where i < 900) b on a.l = b.l where a.i > 0",
  "select count(), sum(a.i), sum(b.i), min(b.price) from (select * from t where $) a join (select i, l, price from t where i < 900) b on a.venue = 'V1' and a.i = b.i",
  "select b.i, a.sym, count(), max(a.ts) from (select * from t where $) a right join (select i, l from t where i < 60) b on a.i = b.i order by b.i, a.sym",
];

async function answer(server: TestServer, sql: string): Promise<string> {
  const { dataset, error } = await server.exec(sql);
  assert.equal(error, undefined, sql);
  return JSON.stringify(dataset);
}

async function compare(server: TestServer, share: number): Promise<void> {
  for (const [c, [byCodes, byValues]] of CONDITIONS.entries()) {
    for (const [q, query] of QUERIES.entries()) {
      if ((c + (share - 1) * q) % share !== 0) continue;
      for (const time of (c + q) % TIMED === 0 ? ["", TIME] : [""]) {
        const sql = query.replace("$", () => byCodes + time);
        assert.equal(await answer(server, sql), await answer(server, query.replace("$", () => byValues + time)), sql);
      }
    }
  }
}

/** Sums of doubles: the rows may be added in another order than those of a scan, but always in the same. */
async function sums(server: TestServer): Promise<string> {
  const answers: string[] = [];
  for (const [condition] of CONDITIONS) {
    answers.push(await answer(server, `select sum(price), avg(full), sum(amount * price) from t where ${condition}`));
    answers.push(await answer(server, `select venue, sum(full) from t where ${condition} order by venue`));
    answers.push(await answer(server, `select ts, sum(price), avg(full) from t where ${condition} sample by 5h`));
    const joined =
      `from t join (select 'V' || x name, x / 3.0 weight from long_sequence(2)) v on t.venue = v.name where ${condition}`;
    answers.push(await answer(server, `select sum(full * weight), avg(price - weight) ${joined}`));
  }
  return answers.join("\n");
}

Deno.test("rows are selected by packed codes with the answers of a scan, for any number of workers and any pool", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  const all = new Set<string>();
  for (const [workers, pool] of [["1", "256m"], ["4", "16m"], ["4", "256m"]]) {
    await using server = await startServer({
      root,
      env: { SVC_SHARED_WORKER_COUNT: workers!, SVC_CAIRO_POOL_SIZE: pool! },
    });
    if (workers === "1") {
      assert.equal((await server.exec(CREATE)).error, undefined);
      assert.equal((await server.exec("alter table t add column late double")).error, undefined);
      await compare(server, STORED);
    }
    all.add(await sums(server));
    await answer(
      server,
      "select sum(full), max(sym::string), sum(price * amount) from t where price > 1 or amount > 1",
    );
    all.add(await sums(server));
    for (const join of ["", "join (select x / 1000.0 d from long_sequence(99)) d on t.amount = d.d"]) {
      const { dataset } = await server.exec(
        `explain analyze select sum(amount) from t ${join} where price < 10.5 and i > 0`,
      );
      assert.match(JSON.stringify(dataset), /\d+ rows selected by packed codes of [1-9]\d* segments/);
    }
    await server.stop();
  }
  assert.equal(all.size, 1);
  await using server = await startServer({ root });
  const frames = async () => {
    const { dataset } = await server.exec("explain analyze select max(price + l) from t");
    const found = /frames: (\d+) in the pool, (\d+) read from files/.exec(JSON.stringify(dataset));
    return found?.slice(1).map(Number);
  };
  const [foundFirst, readFirst] = (await frames())!, [found, read] = (await frames())!;
  assert.ok(readFirst! >= 6, "two columns of three days");
  assert.deepEqual([found, read], [foundFirst! + readFirst!, 0]);
  for (
    const sql of [
      "insert into t (ts, price, late, sym, i) select dateadd('s', x::int * 7, '2024-01-02'), x / 10.0, x / 10.0, 'S5', 4711 from long_sequence(3000)",
      "update t set price = 10.5, i = 5 where ts in '2024-01-03T01'",
      "delete from t where ts in '2024-01-01T03:20'",
    ]
  ) assert.equal((await server.exec(sql)).error, undefined, sql);
  await compare(server, CHANGED);
  await server.stop();
  await Deno.remove(root, { recursive: true });
});

Deno.test("EXPLAIN ANALYZE tells how the vectors of columns with conditions were tested", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  for (const workers of ["1", "4"]) {
    await using server = await startServer({ root, env: { SVC_SHARED_WORKER_COUNT: workers } });
    if (workers === "1") {
      // Two segments of 64 vectors. Vector v of a segment has the values 1000 v … 1000 v + 96, in no order.
      const { error } = await server.exec(
        `create table t as (select ts, step, case when step between 11000 and 11001 then 1 / 3.0 else step / 100.0 end price from (
           select timestamp_sequence('2024-01-01', 10000) ts, ((x - 1) % 65536 / 1024 * 1000 + x * 7919 % 97)::int step
           from long_sequence(131072))) timestamp(ts) partition by year`,
      );
      assert.equal(error, undefined);
      await server.stop();
      continue; // stored at the latest when the server ends
    }
    const vectors = async (condition: string) => {
      const { dataset } = await server.exec(`explain analyze select sum(step), max(price) from t where ${condition}`);
      const text = JSON.stringify(dataset);
      return /selected by packed codes of 2 segments; (vectors: [^;\]]*)/.exec(text)?.[1] ?? text;
    };
    for (
      const [condition, expected] of [
        [
          "step >= 10050 and step <= 11500",
          "vectors: 124 skipped, 130 taken whole, 2 tested packed, 0 with exceptions, 0 without codes",
        ],
        ["step = 2500", "vectors: 128 skipped, 0 taken whole, 0 tested packed, 0 with exceptions, 0 without codes"],
        [
          "price > 110.5 and price < 110.7",
          "vectors: 126 skipped, 126 taken whole, 0 tested packed, 4 with exceptions, 0 without codes",
        ],
        [
          "step > 61500 and price < 630.5",
          "vectors: 124 skipped, 128 taken whole, 2 tested packed, 2 with exceptions, 0 without codes",
        ],
      ]
    ) assert.equal(await vectors(condition!), expected, condition);
    await server.stop();
  }
  await Deno.remove(root, { recursive: true });
});
