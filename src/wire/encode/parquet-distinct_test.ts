import assert from "node:assert/strict";
import { distinctCells, distinctPlaces } from "./parquet-distinct.ts";

/** Distinct cells by a Map, in the order of their first places. */
function plainly(words: Int32Array, wordsPerCell: number) {
  const numbers = new Map<string, number>(), firsts: number[] = [];
  const indexes = Array.from({ length: words.length / wordsPerCell }, (_, k) => {
    const key = String(words.subarray(k * wordsPerCell, (k + 1) * wordsPerCell));
    if (!numbers.has(key)) {
      numbers.set(key, firsts.length);
      firsts.push(k);
    }
    return numbers.get(key)!;
  });
  return { indexes, firsts };
}

/** Cells whose words have few bits that differ, and not the low ones. */
const CELLS: [string, Int32Array, number][] = [
  ["small integers", Int32Array.from({ length: 5000 }, (_, k) => k * k % 1009), 1],
  ["multiples of 65,536", Int32Array.from({ length: 5000 }, (_, k) => (k % 3000) << 16), 1],
  ["whole doubles", new Int32Array(Float64Array.from({ length: 9000 }, (_, k) => k % 4500).buffer), 2],
  ["LONGs", new Int32Array(BigInt64Array.from({ length: 5000 }, (_, k) => BigInt(k % 2500) << 40n).buffer), 2],
  ["four words", Int32Array.from({ length: 4000 }, (_, k) => k % 4 === 3 ? k % 800 : 0), 4],
  ["one value", new Int32Array(100), 1],
  ["none", new Int32Array(0), 1],
];

Deno.test("distinctCells() finds what a Map finds", () => {
  for (const [title, words, wordsPerCell] of CELLS) {
    const found = distinctCells(words, wordsPerCell, words.length / wordsPerCell, Infinity);
    assert.ok(found !== undefined, title);
    assert.deepEqual({ indexes: [...found.indexes], firsts: [...found.firsts] }, plainly(words, wordsPerCell), title);
  }
});

Deno.test("distinctPlaces() finds what a Map finds", () => {
  const places = Int32Array.from({ length: 5000 }, (_, k) => k * k % 1009);
  const { indexes, firsts } = distinctPlaces(places, places.length, 2000);
  assert.deepEqual({ indexes: [...indexes], firsts: [...firsts] }, plainly(places, 1));
});

Deno.test("distinctCells() gives up", () => {
  const words = Int32Array.from({ length: 100 }, (_, k) => k);
  assert.equal(distinctCells(words, 1, 100, 99), undefined);
  assert.notEqual(distinctCells(words, 1, 100, 100), undefined);
});
