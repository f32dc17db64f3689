/** Joins with little memory give what they give with much. The rows and limits are ones that random tests have found. */
import assert from "node:assert/strict";
import { startServer } from "./server.ts";

/** Keys and symbols with gaps, and few that repeat. */
const table = (name: string, rows: number, step: number, keys: number, gap: number, symbols: number) =>
  `create table ${name} as (
    select cast(1704067200000000 + (x / 40) * 40000 as timestamp) ts, x, k, 'key ' || k v, cast(sym as symbol) sym, ((x * 31) % 1000) / 4.0 d
    from (select x, cast(case when x % ${gap} = 0 then null else (x * ${step}) % ${keys} end as long) k,
        case when x % ${gap} = 2 then null else 's' || (x * ${step}) % ${symbols} end sym from long_sequence(${rows}))
  ) timestamp(ts) partition by day`;
const TABLES = [table("l", 60_006, 1_299_709, 371_918, 7722, 274), table("r", 300_012, 7919, 363_219, 3434, 298)];

/** The rows without a match need memory when the index of the others takes half of it. */
const FULL =
  `select count(), sum(x * (r % 10007)), sum(y * (r % 10007)), count(s), count(s2), sum(d), sum(e), sum(n * (r % 1009)) from
  (select *, row_number() over () r from (
    select coalesce(a.x, 0) x, coalesce(b.x, 0) y, a.sym s, b.sym s2, a.d, b.d e, length(b.v) n
    from (select * from r where sym != 's1') a full join (select * from l where k > 20000) b
      on a.k = b.k and a.sym = b.sym and a.d > b.d))`;

Deno.test("a full join with a condition besides its keys has memory for the rows without a match", async () => {
  const answers: unknown[] = [];
  for (const limit of ["2g", "16m", "14m"]) {
    await using server = await startServer({
      env: { SVC_SHARED_WORKER_COUNT: "1", SVC_CAIRO_QUERY_MEMORY_LIMIT: limit, SVC_QUERY_TIMEOUT: "5m" },
    });
    for (const sql of TABLES) assert.equal((await server.exec(sql)).error, undefined);
    const { dataset, error } = await server.exec(FULL);
    assert.equal(error, undefined, limit);
    answers.push(dataset);
  }
  for (const answer of answers) assert.deepEqual(answer, answers[0]);
});

/** Few left rows, so that the windows of some thousand of them span the whole right side. */
const SPARSE = [
  `select h.offset o, a.sym s, count() c, sum(a.x) x, sum(b.x) y, min(b.d) low, max(b.v) high
    from (select * from r where sym = 's0') a horizon join (select * from r where k != 3) b on (sym)
    range from -100T to 100T step 20T as h order by o, s`,
  `select a.x, a.sym, sum(b.x) y, min(b.d) low, max(b.v) high, count() c
    from (select * from r where sym = 's0') a window join (select * from r where k != 3) b on (sym)
    range between 100 milliseconds preceding and 100 milliseconds following order by a.x`,
];

Deno.test("window and horizon joins take fewer left rows at a time when these span many right rows", async () => {
  const answers: unknown[] = [];
  for (const limit of ["2g", "16m"]) {
    await using server = await startServer({
      env: { SVC_SHARED_WORKER_COUNT: "1", SVC_CAIRO_QUERY_MEMORY_LIMIT: limit, SVC_QUERY_TIMEOUT: "5m" },
    });
    for (const sql of TABLES) assert.equal((await server.exec(sql)).error, undefined);
    const found: unknown[] = [];
    for (const sql of SPARSE) {
      const { dataset, error } = await server.exec(sql);
      assert.equal(error, undefined, `${limit}: ${sql}`);
      found.push(dataset);
    }
    answers.push(found);
  }
  assert.deepEqual(answers[1], answers[0]);
});
