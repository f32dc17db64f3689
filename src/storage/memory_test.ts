import assert from "node:assert/strict";
import { createHeap } from "./heap.ts";
import { WriterMemory } from "./memory.ts";

const KIB = 1 << 10, MIB = 1 << 20;

Deno.test("WriterMemory evicts until there is a block, also if what is free lies in pieces", () => {
  const heap = createHeap(8 * MIB), memory = new WriterMemory(heap);
  const frames: number[] = [];
  const evict = (count: number) => frames.splice(0, count).forEach((address) => heap.free(address, 64 * KIB, "pool"));
  while (heap.sizeBytes() - heap.usedBytes() >= 64 * KIB) frames.push(heap.allocate(64 * KIB, "pool"));
  // Those at even places come first, so there is no block of 128 KiB until half of all are gone.
  const isOdd = (address: number) => (address / (64 * KIB)) & 1;
  frames.sort((a, b) => isOdd(a) - isOdd(b));
  memory.onPressure = (sizeBytes) => {
    const count = frames.length;
    evict(sizeBytes / (64 * KIB));
    return frames.length < count;
  };
  memory.allocate(MIB, "tail");
  assert.ok(frames.length > 0);
  assert.throws(() => memory.allocate(8 * MIB, "tail"), { name: "HeapFullError" });
  assert.equal(frames.length, 0);
});
