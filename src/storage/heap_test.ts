import assert from "node:assert/strict";
import { createHeap, HeapFullError, SharedHeap } from "./heap.ts";

Deno.test("SharedHeap returns blocks that do not overlap, and can free all of them", () => {
  const heap = createHeap(16 << 20);
  const whole = heap.sizeBytes();
  let seed = 7;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  const blocks: { address: number; size: number; mark: number; exact: boolean }[] = [];
  for (let step = 0; step < 20_000; step++) {
    if (blocks.length && random(2)) {
      const [block] = blocks.splice(random(blocks.length), 1);
      assert.equal(heap.i32[block.address / 4], block.mark);
      assert.equal(heap.i32[(block.address + block.size) / 4 - 1], block.mark);
      if (block.exact) heap.freeExact(block.address, block.size, "query");
      else heap.free(block.address, block.size, "query");
    } else {
      const exact = random(2) === 0;
      const size = 4 * (1 + random(60_000));
      try {
        const address = exact ? heap.allocateExact(size, "query") : heap.allocate(size, "query");
        heap.i32[address / 4] = step;
        heap.i32[(address + size) / 4 - 1] = step;
        blocks.push({ address, size, mark: step, exact });
      } catch (error) {
        assert.ok(error instanceof HeapFullError);
      }
    }
  }
  for (const block of blocks) {
    if (block.exact) heap.freeExact(block.address, block.size, "query");
    else heap.free(block.address, block.size, "query");
  }
  assert.equal(heap.usedBytes(), 0);
  const half = 2 ** Math.floor(Math.log2(whole));
  heap.free(heap.allocate(half, "query"), half, "query");
  assert.ok(SharedHeap.blockBytes(5000) === 8192);
});

Deno.test("SharedHeap lists free blocks, and take() succeeds only for blocks that are still free and whole", () => {
  const heap = createHeap(1 << 26);
  const used = heap.allocate(1 << 20, "query");
  const [block, ...others] = heap.freeBlocks(1 << 20);
  assert.ok(others.length > 0);
  assert.ok(
    [block, ...others].every(({ address, sizeBytes }) => used + (1 << 20) <= address || address + sizeBytes <= used),
  );
  assert.equal(heap.take(block), true);
  assert.equal(heap.take(block), false);
  assert.equal(heap.usedBytes("other"), block.sizeBytes);
  heap.putBack(block, 0);
  heap.free(used, 1 << 20, "query");
  assert.equal(heap.usedBytes(), 0);
});

Deno.test("SharedHeap takes a part of a free block, others use the rest, and putBack() makes one block of them again", () => {
  const heap = createHeap(1 << 26);
  const before = heap.freeBlocks(1 << 20);
  const { address, sizeBytes } = before.toSorted((a, b) => b.sizeBytes - a.sizeBytes)[0];
  for (const part of [0, 3, sizeBytes / (1 << 20) - 1]) {
    const piece = { address: address + part * (1 << 20), sizeBytes: 1 << 20 };
    assert.equal(heap.take(piece), true);
    assert.equal(heap.take(piece), false);
    assert.equal(heap.take({ address, sizeBytes }), false);
    assert.equal(heap.usedBytes("other"), 1 << 20);
    const used = heap.allocate(2 << 20, "query");
    assert.ok(used + (2 << 20) <= piece.address || piece.address + piece.sizeBytes <= used);
    heap.putBack(piece, 0);
    heap.free(used, 2 << 20, "query", 0);
    assert.equal(heap.usedBytes(), 0);
    assert.equal(heap.warmFreeBytes(), 0);
    const byAddress = (a: { address: number }, b: { address: number }) => a.address - b.address;
    assert.deepEqual(heap.freeBlocks(1 << 20).sort(byAddress), before.toSorted(byAddress));
  }
});

Deno.test("SharedHeap counts the free memory that has pages, regardless of splits and merges", () => {
  const heap = createHeap(1 << 26);
  assert.equal(heap.warmFreeBytes(), 0);
  const addresses = Array.from({ length: 16 }, () => heap.allocate(1 << 20, "query"));
  assert.equal(heap.warmFreeBytes(), 0);
  for (const address of addresses) heap.free(address, 1 << 20, "query");
  assert.equal(heap.warmFreeBytes(), 16 << 20);
  const half = heap.allocate(8 << 20, "query");
  assert.equal(heap.warmFreeBytes(), 8 << 20);
  heap.free(half, 8 << 20, "query", 1 << 20);
  assert.equal(heap.warmFreeBytes(), 9 << 20);
  for (const block of heap.freeBlocks(1 << 20)) {
    if (heap.take(block)) heap.putBack(block, Math.min(block.warmBytes, 4096));
  }
  assert.ok(heap.warmFreeBytes() <= 4096 * heap.freeBlocks(1 << 20).length);
});

Deno.test("text() reads both halves of a memory, across their border, and keeps a byte order mark", () => {
  const half = 2 ** 31, heap = createHeap(half + (1 << 20)), bytes = new TextEncoder().encode("\ufeffaé😀");
  for (const address of [half / 2, half - 7, half, half + 1000]) {
    heap.u8.set(bytes, address);
    assert.equal(heap.text(address, bytes.length), "\ufeffaé😀");
  }
});
