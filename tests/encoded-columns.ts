/** A table with a column for each encoding, with NULLs, exceptions and extremes at the places of a vector that kernels treat differently. */
import assert from "node:assert/strict";
import { FULL } from "../src/testing.ts";
import { startServer, type TestServer } from "./server.ts";

/** More than one thread reads them (`HELP_ROWS_MIN`), and two days have two segments each. */
export const ENCODED_ROWS = 210_000;
const AT = "(x % 1024 in (0, 1, 2, 3, 511, 512, 1021, 1022, 1023) and x / 1024 % 3 = 1)";
const COLUMNS = [
  "timestamp_sequence('2024-01-01', 1000000) ts",
  "case when x % 17 = 0 then null when x < 105000 then 'k' || (x * x % 7) else 'k' || (x % 11) end::symbol k",
  "case when x % 3 = 0 then 'buy' else 'sell' end::symbol side",
  "x % 5 = 0 flag",
  "(x * 7919 % 100003) / 100.0 price",
  "case when x % 13 = 0 or x between 20000 and 25000 then null else (x * 7919 % 100003 - 50000) / 1000.0 end gaps",
  "(x * 7919 % 200000003) / 10.0 wide_decimals",
  "x % 1000 * 0.01 products",
  `case when ${AT} then 1 / 3.0 else x / 50000.0 end mostly`,
  `case when ${AT} then -0.0 else x % 100 / 10.0 end zeros`,
  `case when ${AT} then 1e300 when x % 1024 = 7 then -1e300 else x % 100 / 10.0 end extremes`,
  "round(x % 1000 / 7.0, 2) rounded",
  "sin(x) full",
  "cast(case when x % 9 = 0 then null else x % 200 / 8.0 end as float) f",
  "cast(x % 1000 / 10.0 as float) tenths",
  "cast(case when x % 13 = 0 or x between 20000 and 25000 then null else (x * 7919 % 10007 - 5000) / 100.0 end as float) f_gaps",
  `cast(case when ${AT} then 1 / 3.0 else x / 50000.0 end as float) f_mostly`,
  `cast(case when ${AT} then -0.0 else x % 100 / 10.0 end as float) f_zeros`,
  `cast(case when ${AT} then 3e38 when x % 1024 = 7 then -3e38 when x % 1024 = 8 then 1e-44 else x % 100 / 10.0 end as float) f_extremes`,
  // Several decimals of one place are the same float.
  "cast(case when x % 9 = 0 then null else 5000000.5 + x % 1000 / 2.0 end as float) f_coarse",
  "cast(case when x / 1024 % 9 = 2 then sin(x) when x % 31 = 0 then null else x % 1000 / 10.0 end as float) f_some_full",
  "cast(null as float) f_nothing",
  "cast(sin(x) as float) f_full",
  "case when x % 5 = 0 then null else (x * 37 % 10007 - 5000)::int end i",
  "case when x % 11 = 0 then null else x * 1000003 end l",
  `case when ${AT} then 9223372036854775807 when x % 1024 = 9 then -9223372036854775807 else x end far`,
  "cast(null as double) nothing",
  "7 same",
  "(x / 3000 * 10 + x % 7)::int steps",
  "(x % 7 - 3)::byte b",
  `case when ${AT} then 127 when x % 1024 = 9 then -128 else x / 3000 % 5 end::byte b_extremes`,
  "case when x between 20000 and 25000 then 0 else x % 40 end::short sh",
  "case when x between 40000 and 45000 then -7 when x % 1024 < 500 then x % 3 - 1 else x / 3000 end::short sh_steps",
  // Their chunks are encoded, but are decoded in the pool, or raw.
  "(x * 37 % 1001 - 500)::short sh_wide",
  "(x * 7919 % 60001 - 30000)::short sh_full",
  `case when ${AT} then null when x % 1024 = 9 then 9223372036854775807 else x * 6364136223846793005 end l_full`,
  // Some vectors are raw.
  "case when x / 1024 % 9 = 2 then sin(x) when x % 31 = 0 then null else x % 1000 / 10.0 end some_full",
  "case when x / 1024 % 9 = 3 and x % 2 = 0 then x * 10000000000001 when x % 29 = 0 then null else x % 1000 end some_far",
];
export const CREATE_ENCODED = `create table t as (select ${
  COLUMNS.join(", ")
} from long_sequence(${ENCODED_ROWS})) timestamp(ts) partition by day`;
/** Columns of DOUBLE. */
export const DOUBLES = [
  "price",
  "gaps",
  "wide_decimals",
  "products",
  "mostly",
  "zeros",
  "extremes",
  "rounded",
  "full",
  "nothing",
  "some_full",
];
/** Columns of FLOAT. */
export const SINGLES = [
  "f",
  "tenths",
  "f_gaps",
  "f_mostly",
  "f_zeros",
  "f_extremes",
  "f_coarse",
  "f_some_full",
  "f_nothing",
  "f_full",
];
export const INTEGERS = ["i", "l", "far", "same", "some_far"];
/** Columns of integers without NULL. */
export const NARROW = ["b", "b_extremes", "sh", "sh_steps", "sh_wide", "sh_full"];

/** A condition that is true for all rows, but is not known to be. */
export const ALL_ROWS = "coalesce(l, 0) + 0 != -5";

/** After these, the table has rows in memory, a column of later rows alone, a new symbol, and changed rows. */
export const CHANGES = [
  "alter table t add column late double",
  "alter table t add column late_short short",
  "insert into t (ts, k, price, late) select dateadd('s', x::int * 7, '2024-01-02'), 'new', x / 10.0, x / 10.0 from long_sequence(3000)",
  "update t set gaps = null, i = 5 where ts in '2024-01-03T01'",
  "delete from t where ts in '2024-01-01T03:20'",
];

export type Row = (string | number | boolean | null)[];

export async function rowsOf(server: TestServer, sql: string): Promise<Row[]> {
  const { dataset, error } = await server.exec(sql);
  assert.equal(error, undefined, sql);
  return dataset as Row[];
}

/** Sums of floats differ by rounding, all else is equal. -0 is 0. The last columns have the calls. */
function assertSame(actual: Row[], expected: Row[], calls: readonly string[], title: string): void {
  assert.equal(actual.length, expected.length, title);
  actual.forEach((row, k) =>
    row.forEach((value, column) => {
      const other = expected[k]![column]!, call = calls[column - (row.length - calls.length)] ?? "key";
      const isRounded = /^(sum|avg)/.test(call) && ![...INTEGERS, ...NARROW].some((name) => call === `sum(${name})`);
      if (!isRounded || value === null || other === null) {
        return assert.ok(value === other, `${title}, row ${k}: ${call} is ${value}, not ${other}`);
      }
      const [a, b] = [Number(value), Number(other)],
        size = call.includes("(extremes") ? 1e303 : call.includes("f_extremes") ? 1e42 : Math.max(1, Math.abs(b));
      // A sum of FLOAT is one.
      const share = SINGLES.some((name) => call === `sum(${name})`) ? 2 ** -23 : 1e-9;
      assert.ok(Math.abs(a - b) <= share * size, `${title}, row ${k}: ${call} is ${a}, not ${b}`);
    })
  );
}

/** One question over the packed columns, and another way to its answer. */
export interface Question {
  sql: string;
  /** The same rows by values. */
  byValues: string;
  /** Compares the answers. */
  assertSame: (rows: Row[], byValues: Row[]) => void;
}

/** A question whose last columns have the calls. */
export function question(sql: string, byValues: string, calls: readonly string[]): Question {
  return { sql, byValues, assertSame: (rows, expected) => assertSame(rows, expected, calls, sql) };
}

/** What is asserted over the table. */
export interface EncodedTest {
  questions: Question[];
  /** While all rows are stored as they were made. */
  check?: (server: TestServer) => Promise<void>;
  /** After the changes: with rows in memory, and when these are stored. */
  checkChanged?: (server: TestServer) => Promise<void>;
}

/** Passes over the questions after the first one: three over the rows as they were made, two after the changes. */
const LATER_PASSES = 5;
/**
 * Whether all pairs of conditions and calls are asked, in each pass. Otherwise half of the pairs are asked, each in the first pass and in one of
 * the others.
 */
export const ALL_QUESTIONS = FULL;
/** Whether the pair of the `a`th of some things and the `b`th of others is asked. */
export const isAsked = (a: number, b: number) => ALL_QUESTIONS || (a + b) % 2 === 0;

/** The answers over stored rows are those by values, and the same bits with 1 and 4 workers and two sizes of the pool. */
export async function testEncoded({ questions, check, checkChanged }: EncodedTest): Promise<void> {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  // Neighbours differ in few things. So that each pass has all of these, no pass has questions at equal distances.
  const passOf = questions.map((_, k) => 1 + (k + Math.floor(k / LATER_PASSES)) % LATER_PASSES);
  const isIn = (pass: number, k: number) => pass === 0 || ALL_QUESTIONS || passOf[k] === pass;
  const stored: string[] = [];
  let pass = 0;
  for (const [workers, pool] of [["1", "16m"], ["4", "256m"]] as const) {
    await using server = await startServer({
      root,
      env: { SVC_SHARED_WORKER_COUNT: workers, SVC_CAIRO_POOL_SIZE: pool },
    });
    if (workers === "1") assert.equal((await server.exec(CREATE_ENCODED)).error, undefined);
    for (const end = pass + 2; pass < end; pass++) {
      for (const [k, { sql, byValues, assertSame }] of questions.entries()) {
        if (!isIn(pass, k)) continue;
        const rows = await rowsOf(server, sql), text = JSON.stringify(rows);
        if (pass === 0) {
          stored.push(text);
          assertSame(rows, await rowsOf(server, byValues));
        } else assert.equal(text, stored[k], `${sql}: the same bits`);
      }
    }
    await check?.(server);
    await server.stop();
  }
  await using server = await startServer({ root });
  const compareChanged = async () => {
    for (const [k, { sql, byValues, assertSame }] of questions.entries()) {
      if (isIn(pass, k)) assertSame(await rowsOf(server, sql), await rowsOf(server, byValues));
    }
    pass++;
    await checkChanged?.(server);
  };
  for (const sql of CHANGES) assert.equal((await server.exec(sql)).error, undefined, sql);
  await compareChanged();
  assert.equal((await server.exec("checkpoint create")).error, undefined);
  await server.exec("checkpoint release");
  await compareChanged();
  await server.stop();
  await Deno.remove(root, { recursive: true });
}
