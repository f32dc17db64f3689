import assert from "node:assert/strict";
import { createMemories } from "./memories.ts";
import { SharedPool } from "./pool.ts";

const MIB = 2 ** 20;

/** Sizes in MiB: of the memories, and of the pool's parts in them. */
function sizesOf(options: Parameters<typeof createMemories>[0]) {
  const { heap, further } = createMemories(options), pool = new SharedPool(heap, undefined, further);
  return {
    first: heap.buffer.byteLength / MIB,
    further: further.map(({ u8 }) => u8.length / MIB),
    pool: [pool.frames, pool.further].map((frames) => frames && frames.limitBytes / MIB),
  };
}

Deno.test("createMemories() makes one memory as long as an address reaches, and divides the rest evenly", () => {
  assert.deepEqual(sizesOf({ heapSizeBytes: 64 * MIB }), { first: 64, further: [], pool: [32, undefined] });
  const limits = { firstMemoryBytes: 64 * MIB, furtherMemoryBytes: 16 * MIB };
  assert.deepEqual(sizesOf({ heapSizeBytes: 104 * MIB, poolSizeBytes: 72 * MIB, ...limits }), {
    first: 64,
    further: [40 / 3, 40 / 3, 40 / 3].map((mib) => Math.floor(mib * 16) / 16),
    pool: [32, 37.5],
  });
  // The first memory keeps the half of its pool, whatever is left of the others.
  assert.deepEqual(sizesOf({ heapSizeBytes: 104 * MIB, poolSizeBytes: 48 * MIB, ...limits }), {
    first: 64,
    further: [16],
    pool: [32, 15],
  });
  assert.deepEqual(sizesOf({ heapSizeBytes: 104 * MIB, poolSizeBytes: 20 * MIB, ...limits }).pool, [20, undefined]);
  const large = sizesOf({ heapSizeBytes: 14_335 * MIB, poolSizeBytes: 12_288 * MIB, firstMemoryBytes: 4095 * MIB });
  assert.deepEqual(large, { first: 4095, further: [3413.3125, 3413.3125, 3413.3125], pool: [2048, 9600] });
});

Deno.test("createMemories() touches few pages", { ignore: Deno.build.os !== "linux" }, () => {
  const before = Deno.memoryUsage().rss;
  const { heap, further } = createMemories({ heapSizeBytes: 14_335 * MIB, poolSizeBytes: 12_288 * MIB });
  assert.ok(heap.usedBytes() + further[0].usedBytes() > 40 * MIB, "the directories are large");
  assert.ok(Deno.memoryUsage().rss - before < 20 * MIB, `${(Deno.memoryUsage().rss - before) / MIB} MiB`);
  assert.equal(new SharedPool(heap, undefined, further).stats().frames, 0);
});
