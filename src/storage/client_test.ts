import assert from "node:assert/strict";
import { pack, unpack } from "./client.ts";
import type { AppendBatch } from "./contract.ts";
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

Deno.test("pack() transfers the buffer of a packed batch instead of copying the columns", () => {
  const bytes = packedRows();
  const batch = unpackAppendBatch(bytes, [0, 3]);
  const transfer = new Set<ArrayBuffer>();
  const message = pack({ batches: [batch] }, transfer);
  assert.ok(transfer.has(bytes.buffer as ArrayBuffer));
  assert.equal(message.gathered.byteLength, 0);
  const { batches: [received] } = unpack(structuredClone(message, { transfer: [...transfer] })) as {
    batches: AppendBatch[];
  };
  const { columns } = unpackAppendBatch(packedRows(), [0, 3]);
  assert.equal(received.rowCount, ROWS);
  assert.deepEqual(received.columns, columns);
});

Deno.test("pack() copies a packed batch that is only a part of its buffer", () => {
  const packed = packedRows();
  const buffer = new Uint8Array(packed.length + 8);
  buffer.set(packed);
  const batch = unpackAppendBatch(buffer.subarray(0, packed.length), [0, 3]);
  const transfer = new Set<ArrayBuffer>();
  const message = pack({ batches: [batch] }, transfer);
  assert.ok(!transfer.has(buffer.buffer));
  assert.ok(message.gathered.byteLength > 0);
});
