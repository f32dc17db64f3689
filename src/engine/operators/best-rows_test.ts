import assert from "node:assert/strict";
import { createRegistry } from "../../sql/functions/mod.ts";
import type { Column, SortKey } from "../../sql/plan.ts";
import { SEED } from "../../testing.ts";
import { over, randomFrom, type Row, RowsInput, rowsOf, testContext } from "../testing.ts";

const COLUMNS: Column[] = ["VARCHAR", "INT", "SYMBOL", "STRING", "DOUBLE", "UUID"].map((type, k) => ({
  name: `c${k}`,
  type,
}));
const key = (k: number, descending: boolean, nulls?: "first" | "last"): SortKey => ({
  expression: { kind: "column", index: k, type: COLUMNS[k].type },
  descending,
  nulls,
});

/** Texts that differ before, within or after their first four bytes. */
const TEXTS = ["", "\0", "a", "a\0", "a\0\0\0", "ab", "abc", "abcd", "abcd\0", "abcde", "abce", "é", "éé", "zzzzz"];

function makeRows(rowCount: number, nullEach: number): Row[] {
  const random = randomFrom(SEED);
  return Array.from({ length: rowCount }, (): Row => {
    const text = () => random() % nullEach === 0 ? null : `${TEXTS[random() % TEXTS.length]}${random() % 3 || ""}`;
    return [
      text(),
      random() % 9 === 0 ? null : random() % 50,
      random() % 9 === 0 ? null : `s${random() % 5}`,
      text(),
      random() % 9 === 0 ? null : (random() % 40) / 8,
      random() % 9 === 0 ? null : BigInt(random() % 20),
    ];
  });
}

const KEYS: SortKey[][] = [
  [key(0, false)],
  [key(0, true)],
  [key(0, false), key(1, true)],
  [key(0, true), key(3, false), key(4, true)],
  [key(3, false), key(1, false, "last"), key(0, true)],
  [key(3, true), key(2, false), key(5, true)],
  [key(2, false), key(0, false), key(1, false)],
];

Deno.test("the first rows by texts equal those of a full sort, ties in the order of rows", () => {
  const context = testContext(1 << 27, { functions: createRegistry() });
  // With many nulls the last wanted row is one.
  for (const nullEach of [2, 5000]) {
    const rows = makeRows(30_000, nullEach);
    const sorted = (keys: SortKey[], limit?: number) =>
      rowsOf(
        over({ node: "sort", keys, limit, columns: COLUMNS }, new RowsInput([...COLUMNS], rows, context, 7_000)),
        context,
      );
    for (const keys of KEYS) {
      const all = sorted(keys);
      for (const limit of [1, 5, 300]) {
        const title = `${keys.map(({ expression, descending }) => `${expression.type} ${descending}`)} ${limit}`;
        assert.deepEqual(sorted(keys, limit), all.slice(0, limit), title);
      }
    }
  }
});
