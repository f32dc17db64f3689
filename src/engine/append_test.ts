import assert from "node:assert/strict";
import { decodeBatch } from "../storage/blocks.ts";
import { encodeRows } from "../storage/mod.ts";
import { Interner, packAppendBatch, unpackAppendBatch } from "./append.ts";

Deno.test("unpackAppendBatch() is the inverse of packAppendBatch()", () => {
  const rows = [["a", 1n, "x", null], ["b", null, null, 2.5], ["a", 3n, "long text here", 1]];
  const { payload } = encodeRows(rows, [4, 5, 6, 7], ["SYMBOL", "LONG", "VARCHAR", "DOUBLE"]);
  const { batch } = decodeBatch(payload);
  const copy = unpackAppendBatch(packAppendBatch(batch), [4, 5, 6, 7]);
  assert.equal(copy.rowCount, 3);
  batch.columns.forEach((column, i) => {
    assert.deepEqual([...copy.columns[i].values], [...column.values]);
    assert.deepEqual([...copy.columns[i].heap ?? []], [...column.heap ?? []]);
    assert.deepEqual([...copy.columns[i].symbols ?? []], [...column.symbols ?? []]);
  });
  assert.deepEqual([...new Int32Array(copy.columns[0].values.slice().buffer)], [0, 1, 0]);
});

Deno.test("Interner gives equal texts equal codes, in order of first appearance, while it grows", () => {
  const interner = new Interner();
  const texts = Array.from({ length: 20_000 }, (_, i) => `text-${i % 7001}-${"y".repeat(i % 7)}`);
  const expected = new Map<string, number>();
  for (const text of texts) {
    const bytes = new TextEncoder().encode(text);
    if (!expected.has(text)) expected.set(text, expected.size);
    assert.equal(interner.code(bytes, 0, bytes.length), expected.get(text));
  }
  assert.equal(interner.finish().symbols.length, expected.size * 2);
});
