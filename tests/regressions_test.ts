/** Regression tests in SQL over HTTP: small and large tables, on the main thread and in workers. */
import assert from "node:assert/strict";
import { startServer, type TestServer } from "./server.ts";

interface Case {
  title: string;
  /** Preparatory statements, then the query. */
  sql: string[];
  rows: unknown[][];
}

const keys = (count: number) => Array.from({ length: count }, (_, k) => `x % 10 + ${k}`).join();

const CASES: Case[] = [
  {
    title: "CREATE TABLE AS and INSERT take the rows of several small batches",
    sql: [
      "create table batches as (select 1 x union all select 2 union all select x from long_sequence(3))",
      "insert into batches select 10 union all select 20",
      "update batches set x = x + 100 where x > 5",
      "select count(), sum(x) from batches",
    ],
    rows: [[7, 239]],
  },
  {
    title: "count of a type without null does not read its argument, which may have no lanes",
    sql: [
      "create table uncounted as (select cast(case x % 3 when 0 then null when 1 then '7' else 'b' end as symbol) sy, x from long_sequence(100000))",
      "select count(cast(sy as byte)) a, sum(x) s, count() n from uncounted",
    ],
    rows: [[100000, 5_000_050_000, 100000]],
  },
  {
    title: "UPDATE with a filter before a function over whole columns changes the rows that pass",
    sql: [
      "create table r1 as (select x id, cast(x % 3 as int) z, 0::long l, 'text ' || x v, timestamp_sequence(0, 1000000) ts from long_sequence(100000)) timestamp(ts) partition by hour",
      "update r1 set l = id + length(upper(v)) - length(v) where z = 1",
      "select count() n, sum(l) l, sum(case when l = id then 1 else 0 end) same from r1 where z = 1 or l != 0",
    ],
    rows: [[33334, 1_666_716_667, 33334]],
  },
  {
    title: "SAMPLE BY in a zone whose clocks go back gives the hour that comes twice one bucket, also over many rows",
    sql: [
      "create table r2 as (select x, timestamp_sequence('2024-10-26T22:30:00Z', 1800000000) ts from long_sequence(8)) timestamp(ts) partition by day",
      "select ts, count() n, sum(x) s from r2 sample by 30m align to calendar time zone 'Europe/Berlin'",
    ],
    rows: [
      ["2024-10-26T22:30:00.000000Z", 1, 1],
      ["2024-10-26T23:00:00.000000Z", 1, 2],
      ["2024-10-26T23:30:00.000000Z", 1, 3],
      ["2024-10-27T00:00:00.000000Z", 2, 10],
      ["2024-10-27T00:30:00.000000Z", 2, 12],
      ["2024-10-27T02:00:00.000000Z", 1, 8],
    ],
  },
  {
    title: "SAMPLE BY in a zone has no bucket twice where clocks go forward, and none begins after its rows",
    sql: [
      "create table r3 as (select x, timestamp_sequence('2024-03-31T00:30:00Z', 1800000000) ts from long_sequence(6)) timestamp(ts) partition by day",
      "select ts, count() n from r3 sample by 2h align to calendar time zone 'europe/london' with offset '00:15'",
    ],
    rows: [["2024-03-31T00:15:00.000000Z", 2], ["2024-03-31T01:15:00.000000Z", 4]],
  },
  {
    title: "months WITH OFFSET begin at the first of the month plus the offset",
    sql: ["select ts, count() n from r3 sample by 1M align to calendar with offset '-10:00'"],
    rows: [["2024-02-29T14:00:00.000000Z", 6]],
  },
  {
    title: "months FROM the 31st begin on the last day where there is no 31st",
    sql: ["select ts, count() n from r3 sample by 1M from '2024-01-31' to '2024-04-01' fill(0)"],
    rows: [["2024-01-31T00:00:00.000000Z", 0], ["2024-02-29T00:00:00.000000Z", 0], ["2024-03-31T00:00:00.000000Z", 6]],
  },
  {
    title: "SAMPLE BY finer than the clock gives a bucket a tick",
    sql: ["select ts, count() n from r3 sample by 1n limit 1"],
    rows: [["2024-03-31T00:30:00.000000Z", 1]],
  },
  {
    title: "a constant of FILL stands for an aggregate inside of an expression",
    sql: [
      "select ts, sum(x) + 1 a, sum(x) + count() b from (select x, ts from r3 where x in (1, 3)) timestamp(ts) sample by 30m fill(10, 0)",
    ],
    rows: [["2024-03-31T00:30:00.000000Z", 2, 2], ["2024-03-31T01:00:00.000000Z", 11, 10], [
      "2024-03-31T01:30:00.000000Z",
      4,
      4,
    ]],
  },
  {
    title: "FILL(LINEAR) goes on along the line before a key's first row and behind its last",
    sql: [
      "select ts, k, sum(x * x) v from (select x, ts, case when x % 2 = 0 then 'a' when x = 5 then 'c' else 'b' end k from r3) timestamp(ts) sample by 30m fill(linear) order by k, ts limit 7",
    ],
    rows: [
      ["2024-03-31T00:30:00.000000Z", "a", -2],
      ["2024-03-31T01:00:00.000000Z", "a", 4],
      ["2024-03-31T01:30:00.000000Z", "a", 10],
      ["2024-03-31T02:00:00.000000Z", "a", 16],
      ["2024-03-31T02:30:00.000000Z", "a", 26],
      ["2024-03-31T03:00:00.000000Z", "a", 36],
      ["2024-03-31T00:30:00.000000Z", "b", 1],
    ],
  },
  {
    title: "intervals repeated by the month keep the day that a short month has cut them to",
    sql: [
      "create table r4 as (select timestamp_sequence('2023-01-30T12:00:00Z', 86400000000) ts from long_sequence(62)) timestamp(ts) partition by month",
      "select ts from r4 where ts in '2023-01-31;1d;1M;3' or ts in '2023-02-[3]'",
    ],
    rows: [["2023-01-31T12:00:00.000000Z"], ["2023-02-03T12:00:00.000000Z"], ["2023-02-28T12:00:00.000000Z"], [
      "2023-03-28T12:00:00.000000Z",
    ]],
  },
  {
    title: "IN takes instants of other units than the column's",
    sql: ["select count() n from r4 where ts::timestamp_ns in ('2023-01-30T12:00:00'::timestamp, '2023-02-01'::date)"],
    rows: [[1]],
  },
  {
    title: "buckets that FILL adds are there also when no aggregate of them is read",
    sql: ["select count() n from (select ts, sum(x) from r2 sample by 10m fill(null))"],
    rows: [[22]],
  },
  { title: "long_sequence of null has no rows", sql: ["select count() from long_sequence(null)"], rows: [[0]] },
  {
    title: "timestamp_sequence from null stays null",
    sql: ["select timestamp_sequence(null, 1) t from long_sequence(2)"],
    rows: [[null], [null]],
  },
  {
    title:
      "EST follows summer time; the epoch's seconds are cut towards it; a long name with a dot is cut inside its quotes",
    sql: [
      "select to_timezone('2024-07-01', 'EST') a, extract(epoch from '1969-12-31T23:59:58.5Z'::timestamp) b",
    ],
    rows: [["2024-06-30T20:00:00.000000Z", -1]],
  },
  {
    title: "timestamp_floor gives the origin for times before it; the finest unit has no ceiling",
    sql: [
      "select timestamp_floor('1h', '2020-01-01'::timestamp, '2021-03-04T05:06:07'::timestamp) a, timestamp_ceil('U', '2024-03-01T10:47:12.000001'::timestamp) c",
    ],
    rows: [["2021-03-04T05:06:07.000000Z", "2024-03-01T10:47:12.000001Z"]],
  },
  {
    title: "GROUP BY and DISTINCT take many keys",
    sql: [`select count() n from (select ${keys(60)}, count() from long_sequence(100) group by ${keys(60)})
      union all select count() from (select distinct ${keys(60)} from long_sequence(100))`],
    rows: [[10], [10]],
  },
];

/** Refused statements, with the position. */
const REFUSED: [sql: string, position: number][] = [
  ["select ts, first(k) from r5 sample by 1h fill(linear)", 11],
  ["select ts, count(), first(k) from r5 sample by 1h fill(0, 'b')", 58],
  ["select ts, sum(x) from r5 sample by 1h fill(1.5)", 0],
  ["select ts, sum(x) + avg(x) from r5 sample by 1h fill(1)", -1],
  ["select a.ts from (select * from r5 order by ts desc) a asof join r5 b", 55],
  ["select a.ts from r5 a lt join (select * from r5 order by ts desc) b", 22],
  ["select a.ts from r5 a asof join r5 b tolerance 0s", 47],
  ["select a.ts from r5 a asof join r5 b tolerance 12", 49],
  ["select * from generate_series(1, null)", 33],
  ["select * from long_sequence(1.5)", 14],
  ["insert into r7 values ('2400-01-01T00:00:00Z')", 23],
  ["select sum(x) over (order by ts range between 1 minute preceding and 1 minute following) from r5", 78],
  ["select sum(x) over (order by ts rows between current row and unbounded following) from r5", 71],
  ["select *, count() from r5 sample by 1d", 7],
  ["select r5.*, count() from r5 sample by 1d", 7],
  ["select ts, count() n from r5 sample by 6h having count() > 1", 42],
  ["select length(replace(repeat('a', 9000), 'a', repeat('b', 9000)))", 14],
  ["select 'ab' ~ '(?=a)b'", 15],
  ["select 'aa' ~ '(a)\\1'", 18],
  ["select regexp_replace('aaa', '(a){1,20}', '$1')", 30],
];

/** Statements whose plan depends on the clock: the result of each run is near the time of that run. */
const BY_THE_CLOCK = [
  "select first(ts) t from (select ts, count() from clock sample by 1s from dateadd('s', -1, now()) to now() fill(0))",
  "select first(ts) t from (select ts, count() from clock sample by 1s /*x*/ from dateadd('s', -1, now()) to now() fill(0))",
  "select min(generate_series) t from generate_series(dateadd('s', -1, now()), now(), '1s')",
  "select max(ts) t from clock where ts in '$now - 1s..$now + 1d'",
];

async function runByTheClock(server: TestServer): Promise<void> {
  await server.exec("create table clock (ts timestamp, x long) timestamp(ts) partition by day");
  await server.exec("insert into clock select dateadd('s', x::int, now()), x from long_sequence(3)");
  const first: string[] = [];
  for (const sql of BY_THE_CLOCK) first.push(String((await server.exec(sql)).dataset?.[0]?.[0]));
  // Wait until the rows of `clock` are outside of the range.
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  for (const [k, sql] of BY_THE_CLOCK.entries()) {
    const { dataset, error } = await server.exec(sql);
    assert.equal(error, undefined, sql);
    assert.notEqual(String(dataset?.[0]?.[0]), first[k], `${sql}: the second run has a plan of the first`);
  }
}

async function runParquet(server: TestServer): Promise<void> {
  const query = "select 1 x union all select 2 union all select x from long_sequence(3)";
  const reply = await fetch(`${server.http}/exp?${new URLSearchParams({ query, fmt: "parquet" })}`);
  await Deno.writeFile(`${server.root}/import/batches.parquet`, reply.body!);
  const { dataset, error } = await server.exec("select count(), sum(x) from read_parquet('batches.parquet')");
  assert.deepEqual([error, dataset], [undefined, [[5, 9]]]);
}

async function run(server: TestServer, { sql, rows }: Case): Promise<void> {
  for (const [k, text] of sql.entries()) {
    const reply = await server.exec(text);
    assert.equal(reply.error, undefined, `${text}: ${reply.error}`);
    if (k === sql.length - 1) assert.deepEqual(reply.dataset, rows, text);
  }
}

for (
  const [title, env] of [["on the main thread", {}], ["in workers", {
    SVC_QUERY_DIRECT_ROWS_MAX: "-1",
    SVC_SHARED_WORKER_COUNT: "3",
  }]] as const
) {
  Deno.test(`regressions, ${title}`, async (t) => {
    await using server = await startServer({ env });
    for (const c of CASES) await t.step(c.title, () => run(server, c));
    await t.step("a Parquet export of several small batches has the rows of all", () => runParquet(server));
    await t.step("statements that read the clock are bound for each run", () => runByTheClock(server));
    await t.step("statements are refused at the right position", async () => {
      await server.exec("create table r5 (ts timestamp, k symbol, x long) timestamp(ts) partition by day");
      await server.exec("create table r7 (ts timestamp_ns) timestamp(ts) partition by day");
      for (const [sql, position] of REFUSED) assert.equal((await server.exec(sql)).position, position, sql);
    });
  });
}

Deno.test("the timings of /exec tell how long a query with a small answer has run", async () => {
  await using server = await startServer({});
  const query = encodeURIComponent("select sum(length(rnd_str(5, 10, 0))) from long_sequence(1000000)");
  const { timings } = await (await fetch(`${server.http}/exec?query=${query}&timings=true`)).json();
  assert.ok(timings.execute > 1e6, `${timings.execute} ns`);
});
