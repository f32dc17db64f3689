import assert from "node:assert/strict";
import { concatAppendBatches, Interner, packAppendBatch, unpackAppendBatch, valuesToAppendBatch } from "./append.ts";

Deno.test("unpackAppendBatch() is the inverse of packAppendBatch()", () => {
  const batch = valuesToAppendBatch([["a", 1n, "x", null], ["b", null, null, 2.5], ["a", 3n, "long text here", 1]], [
    4,
    5,
    6,
    7,
  ], ["SYMBOL", "LONG", "VARCHAR", "DOUBLE"]);
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

const noPause = () => Promise.resolve();

Deno.test("concatAppendBatches() pauses while it joins much", async () => {
  const length = 300_000;
  const batchOf = (letter: string) =>
    valuesToAppendBatch(Array(10).fill([letter.repeat(length), 1]), [0, 1], ["VARCHAR", "LONG"]);
  let pauses = 0;
  const joined = await concatAppendBatches([batchOf("a"), batchOf("b")], () => Promise.resolve(void pauses++));
  assert.ok(pauses >= 4, `${pauses} pauses`);
  const pairs = new Int32Array(joined.columns[0].values.buffer), heap = joined.columns[0].heap!;
  assert.deepEqual(Array.from({ length: 20 }, (_, row) => [heap[pairs[2 * row]], pairs[2 * row + 1]]), [
    ...Array(10).fill([0x61, length]),
    ...Array(10).fill([0x62, length]),
  ]);
});

Deno.test("concatAppendBatches() shifts offsets and codes", async () => {
  const types = ["SYMBOL", "VARCHAR", "INT"];
  const joined = await concatAppendBatches([
    valuesToAppendBatch([["a", "one", 1], [null, null, null]], [0, 1, 2], types),
    valuesToAppendBatch([["b", "two", 2], ["b", "", 3]], [0, 1, 2], types),
  ], noPause);
  const text = ({ heap }: { heap?: Uint8Array }, at: number, length: number) =>
    length < 0 ? null : new TextDecoder().decode(heap!.slice(at, at + length));
  const pairs = new Int32Array(joined.columns[1].values.buffer);
  assert.deepEqual([0, 1, 2, 3].map((row) => text(joined.columns[1], pairs[2 * row], pairs[2 * row + 1])), [
    "one",
    null,
    "two",
    "",
  ]);
  const codes = new Int32Array(joined.columns[0].values.buffer), symbols = joined.columns[0].symbols!;
  assert.deepEqual(
    [...codes].map((code) => code < 0 ? null : text(joined.columns[0], symbols[2 * code], symbols[2 * code + 1])),
    ["a", null, "b", "b"],
  );
  assert.equal(joined.rowCount, 4);
});
