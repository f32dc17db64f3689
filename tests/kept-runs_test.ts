/**
 * Prepared statements are executed again and again with other times while their table changes. Each answer is compared with that of a
 * new statement with the same values in its text, which shares nothing with earlier ones.
 */
import assert from "node:assert/strict";
import type pg from "pg";
import { randomFrom } from "../src/engine/testing.ts";
import { FULL } from "../src/testing.ts";
import { connectedPg } from "./pg-client.ts";
import { startServer } from "./server.ts";

const START_MS = Date.parse("2024-01-01T00:00:00Z");
const ROUNDS = 24;
/** Each query is executed in every round, or in every third one, a third of them in the same. */
const EACH = FULL ? 1 : 3;

/** $1 and $2 are times, $3 a symbol, $4 a number. */
const QUERIES = [
  "select * from t where ts >= $1 and ts < $2",
  "select x, s from t where ts between $1 and $2 and x > 40",
  "select ts, x * 2 y from t where ts > $1 and ts <= $2 order by ts desc",
  "select * from t where s = $3 and ts >= $1 and ts < $2",
  "select * from t where ts >= $1 and ts < $2 and x < $4::int",
  "select * from t where s in ($3, 'b') and ts >= $1 and ts < $2",
  "select * from t where s in ($3, 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j') and ts >= $1 and ts < $2",
  "select * from t where x in ($4::int, 7, 14) and ts >= $1",
  "select ts, x from t where x between 5 and $4::int and ts >= $1 and ts < $2",
  "select ts, d from t where d > $4::double / 3 and d <= $4::double and ts >= $1 and ts < $2",
  "select ts, v from t where v = $3 and ts >= $1 and ts < $2",
  "select ts, v from t where v in ($3, 'b') and v <> 'c' and ts >= $1",
  "select ts, v from t where v like concat('%', $3) and ts >= $1 and ts < $2",
  "select ts, s from t where s like concat($3, '%') and ts >= $1 and ts < $2",
  "select ts, s, x from t where (s = $3 or s = 'a' or x = $4::int) and ts >= $1 and ts < $2",
  "select ts, x from t where case when x > $4::int then s = $3 else s <> $3 end and ts >= $1 and ts < $2",
  "select ts, concat(v, s) from t where s = $3 and x > $4::int and ts >= $1 and ts < $2",
  "select s, sum(x) from t where x > $4::int and s <> $3 and ts >= $1 and ts < $2",
  "select s, n from (select s, count() n from t where ts >= $1 and ts < $2) where n > $4::int",
  "select v, max(d), count() from t where d < $4::double and v <> $3 and ts >= $1",
  "select count_distinct(s) from t where x < $4::int and ts >= $1",
  "select ts, sum(x), count() from t where s = $3 and ts >= $1 and ts < $2 sample by 10s",
  "select ts, s, avg(d) from t where x > $4::int and ts >= $1 sample by 20s",
  "select * from t where s = $3 and ts < $2 latest on ts partition by s",
  "select * from t where x > $4::int latest on ts partition by s",
  "select * from t where s in ($3, 'b', null) and ts >= $1 latest on ts partition by s",
  "select * from t where ts >= $1 and ts < $2 latest on ts partition by s, v",
  "select * from (select ts, v, x + 1 y from t where ts >= $1 and x < $4::int order by x) latest on ts partition by v",
  "select s, count() n from t where ts >= $1 and ts < $2 and x > $4::int order by n desc, s limit 2",
  "select ts, v, d from t where ts >= $1 and ts < $2 and s = $3 order by v, d desc, ts",
  "select * from t where x > $4::int limit 5",
  "select * from t where x > $4::int order by ts desc limit 5",
  "select avg(x) from t where s = 'b' and ts >= $1 and ts < $2",
  "select avg(x) from t where s = $3 and ts >= $1 and ts < $2",
  "select count(), sum(x), max(ts), min(ts) from t where ts >= $1 and ts < $2",
  "select s, count(), sum(x) from t where ts >= $1 and ts < $2",
  "select count() from (select * from t where ts >= $1 and ts < $2 and s <> 'a')",
  "select * from t where ts >= $1 limit 5",
  "select * from t where ts < $2 limit -5",
  "select * from t where ts < $2 order by ts desc limit 5",
  "select * from t where ts >= $1 and ts < $2 order by x desc limit 5",
  "select * from t where ts >= $1 and ts < $2 order by v, x, ts",
  "select * from t where ts >= $1 and x > $4::int order by d desc, x, ts limit 7",
  "select s, n from (select s, count() n from t where ts >= $1 group by s) order by n desc, s",
  "select ts, s, sum(x) total from t where ts >= $1 and ts < $2 sample by 10s order by total desc, ts, s limit 4",
  "select t.ts, r.name from t join r on t.s = r.s where t.ts >= $1 and t.ts < $2 order by r.name desc, t.ts limit 6",
  "select * from (select * from t where ts >= $1 latest on ts partition by s) order by x desc, s",
  "select ts, sum(x) from t where ts >= $1 and ts < $2 sample by 10s",
  "select ts, s, avg(x), last(x) from t where ts >= $1 and ts < $2 sample by 20s fill(prev)",
  "select ts, count(), max(x) from t where x > 10 and ts >= $1 sample by 7s fill(null) limit 50",
  "select ts, s, sum(x + ts::long % 3) from t where ts < $2 sample by 1m align to calendar time zone 'Europe/Berlin'",
  "select ts, first(s) from (select * from t where ts >= $1 order by x) timestamp(ts) sample by 30s",
  "select * from t where ts < $2 latest on ts partition by s",
  "select a.ts, sum(b.x), last(b.s) from t a window join t b on a.s = b.s and b.x > $4::int range between $4::int seconds preceding and 1 second following where a.ts >= $1 and a.ts < $2",
  "select h.offset, a.s, count(), sum(b.x) from t a horizon join t b on (s) list (-2s, 0, 5s) as h where a.ts >= $1 and a.ts < $2 and a.x > $4::int",
  "select a.x, b.x from t a join t b on a.ts = b.ts where a.ts >= $1 and a.ts < $2",
  "select t.ts, t.s, r.name, t.x * r.factor from t join r on t.s = r.s where t.ts >= $1 and t.ts < $2",
  "select t.ts, r.name from t left join r on t.s = r.s and t.x > r.factor where t.ts >= $1 and t.ts < $2",
  "select t.ts, r.name from t left join r on t.s = r.s where t.ts >= $1 and t.ts < $2 and t.s = $3 and t.x < $4::int",
  "select t.ts, t.x, r.name from t join r on t.x > r.factor where t.ts >= $1 and t.ts < $2 and r.factor > $4::int / 8",
  "select t.ts, q.name from t join (select * from r where s <> $3) q on t.s = q.s where t.ts >= $1 and t.ts < $2",
  "select r.name, sum(t.x), count() from t join r on t.s = r.s where t.ts >= $1 and t.ts < $2",
  "select count(), max(t.x) from t join (select * from r where factor > $4::int / 8) q on t.s = q.s where t.ts >= $1",
  "select r.name, t.x from r right join t on t.s = r.s where t.ts >= $1 and t.ts < $2",
  "select t.ts, r.name, o.name from t join r on t.s = r.s join r o on o.factor = t.x where t.ts >= $1 and t.ts < $2",
  "select a.ts, a.x, b.x from t a asof join t b on s where a.ts >= $1 and a.ts < $2",
  "select a.ts, b.ts, b.x from (select * from t where ts >= $1 and ts < $2) a lt join (select * from t where x > $4::int) b",
  "select a.ts, b.ts from (select * from t where ts >= $1 and s = $3) a asof join (select * from t where ts < $2) b on s tolerance 5s",
  "select count(), sum(a.x - b.x) from t a asof join t b on s where a.ts >= $1 and a.ts < $2",
  "select a.s, sum(b.x), count() from (select * from t where ts < $2) a lt join (select * from t where x > $4::int) b on s where a.x > $4::int",
  "select a.ts, a.s, sum(b.x), count() from t a asof join t b on s where a.ts >= $1 and a.ts < $2 and a.x > $4::int sample by 10s",
  "select t.ts, r.name, sum(t.x) from t join r on t.s = r.s where t.ts < $2 sample by 20s fill(null)",
  "select r.name, sum(b.x) from (select * from t where ts >= $1) a asof join t b on s tolerance 9s join r on a.s = r.s",
  "select a.ts, b.x, r.name from t a asof join t b on s join r on a.s = r.s where a.ts >= $1 and a.ts < $2",
  "select a.ts, b.ts, a.x, b.v from (select * from t where ts >= $1 and ts < $2) a splice join (select * from t where x > 40) b on s",
  "select a.ts, b.ts, a.x, b.x from (select * from t where x > $4::int) a splice join (select * from t where ts < $2) b",
  "select count(), sum(a.x), sum(b.x) from (select * from t where s <> $3) a splice join t b on s where b.ts >= $1",
  "select a.s, max(b.d) from t a splice join (select * from t where ts >= $1) b on s",
  "select x from t where ts >= $1 and ts < $2 union all select x from t where ts >= $2",
  "select s, x from t where ts >= $1 and ts < $2 union select s, x from t where x > $4::int",
  "select s, v from t where ts >= $1 except select s, v from t where ts >= $2",
  "select s, x from t where ts >= $1 except all select s, x from t where x > $4::int",
  "select v from t where ts < $2 intersect select s from t where s <> $3 and ts >= $1",
  "select s, count() n from t where ts >= $1 union all select v, count() from t where ts < $2",
  "select a.x, q.v from long_sequence(20) a join (select x::long y, v, ts from t) q on a.x = q.y where q.ts >= $1 and q.ts < $2",
  "select x, row_number() over () from t where ts >= $1 and ts < $2",
  "select ts, s, lag(x) over (partition by s order by ts) p from t where ts >= $1 and ts < $2",
  "select ts, v, lag(x, 3, -1) over (partition by s order by ts), count(x) over (partition by v order by ts) from t where ts >= $1",
  "select ts, avg(x) over (partition by s order by ts rows unbounded preceding), sum(d) over (order by ts rows unbounded preceding) from t where s <> $3",
  "select ts, first_value(v) over (partition by s order by ts), last_value(x) ignore nulls over (order by ts) from t where x > $4::int",
  "select ts, rank() over (partition by s order by x desc, ts), lead(v) over (partition by s order by ts) from t where ts >= $1 and ts < $2",
  "select ts, sum(x) over (partition by s order by ts rows between 3 preceding and 1 preceding) from t where ts >= $1 and x < $4::int",
  "select ts, max(d) over (order by ts range between '20' second preceding and current row) from t where ts < $2",
  "select s, lag(n) over (order by s) from (select s, count() n from t where ts >= $1 and ts < $2)",
  "select ts, lag(x + $4::int) over (partition by s order by ts) from t where ts >= $1",
  "select count_distinct(x), count_distinct(v) from t where ts >= $1 and ts < $2",
  "select count_distinct(x) from t where ts >= $1",
  "select count_distinct(v) from t where ts >= $1 and x > $4::int",
  "select max(x), count_distinct(s) from t where ts < $2",
  "select s, count_distinct(v), sum(x) from t where ts >= $1 and ts < $2",
  "select * from t latest on ts partition by s",
  "select count(), max(x) from t",
  "select * from t limit -3",
  "select count() from t where ts > dateadd('y', -$4::int, now())",
];

/** The values in the place of the parameters, and a comment that no other statement has. */
function withValues(text: string, values: readonly string[], number: number): string {
  return `${text.replace(/\$(\d)/g, (_, k) => `'${values[k - 1]}'`)} -- ${number}`;
}

/** Where small queries run, by the settings. */
const PLACES: { place: string; env: Record<string, string> }[] = [
  { place: "on the main thread", env: {} },
  { place: "on query threads", env: { SVC_QUERY_DIRECT_ROWS_MAX: "-1" } },
];

async function answersAsNewStatements(env: Record<string, string>): Promise<void> {
  await using server = await startServer({ env });
  const client = await connectedPg(server), random = randomFrom(7);
  const rows = async (query: pg.QueryConfig) => (await client.query({ ...query, rowMode: "array" } as never)).rows;
  const time = (seconds: number) => new Date(START_MS + seconds * 1000).toISOString();
  const insert = async (symbols: string, from: number, count: number) => {
    const values = Array.from(
      { length: count },
      (_, k) =>
        `('${time(from + k)}', '${symbols[k % symbols.length]}', ${k % 13 === 0 ? "null" : (7 * k) % 100}, ${
          k % 5 ? k % 31 : "null"
        }, '${symbols[k * k % symbols.length]}')`,
    );
    await client.query(`insert into t values ${values.join()}`);
  };
  try {
    await client.query(
      "create table t (ts timestamp, s symbol, x int, d double, v varchar) timestamp(ts) partition by hour",
    );
    await client.query("create table r (s symbol, name varchar, factor int)");
    await client.query("insert into r values ('a', 'Anna', 2), ('b', 'Bert', 3), ('b', 'Bea', 5), ('d', 'Dora', 7)");
    await insert("abc", 0, 1_500);
    let end = 1_500;
    for (let round = 0; round < ROUNDS; round++) {
      if (round % 7 === 3) {
        await insert(round % 2 ? "abcd" : `ab${String.fromCharCode(101 + round)}`, end, 50), end += 50;
      }
      if (round % 11 === 5) await insert("ab", random() % end, 3);
      if (round % 13 === 7) await client.query(`update t set x = x + 1 where ts < '${time(random() % 500)}'`);
      if (round === 9) await client.query("insert into r values ('c', 'Carl', 11)");
      if (round === 19) await client.query("truncate table r");
      if (round === 15) await client.query("alter table t drop partition list '2024-01-01T00'");
      const from = random() % end, length = [0, 1, 20, 300, 1_000][random() % 5];
      const values = [time(from), time(from + length), "abcdx"[random() % 5], String(1 + random() % 80)];
      for (const [k, text] of QUERIES.entries()) {
        if ((k + round) % EACH !== 0) continue;
        const used = values.slice(0, Math.max(0, ...[...text.matchAll(/\$(\d)/g)].map(([, index]) => Number(index))));
        const known = await rows({ name: `q${k}`, text, values: used });
        const fresh = await rows({ text: withValues(text, values, round) });
        assert.deepEqual(known, fresh, `${text} ${values}`);
      }
    }
  } finally {
    await client.end();
  }
}

for (const { place, env } of PLACES) {
  Deno.test(
    `executions of known plans answer as new statements do, for other values and after changes: ${place}`,
    () => answersAsNewStatements(env),
  );
}

Deno.test("a known SPLICE join whose memory becomes short reads the rows of its own times", async () => {
  await using server = await startServer({ env: { SVC_CAIRO_QUERY_MEMORY_LIMIT: "2m" } });
  const client = await connectedPg(server);
  const rows = async (query: pg.QueryConfig) => (await client.query({ ...query, rowMode: "array" } as never)).rows;
  const time = (seconds: number) => new Date(START_MS + seconds * 1000).toISOString();
  try {
    await client.query(`create table t as (
      select timestamp_sequence('2024-01-01', 1000000) ts, x, rpad('', case when x <= 500 then 5 else 1000 end, 'y') v,
        cast('s' || x % 5 as symbol) s
      from long_sequence(1500)
    ) timestamp(ts) partition by day`);
    const text = `select a.x, length(b.v) l, b.x y from (select * from t where x % 50 = 0 and ts >= $1 and ts < $2) a
      splice join (select * from t where ts >= $1 and ts < $2) b on s`;
    for (const [round, [from, to]] of [[0, 400], [10, 450], [600, 1_400], [700, 1_450], [0, 300]].entries()) {
      const values = [time(from), time(to)];
      const known = await rows({ name: "splice", text, values });
      assert.equal(known.length, to - from);
      const replaced = withValues(
        text.replaceAll("$1", `'${values[0]}'`).replaceAll("$2", `'${values[1]}'`),
        [],
        round,
      );
      assert.deepEqual(known, await rows({ text: replaced }), `${values}`);
    }
  } finally {
    await client.end();
  }
});
