import assert from "node:assert/strict";
import { createHeap } from "../storage/heap.ts";
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

Deno.test("memoryParts() counts the touched pages of the shared memory", () => {
  const heap = createHeap(256 << 20), sizeBytes = 64 << 20;
  const before = new Map(memoryParts(heap)), address = heap.allocate(sizeBytes, "query");
  heap.u8.fill(1, address, address + sizeBytes);
  const parts = new Map(memoryParts(heap)), grown = (tag: string) => parts.get(tag)! - before.get(tag)!;
  assert.equal(grown("SHARED_QUERY"), sizeBytes);
  assert.equal(grown("TOTAL_USED"), sizeBytes);
  assert.equal(parts.get("SHARED_SIZE"), heap.sizeBytes());
  if (Deno.build.os === "linux") assert.ok(grown("RSS_SHARED") > sizeBytes / 2, `${grown("RSS_SHARED")}`);
});
