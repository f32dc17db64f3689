import assert from "node:assert/strict";
import type { Value } from "../types/mod.ts";
import { decodeBatch } from "./blocks.ts";
import { encodeRows } from "./row-payload.ts";

const COLUMNS = ["SYMBOL", "LONG", "VARCHAR", "DOUBLE", "BOOLEAN", "UUID"];
const IDS = [4, 5, 6, 7, 9, 12];

function columnsOf(rows: Value[][]) {
  const { rowCount, payload, buffer } = encodeRows(rows, IDS, COLUMNS);
  assert.equal(rowCount, rows.length);
  assert.equal(buffer, payload.buffer);
  const { batch, rest } = decodeBatch(payload);
  assert.equal(rest.length, 0);
  assert.equal(batch.rowCount, rows.length);
  assert.deepEqual(batch.columns.map(({ columnId }) => columnId), IDS);
  return batch.columns.map(({ values, heap, symbols }) => ({
    values: values.slice(),
    heap: new TextDecoder().decode(heap),
    symbols: [...symbols ?? []],
  }));
}

Deno.test("encodeRows() writes values, texts and symbols of rows", () => {
  const [symbol, long, text, double, flag, uuid] = columnsOf([
    ["a", 1n, "x", null, true, 7n << 64n | 5n],
    ["ß", null, null, 2.5, false, null],
    ["a", 3n, "long text here", 1, true, 1n],
    [null, -1n, "", -0.5, true, 1n],
  ]);
  assert.deepEqual([...new Int32Array(symbol.values.buffer)], [0, 1, 0, -1]);
  assert.deepEqual([symbol.heap, symbol.symbols], ["aß", [0, 1, 1, 2]]);
  assert.deepEqual([...new BigInt64Array(long.values.buffer)], [1n, -(2n ** 63n), 3n, -1n]);
  assert.equal(text.heap, "xlong text here");
  assert.deepEqual([...new Int32Array(text.values.buffer)], [0, 1, 1, -1, 1, 14, 15, 0]);
  assert.deepEqual([...new Float64Array(double.values.buffer)], [NaN, 2.5, 1, -0.5]);
  assert.deepEqual([...flag.values], [1, 0, 1, 1]);
  assert.deepEqual([...new BigInt64Array(uuid.values.buffer)].slice(0, 4), [5n, 7n, -(2n ** 63n), -(2n ** 63n)]);
});

Deno.test("encodeRows() of many rows, then of few: nothing of the former rows is left", () => {
  const large = columnsOf(Array.from({ length: 5000 }, (_, k) => [`s${k}`, 1n, "t".repeat(k % 50), 1, true, -1n]));
  assert.equal(large[0].symbols.length, 10_000);
  const few = [[null, null, "a", 0, false, 0n]];
  const small = columnsOf(few);
  assert.equal(small[2].heap, "a");
  const { payload } = encodeRows(few, IDS, COLUMNS);
  columnsOf([["symbol", -1n, "longer", -1, true, -1n]]);
  assert.deepEqual(encodeRows(few, IDS, COLUMNS).payload, payload);
});
