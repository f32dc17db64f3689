import assert from "node:assert/strict";
import { randomOf, SEED } from "../../testing.ts";
import { WIDE_BYTES, wideKernels } from "./wide-kernels.ts";

const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
const kernels = wideKernels(memory), longs = new BigInt64Array(memory.buffer), bytes = new Uint8Array(memory.buffer);
const A = 1024, B = 8192, OUT = 16_384, ROWS = 100;

Deno.test("equal() compares all bits, of two columns or with a constant", () => {
  const random = randomOf(SEED), some = [0n, 1n, -(2n ** 63n), 1n << 32n];
  for (let k = 0; k < 2 * ROWS; k++) {
    longs[A / 8 + k] = some[random(some.length)];
    longs[B / 8 + k] = random(2) === 0 ? longs[A / 8 + k] : some[random(some.length)];
  }
  const valueOf = (address: number, row: number) => longs.slice(address / 8 + 2 * row, address / 8 + 2 * row + 2);
  for (const [stepA, stepB] of [[WIDE_BYTES, WIDE_BYTES], [WIDE_BYTES, 0], [0, WIDE_BYTES]]) {
    for (const expected of [0, 1]) {
      kernels.equal(A, stepA, B, stepB, ROWS, OUT, expected);
      for (let row = 0; row < ROWS; row++) {
        const [a, b] = [valueOf(A, stepA === 0 ? 0 : row), valueOf(B, stepB === 0 ? 0 : row)];
        assert.equal(bytes[OUT + row], a[0] === b[0] && a[1] === b[1] ? expected : 1 - expected, `${row}`);
      }
      assert.equal(bytes[OUT + ROWS], 0);
    }
  }
});
