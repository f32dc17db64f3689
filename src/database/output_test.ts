import assert from "node:assert/strict";
import type { Batch } from "../engine/contract.ts";
import { testContext } from "../engine/testing.ts";
import { createOutput } from "./output.ts";

const ROWS = 60_000;

Deno.test("a row group is short if it is to be, and its size is known before it is encoded", () => {
  const { heap, memory } = testContext(1 << 28);
  const columns = Array.from({ length: 16 }, (_, k) => ({ name: `c${k}`, type: "LONG" }));
  const address = heap.allocate(8 * ROWS, "query");
  const batch: Batch = { rowCount: ROWS, columns: columns.map(({ type }) => ({ type, address })) };
  const output = createOutput({ kind: "rows", encoding: { name: "parquet", codec: "ZSTD" } }, columns, heap, memory);
  output.begin(batch);
  assert.equal(output.nextBytes(false), 8 * 16 * ROWS);
  assert.equal(output.nextBytes(true), 1 << 20);
  assert.equal(output.next(false, true)?.rows, (1 << 20) / (8 * 16));
  assert.equal(output.next()?.rows, ROWS - (1 << 20) / (8 * 16));
  assert.equal(output.next(), undefined);
});

Deno.test("long texts count before they are encoded, and make a piece end", () => {
  const { heap, memory } = testContext(1 << 28);
  const columns = ["s", "t"].map((name) => ({ name, type: "VARCHAR" })), sizeBytes = 900_000;
  const text = heap.allocate(sizeBytes, "query"), address = heap.allocate(64, "query");
  heap.u8.fill(97, text, text + sizeBytes);
  for (let row = 0; row < 8; row++) heap.i32.set([text, sizeBytes], (address >>> 2) + 2 * row);
  const output = createOutput({ kind: "rows", encoding: { name: "csv", delimiter: "," } }, columns, heap, memory);
  output.begin({ rowCount: 8, columns: columns.map(({ type }) => ({ type, address })) });
  assert.equal(output.nextBytes(false), 2 * 2 * sizeBytes);
  assert.equal(output.next()?.rows, 2);
  assert.equal(output.nextBytes(true), 2 * sizeBytes);
  assert.equal(output.next(false, true)?.rows, 1);
  assert.equal(output.next()?.rows, 2);
});
