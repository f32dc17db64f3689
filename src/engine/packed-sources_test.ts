import assert from "node:assert/strict";
import type { PostedSegments, ScanSource } from "../storage/contract.ts";
import { createHeap } from "../storage/heap.ts";
import { areSameSources, packSources, unpackSources } from "./packed-sources.ts";

function source(tableId: number, columnIds: number[], runs: number[]): ScanSource {
  const posted: PostedSegments = { directory: `/t${tableId}`, columnIds, runs: Float64Array.from(runs) };
  return {
    tableId,
    version: 2,
    rowCount: 3,
    sorted: true,
    directory: `/t${tableId}`,
    segments: { length: 0, at: () => undefined, [Symbol.iterator]: () => [].values(), post: () => posted },
    dictionaries: [undefined, { tableId, columnId: 1, entries: 8, count: 2 }],
  };
}

Deno.test("sources are read from shared memory as they were written", () => {
  const heap = createHeap(4 << 20), address = heap.allocate(1 << 16, "batch");
  const sources = [source(1, [0, 2], [1, 2.5, 2 ** 40]), source(2, [], []), source(3, [7], [-1])];
  const packed = packSources(sources);
  assert.equal(packed.wordBytes, 32);
  packed.write(heap, address);
  const words = heap.f64.slice(address / 8, (address + packed.wordBytes) / 8);
  const sent = { sources: JSON.parse(JSON.stringify(packed.sources)), words }, read = unpackSources(sent);
  assert.deepEqual(read, sources.map((source) => ({ ...source, segments: source.segments.post!() })));
  assert.ok(areSameSources(sent, { ...sent, words: words.slice() }));
  assert.ok(!areSameSources(sent, { ...sent, words: words.with(1, 2.75) }));
  assert.ok(!areSameSources(sent, { ...sent, words: words.slice(1) }));
  assert.ok(!areSameSources(sent, { ...sent, sources: [...sent.sources] }));
});
