import assert from "node:assert/strict";
import { encodeArray, formatArray } from "../../types/array-text.ts";
import { formatValue } from "../../types/format/mod.ts";
import { NULL_I32, NULL_I64, type Value } from "../../types/mod.ts";
import { randomOf, SEED } from "../../testing.ts";
import { called, type Stored } from "./testing-batches.ts";

const random = randomOf(SEED), decoder = new TextDecoder();
const ROWS = 9_000;

const texts = (type: string, values: Stored[]) =>
  called("cast_STRING", [type], [values], "STRING").map((bytes) => bytes && decoder.decode(bytes as Uint8Array));

const words = new DataView(new ArrayBuffer(8));
/** Any bits, few digits, or whole numbers. */
function fraction(): number {
  words.setUint32(0, random(2 ** 32));
  words.setUint32(4, random(2 ** 32));
  const kind = random(5);
  if (kind === 0) return words.getFloat64(0);
  if (kind === 1) return random(2_000_000) / 1000 - 1000;
  if (kind === 2) return (random(2) - 0.5) * random(100) * 10 ** (random(50) - 25);
  return kind === 3 ? (random(1e9) / 1e9) * 1000 : [NaN, Infinity, -Infinity, 0, -0, 5e-324, 1e7, 1e-3, 1][random(9)]!;
}

Deno.test("casts of numbers to texts write what formatValue() writes", () => {
  const rows = (value: () => number | bigint) => Array.from({ length: ROWS }, value);
  const columns: Record<string, (number | bigint)[]> = {
    BYTE: rows(() => random(256) - 128),
    SHORT: rows(() => random(65_536) - 32_768),
    INT: rows(() => random(9) === 0 ? NULL_I32 : (random(2 ** 32) | 0) >> random(32)),
    LONG: rows(() =>
      random(9) === 0
        ? NULL_I64
        : BigInt.asIntN(64, BigInt(random(2 ** 32)) << 32n | BigInt(random(2 ** 32))) >> BigInt(random(64))
    ),
    FLOAT: rows(() => Math.fround(fraction())),
    DOUBLE: rows(fraction),
  };
  const isNull = (value: number | bigint) =>
    value === NULL_I64 || value === NULL_I32 || typeof value === "number" && !Number.isFinite(value);
  for (const [type, values] of Object.entries(columns)) {
    const expected = values.map((value) => isNull(value) ? undefined : formatValue(value as Value, type));
    assert.deepEqual(texts(type, values), expected, type);
  }
});

Deno.test("casts of arrays to texts write what formatArray() writes", () => {
  for (const dimensions of [1, 2, 3]) {
    const arrays = Array.from({ length: 3_000 }, () => {
      if (random(9) === 0) return undefined;
      const shape = Array.from({ length: dimensions }, () => random(5));
      if (random(40) === 0) shape[random(dimensions)] = 60 + random(100);
      const size = shape.reduce((product, length) => product * length, 1);
      return encodeArray(shape, Float64Array.from({ length: size }, fraction));
    });
    assert.deepEqual(
      texts("DOUBLE" + "[]".repeat(dimensions), arrays),
      arrays.map((array) => array && formatArray(array)),
    );
  }
});
