import assert from "node:assert/strict";
import { createHeap } from "../storage/heap.ts";
import { createPackedMemory } from "../storage/packed-memory.ts";
import { mappings, memoryParts } from "./memory-parts.ts";

const SMAPS = `1000-3000 rw-p 00000000 00:00 0
Size:                  8 kB
Rss:                   4 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 77                         /usr/bin/deno
Rss:                  12 kB
`;

Deno.test("mappings() reads addresses, files and resident bytes", () => {
  assert.deepEqual(mappings(SMAPS), [
    { from: 0x1000n, to: 0x3000n, isOfFile: false, residentBytes: 4096 },
    { from: 0x7f0000000000n, to: 0x7f0000001000n, isOfFile: true, residentBytes: 12_288 },
  ]);
});

Deno.test("memoryParts() counts the touched pages of the shared memories", () => {
  const heap = createHeap(256 << 20), sizeBytes = 64 << 20;
  const further = [1, 2].map(() => createPackedMemory(64 << 20)), packedBytes = 32 << 20;
  const before = new Map(memoryParts(heap, further)), address = heap.allocate(sizeBytes, "query");
  heap.u8.fill(1, address, address + sizeBytes);
  const packed = further[1].tryAllocateExact(packedBytes)!;
  further[1].u8.fill(1, packed, packed + packedBytes);
  const parts = new Map(memoryParts(heap, further)), grown = (tag: string) => parts.get(tag)! - before.get(tag)!;
  assert.equal(grown("SHARED_QUERY"), sizeBytes);
  assert.equal(grown("SHARED_PACKED"), packedBytes);
  assert.equal(grown("FURTHER_USED"), packedBytes);
  assert.equal(grown("TOTAL_USED"), sizeBytes + packedBytes);
  assert.equal(parts.get("SHARED_SIZE"), heap.sizeBytes() + parts.get("FURTHER_SIZE")!);
  assert.equal(parts.get("FURTHER_SIZE"), further[0].sizeBytes() + further[1].sizeBytes());
  if (Deno.build.os !== "linux") return;
  assert.ok(grown("RSS_SHARED") > (sizeBytes + packedBytes) * 0.8, `${grown("RSS_SHARED")}`);
});
