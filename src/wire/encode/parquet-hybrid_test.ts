import { readRleBitPackedHybrid } from "hyparquet/src/encoding.js";
import assert from "node:assert/strict";
import { randomOf, SEED } from "../../testing.ts";
import { hybrid, hybridRun } from "./parquet-hybrid.ts";

const random = randomOf(SEED);

function read(bytes: Uint8Array<ArrayBuffer>, at: number, count: number, bitWidth: number): number[] {
  const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: at };
  const values = new Array<number>(count);
  readRleBitPackedHybrid(reader, bitWidth, values, bytes.length - at);
  assert.equal(reader.offset, bytes.length);
  return values;
}

Deno.test("hybrid() writes values that come back", () => {
  for (let bitWidth = 1; bitWidth <= 24; bitWidth++) {
    for (const count of [1, 7, 8, 9, 100, 3000]) {
      for (const runMax of [1, 3, 20, 1000]) {
        const values = new Int32Array(count);
        for (let k = 0; k < count;) {
          const value = random(2 ** bitWidth), end = Math.min(count, k + 1 + random(runMax));
          values.fill(value, k, end);
          k = end;
        }
        const from = random(count), to = from + 1 + random(count - from), reserve = random(5);
        const found = read(hybrid(values, from, to, bitWidth, reserve), reserve, to - from, bitWidth);
        assert.deepEqual(found, [...values.subarray(from, to)]);
      }
    }
  }
});

Deno.test("hybridRun() writes a run that comes back", () => {
  for (const count of [1, 63, 64, 100_000]) {
    assert.deepEqual(read(hybridRun(1, count, 1), 0, count, 1), new Array(count).fill(1));
  }
});
