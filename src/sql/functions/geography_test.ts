import assert from "node:assert/strict";
import { randomOf, SEED } from "../../testing.ts";
import { NULL_I64 } from "../../types/mod.ts";
import { geohashTag } from "../../types/wide.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";
import { geographyFunctions } from "./geography.ts";

const ROWS = 50;

Deno.test("within() compares the first bits, also of geohashes with fewer bits than the prefix", () => {
  const random = randomOf(SEED), { batch } = geographyFunctions.find(({ name }) => name === "within")!;
  const hashOf = (bits: number) => BigInt.asUintN(bits, BigInt(random(4)) << BigInt(random(60)) | BigInt(random(3)));
  const columnOf = (bits: number, values: BigInt64Array) =>
    ({ type: geohashTag(bits), values, isNull: (row: number) => values[row] === NULL_I64 }) as unknown as BatchColumn;
  for (let round = 0; round < 2000; round++) {
    const bits = 1 + random(60), hashes = new BigInt64Array(ROWS).map(() => random(9) === 0 ? NULL_I64 : hashOf(bits));
    const prefixes = Array.from({ length: 1 + random(3) }, () => {
      const bits = 1 + random(60);
      return { bits, value: random(9) === 0 ? NULL_I64 : hashOf(bits) };
    });
    const insides = new Uint8Array(ROWS).fill(7);
    batch!(
      [columnOf(bits, hashes), ...prefixes.map(({ bits, value }) => columnOf(bits, BigInt64Array.of(value)))],
      { values: insides } as unknown as BatchOut,
      ROWS,
      {} as FunctionContext,
    );
    hashes.forEach((hash, row) => {
      const isInside = hash !== NULL_I64 &&
        prefixes.some((prefix) => hash >> BigInt(bits - prefix.bits) === prefix.value);
      assert.equal(insides[row], isInside ? 1 : 0, `${hash} of ${bits} bits`);
    });
  }
});
