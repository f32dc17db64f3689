/** Answers are the same with a pool that is too small for the columns, so that scans decode them each time. Takes some 15 s. */
import assert from "node:assert/strict";
import { startServer } from "./server.ts";

const ROWS = 1_000_000;
/** Of stored columns: no text, so that all of them can be kept packed. Every 1,000th row is on another day. */
const TABLE = `create table t as (select timestamp_sequence('2024-01-01', 1700000 + x % 7) ts,
  case when x % 11 = 0 then null else ('S' || x * 7919 % 97)::symbol end sym, ('N' || x % 3000)::symbol id,
  case when x % 13 = 0 then null else (x * 7919 % 100003) / 100.0 end price, case when x % 500 = 0 then 1 / 3.0 else x % 7001 / 1000.0 end amount,
  case when x % 5 = 0 then null else (x * 37 % 100003)::int end i, x * 1000003 % 5000011 l, cast(x % 1000 / 8.0 as float) f, x % 1000 / 8.0 g,
  (x % 100)::byte b, (x % 10000 - 5000)::short s, x % 3 = 0 flag, sin(x) full
  from long_sequence(${ROWS})) timestamp(ts) partition by day`;

/** Columns that queries have conditions on. With room, only these are packed: less than half of the stored bytes. */
const CONDITIONED = "('sym', 'id', 'price', 'amount', 'i', 'l', 'flag')";

const DAY = "ts in '2024-01-07'", HOURS = "ts between '2024-01-05T03:10:00' and '2024-01-05T07:20:00'";
const QUERIES = [
  "select count(), sum(price), avg(amount), min(i), max(l), sum(f), sum(g), sum(b), sum(s) from t",
  "select sum(price), count() from t where price > 300 and amount < 5",
  "select sym, count(), avg(price), sum(l), max(ts) from t order by sym",
  "select id, flag, count(), sum(amount) from t order by id, flag limit 50",
  "select i, count() from t where i < 50 order by i",
  "select l, sum(price), count_distinct(i) from t where l < 5000 order by l limit 100",
  `select ts, avg(price), count(), last(sym) from t where ${DAY} sample by 1h`,
  `select ts, avg(price), min(f), min(g) from t where ${HOURS} sample by 10m`,
  `select ts, sym, avg(price) from t where ${HOURS} sample by 1h fill(prev) limit 300`,
  `select ts, avg(price) from t where ${HOURS} sample by 1h from '2024-01-05T04:30' to '2024-01-05T06:00' fill(null)`,
  "select ts, sum(price), first(amount) from t sample by 1d",
  `select count(), sum(l), sum(full) from t where ${HOURS}`,
  `select * from t where ${HOURS} limit 20`,
  `select * from t where ${HOURS} order by ts desc limit 20`,
  `select * from t where ${DAY} and price > 999 order by ts desc limit 20`,
  "select * from t order by price desc, ts limit 25",
  "select * from t where sym = 'S5' order by amount, ts limit 25",
  "select * from t limit 5",
  "select * from t limit -5",
  "select ts, price, l from t limit 500000, 500007",
  "select * from t latest on ts partition by sym",
  "select count(), sum(price) from (select * from t latest on ts partition by id)",
  "select * from t where id = 'N77' and price < 100 limit 40",
  "select ts, l from t where id in ('N1', 'N2999') order by ts desc limit 40",
  "select count(), sum(a.price), sum(b.amount) from t a join t b on a.l = b.l where a.i < 20000",
  `select count(), sum(a.price - b.price) from (select * from t where ${DAY}) a asof join t b on a.sym = b.sym`,
  `select count(), sum(p) from (select price - lag(price) over (partition by sym order by ts) p from t where ${DAY})`,
  `select count(), sum(s) from (select sum(amount) over (partition by flag order by ts rows 10 preceding) s from t where ${DAY})`,
  "select count(distinct l), count(distinct sym), count(distinct i) from t",
  "select max(x) from (select price x from t union all select amount from t)",
  "select count() from (select i from t where flag except select i from t where not flag)",
];

Deno.test("answers are the same when the pool keeps columns packed", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  const answersOf = async (env: Record<string, string>) => {
    await using server = await startServer({ root, env: { ...env, SVC_SHARED_WORKER_COUNT: "2" } });
    const exists = await server.exec("select count() from tables() where table_name = 't'");
    if (exists.dataset![0][0] === 0) assert.equal((await server.exec(TABLE)).error, undefined);
    const answers: string[] = [];
    // The first round fills the pool.
    for (let round = 0; round < 2; round++) {
      for (const [k, query] of QUERIES.entries()) {
        const { dataset, error } = await server.exec(query);
        assert.equal(error, undefined, query);
        const rows = JSON.stringify(dataset);
        if (round === 0) answers[k] = rows;
        assert.equal(rows, answers[k], `${query}, again`);
      }
    }
    const metric = await server.exec("select value from server_metrics() where name = 'service_pool_packed_bytes'");
    const packedBytes = metric.dataset![0][0] as number;
    const used = await server.exec("select bytes from memory_metrics() where memory_tag = 'FURTHER_USED'");
    const furtherBytes = used.dataset![0][0] as number;
    const stored = await server.exec(
      `select sum(diskSize) from table_column_storage('t') where column in ${CONDITIONED}`,
    );
    const conditionedBytes = stored.dataset![0][0] as number;
    await server.stop();
    return { answers, packedBytes, furtherBytes, conditionedBytes };
  };
  const packed = await answersOf({ SVC_CAIRO_POOL_SIZE: "24m" });
  // In eight memories, besides the one that queries work in.
  const further = await answersOf({
    SVC_CAIRO_MEMORY_SIZE: "112m",
    SVC_CAIRO_POOL_SIZE: "64m",
    SVC_DEV_MEMORY_FIRST_SIZE: "96m",
    SVC_DEV_MEMORY_FURTHER_SIZE: "2m",
  });
  assert.ok(further.furtherBytes > 0, `${further.furtherBytes} bytes`);
  // A join whose memory is short adds floats in another order.
  QUERIES.forEach((query, k) => query.includes(" join ") || assert.equal(further.answers[k], packed.answers[k], query));
  assert.ok(packed.packedBytes > 4 << 20, `${packed.packedBytes} bytes are packed`);
  const roomy = await answersOf({ SVC_CAIRO_POOL_SIZE: "512m" });
  assert.ok(
    roomy.packedBytes > 0 && roomy.packedBytes <= roomy.conditionedBytes,
    `${roomy.packedBytes} bytes, of conditions alone`,
  );
  QUERIES.forEach((query, k) => assert.equal(packed.answers[k], roomy.answers[k], query));
  await Deno.remove(root, { recursive: true });
});
