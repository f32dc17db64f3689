/** Groups that are added up by the packed codes of segments have the answers of groups by values. */
import assert from "node:assert/strict";
import {
  ALL_QUESTIONS,
  ALL_ROWS,
  DOUBLES,
  ENCODED_ROWS,
  INTEGERS,
  isAsked,
  NARROW,
  type Question,
  question,
  type Row,
  rowsOf,
  SINGLES,
  testEncoded,
} from "./encoded-columns.ts";
import type { TestServer } from "./server.ts";

const CALLS: string[][] = [
  ["count()"],
  ...DOUBLES.filter((column) => column !== "rounded").map((column) =>
    ["sum", "avg", "min", "max", "count"].map((name) => `${name}(${column})`)
  ),
  ...SINGLES.map((column) => ["min", "max", "count"].map((name) => `${name}(${column})`)),
  [...SINGLES.flatMap((column) => [`sum(${column})`, `max(${column})`]), "count()"],
  ["min(f_gaps)", "avg(f_mostly)", "sum(price)", "min(f_mostly)", "max(f_gaps + 1)", "sum(f_gaps * price)"],
  ...INTEGERS.map((column) => ["sum", "min", "max", "count"].map((name) => `${name}(${column})`)),
  ...NARROW.map((column) => ["sum", "min", "max", "avg", "count"].map((name) => `${name}(${column})`)),
  ["count()", "avg(price)", "sum(gaps)", "max(i)", "sum(price * gaps)", "first(l)", "last(price)", "min(ts)"],
  ["sum(price * gaps)", "count()"],
  ["avg(price * gaps)", "count(gaps * price)", "sum(price * price)", "max(price)", "sum(price)"],
  ["sum(products * gaps)", "sum(products * nothing)", "count(products * nothing)", "max(price * gaps)", "sum(i)"],
  // The integers of some segments have sums beyond 64 bits, or there are no integers.
  ["sum(wide_decimals * wide_decimals)", "sum(price * mostly)", "sum(zeros * price)"],
  ["sum(price * extremes)", "sum(price * full)"],
  ["avg(l)", "sum(i)", "max(products)", "avg(i)"],
];
const KEYS = ["k", "k, side", "flag", "side, flag, k"];
const PARTS = ["", "where ts between '2024-01-01T05:20:01' and '2024-01-03T03:40:59'", "where ts in '2024-01-02'"];
/** Of few and many buckets in a segment. */
const SAMPLINGS = ["sample by 7h", "sample by 3h from '2024-01-01T10:30' to '2024-01-03T11:45'", "sample by 30m"];
/** Conditions that most rows pass: comparisons of columns with constants that are values, between values and next to them, and with NULL. */
const CONDITIONS = [
  "price > 100",
  "price >= 100.07 and price < 1000.02",
  "price >= 100.07 and price <= 100.07",
  "price = 250.25 or price > 30", // no range
  "price > 100.069999999999 and price < 900.0000000001",
  "gaps < 40 and gaps > -30.5",
  "gaps > -1000000 and products <= 9.98",
  "products > 0.29 and products < 9.57",
  "products = 0.29",
  "tenths != 7",
  "i > -4000 and i <= 4000",
  "i < 4000.5 and price > 3.3",
  "same = 7 and wide_decimals > 1000.1",
  "same < 8 and same > 6.99",
  "wide_decimals < 15000000.05 and price > 10 and 990 >= price",
  "zeros > -1 and price > 1",
  "l > 5000 and price > 100",
  "nothing > 1",
  "steps > 120 and price > 50",
  "steps between 103 and 455 and gaps > -40 and steps < 450",
  "steps = 333",
  "ts > '2024-01-01T00:30' and price > 10 and i > -4900",
  "tenths > 3.1 and tenths <= 99.7",
  "tenths = 0.1 or tenths > 0.1", // no range
  "tenths > 0.3f and tenths <= 99.8f",
  "tenths = 0.1",
  "f_gaps < 49.99 and f_gaps >= -40.001 and f >= 0.125",
  "f_coarse > 5000000.5 and f_coarse < 5000499.9",
  "f_coarse = 5000001",
  "f_zeros >= 0 and price > 20",
  "f_nothing < 3",
  "b > -3 and price > 10",
  "b <= 0 and b_extremes < 127",
  "sh >= 0 and sh_steps > -1",
  "sh_wide::long < 499 and gaps > -40",
];
const SUMMED = [
  ["count()", "sum(price)", "avg(gaps)", "min(gaps)", "max(gaps)", "count(gaps)"],
  ["sum(i)", "min(i)", "max(i)", "count(i)", "avg(i)", "max(price)"],
  ["min(products)", "max(products)", "sum(products)", "count()", "sum(wide_decimals)", "max(wide_decimals)"],
  ["sum(nothing)", "min(nothing)", "count(nothing)", "sum(same)", "min(ts)"],
  ["sum(mostly)", "min(zeros)", "sum(l)"],
  ["min(f_gaps)", "max(f_gaps)", "count(f_gaps)", "min(tenths)", "max(f_coarse)", "sum(price)"],
  ["sum(f_gaps)", "max(f_gaps)", "avg(tenths)", "count(f)"],
  ["count()"],
  ["sum(price * gaps)", "count(price * gaps)", "avg(gaps * gaps)", "count()", "min(price)"],
  ["sum(products * price)", "sum(zeros * wide_decimals)", "sum(nothing * price)", "avg(price)"],
  ["sum(wide_decimals * wide_decimals)", "count(wide_decimals * price)"],
];
/** Sums without conditions and keys. */
const PRODUCTS = [
  ["sum(price * gaps)", "count()", "avg(price * gaps)", "sum(gaps)"],
  ["sum(price * price) / sum(price)", "sum(products * gaps)"],
  ["sum(nothing * price)", "count(nothing * price)", "sum(mostly * price)"],
  ["sum(wide_decimals * wide_decimals)"],
];

/** One in this many pairs of conditions or keys with calls is asked for a part of the time, too. */
const TIMED = ALL_QUESTIONS ? 1 : 5;

function questions(): Question[] {
  const list: Question[] = [];
  for (const [c, condition] of CONDITIONS.entries()) {
    for (const [q, calls] of SUMMED.entries()) {
      const timed = (c + q) % TIMED === 0 ? ["and ts between '2024-01-01T05:20:01' and '2024-01-03T03:40:59'"] : [];
      for (const part of [...isAsked(c, q) ? [""] : [], ...timed]) {
        const sql = `select ${calls.join(", ")} from t where ${condition} ${part}`;
        list.push(question(sql, `${sql} and ${ALL_ROWS}`, calls));
      }
    }
  }
  for (const [p, part] of PARTS.entries()) {
    const byValues = part === "" ? `where ${ALL_ROWS}` : `${part} and ${ALL_ROWS}`;
    for (const calls of PRODUCTS) {
      const select = (conditions: string) => `select ${calls.join(", ")} from t ${conditions}`;
      list.push(question(select(part), select(byValues), calls));
    }
    for (const [k, keys] of KEYS.entries()) {
      for (const [q, calls] of CALLS.entries()) {
        if (part === "" ? !isAsked(k, q) : (p + k + q) % TIMED !== 0) continue;
        const select = (conditions: string) =>
          `select ${keys}, ${calls.join(", ")} from t ${conditions} group by ${keys}`;
        list.push(question(select(part), select(byValues), calls));
      }
    }
  }
  for (const [s, sampling] of SAMPLINGS.entries()) {
    for (const calls of CALLS.filter((_, q) => isAsked(s, q))) {
      const select = (conditions: string) => `select ts, k, side, ${calls.join(", ")} from t ${conditions} ${sampling}`;
      list.push(question(select(""), select(`where ${ALL_ROWS}`), calls));
    }
  }
  return list;
}

async function checkVectors(server: TestServer): Promise<void> {
  const marksOf = async (calls: string, conditions = "") =>
    (await rowsOf(server, `explain analyze select k, ${calls} from t ${conditions} group by k`)).join("\n");
  const marks = await marksOf("sum(price), max(i), avg(gaps), sum(products), count()");
  assert.match(marks, /adds up packed codes by segments/);
  const vectors = Number(/packed codes of (\d+) vectors added up/.exec(marks)?.[1]);
  assert.ok(vectors >= 2 * ENCODED_ROWS / 1024, `${vectors} vectors by codes\n${marks}`);
  const some = await marksOf("sum(some_full), max(i)");
  const coded = Number(/packed codes of (\d+) vectors added up/.exec(some)?.[1]);
  assert.ok(
    coded > 1.3 * ENCODED_ROWS / 1024 && coded < 1.9 * ENCODED_ROWS / 1024,
    `${coded}: some vectors are raw\n${some}`,
  );
  assert.match(await marksOf("sum(price * gaps), count()"), /packed codes of \d+ vectors added up/);
  const products = await rowsOf(server, "explain analyze select sum(price * gaps) from t");
  assert.match(products.join("\n"), /packed codes of \d+ vectors added up/);
  assert.doesNotMatch(await marksOf("sum(wide_decimals * wide_decimals)"), /vectors added up/, "sums beyond 64 bits");
  assert.doesNotMatch(await marksOf("sum(full)"), /vectors added up/, "full-precision doubles have no codes");
  assert.match(await marksOf("min(f_gaps), max(tenths), count(f_coarse)"), /packed codes of \d+ vectors added up/);
  assert.doesNotMatch(
    await marksOf("sum(tenths), max(tenths)"),
    /vectors added up/,
    "sums of FLOAT are of their values",
  );
  assert.doesNotMatch(
    await marksOf("sum(price)", `where ${ALL_ROWS}`),
    /packed codes/,
    "conditions are tested by values",
  );
  const sampled = await rowsOf(server, "explain analyze select ts, k, sum(price), count() from t sample by 7h");
  assert.match(sampled.join("\n"), /packed codes of \d+ vectors added up/);
  const explain = "explain analyze select sum(price), max(i) from t where";
  // Two columns; vectors that no row passes are skipped.
  const sums = (await rowsOf(server, `${explain} price > 100 and gaps > -49`)).join("\n");
  assert.match(sums, /adds up packed codes by segments/);
  assert.ok(Number(/packed codes of (\d+) vectors added up/.exec(sums)?.[1]) >= 1.8 * ENCODED_ROWS / 1024, sums);
  const steps = (await rowsOf(server, `${explain} steps > 120 and price > 50`)).join("\n");
  const [, skipped, whole, tested] = /vectors: (\d+) skipped, (\d+) taken whole, (\d+) tested packed/.exec(steps)!;
  assert.ok(Number(skipped) > 20 && Number(whole) > 20 && Number(tested) > 50, steps);
  const singles = (await rowsOf(server, `${explain} tenths > 0.5 and f_gaps > -49`)).join("\n");
  assert.ok(Number(/packed codes of (\d+) vectors added up/.exec(singles)?.[1]) >= 1.8 * ENCODED_ROWS / 1024, singles);
  assert.doesNotMatch((await rowsOf(server, `${explain} ${ALL_ROWS}`)).join("\n"), /added? up/);
}

Deno.test("groups by packed codes are those by values, with any number of workers and any pool", async () => {
  const late = "select side, sum(late), count(late) from t group by side order by side", lateRows: Row[][] = [];
  await testEncoded({
    questions: questions(),
    check: checkVectors,
    checkChanged: async (server) => void lateRows.push(await rowsOf(server, late)),
  });
  assert.deepEqual(lateRows[1], lateRows[0]);
});
