/** Groups of rows that are marked by the packed codes of their conditions' columns have the answers of conditions that are tested on values. */
import assert from "node:assert/strict";
import { ALL_ROWS, isAsked, type Question, question, rowsOf, testEncoded } from "./encoded-columns.ts";
import type { TestServer } from "./server.ts";

/** Conditions on columns of each encoding, next to values, of all and of none of a vector's rows, and with NULL. */
const CONDITIONS = [
  "price > 300.07 and gaps < 40",
  "price >= 300.07 and price < 800.069999999999",
  "mostly > 1 and mostly < 2.2",
  "mostly < 1.9 and wide_decimals > 1000.1",
  "zeros >= 0 and zeros < 6.05",
  "zeros <= -0.0 or zeros > 3", // no range
  "extremes > 4.9",
  "extremes < -1000 or extremes > 2", // no range
  "extremes < 7 and extremes > -1e301",
  "full > 0",
  "full > 0.3 and price < 900",
  "products > 2.9 and products <= 9.57",
  "rounded < 100.01",
  "i > -1000 and i <= 4000.5",
  "l > 90000000000 and i < 3000",
  "far > 1000 and far < 125000",
  "far > 100000",
  "some_full > 0.5 and some_far < 900",
  "some_full < 30 and price > 100",
  "some_far > 500 and side = 'buy'",
  "nothing > 1",
  "same = 7 and side = 'buy'",
  "side = 'sell' and price > 300",
  "side != 'sell'",
  "k in ('k1', 'k2')",
  "k = 'k1' and side = 'sell'",
  "k = 'no such symbol'",
  "k like 'k%' and gaps > 0",
  "ts > '2024-01-01T10:00:03' and gaps > -20",
  "f_gaps > 30.07 and tenths < 40",
  "f_mostly > 1 and f_mostly < 2.2",
  "f_mostly = 0.3333333432674408",
  "f_mostly < 0.33333334",
  "f_zeros <= -0.0 and side = 'buy'",
  "f_zeros > 0 and f_zeros <= 6.1",
  "f_extremes > 4.9",
  "f_extremes < -1e38",
  "f_extremes > -1 and f_extremes < 1e-9",
  "f_coarse >= 5000003.2 and f_coarse < 5000100.7",
  "f >= 0.125 and f < 20.125",
  "f_coarse > 5000003.6 and f_coarse < 5000003.9",
  "f_full > 0.3 and price < 900",
  "f_some_full > 0.5 and some_far < 900",
  "f_nothing > 1",
  "tenths = 0.1",
  "tenths = 0.10000000149",
  "99.9 <= tenths",
  "tenths = 0.1f",
  "b = 0",
  "b != 0 and sh < 20",
  "b < -1 and side = 'buy'",
  "b in (-3, 0, 3)",
  "not (b = 2 or b = -2)",
  "b_extremes = 127",
  "b_extremes <= -128",
  "b_extremes != 1 and b_extremes < 127",
  "b_extremes > 126.5",
  "sh = 0",
  "0 != sh",
  "sh between 7 and 3",
  "sh::long in (5, 39, 1000000)",
  "sh_steps = -7",
  "sh_steps != 0 and sh_steps < 30",
  "sh_steps > -1 and sh_steps <= 0",
  "sh_wide != -500 and sh_wide < -400",
  "sh_full > 29000 and flag",
  "sh_full != 0",
  "flag",
  "not flag and i > 0",
  "flag = false and b != 1",
  "i != 5",
  "i != 5 and l_full > 0",
  "i = null",
  "i in (1, 2, 3, -400, null)",
  "i not in (-5000, 3, 4)",
  "i < -4000 or i >= 4000 or i is null",
  "i::long != 7 and i::long > 4000",
  "l_full = 9223372036854775807",
  "l_full != 9223372036854775807 and price > 500",
  "l_full > 0 and l_full < 9000000000000000000",
  "l_full < -9223372036854775000 or l_full = null",
  "l_full in (6364136223846793005, -1000, 9223372036854775807)",
  "l != 1000003 and side = 'sell'",
  "far != 9223372036854775807 and far > 200000",
  "some_far in (7, 30000000000003)",
  "k != 'k1' and side = 'buy'",
  "k is null",
  "k not in ('k0', 'k2', 'k4')",
  "ts != '2024-01-01T10:00:03' and b = 1",
];
const QUERIES: [keys: string, calls: string[]][] = [
  ["", ["count()"]],
  ["", ["count()", "sum(price * gaps)", "max(i + 1)", "sum(mostly)"]],
  ["", ["min(extremes)", "max(extremes)", "sum(full)", "first(l)", "last(price)", "count(gaps)"]],
  ["", ["sum(price)", "avg(gaps)", "max(i)"]],
  ["", ["sum(f_gaps)", "min(f_gaps)", "max(f_extremes)", "sum(tenths * f_gaps)"]],
  ["k, side", ["count()", "sum(price * gaps)", "avg(mostly)", "min(far)", "sum(i)"]],
  ["i", ["count()", "sum(price)", "max(k)"]],
  ["", ["sum(sh)", "avg(b)", "min(sh_steps)", "max(b_extremes)", "count(sh_wide)", "sum(i)"]],
  ["b", ["count()", "sum(sh_full)", "max(l_full)"]],
];

/** By few and many buckets of a segment. */
const SAMPLED: [keys: string, calls: string[], sampling: string][] = [
  ["", ["count()", "sum(price)", "max(i)"], "7h"],
  ["", ["count()", "first(l)", "last(price)", "sum(price * gaps)"], "5h"],
  ["", ["first(price)", "max(gaps)", "min(far)", "last(price)", "sum(mostly)"], "10m"],
  ["k, side", ["count()", "avg(gaps)", "last(price)"], "7h"],
  ["side", ["sum(some_full)", "max(extremes)"], "40m align to calendar time zone 'Europe/Berlin'"],
  ["", ["count()", "sum(i)"], "3h from '2024-01-01T10:30' to '2024-01-02T11:45'"],
];

function questions(): Question[] {
  const forms = [
    ...QUERIES.map(([keys, calls]) => ({ keys, calls, rest: keys === "" ? "" : ` group by ${keys}` })),
    ...SAMPLED.map(([keys, calls, sampling]) => ({
      keys: keys === "" ? "ts" : `ts, ${keys}`,
      calls,
      rest: ` sample by ${sampling}`,
    })),
  ];
  return CONDITIONS.flatMap((condition, c) =>
    forms.filter((_, f) => isAsked(c, f)).map(({ keys, calls, rest }) => {
      const select = (conditions: string) =>
        `select ${keys === "" ? "" : `${keys}, `}${calls.join(", ")} from t where ${conditions}${rest}`;
      return question(select(condition), select(`(${condition}) and ${ALL_ROWS}`), calls);
    })
  );
}

/** What EXPLAIN ANALYZE tells of the scan's vectors. */
async function vectorsOf(server: TestServer, query: string): Promise<Record<string, number> | undefined> {
  const plan = (await rowsOf(server, `explain analyze ${query}`)).join("\n");
  const found =
    /vectors: (?<skipped>\d+) skipped, (?<whole>\d+) taken whole, (?<tested>\d+) tested packed, (?<withExceptions>\d+) with exceptions, (?<withoutCodes>\d+) without codes/
      .exec(plan);
  if (found === null) return undefined;
  assert.match(plan, /marks rows by packed codes/);
  return Object.fromEntries(Object.entries(found.groups!).map(([name, count]) => [name, Number(count)]));
}

async function checkVectors(server: TestServer): Promise<void> {
  // Without keys, segments of which most rows pass are read as a whole.
  const products = (condition: string) => `select k, sum(price * gaps) from t where ${condition} group by k`;
  const tested = await vectorsOf(server, products("price > 500"));
  assert.ok(tested !== undefined && tested.tested > 100 && tested.withExceptions === 0, "decimals have codes");
  const inOrder = await vectorsOf(server, products("mostly < 1.9"));
  assert.ok(inOrder !== undefined && inOrder.skipped > 20 && inOrder.whole > 20, "by the range of a vector's codes");
  assert.ok(inOrder.withExceptions > 30);
  const raw = await vectorsOf(server, products("full > 0"));
  assert.equal(raw, undefined, "a column of full-precision doubles is not packed");
  const mixed = await vectorsOf(server, products("some_far > 100 and some_full > 0"));
  assert.ok(mixed !== undefined && mixed.withoutCodes > 20 && mixed.tested > 100, "some vectors are raw");
  const singles = await vectorsOf(server, products("f_gaps > 10 and tenths < 90"));
  assert.ok(singles !== undefined && singles.tested > 100 && singles.withExceptions === 0, "FLOAT has codes");
  const exceptions = await vectorsOf(server, products("f_mostly < 1.9"));
  assert.ok(exceptions !== undefined && exceptions.skipped > 20 && exceptions.withExceptions > 30);
  const narrow = await vectorsOf(server, "select count() from t where sh_steps != 0 and b = 1 and flag");
  assert.ok(narrow !== undefined && narrow.whole > 2 && narrow.tested > 100 && narrow.withoutCodes === 0);
  const few = await vectorsOf(server, "select k, count() from t where l_full = 6364136223846793005 and b != 1");
  assert.ok(few !== undefined && few.skipped > 50 && few.tested < 250, "nothing is tested where no row is left");
  for (const step of ["7h", "10m"]) {
    const sampled = await vectorsOf(server, `select ts, sum(price * gaps) from t where k = 'k1' sample by ${step}`);
    assert.ok(sampled !== undefined && sampled.tested > 100, `by ${step}`);
  }
}

/** A column that was added later has zeros, if its type has no NULL. */
async function checkLater(server: TestServer): Promise<void> {
  for (const condition of ["late_short = 0", "late_short != 0", "late_short in (-1, 3)", "late_short < 1 and b = 2"]) {
    for (const query of ["select count(), sum(late_short) from t", "select b, count() from t", "select * from t"]) {
      const select = (conditions: string) =>
        `${query} where ${conditions} ${query.startsWith("select *") ? "limit 5" : ""}`;
      const byValues = select(`(${condition}) and ${ALL_ROWS}`);
      assert.deepEqual(await rowsOf(server, select(condition)), await rowsOf(server, byValues), condition);
    }
  }
}

Deno.test("rows that are marked by packed codes are those that pass, with any number of workers and any pool", async () => {
  await testEncoded({ questions: questions(), check: checkVectors, checkChanged: checkLater });
});
