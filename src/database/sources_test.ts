import assert from "node:assert/strict";
import { col, fn, lit, over, scanOf, sourceOf } from "../engine/testing.ts";
import { createRegistry } from "../sql/functions/mod.ts";
import type { Expr, Plan } from "../sql/plan.ts";
import { workOf } from "./sources.ts";

const ROWS = 1_000_000;
const columns = [{ name: "ts", type: "TIMESTAMP" }, { name: "s", type: "SYMBOL" }, { name: "x", type: "DOUBLE" }];
const scan = scanOf(columns, { timestamp: 0, order: "asc" });
const dictionary = { tableId: 1, columnId: 1, entries: 8, count: 100 };
const source = sourceOf([], { rowCount: ROWS, dictionaries: [undefined, dictionary, undefined] });
const functions = createRegistry();
const work = (plan: Plan, left = ROWS, isStopped = true) =>
  workOf(plan, [source], functions, () => left, Infinity, isStopped);

const filtered = over(
  { node: "filter", columns, predicate: fn("<", "BOOLEAN", col(2, "DOUBLE"), lit(1, "DOUBLE")) },
  scan,
);
const limited = (input: Plan, low: bigint | undefined, high: bigint) =>
  over(
    { node: "limit", columns, low: low === undefined ? undefined : lit(low, "LONG"), high: lit(high, "LONG") },
    input,
  );

Deno.test("workOf() counts the rows that LIMIT reads from an end of a table", () => {
  for (const plan of [limited(scan, undefined, 10n), limited(scan, undefined, -10n), limited(scan, 5n, 10n)]) {
    assert.ok(work(plan) < 100);
  }
  assert.ok(work(limited(scan, 10n, -10n)) > ROWS / 100, "without both ends");
  assert.ok(work(limited(scan, undefined, 500_000n)) > 100_000);
  // Conditions may need all rows. If the query is stopped then, a part of them is expected.
  assert.ok(work(limited(filtered, undefined, 10n)) < 10_000);
  assert.ok(work(limited(filtered, undefined, 10n), ROWS, false) > ROWS / 100);
});

Deno.test("workOf() leaves lists of files to workers", () => {
  const files: Plan = { node: "files", roots: ["/"], hiddenPrefix: "", at: 0, columns, timestamp: -1, order: "none" };
  assert.equal(work(limited(files, undefined, 10n)), Infinity);
});

Deno.test("workOf() bounds groups by the symbols of their keys", () => {
  const call = { function: "sum(DOUBLE)", args: [col(2, "DOUBLE")], distinct: false, type: "DOUBLE", at: 0 };
  const grouped = (keys: number[]) => {
    const exprs = keys.map((key) => col(key, columns[key]!.type));
    return over({ node: "aggregate", columns: [columns[2]!], keys: exprs, aggregates: [call] }, scan);
  };
  assert.ok(work(grouped([1]), 10_000) < 5_000);
  assert.ok(work(grouped([2]), 10_000) > 10_000);
});

Deno.test("workOf() expects that few rows pass conditions, if the query is stopped otherwise", () => {
  const equal = over(
    { node: "filter", columns, predicate: fn("=", "BOOLEAN", col(2, "DOUBLE"), lit(1, "DOUBLE")) },
    scan,
  );
  const all = work(scan, 16_000);
  assert.ok(work(filtered, 16_000) < all * 0.6);
  assert.ok(work(equal, 16_000) < all / 4);
  assert.ok(work(equal, 16_000, false) >= all, "all rows may pass");
});

Deno.test("workOf() expects that LATEST ON finds the symbols of a condition among the newest rows", () => {
  const latest = (predicate: Expr | undefined, key = 1): Plan =>
    over({ node: "latest", columns, time: col(0, "TIMESTAMP"), keys: [col(key, columns[key]!.type)] }, {
      ...scan,
      predicate,
    });
  const one = fn("=", "BOOLEAN", col(1, "SYMBOL"), lit("a", "STRING"));
  assert.ok(work(latest(undefined)) < 10_000);
  assert.ok(work(latest(one)) < 10_000);
  assert.ok(work(latest(one), ROWS, false) > 10_000, "they may be older");
  assert.ok(work(latest(one, 2)) > 10_000, "keys that are not known");
});
