import assert from "node:assert/strict";
import type { Interval } from "../../sql/plan.ts";
import { chunkAt, randomFrom, scanOf, segmentOf, sourceOf, spaceOfRows, testContext } from "../testing.ts";
import { morselsOf, rowsOf } from "./morsels.ts";

const COLUMNS = [{ name: "ts", type: "TIMESTAMP" }];

/** Times with ties, in segments of random sizes. */
function randomSegments(random: () => number, context: ReturnType<typeof testContext>) {
  const space = spaceOfRows(context.heap), segments = [];
  let time = 0n;
  for (let ordinal = 0; ordinal < 1 + random() % 12; ordinal++) {
    const times = Array.from({ length: 1 + random() % 9 }, () => time += BigInt(random() % 3));
    const address = space.allocate(8 * times.length);
    context.heap.i64.set(times, address / 8);
    const chunk = chunkAt(address, { nullCount: 0 });
    segments.push(segmentOf(ordinal, times.length, [chunk], [times[0]!, times.at(-1)!]));
  }
  return { segments, end: time };
}

/** Disjoint intervals in ascending order. */
function randomIntervals(random: () => number, end: bigint): Interval[] {
  const intervals: Interval[] = [];
  for (let low = BigInt(random() % 8) - 3n; low <= end + 3n; low += 1n + BigInt(random() % 12)) {
    const high = low + BigInt(random() % 9);
    intervals.push([low, high]);
    low = high;
  }
  return intervals;
}

Deno.test("rowsOf() is the number of rows of the morsels", () => {
  for (let seed = 1; seed <= 500; seed++) {
    const random = randomFrom(seed), context = testContext(1 << 22);
    const { segments, end } = randomSegments(random, context);
    const intervals = seed % 10 === 0 ? undefined : randomIntervals(random, end);
    const isTouched = ([low, high]: Interval, { timestampMin, timestampMax }: typeof segments[number]) =>
      low <= timestampMax && high >= timestampMin;
    const source = sourceOf(segments.filter((segment) => intervals?.some((each) => isTouched(each, segment)) ?? true));
    const node = scanOf(COLUMNS, { timestamp: 0, order: "asc", intervals });
    const expected = morselsOf(node, source, context).reduce((sum, { start, end }) => sum + end - start, 0);
    assert.equal(rowsOf(node, source, context), expected, `seed ${seed}`);
  }
});
