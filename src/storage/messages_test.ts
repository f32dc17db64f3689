import assert from "node:assert/strict";
import type { AppendBatch } from "./contract.ts";
import { pack, unpack } from "./messages.ts";
import { packAppendBatch, unpackAppendBatch } from "./packed.ts";

const ROWS = 20_000;

function packedRows(): Uint8Array {
  const ints = new Uint8Array(Int32Array.from({ length: ROWS }, (_, k) => k).buffer);
  const symbols = Int32Array.of(0, 2, 2, 1);
  return packAppendBatch({
    rowCount: ROWS,
    columns: [{ columnId: 0, values: ints }, {
      columnId: 3,
      values: ints,
      heap: new Uint8Array([97, 98, 99]),
      symbols,
    }],
  });
}

/** As another thread receives it. */
function received(value: unknown): unknown {
  const buffers = pack(value);
  return unpack(structuredClone(buffers, { transfer: buffers }));
}

Deno.test("a message transfers the buffer of a packed batch instead of copying the columns", () => {
  const bytes = packedRows();
  const batch = unpackAppendBatch(bytes, [0, 3]);
  const [first, ...others] = pack({ batches: [batch] });
  assert.deepEqual(others, [bytes.buffer]);
  assert.ok(first!.byteLength < 1_000);
  const { batches: [{ rowCount, columns }] } = received({ batches: [batch] }) as { batches: [AppendBatch] };
  assert.equal(bytes.byteLength, 0);
  assert.equal(rowCount, ROWS);
  const sent = unpackAppendBatch(packedRows(), [0, 3]).columns;
  assert.deepEqual(columns.map((column) => ({ heap: undefined, symbols: undefined, ...column })), sent);
});

Deno.test("a message copies a packed batch that is only a part of its buffer", () => {
  const packed = packedRows();
  const buffer = new Uint8Array(packed.length + 8);
  buffer.set(packed);
  const batch = unpackAppendBatch(buffer.subarray(0, packed.length), [0, 3]);
  const buffers = pack({ batches: [batch] });
  assert.equal(buffers.length, 1);
  assert.ok(buffers[0]!.byteLength > packed.length - 1_000);
});

Deno.test("a message has all kinds of values", () => {
  const large = new Uint8Array(100_000).fill(7);
  const value = {
    id: 7,
    none: null,
    numbers: [-1.5, Infinity, -Infinity, NaN],
    texts: ["", '\ud83d\ude00 "q" \\', "a lone \ud800"],
    list: [{ start: -(2n ** 63n), flag: true }, { start: 2n ** 63n - 1n, flag: false }],
    views: [Uint8Array.of(1, 2, 3), Int32Array.of(-1, 2 ** 31 - 1), BigInt64Array.of(-1n, 5n), new Uint8Array(0)],
    part: large.subarray(10, 20),
    large,
    again: large,
  };
  const expected = { ...value, large: large.slice(), again: large.slice(), part: large.slice(10, 20) };
  assert.deepEqual(received(value), expected);
});

Deno.test("a message leaves undefined properties out", () => {
  assert.deepEqual(Object.keys(received({ a: undefined, b: 1 }) as object), ["b"]);
});
