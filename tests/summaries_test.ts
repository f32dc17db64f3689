/** Aggregates by the summaries of stored vectors have the answers of a scan. */
import assert from "node:assert/strict";
import { startServer, type TestServer } from "./server.ts";

const ROWS = 300_000;
/** Each encoding, with NULLs, exceptions and extremes at the places of a vector that kernels treat differently. */
const AT = "(x % 1024 in (0, 1, 2, 3, 511, 512, 1021, 1022, 1023) and x / 1024 % 3 = 1)";
const COLUMNS = [
  "timestamp_sequence('2024-01-01', 1000000) ts",
  "(x * 7919 % 100003) / 100.0 price",
  "case when x % 13 = 0 or x between 20000 and 25000 then null else (x * 7919 % 100003) / 100.0 end gaps",
  `case when ${AT} then 1 / 3.0 else x / 100000.0 end mostly`,
  `case when ${AT} then -0.0 else x % 100 / 10.0 end zeros`,
  `case when ${AT} then 1e300 when x % 1024 = 7 then -1e300 else x % 100 / 10.0 end extremes`,
  "round(x % 1000 / 7.0, 2) rounded",
  "sin(x) full",
  "case when x % 9 = 0 then null else (x % 1000 / 8.0)::float end f",
  "(x % 1000 / 10.0)::float tenths",
  "case when x % 5 = 0 then null else (x * 37 % 100003)::int end i",
  "case when x % 11 = 0 then null else x * 1000003 end l",
  `case when ${AT} then 9223372036854775807 when x % 1024 = 9 then -9223372036854775807 else x end wide`,
  "cast(null as double) nothing",
  "7 same",
];
const CREATE = `create table t as (select ${
  COLUMNS.join(", ")
} from long_sequence(${ROWS})) timestamp(ts) partition by day`;
const FLOATS = ["price", "gaps", "mostly", "zeros", "extremes", "rounded", "full", "f", "tenths", "nothing"];
const INTEGERS = ["i", "l", "wide", "same"];

/** Calls and, in the second list, the same over expressions, which are computed from the rows. */
function callsOf(names: readonly string[], column: string): [string[], string[]] {
  const zero = FLOATS.includes(column) ? "0.0" : "0";
  return [names.map((name) => `${name}(${column})`), names.map((name) => `${name}(${column} + ${zero})`)];
}

const CALLS = [
  ...FLOATS.map((column) => callsOf(["sum", "avg", "min", "max", "count"], column)),
  ...INTEGERS.map((column) => callsOf(["sum", "min", "max", "count"], column)),
  callsOf(["avg"], "i"),
  [["min(ts)", "max(ts)", "count(ts)", "count()"], [
    "min(dateadd('s', 0, ts))",
    "max(dateadd('s', 0, ts))",
    "count()",
    "count()",
  ]],
] as const;

/** Which rows, and how they are grouped. */
const PARTS = [
  "from t",
  "from t where ts between '2024-01-01T05:20:01' and '2024-01-03T03:40:59'",
  "from t where ts in '2024-01-02'",
  "from t where ts between '2024-01-01T00:00:05' and '2024-01-01T00:00:50'",
  "from t sample by 7h",
  "from t where ts > '2024-01-01T01:01:01' sample by 40m",
  "from t sample by 1d align to calendar time zone 'Europe/Berlin'",
  "from t sample by 1h from '2024-01-01T10:30' to '2024-01-02T11:45'",
];

type Row = (string | number | null)[];

async function rowsOf(server: TestServer, sql: string): Promise<Row[]> {
  const { dataset, error } = await server.exec(sql);
  assert.equal(error, undefined, sql);
  return dataset as Row[];
}

function assertClose(actual: Row[], expected: Row[], exact: readonly boolean[], title: string): void {
  assert.equal(actual.length, expected.length, title);
  actual.forEach((row, k) =>
    row.forEach((value, column) => {
      const other = expected[k]![column]!;
      if (exact[column] || value === null || other === null) {
        return assert.ok(value === other, `${title}, row ${k}: ${value} and ${other}`); // -0 is 0
      }
      const [a, b] = [Number(value), Number(other)],
        size = title.includes("extremes") ? 1e303 : Math.max(1, Math.abs(a));
      assert.ok(Math.abs(a - b) <= 1e-9 * size, `${title}, row ${k}: ${a} and ${b}`);
    })
  );
}

/** All answers, as text. */
async function compare(server: TestServer): Promise<string> {
  const answers: string[] = [];
  for (const part of PARTS) {
    for (const [plain, computed] of CALLS) {
      const time = part.includes("sample") ? "ts, " : "";
      const select = (calls: readonly string[]) => `select ${time}${calls.join(", ")} ${part}`;
      const rows = await rowsOf(server, select(plain));
      answers.push(JSON.stringify(rows));
      const exact = plain.map((call) => !/^(sum|avg)/.test(call) || INTEGERS.some((name) => call === `sum(${name})`));
      assertClose(rows, await rowsOf(server, select(computed)), time === "" ? exact : [true, ...exact], select(plain));
    }
  }
  return answers.join("\n");
}

/** The first rows by a column, whose vectors may be skipped, and by an expression of the same values. */
async function compareFirst(server: TestServer): Promise<void> {
  for (const column of [...FLOATS, ...INTEGERS, "ts"]) {
    const zero = FLOATS.includes(column) ? "0.0" : "0";
    for (const direction of ["desc", "asc"]) {
      for (const part of ["", "where i > 50", "where ts in '2024-01-02T03'"]) {
        const first = (key: string) =>
          `select ts, ${column} v, i from t ${part} order by ${key} ${direction}, i desc, ts limit 12`;
        const rows = await rowsOf(server, first(column));
        assert.deepEqual(rows, await rowsOf(server, first(`${column} + ${zero}`)), first(column));
      }
    }
  }
}

Deno.test("sums, averages, extremes and counts by summaries are those of the rows, with any number of workers", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  const stored: string[] = [];
  for (const workers of ["1", "4"]) {
    await using server = await startServer({
      root,
      env: { SVC_SHARED_WORKER_COUNT: workers, SVC_CAIRO_POOL_SIZE: workers === "1" ? "16m" : "256m" },
    });
    if (workers === "1") assert.equal((await server.exec(CREATE)).error, undefined);
    stored.push(await compare(server), await compare(server));
    const plan = await rowsOf(server, "explain analyze select sum(price), max(i) from t");
    const vectors = Number(/summaries of (\d+) vectors/.exec(plan.join("\n"))?.[1]);
    assert.ok(vectors >= ROWS / 1024, `${vectors} vectors by summaries`);
    await compareFirst(server);
    // The greatest price is in few vectors of each segment.
    const top = (await rowsOf(server, "explain analyze select * from t order by price desc, ts limit 10")).join("\n");
    assert.match(top, /summaries of \d+ vectors/);
    await server.stop();
  }
  assert.equal(new Set(stored).size, 1);
  await using server = await startServer({ root });
  // Rows in memory, a column of later rows alone, and changed rows.
  for (
    const sql of [
      "alter table t add column late double",
      "insert into t (ts, price, late) select dateadd('s', x::int * 7, '2024-01-02'), x / 10.0, x / 10.0 from long_sequence(3000)",
      "update t set gaps = null, i = 5 where ts in '2024-01-03T01'",
      "delete from t where ts in '2024-01-01T03:20'",
    ]
  ) assert.equal((await server.exec(sql)).error, undefined, sql);
  await compare(server);
  await compareFirst(server);
  const late = "select sum(late), min(late), count(late), count() from t";
  assert.deepEqual(await rowsOf(server, late), [[450150, 0.1, 3000, ROWS + 3000 - 60]]);
  assert.equal((await server.exec("checkpoint create")).error, undefined);
  await server.exec("checkpoint release");
  await compare(server);
  assert.deepEqual(await rowsOf(server, late), [[450150, 0.1, 3000, ROWS + 3000 - 60]]);
  await server.stop();
  await Deno.remove(root, { recursive: true });
});
