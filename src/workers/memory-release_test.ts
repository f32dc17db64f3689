import assert from "node:assert/strict";
import vm from "node:vm";
import { createHeap } from "../storage/heap.ts";
import { libc } from "./libc.ts";
import { doChore, releaseAfterQuery, releaseFreePages } from "./memory-release.ts";

Deno.test("a thread collects garbage when its heap has grown since it was first looked at, not because it has code", () => {
  let collections = 0;
  const { runInNewContext } = vm;
  vm.runInNewContext = () => () => collections++;
  try {
    const heap = createHeap(1 << 20), code = Array.from({ length: 1_000_000 }, (_, k) => ({ k }));
    const afterQueries = (count: number) => {
      for (let k = 0; k < count; k++) {
        releaseAfterQuery(heap, { madeBytes: 0, limitBytes: 1 << 30 });
        while (doChore());
      }
      return collections;
    };
    assert.equal(afterQueries(64), 0, "what is there at first is no garbage");
    const more = Array.from({ length: 1_000_000 }, (_, k) => ({ k }));
    assert.equal(afterQueries(64), 1);
    assert.equal(code.length + more.length, 2_000_000);
  } finally {
    vm.runInNewContext = runInNewContext;
  }
});

Deno.test({
  name: "releaseFreePages() returns about as many bytes of free blocks, and no page of used ones",
  ignore: libc() === undefined,
  fn: () => {
    const MIB = 1 << 20, heap = createHeap(128 * MIB);
    const used = heap.allocate(16 * MIB, "other"), freed = heap.allocate(64 * MIB, "other");
    for (const [address, size] of [[used, 16], [freed, 64]]) heap.u8.fill(7, address, address + size * MIB);
    heap.free(freed, 64 * MIB, "other");
    const warmBytes = heap.warmFreeBytes(), returnedMib = () => (warmBytes - heap.warmFreeBytes()) / MIB;
    releaseFreePages(heap, 20 * MIB);
    assert.equal(returnedMib(), 32, "whole pieces of 16 MiB");
    releaseFreePages(heap, 1024 * MIB);
    assert.equal(returnedMib(), 64);
    const isOnly = (value: number, address: number, sizeBytes: number) =>
      heap.u8.subarray(address, address + sizeBytes).every((byte) => byte === value);
    // The first page of a free block has its links.
    for (let piece = 0; piece < 4; piece++) {
      assert.ok(isOnly(0, freed + (16 * piece + 1) * MIB, 15 * MIB), "returned pages are empty");
    }
    assert.ok(isOnly(7, used, 16 * MIB));
  },
});
