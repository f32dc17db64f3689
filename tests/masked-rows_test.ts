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
];
const QUERIES: [keys: string, calls: string[]][] = [
  ["", ["count()"]],
  ["", ["count()", "sum(price * gaps)", "max(i + 1)", "sum(mostly)"]],
  ["", ["min(extremes)", "max(extremes)", "sum(full)", "first(l)", "last(price)", "count(gaps)"]],
  ["", ["sum(price)", "avg(gaps)", "max(i)"]],
  ["", ["sum(f_gaps)", "min(f_gaps)", "max(f_extremes)", "sum(tenths * f_gaps)"]],
  ["k, side", ["count()", "sum(price * gaps)", "avg(mostly)", "min(far)", "sum(i)"]],
  ["i", ["count()", "sum(price)", "max(k)"]],
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
  for (const step of ["7h", "10m"]) {
    const sampled = await vectorsOf(server, `select ts, sum(price * gaps) from t where k = 'k1' sample by ${step}`);
    assert.ok(sampled !== undefined && sampled.tested > 100, `by ${step}`);
  }
}

Deno.test("rows that are marked by packed codes are those that pass, with any number of workers and any pool", async () => {
  await testEncoded({ questions: questions(), check: checkVectors });
});
