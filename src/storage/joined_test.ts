import assert from "node:assert/strict";
import { joined } from "./joined.ts";
import { batchOf } from "./test-rows.ts";

const TYPES = { 0: "SYMBOL", 1: "VARCHAR", 2: "INT" };
const ids = (...values: bigint[]) => BigInt64Array.from(values);

Deno.test("joined() shifts offsets and codes", () => {
  const { rowIds, columns } = joined([
    { rowIds: ids(7n, 8n), ...batchOf(TYPES, [{ 0: "a", 1: "one", 2: 1 }, { 0: null, 1: null, 2: null }]) },
    { rowIds: ids(9n, 3n), ...batchOf(TYPES, [{ 0: "b", 1: "two", 2: 2 }, { 0: "b", 1: "", 2: 3 }]) },
  ]);
  assert.deepEqual([...rowIds], [7n, 8n, 9n, 3n]);
  const words = columns.map(({ values }) => new Int32Array(values.buffer));
  const text = ({ heap }: { heap?: Uint8Array }, pairs: Int32Array, row: number) => {
    const at = pairs[2 * row], length = pairs[2 * row + 1];
    return length < 0 ? null : new TextDecoder().decode(heap!.slice(at, at + length));
  };
  assert.deepEqual([0, 1, 2, 3].map((row) => text(columns[1], words[1], row)), ["one", null, "two", ""]);
  const codes = [...words[0]];
  assert.deepEqual(codes.map((code) => code < 0 ? null : text(columns[0], columns[0].symbols!, code)), [
    "a",
    null,
    "b",
    "b",
  ]);
  assert.deepEqual([...words[2]], [1, -(2 ** 31), 2, 3]);
});
