import assert from "node:assert/strict";
import { createRegistry } from "../../sql/functions/mod.ts";
import type { Column, Plan } from "../../sql/plan.ts";
import { INDEX_PARTS_ROWS_MIN } from "../physical/thresholds.ts";
import { assertRows, col, onThreads, over, type Row, RowsInput, rowsOf, storedRows, testContext } from "../testing.ts";

/** Keys of a wide range, of a small one, texts, and the row's number. */
const COLUMNS: Column[] = ["LONG", "INT", "VARCHAR", "LONG"].map((type, k) => ({ name: `c${k}`, type }));
const NUMBER = COLUMNS.length - 1;

/** So that an index by value is beyond the caches, too. */
const KEY_SPACING = 7;

/** Most keys have two rows, far from each other, and one key has a tenth of the rows. */
function makeRows(rowCount: number): Row[] {
  return Array.from({ length: rowCount }, (_, row): Row => {
    const n = row % 10 === 0 ? 7 : row % (rowCount / 2);
    return n % 1_000 === 3
      ? [null, null, null, BigInt(row)]
      : [BigInt(n) * 1_000_000_007n, KEY_SPACING * n, `text ${n}`, BigInt(row)];
  });
}

Deno.test("the index of a large build side has the same rows by key, in order, on one thread and on three", () => {
  const right = makeRows(INDEX_PARTS_ROWS_MIN + 100_000);
  // Each key, as only few of them have no bucket in their part.
  const left = [...new Map(right.map((row) => [row[0], row])).values()];
  // Rows that are equal in one key are so in all.
  const rowsOfKey = Map.groupBy(right, (row) => row[0]);
  const expected = left.flatMap((l) => rowsOfKey.get(l[0])!.map((r): Row => [l[NUMBER], r[NUMBER]]));
  for (const keys of [[0], [1], [2, 0]]) {
    for (const isParallel of [false, true]) {
      const alone = testContext(1 << 29, { functions: createRegistry() });
      const table = storedRows(COLUMNS, left, alone, 1_000);
      const exprs = keys.map((k) => col(k, COLUMNS[k].type)), columns = [...COLUMNS, ...COLUMNS];
      const join = over(
        { node: "join", type: "inner", leftKeys: exprs, rightKeys: exprs, columns } as Partial<Plan>,
        table.node,
        new RowsInput(COLUMNS, right, alone, 50_000),
      );
      const numbers = [col(NUMBER, "LONG"), col(COLUMNS.length + NUMBER, "LONG")];
      const named = numbers.map(({ type }, k) => ({ name: `n${k}`, type }));
      const project = over({ node: "project", expressions: numbers, columns: named }, join);
      const context = onThreads({ ...alone, sources: [table.source] }, isParallel);
      assertRows(rowsOf(project, context), expected, `by ${keys}`);
      assert.equal(alone.memory.usedBytes, 0);
    }
  }
});

Deno.test("the index of a large build side tells whether a key occurs twice", () => {
  const count = INDEX_PARTS_ROWS_MIN + 5;
  const rows = (repeated: number) =>
    Array.from({ length: count }, (_, n): Row => [BigInt(n === count - 1 ? repeated : n) * 1_000_000_007n]);
  for (const [repeated, expected] of [[count - 1, 1], [3, 2], [count - 2, 1]]) {
    const context = testContext(1 << 29, { functions: createRegistry() });
    const long: Column[] = [{ name: "k", type: "LONG" }], keys = [col(0, "LONG")];
    const join = over(
      { node: "join", type: "inner", leftKeys: keys, rightKeys: keys, columns: [...long, ...long] } as Partial<Plan>,
      new RowsInput(long, [[3n * 1_000_000_007n]], context),
      new RowsInput(long, rows(repeated), context, 50_000),
    );
    assert.equal(rowsOf(join, context).length, expected);
    assert.equal(context.memory.usedBytes, 0);
  }
});
