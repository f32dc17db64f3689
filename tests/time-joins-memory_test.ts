/** Time joins leave memory to the operators above them. */
import assert from "node:assert/strict";
import { startServer, type TestServer } from "./server.ts";

interface TableShape {
  name: string;
  rowCount: number;
  /** The next key, as a multiple of the row's number. */
  step: number;
  keyCount: number;
  symbolCount: number;
  /** Rows with equal times. */
  ties: number;
  /** The key of each of this many rows is null; default: none. */
  nullEvery?: number;
}

async function create(server: TestServer, shape: TableShape) {
  const { name, rowCount, step, keyCount, symbolCount, ties, nullEvery = rowCount + 1 } = shape;
  const { error } = await server.exec(`create table ${name} as (
    select cast(1704067200000000 + (x / ${ties}) * ${
    ties * 1_000
  } as timestamp) ts, x, k, 'key ' || k v, cast(k % 5 as int) i,
      cast('s' || (x * ${step}) % ${symbolCount} as symbol) sym, ((x * 31) % 1000) / 4.0 d
    from (select x, case when x % ${nullEvery} = 0 then null else (x * ${step}) % ${keyCount} end k from long_sequence(${rowCount}))
  ) timestamp(ts) partition by day`);
  assert.equal(error, undefined);
}

async function ask(server: TestServer, sql: string): Promise<unknown[][] | undefined> {
  const { error, dataset } = await server.exec(sql);
  assert.equal(error, undefined, `${sql}: ${error}`);
  return dataset;
}

const ROW = "select ts, x, k, v, i, sym, d from";

/** `little`: the memory of queries that is not enough. */
const CASES: { name: string; tables: TableShape[]; query: string; little?: string }[] = [
  {
    name: "an LT join below a projection and a sort of wide rows",
    tables: [
      { name: "l", rowCount: 67_409, step: 7_919, keyCount: 477_601, symbolCount: 299, ties: 40 },
      { name: "r", rowCount: 300_004, step: 104_729, keyCount: 471_255, symbolCount: 206, ties: 3 },
    ],
    query: `select coalesce(a.x, 0) x, coalesce(b.x, 0) y, a.sym s, b.sym s2, a.d, b.d e, length(b.v) n
      from (${ROW} r where x % 10 < 7) a lt join (${ROW} l where k > 20000) b on (i, sym) order by e desc, d, x, y limit 15`,
  },
  {
    name: "an ASOF join whose right rows fit into the memory, but not what reads them",
    tables: [
      { name: "l", rowCount: 128_712, step: 7_919, keyCount: 493_146, symbolCount: 8, ties: 40 },
      { name: "r", rowCount: 300_014, step: 611_953, keyCount: 221_400, symbolCount: 269, ties: 40 },
    ],
    query: `select count(), count(a.x), sum(a.x), sum(b.x), sum(a.d), max(b.d), min(b.k), count(b.sym)
      from (${ROW} l where true) a asof join (${ROW} r where i != 3) b on (k, sym)`,
  },
  {
    name: "a SPLICE join that fits into the memory, but not the parts of groups above it",
    tables: [
      { name: "l", rowCount: 60_000, step: 611_953, keyCount: 405_738, symbolCount: 2, ties: 1, nullEvery: 6_963 },
      { name: "r", rowCount: 321_169, step: 104_729, keyCount: 150_008, symbolCount: 4, ties: 40, nullEvery: 3_005 },
    ],
    query: `select count(), sum(c * (n % 1009)), sum(f * (n % 10007)) from (select *, row_number() over () n from
      (select a.k, b.sym, count() c, first(coalesce(a.x, b.x)) f
      from (${ROW} l where i != 3) a splice join (${ROW} r where i is null) b on (k) group by a.k, b.sym))`,
    little: "16m",
  },
  {
    name: "a SPLICE join in order below groups of many keys",
    tables: [
      { name: "l", rowCount: 144_484, step: 7_919, keyCount: 319_720, symbolCount: 284, ties: 1 },
      { name: "r", rowCount: 399_997, step: 104_729, keyCount: 450_342, symbolCount: 2, ties: 3 },
    ],
    query: `select count(), sum(c * (n % 1009)), sum(f * (n % 10007)) from (select *, row_number() over () n from
      (select a.k, b.sym, count() c, first(coalesce(a.x, b.x)) f
        from (${ROW} l where i != 3) a splice join (${ROW} r where x % 10 < 7) b on (k) group by a.k, b.sym))`,
  },
];

for (const { name, tables, query, little = "20m" } of CASES) {
  Deno.test(`${name} is answered with ${little} of memory as with 2 GiB`, async () => {
    const root = await Deno.makeTempDir({ prefix: "sundial-time-joins-" });
    try {
      let expected: unknown[][] | undefined;
      for (const [workers, limit] of [["1", "2g"], ["1", little], ["3", little]]) {
        const env = { SVC_SHARED_WORKER_COUNT: workers, SVC_CAIRO_QUERY_MEMORY_LIMIT: limit };
        await using server = await startServer({ root, keepRoot: true, env });
        if (expected === undefined) { for (const table of tables) await create(server, table); }
        const answer = await ask(server, query);
        expected ??= answer;
        assert.deepEqual(answer, expected, `${workers} workers, limit ${limit}`);
      }
    } finally {
      await Deno.remove(root, { recursive: true });
    }
  });
}
