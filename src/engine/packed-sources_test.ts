import assert from "node:assert/strict";
import type { ScanSource, SegmentSource } from "../storage/contract.ts";
import { createHeap, HeapFullError, type SharedHeap } from "../storage/heap.ts";
import { SourcePacker, unpackSources } from "./packed-sources.ts";

function segment(k: number): SegmentSource {
  return {
    rowCount: 65_536 + k,
    timestampMin: -(10n ** 15n) * BigInt(k),
    timestampMax: 10n ** 15n * BigInt(k),
    ordinal: k,
    chunks: [
      {
        address: 2 ** 32 - 8,
        file: k % 2,
        offset: 2 ** 45,
        sizeBytes: 3,
        crc: 2 ** 32 - 1,
        valueBytes: 2,
        stats: { nullCount: k, min: -0.5, max: 7, sum: Infinity },
      },
      undefined,
      {
        address: 0,
        file: 0,
        offset: 0,
        sizeBytes: 0,
        crc: 0,
        valueBytes: 0,
        stats: { nullCount: 0, min: -(1n << 63n), max: (1n << 63n) - 1n, sum: -(10n ** 30n) + BigInt(k) },
      },
      {
        address: 0,
        file: 0,
        offset: 0,
        sizeBytes: 0,
        crc: 0,
        valueBytes: 0,
        stats: { nullCount: 5, min: undefined, max: undefined, sum: undefined },
      },
    ],
  };
}

function source(count: number): ScanSource {
  return {
    tableId: 1,
    version: 2,
    rowCount: 3,
    sorted: true,
    files: ["a", "b"].slice(0, count),
    segments: Array.from({ length: count }, (_, k) => segment(k)),
    dictionaries: [undefined],
  };
}

/** Packs sources like a request, and reads them. */
function throughMemory(packer: SourcePacker, heap: SharedHeap, sources: ScanSource[]): ScanSource[] {
  const packed = packer.pack(sources), address = heap.allocate(1 << 16, "batch");
  // What an earlier request has left.
  heap.f64.fill(NaN, address / 8, address / 8 + (1 << 13));
  packed.write(address);
  const read = unpackSources(heap, JSON.parse(JSON.stringify(packed.sources)), address);
  heap.free(address, 1 << 16, "batch");
  packed.release();
  return read;
}

Deno.test("sources are decoded as they were encoded, and known lists are not read again", () => {
  const heap = createHeap(4 << 20), packer = new SourcePacker(heap);
  const sources = [source(0), source(3), source(40)];
  const read = throughMemory(packer, heap, sources);
  assert.deepEqual(read, sources);
  assert.equal(throughMemory(packer, heap, sources)[2].segments, read[2].segments);
  assert.notEqual(throughMemory(packer, heap, [source(40)])[0].segments, read[2].segments);
});

Deno.test("only files that segments use are named", () => {
  const heap = createHeap(1 << 20);
  const given = { ...source(2), files: ["a", "b", "c"] };
  given.segments[1].chunks[0]!.file = 2;
  const [read] = throughMemory(new SourcePacker(heap), heap, [given]);
  assert.deepEqual(read.files, ["a", "c"]);
  assert.equal(read.files[read.segments[1].chunks[0]!.file], "c");
});

Deno.test("lists that no query uses give way to others", () => {
  const heap = createHeap(4 << 20), packer = new SourcePacker(heap);
  const before = heap.usedBytes();
  const inUse = packer.pack([source(1000)]);
  for (let k = 0; k < 20; k++) throughMemory(packer, heap, [source(1000)]);
  assert.equal(unpackSources(heap, inUse.sources, 0)[0].segments.length, 1000);
  assert.ok(heap.usedBytes() > before);
  assert.throws(() => Array.from({ length: 20 }, () => packer.pack([source(1000)])), HeapFullError);
});
