/** Aggregates by the summaries of stored vectors have the answers of a scan. */
import assert from "node:assert/strict";
import {
  DOUBLES,
  ENCODED_ROWS,
  INTEGERS,
  isAsked,
  NARROW,
  type Question,
  type Row,
  rowsOf,
  SINGLES,
  testEncoded,
} from "./encoded-columns.ts";
import type { TestServer } from "./server.ts";

/** Calls and, in the second list, the same over expressions, which are computed from the rows. */
function callsOf(names: readonly string[], column: string): [string[], string[]] {
  // A sum of a shorter integer and a constant is given by the integer's.
  const computed = NARROW.includes(column) ? `${column} * 1` : `${column} + ${zeroOf(column)}`;
  return [names.map((name) => `${name}(${column})`), names.map((name) => `${name}(${computed})`)];
}

/** An addition of it changes no value, nor its type. */
function zeroOf(column: string): string {
  return DOUBLES.includes(column) ? "0.0" : SINGLES.includes(column) ? "cast(0 as float)" : "0";
}

const CALLS = [
  ...[...DOUBLES, ...SINGLES].map((column) => callsOf(["sum", "avg", "min", "max", "count"], column)),
  ...INTEGERS.map((column) => callsOf(["sum", "min", "max", "count"], column)),
  callsOf(["avg"], "i"),
  ...NARROW.map((column) => callsOf(["sum", "avg", "min", "max", "count"], column)),
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

function assertClose(actual: Row[], expected: Row[], exact: readonly boolean[], title: string): void {
  assert.equal(actual.length, expected.length, title);
  actual.forEach((row, k) =>
    row.forEach((value, column) => {
      const other = expected[k]![column]!;
      if (exact[column] || value === null || other === null) {
        return assert.ok(value === other, `${title}, row ${k}: ${value} and ${other}`); // -0 is 0
      }
      const [a, b] = [Number(value), Number(other)],
        size = title.includes("(extremes") ? 1e303 : title.includes("f_extremes") ? 1e42 : Math.max(1, Math.abs(a));
      // A sum of FLOAT is one.
      const share = /sum\((f|f_\w+|tenths)\)/.test(title) ? 2 ** -23 : 1e-9;
      assert.ok(Math.abs(a - b) <= share * size, `${title}, row ${k}: ${a} and ${b}`);
    })
  );
}

function questions(): Question[] {
  return PARTS.flatMap((part, p) =>
    CALLS.filter((_, c) => isAsked(p, c)).map(([plain, computed]) => {
      const time = part.includes("sample") ? "ts, " : "";
      const select = (calls: readonly string[]) => `select ${time}${calls.join(", ")} ${part}`;
      const exact = plain.map((call) =>
        !/^(sum|avg)/.test(call) || [...INTEGERS, ...NARROW].some((name) => call.endsWith(`(${name})`))
      );
      return {
        sql: select(plain),
        byValues: select(computed),
        assertSame: (rows: Row[], expected: Row[]) =>
          assertClose(rows, expected, time === "" ? exact : [true, ...exact], select(plain)),
      };
    })
  );
}

/** The first rows by a column, whose vectors may be skipped, and by an expression of the same values. */
async function compareFirst(server: TestServer): Promise<void> {
  for (const [k, column] of [...DOUBLES, ...SINGLES, ...INTEGERS, "ts"].entries()) {
    const zero = zeroOf(column);
    for (const [d, direction] of ["desc", "asc"].entries()) {
      for (const [p, part] of ["", "where i > 50", "where ts in '2024-01-02T03'"].entries()) {
        if (!isAsked(k, d + p)) continue;
        const first = (key: string) =>
          `select ts, ${column} v, i from t ${part} order by ${key} ${direction}, i desc, ts limit 12`;
        const rows = await rowsOf(server, first(column));
        assert.deepEqual(rows, await rowsOf(server, first(`${column} + ${zero}`)), first(column));
      }
    }
  }
}

async function check(server: TestServer): Promise<void> {
  const plan = await rowsOf(server, "explain analyze select sum(price), max(i) from t");
  const vectors = Number(/summaries of (\d+) vectors/.exec(plan.join("\n"))?.[1]);
  assert.ok(vectors >= ENCODED_ROWS / 1024, `${vectors} vectors by summaries`);
  await compareFirst(server);
  // The greatest price is in few vectors of each segment.
  const top = (await rowsOf(server, "explain analyze select * from t order by price desc, ts limit 10")).join("\n");
  assert.match(top, /summaries of \d+ vectors/);
}

Deno.test("sums, averages, extremes and counts by summaries are those of the rows, with any number of workers", async () => {
  const late = "select sum(late), min(late), count(late), count() from t";
  await testEncoded({
    questions: questions(),
    check,
    checkChanged: async (server) => {
      await compareFirst(server);
      const short =
        "select sum(late_short), avg(late_short), min(late_short), max(late_short), count(late_short) from t";
      const zeros = [[0, 0, 0, 0, ENCODED_ROWS + 3000 - 60]];
      for (const part of ["", " where ts > '2024-01-01'"]) {
        assert.deepEqual(
          await rowsOf(server, short + part),
          await rowsOf(server, short.replaceAll("late_short", "late_short * 1") + part),
        );
      }
      assert.deepEqual(await rowsOf(server, short), zeros);
      assert.deepEqual(await rowsOf(server, late), [[450150, 0.1, 3000, ENCODED_ROWS + 3000 - 60]]);
    },
  });
});
