import assert from "node:assert/strict";
import { randomOf, SEED } from "../../testing.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";
import { FUNCTIONS } from "./mod.ts";

const NETWORKS = ["10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0", "255.0/8", "1.2.3.4", "10.1.2.3/31", "none", undefined];

for (const name of ["<<", "<<="]) {
  Deno.test(`${name} of a constant network is as of one for each row`, () => {
    const random = randomOf(SEED), { batch } = FUNCTIONS.find((entry) => entry.name === name)!;
    const addresses = new Int32Array(200).map(() =>
      random(4) === 0 ? 0 : (random(2) === 0 ? 0x0a010200 : 0) + random(9)
    );
    for (const network of NETWORKS) {
      const [constant, byRow] = [true, false].map((isConstant) => {
        const networks = { isConstant, text: () => network }, values = new Uint8Array(addresses.length).fill(7);
        batch!(
          [{ values: addresses }, networks] as unknown as BatchColumn[],
          { values } as unknown as BatchOut,
          addresses.length,
          {} as FunctionContext,
        );
        return values;
      });
      assert.deepEqual(constant, byRow, network);
    }
  });
}
