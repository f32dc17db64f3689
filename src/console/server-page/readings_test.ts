import assert from "node:assert/strict";
import { keyOf, labelsOf, quantileOf, rateOf, readingOf, sumOf } from "./readings.ts";

const histogram = (at: number, counts: number[]) =>
  readingOf(at, [1, 2, null].map((le, index) => ["seconds_bucket", "exec", le, counts[index]]));

Deno.test("readingOf() keeps labels and buckets apart", () => {
  const reading = readingOf(0, [["in", "exec", null, 2], ["in", "pg", null, 3], ["up", null, null, 1]]);
  assert.deepEqual([reading.values.get(keyOf("in", "pg")), reading.values.get(keyOf("up"))], [3, 1]);
  assert.deepEqual(labelsOf(reading, "in"), ["exec", "pg"]);
  assert.deepEqual([sumOf(reading, "in"), sumOf(reading, "none")], [5, null]);
});

Deno.test("rateOf() is growth per second, and null after a restart", () => {
  const at = (ms: number, value: number) => readingOf(ms, [["in", null, null, value]]);
  assert.equal(rateOf(at(1000, 10), at(3000, 30), keyOf("in")), 10);
  assert.equal(rateOf(at(1000, 10), at(3000, 3), keyOf("in")), null);
  assert.equal(rateOf(undefined, at(3000, 3), keyOf("in")), null);
  assert.equal(rateOf(at(1000, 1), at(3000, 3), keyOf("out")), null);
});

Deno.test("quantileOf() interpolates between the bounds of the observations since the previous reading", () => {
  const before = histogram(0, [100, 100, 100]);
  assert.equal(quantileOf(before, histogram(1, [110, 110, 110]), "seconds", 0.5), 0.5);
  assert.equal(quantileOf(before, histogram(1, [100, 110, 110]), "seconds", 0.5), 1.5);
  assert.equal(quantileOf(before, histogram(1, [100, 100, 110]), "seconds", 0.5), 2, "above the last bound");
  assert.equal(quantileOf(before, histogram(1, [100, 100, 100]), "seconds", 0.5), null);
  assert.equal(quantileOf(before, histogram(1, [5, 5, 5]), "seconds", 0.5), null, "after a restart");
});
