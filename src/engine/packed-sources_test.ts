import assert from "node:assert/strict";
import type { ScanSource, SegmentSource } from "../storage/contract.ts";
import { packSources, unpackSources } from "./packed-sources.ts";

function segment(k: number): SegmentSource {
  return {
    rowCount: 65_536 + k,
    timestampMin: -(10n ** 15n) * BigInt(k),
    timestampMax: 10n ** 15n * BigInt(k),
    ordinal: k,
    chunks: [
      {
        address: 2 ** 32 - 8,
        file: k,
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
    files: ["a", "b"],
    segments: Array.from({ length: count }, (_, k) => segment(k)),
    dictionaries: [undefined],
  };
}

Deno.test("sources are decoded as they were encoded, and known lists are not read again", () => {
  const sources = [source(0), source(3), source(40)];
  const posted = structuredClone(packSources(sources));
  const read = unpackSources(posted);
  assert.deepEqual(read, sources);
  assert.equal(unpackSources(structuredClone(packSources(sources)))[2].segments, read[2].segments);
  assert.notEqual(unpackSources(packSources([source(40)]))[0].segments, read[2].segments);
});
