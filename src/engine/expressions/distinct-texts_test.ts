import assert from "node:assert/strict";
import { createRegistry } from "../../sql/functions/mod.ts";
import { setValue, TextArena, valueAt } from "../columns.ts";
import { compileExpressions } from "../expressions.ts";
import { col, fn, lit, randomFrom, spaceOfRows, testContext } from "../testing.ts";
import { DistinctTexts } from "./distinct-texts.ts";

/** A column of rows with these texts, each stored once. */
function columnOf(texts: readonly (string | null)[], rows: readonly number[], context: ReturnType<typeof testContext>) {
  const { heap } = context, space = spaceOfRows(heap), arena = new TextArena(space);
  const pairs = space.allocate(8 * texts.length), address = space.allocate(8 * rows.length);
  texts.forEach((text, k) => setValue(heap, "VARCHAR", pairs, k, text, arena));
  rows.forEach((text, row) => heap.i64[address / 8 + row] = heap.i64[pairs / 8 + text]!);
  return address;
}

const TEXTS = ["filled", null, "", "öffnen", "filled twice", "x".repeat(5_000)];

Deno.test("few texts are found in the order of their first rows", () => {
  const context = testContext(1 << 26), random = randomFrom(3), space = spaceOfRows(context.heap);
  const texts = new DistinctTexts(context.heap, space);
  for (let batch = 0; batch < 3; batch++) {
    const rows = Array.from({ length: 1_000 }, () => random() % TEXTS.length);
    const address = columnOf(TEXTS, rows, context), found = texts.find(address, rows.length)!;
    const firsts = [...new Set(rows)];
    assert.equal(found.count, firsts.length);
    rows.forEach((text, row) => assert.equal(found.numbers[row], firsts.indexOf(text)));
    firsts.forEach((text, k) =>
      assert.equal(valueAt(context.heap, { type: "VARCHAR", address: found.pairs }, k), TEXTS[text])
    );
  }
});

Deno.test("batches with many texts, or few rows, are not searched, and not all of those that follow", () => {
  const context = testContext(1 << 26), space = spaceOfRows(context.heap);
  const texts = new DistinctTexts(context.heap, space), rows = Array.from({ length: 400 }, (_, row) => row);
  const many = columnOf(rows.map(String), rows, context);
  const few = columnOf(["a", "b"], rows.map((row) => row % 2), context);
  assert.equal(texts.find(few, 100), undefined);
  assert.equal(texts.find(few, 400)?.count, 2);
  assert.equal(texts.find(many, 400), undefined);
  const searched = Array.from({ length: 200 }, () => texts.find(many, 400) ?? texts.find(few, 400)?.count);
  assert.ok(searched.includes(2) && searched.includes(undefined));
  for (let k = 0; k < 64; k++) texts.find(few, 400);
  assert.equal(texts.find(few, 400)?.count, 2);
});

Deno.test("functions of few texts give each row its value", () => {
  const context = testContext(1 << 26, { functions: createRegistry() }), { heap } = context, random = randomFrom(5);
  const text = col(0, "VARCHAR");
  const exprs = [
    fn("upper", "VARCHAR", text),
    fn("length", "INT", text),
    fn("like", "BOOLEAN", text, lit("fill%", "VARCHAR")),
    fn("concat", "VARCHAR", text, lit("!", "VARCHAR"), text),
    fn("regexp_replace", "VARCHAR", text, lit("l+", "VARCHAR"), lit("L", "VARCHAR")),
  ];
  const compiled = compileExpressions(exprs, undefined, ["VARCHAR"], context, { operator: "test" });
  const valuesOf = (rows: readonly number[]) => {
    const batch = compiled.run({
      rowCount: rows.length,
      columns: [{ type: "VARCHAR", address: columnOf(TEXTS, rows, context) }],
    });
    return rows.map((_, row) => batch.columns.map((column) => valueAt(heap, column, row)));
  };
  const alone = TEXTS.map((_, k) => valuesOf([k])[0]);
  for (const length of [200, 300, 5_000]) {
    const rows = Array.from({ length }, () => random() % TEXTS.length);
    assert.deepEqual(valuesOf(rows), rows.map((row) => alone[row]));
  }
  compiled.close();
  assert.equal((context.memory as { usedBytes: number }).usedBytes, 0);
});
