/** Operators that just fit into the memory leave enough of it to those above, which may continue on disk. */
import assert from "node:assert/strict";
import { startServer } from "./server.ts";

const table = (name: string, rows: number, step: number, keys: number) =>
  `create table ${name} as (
    select cast(1704067200000000 + x * 1000 as timestamp) ts, x, k, 'key ' || k v, ((x * 31) % 1000) / 4.0 d
    from (select x, case when x % 6963 = 0 then null else (x * ${step}) % ${keys} end k from long_sequence(${rows}))
  ) timestamp(ts) partition by day`;
const TABLES = [table("l", 60_000, 611_953, 90_000), table("r", 110_000, 104_729, 80_000)];

const GROUPS = "select sum(x) x, k, max(v) v, sum(d) d from r group by k";
const GROUPS_OF_ROWS = "select sum(x) x, first(k) k, v, sum(d) d from (select * from r limit 1000000) group by v";
const RANKS = "select rank() over (partition by k order by d) x, k, v, d from r";

/** `little`: the memory that holds what is below, but not all of it. */
const CASES: [name: string, little: string, rows: string][] = [
  ["a union over groups", "16m", `select x, k, v from (${GROUPS}) union select x, k, v from l`],
  ["a sort over groups", "16m", `select x, k, v from (${GROUPS}) order by v, x, k`],
  ["ranks over groups", "16m", `select x, v, rank() over (partition by k order by d, x) k from (${GROUPS})`],
  ["a union over ranks", "13m", `select x, k, v from (${RANKS}) union select x, k, v from l`],
  ["ranks over ranks", "13m", `select x, v, rank() over (partition by k order by d, x) k from (${RANKS})`],
  ["groups over groups", "13m", `select v, count() x from (${GROUPS_OF_ROWS}) group by v`],
];

Deno.test("operators over one that just fits into the memory are answered with little as with 2 GiB", async (t) => {
  const root = await Deno.makeTempDir({ prefix: "sundial-nested-" });
  const expected = new Map<string, unknown>();
  try {
    for (const [workers, limit] of [["1", "2g"], ["1", "16m"], ["3", "16m"], ["1", "13m"], ["3", "13m"]]) {
      const env = { SVC_SHARED_WORKER_COUNT: workers, SVC_CAIRO_QUERY_MEMORY_LIMIT: limit };
      await using server = await startServer({ root, keepRoot: true, env });
      if (expected.size === 0) {
        for (const sql of TABLES) assert.equal((await server.exec(sql)).error, undefined);
      }
      for (const [name, little, rows] of CASES) {
        if (limit !== "2g" && limit !== little) continue;
        await t.step(`${name} with ${limit} and workers: ${workers}`, async () => {
          const { error, dataset } = await server.exec(
            `select count(), sum(x * (n % 1009)), sum(length(v) * (n % 1013)), max(x)
             from (select *, row_number() over () n from (${rows}))`,
          );
          assert.equal(error, undefined);
          if (!expected.has(name)) expected.set(name, dataset);
          assert.deepEqual(dataset, expected.get(name));
        });
      }
    }
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
