import assert from "node:assert/strict";
import { randomOf, SEED } from "../../testing.ts";
import { formatLong256 } from "../../types/wide.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";
import { FUNCTIONS } from "./mod.ts";

const ROWS = 2000, TEXT_BYTES = 66;

Deno.test("a LONG256 is cast to the text of its BigInt", () => {
  const random = randomOf(SEED), some = [0n, 1n, 0x80n, 0xffn, 0x100n, (1n << 256n) - 1n];
  const rows = Array.from({ length: ROWS }, (_, row) => {
    if (row < some.length) return some[row];
    const bits = random(257);
    let value = 0n;
    for (let k = 0; k < 8; k++) value = value << 32n | BigInt(random(2 ** 32));
    return BigInt.asUintN(bits, value);
  });
  const values = new BigInt64Array(4 * ROWS), nulls = new Set([7, 8]);
  rows.forEach((value, row) => {
    for (let k = 0; k < 4; k++) values[4 * row + k] = BigInt.asIntN(64, value >> BigInt(64 * k));
  });
  const u8 = new Uint8Array(ROWS * TEXT_BYTES), lengths: (number | undefined)[] = [];
  const out = {
    placeText: (row: number, length: number) => {
      lengths[row] = length;
      return row * TEXT_BYTES;
    },
    setNull: (row: number) => lengths[row] = undefined,
  } as unknown as BatchOut;
  const column = { type: "LONG256", values, isNull: (row: number) => nulls.has(row) } as unknown as BatchColumn;
  const { batch } = FUNCTIONS.find(({ name, args }) => name === "cast_STRING" && args[0].type === "wide")!;
  batch!([column], out, ROWS, { heap: { u8 }, poll() {} } as unknown as FunctionContext);
  rows.forEach((value, row) => {
    const length = lengths[row], at = row * TEXT_BYTES;
    const text = length === undefined ? undefined : String.fromCharCode(...u8.subarray(at, at + length));
    assert.equal(text, nulls.has(row) ? undefined : formatLong256(value));
  });
});
