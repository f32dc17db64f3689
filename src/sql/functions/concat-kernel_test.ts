import assert from "node:assert/strict";
import { NULL_I32, NULL_I64 } from "../../types/mod.ts";
import { randomOf, SEED } from "../../testing.ts";
import { JOINED_BYTES_MAX } from "./concat-kernel.ts";
import { called, type Stored } from "./testing-batches.ts";

const random = randomOf(SEED), encoder = new TextEncoder();

const text = () => {
  const length = random(300) === 0 ? JOINED_BYTES_MAX - 10 + random(20) : random(20);
  return random(9) === 0 ? undefined : encoder.encode(Array.from({ length }, () => "aé😀-"[random(3)]).join(""));
};
const VALUES: Record<string, () => Stored> = {
  STRING: text,
  VARCHAR: text,
  INT: () => random(9) === 0 ? NULL_I32 : random(2 ** 32) | 0,
  LONG: () => random(9) === 0 ? NULL_I64 : BigInt(random(1e9)) * -12345n,
  DOUBLE: () => [NaN, Infinity, 1.5, 0.1 + random(100), 1e300][random(5)]!,
  FLOAT: () => [NaN, 1.5, Math.fround(random(1e6) / 7)][random(3)]!,
  SHORT: () => random(1000) - 500,
  BOOLEAN: () => random(2),
  CHAR: () => [0, 65, 233][random(3)]!,
  TIMESTAMP: () => random(9) === 0 ? NULL_I64 : BigInt(random(2 ** 31)) * 1_000_003n,
  DATE: () => random(9) === 0 ? NULL_I64 : BigInt(random(2 ** 31)),
  IPv4: () => random(9) === 0 ? 0 : random(2 ** 32) | 0,
};

Deno.test("concat() of many rows joins what it joins for few rows", () => {
  const ROWS = 1_500, FEW = 500, types = Object.keys(VALUES);
  for (
    const list of [["STRING", "INT", "VARCHAR"], ["STRING"], ...types.map((type) => [type, "STRING", type]), types]
  ) {
    const columns = list.map((type) => Array.from({ length: ROWS }, VALUES[type]!));
    const expected: Stored[] = [];
    for (let from = 0; from < ROWS; from += FEW) {
      expected.push(...called("concat", list, columns.map((values) => values.slice(from, from + FEW)), "STRING"));
    }
    assert.deepEqual(called("concat", list, columns, "STRING"), expected, list.join());
    if (list.length === 1) continue;
    // The same with a constant.
    const [values] = columns, constant = values![0], same = [Array(ROWS).fill(constant), ...columns.slice(1)];
    assert.deepEqual(
      called("concat", list, same, "STRING", { 0: 0 }).slice(0, FEW),
      called("concat", list, same.map((values) => values.slice(0, FEW)), "STRING"),
    );
  }
});
