import assert from "node:assert/strict";
import type { Chunk } from "./chunks.ts";
import type { ColumnChunk, ColumnStats } from "./contract.ts";
import { partitionsOf } from "./page-partitions.ts";
import { contentsOf, PageView, pageWords, partitionsIn, type WordViews } from "./page-words.ts";
import type { Segment } from "./segment.ts";

const STATS: ColumnStats[] = [
  { nullCount: 3, min: -0.5, max: 7 },
  { nullCount: 0, min: -(1n << 63n), max: (1n << 63n) - 1n, sum: -(10n ** 23n) },
  { nullCount: 2 ** 32 - 1 },
  { nullCount: 0, min: 0, max: 255 },
  { nullCount: 1, min: -5, max: 9, sum: -(2n ** 40n) },
];

const chunkOf = (k: number, more: Partial<ColumnChunk> = {}): Chunk => ({
  plain: {
    address: 0,
    file: 7 + k,
    offset: 64 * (2 ** 24 + k),
    sizeBytes: 2 ** 32 - 1,
    crc: 2 ** 32 - 1,
    encodings: 5 * k,
    valueBytes: 11,
    entryBytes: undefined,
    textBytes: undefined,
    stats: STATS[k % STATS.length],
    ...more,
  },
  capacity: 0,
  texts: [],
  textBytes: 0,
});

const segmentOf = (uid: number, chunks: (Chunk | undefined)[]): Segment => (
  { uid, partition: -(2n ** 62n), rowCount: 65_536, timestampMin: -9n, timestampMax: 2n ** 62n, chunks }
);

function bytesOf(
  segments: readonly Segment[],
  isStored: boolean,
  versions: readonly number[] = segments.map(() => 0),
): Uint8Array {
  const words = pageWords({ id: 42, segments, partitions: partitionsOf(segments, versions) }, isStored);
  // Behind other bytes, and over some.
  const all = new Uint8Array(8 + words.sizeBytes + 8).fill(255);
  words.write({ u8: all, ...viewsOf(all) }, 8);
  assert.deepEqual([...all.subarray(0, 8), ...all.subarray(-8)], new Array(16).fill(255));
  return all.slice(8, -8);
}

const viewsOf = ({ buffer }: Uint8Array): WordViews => (
  { u32: new Uint32Array(buffer), f64: new Float64Array(buffer), i64: new BigInt64Array(buffer) }
);

Deno.test("a page has the segments that were written to it, also those that lack columns of others", () => {
  // deno-lint-ignore no-sparse-arrays
  const segments = [
    segmentOf(1, [chunkOf(0), , chunkOf(1), chunkOf(2)]),
    segmentOf(2 ** 40, [, , , chunkOf(3), chunkOf(4)]),
  ];
  const bytes = bytesOf(segments, true);
  const { segments: read } = contentsOf(bytes);
  assert.deepEqual(read.map(({ uid }) => uid), [1, 2 ** 40]);
  for (const [k, { chunks, words: _words, ...rest }] of segments.entries()) {
    for (let id = 0; id < 5; id++) assert.deepEqual(read[k].chunks[id]?.plain, chunks[id]?.plain);
    const { words: _, chunks: _chunks, ...others } = read[k];
    assert.deepEqual(others, rest);
  }
  assert.deepEqual(bytesOf(read, true), bytes, "what was read is written as it was");
  const view = new PageView(viewsOf(bytes), 0);
  assert.deepEqual(view.segment(1, view.positionsOf([4, 9, 0])).chunks, [chunkOf(4).plain, undefined, undefined]);
});

Deno.test("a page knows which columns have nulls", () => {
  const segments = [segmentOf(1, [chunkOf(1), chunkOf(1), chunkOf(1)]), segmentOf(2, [chunkOf(3), chunkOf(0)])];
  const view = new PageView(viewsOf(bytesOf(segments, true)), 0);
  // Column 2 is not in the second segment, and column 3 in none.
  assert.deepEqual([0, 1, 2, 3].map((id) => view.hasNulls(id)), [false, true, true, true]);
});

Deno.test("addresses are in the words of memory, not in those of files", () => {
  const segments = [segmentOf(1, [chunkOf(0, { address: 2 ** 32 - 8 }), chunkOf(1)])];
  const addresses = (bytes: Uint8Array) => contentsOf(bytes).segments[0].chunks.map((chunk) => chunk!.plain.address);
  assert.deepEqual(addresses(bytesOf(segments, false)), [2 ** 32 - 8, 0]);
  assert.deepEqual(addresses(bytesOf(segments, true)), [0, 0]);
  assert.equal(viewsOf(bytesOf(segments, false)).f64[0], 42);
  const unstored = [segmentOf(1, [chunkOf(0, { address: 8, file: -1 })])];
  assert.deepEqual(contentsOf(bytesOf(unstored, false)).segments[0].chunks[0]!.plain.file, -1);
  assert.throws(() => bytesOf(unstored, true), /all chunks are on disk/);
});

/** The words as format 8 had them: without partitions. */
function oldWords(bytes: Uint8Array): Uint8Array {
  const { u32 } = viewsOf(bytes), columnCount = u32[3] % 2 ** 31, idsBytes = Math.ceil(4 * columnCount / 8) * 8;
  const old = new Uint8Array([
    ...bytes.subarray(0, 16),
    ...bytes.subarray(24, 24 + idsBytes),
    ...bytes.subarray(24 + idsBytes + u32[5]),
  ]);
  viewsOf(old).u32[3] = columnCount;
  return old;
}

Deno.test("a page has the sums of its partitions, also before format 9", () => {
  const of = (partition: bigint, rowCount: number, time: bigint, chunks: (Chunk | undefined)[]): Segment => (
    { uid: 1, partition, rowCount, timestampMin: time, timestampMax: time + 1n, chunks }
  );
  const unstored = chunkOf(1, { file: -1, address: 8, valueBytes: 5 });
  const segments = [
    of(-5n, 10, 1n, [chunkOf(0, { sizeBytes: 65 }), chunkOf(1, { sizeBytes: 64 })]),
    of(-5n, 20, 3n, [chunkOf(0, { sizeBytes: 1 }), unstored]),
    of(7n, 30, 8n, [, unstored]),
  ];
  const bytes = bytesOf(segments, false, [3, 2, 2 ** 40]), native = { format: 0 };
  const expected = [
    {
      start: -5n,
      version: 3,
      rowCount: 30,
      timestampMin: 1n,
      timestampMax: 4n,
      segmentCount: 2,
      ...native,
      files: [[7, 192], [8, 64], [0, 5]],
    },
    {
      start: 7n,
      version: 2 ** 40,
      rowCount: 30,
      timestampMin: 8n,
      timestampMax: 9n,
      segmentCount: 1,
      ...native,
      files: [[0, 5]],
    },
  ];
  assert.deepEqual(partitionsIn(bytes), expected);
  assert.deepEqual(contentsOf(bytes).versions, [3, 3, 2 ** 40]);
  const old = oldWords(bytes);
  assert.deepEqual(partitionsIn(old), expected.map((partition) => ({ ...partition, version: 0 })));
  assert.deepEqual(contentsOf(old).versions, [0, 0, 0]);
  assert.deepEqual(contentsOf(old).segments, contentsOf(bytes).segments);
});
