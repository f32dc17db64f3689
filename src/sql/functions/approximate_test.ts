import assert from "node:assert/strict";
import { randomOf, SEED } from "../../testing.ts";
import { NULL_I64 } from "../../types/mod.ts";
import { approximateFunctions } from "./approximate.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";

const ROWS = 3000;

for (const type of ["LONG", "DOUBLE"]) {
  Deno.test(`approx_percentile() of ${type}s counts many values at once as it counts single ones`, () => {
    const random = randomOf(SEED);
    const entry = approximateFunctions.find(({ args }) => args[0].type === type && args.length === 3)!;
    assert(entry.aggregate?.kind === "batch");
    const { create } = entry.aggregate;
    const doubles = () =>
      pick([0, -0, NaN, 2.2e-308, 2.3e-308, 1e-300, 1, 31.999, 1e300, random(1e9) / 2 ** random(40)]);
    const longs = () => pick([0n, NULL_I64, 1n, 31n, 2n ** 62n, 2n ** 63n - 1n, BigInt(random(2 ** random(32)))]);
    const pick = <T>(of: T[]): T => of[random(2) === 0 ? of.length - 1 : random(of.length)];
    for (let round = 0; round < 40; round++) {
      const values = type === "LONG" ? new BigInt64Array(ROWS) : new Float64Array(ROWS);
      for (let row = 0; row < ROWS; row++) values[row] = type === "LONG" ? longs() : doubles();
      const constants = [undefined, pick([0, 1, random(1000) / 1000]), random(6)];
      // No groups, in order, and mixed; the rows of the last ones are few.
      const groups = pick([
        undefined,
        new Int32Array(ROWS).map((_, row) => Math.floor(row / 500)),
        new Int32Array(ROWS).map(() => random(6)),
        new Int32Array(ROWS).map(() => random(100)),
      ]);
      const count = 1 + Math.max(0, ...groups ?? []);
      const [together, single] = [ROWS, 1].map((step) => {
        const state = create([], constants, {} as FunctionContext), out = new Float64Array(count);
        for (let from = 0; from < 2 * ROWS; from += step) {
          const at = from % ROWS, column = { values: values.subarray(at, at + step) } as unknown as BatchColumn;
          state.update(groups?.subarray(at, at + step), [column], step);
        }
        state.finish({ values: out } as unknown as BatchOut, count);
        return out;
      });
      assert.deepEqual(together, single, `${constants}`);
    }
  });
}
