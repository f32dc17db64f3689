/** Packed frames in several tiny memories give what the first memory alone gives. */
import assert from "node:assert/strict";
import { CorruptFileError } from "../errors.ts";
import { type Layout, LAYOUT_WIDTH, typeOf } from "../types/mod.ts";
import { align, crc32 } from "./bytes.ts";
import type { ChunkBound, RowRange, ScanSource } from "./contract.ts";
import { CODEC_BYTES, Codecs } from "./encoding/codecs.ts";
import { summariesBytes } from "./encoding/summaries.ts";
import { atOnce } from "./encoding/stored.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { writeFully } from "./files.ts";
import { formatPool, Held, PACKED } from "./frames.ts";
import { createHeap, SHARED_WORD, type SharedHeap } from "./heap.ts";
import { createPackedMemory, type PackedMemory } from "./packed-memory.ts";
import { tryLatch, unlatch } from "./latch.ts";
import type { Extent } from "./extent.ts";
import type { PoolLease } from "./lease.ts";
import { SharedPool } from "./pool.ts";
import { SEED } from "../testing.ts";

const KIB = 1024, ROWS_MAX = 9000, SEGMENTS = 120;
const PATH = "/t1/d1.seg";

type Random = (below: number) => number;

function randomOf(seed: number): Random {
  let state = seed;
  return (below) => {
    state = state + 0x6d2b79f5 | 0;
    let bits = Math.imul(state ^ state >>> 15, state | 1);
    bits ^= bits + Math.imul(bits ^ bits >>> 7, bits | 61);
    return Math.floor(((bits ^ bits >>> 14) >>> 0) / 2 ** 32 * below);
  };
}

interface Column {
  layout: Layout;
  type: string;
  isIndexed?: boolean;
  /** The value of a row, as it is in an array of the layout. */
  value(random: Random, segment: number, row: number): number | bigint;
}

const COLUMNS: Column[] = [
  { layout: "i64", type: "TIMESTAMP", value: (_, segment, row) => BigInt(segment * 1e9 + row * 1000 + row % 7) },
  { layout: "i64", type: "LONG", value: (random, segment) => BigInt(segment * 1000 + random(500)) },
  { layout: "symbol", type: "SYMBOL", isIndexed: true, value: (random) => random(10) < 1 ? -1 : random(40) },
  { layout: "f64", type: "DOUBLE", value: (random) => random(20) < 1 ? NaN : random(100_000) / 100 },
  // Some vectors have exceptions.
  { layout: "f64", type: "DOUBLE", value: (random, _, row) => row % 500 === 3 ? Math.PI : random(1000) / 10 },
  { layout: "i32", type: "INT", value: (random, _, row) => row < 3000 ? 7 : random(200) },
  { layout: "i16", type: "SHORT", value: (random) => random(30) },
];

interface Table {
  files: FaultyFiles;
  source: ScanSource;
  /** The values of each column of each segment. */
  values: Uint8Array<ArrayBuffer>[][];
}

function tableOf(heap: SharedHeap, random: Random): Table {
  const files = new FaultyFiles(), codecs = new Codecs(heap, heap.allocateExact(CODEC_BYTES, "other"));
  files.makeDirectory("/t1");
  const file = files.open(PATH, "create"), address = heap.allocateExact(8 * ROWS_MAX, "other");
  const values: Table["values"] = [];
  let offset = 0;
  const segments = Array.from({ length: SEGMENTS }, (_, k) => {
    const rowCount = 4000 + random(ROWS_MAX - 4000);
    values.push([]);
    const chunks = COLUMNS.map(({ layout, type, isIndexed = false, value }) => {
      const width = LAYOUT_WIDTH[layout], at = address / width, { i16, i32, f64, i64 } = heap;
      for (let row = 0; row < rowCount; row++) {
        const got = value(random, k, row);
        if (layout === "i64") i64[at + row] = got as bigint;
        else if (layout === "f64") f64[at + row] = got as number;
        else if (layout === "i16") i16[at + row] = got as number;
        else i32[at + row] = got as number;
      }
      const valueBytes = rowCount * width;
      values[k].push(heap.u8.slice(address, address + valueBytes));
      const stored = atOnce(codecs.encodeSteps(layout, typeOf(type).nullWords, address, rowCount, isIndexed))!;
      const bytes = new Uint8Array(stored.parts.reduce((sum, part) => sum + part.length, 0));
      stored.parts.reduce((at, part) => (bytes.set(part, at), at + part.length), 0);
      writeFully(file, [bytes], offset);
      const chunk = {
        address: 0,
        file: 1,
        offset,
        sizeBytes: bytes.length,
        crc: crc32(bytes),
        valueBytes,
        encodings: stored.encodings,
        stats: { nullCount: 0 },
      };
      offset += align(bytes.length, 4096);
      return chunk;
    });
    return { rowCount, timestampMin: 0n, timestampMax: 0n, uid: k, partition: 0n, chunks };
  });
  const source = { tableId: 1, version: 1, rowCount: 0, sorted: false, directory: "/t1", segments, dictionaries: [] };
  return { files, source, values };
}

/** Memories of this many KiB, with a directory in the first. */
function memoriesOf(sizesKib: readonly number[]): PackedMemory[] {
  const memories = sizesKib.map((kib) => createPackedMemory(kib * KIB));
  formatPool(memories[0], memories.reduce((sum, memory) => sum + memory.sizeBytes() * 0.9, 0));
  return memories;
}

function rangeOf(random: Random, rowCount: number): RowRange {
  if (random(3) === 0) return { from: 0, to: rowCount };
  const from = random(rowCount);
  return { from, to: from + 1 + random(rowCount - from) };
}

/** Reads a chunk in one of the ways of operators, and checks what it gets against the values, or what a pool with one memory gives. */
function readOnce(
  { source, values }: Table,
  lease: PoolLease,
  plain: { lease: PoolLease; heap: SharedHeap; out: number },
  heap: SharedHeap,
  out: number,
  random: Random,
): void {
  const segment = random(SEGMENTS), column = random(COLUMNS.length), { rowCount } = source.segments.at(segment)!;
  const width = LAYOUT_WIDTH[COLUMNS[column].layout], expected = values[segment][column];
  const told = `segment ${segment}, column ${column}`;
  const isEqual = (address: number, from: number, to: number) =>
    assert.ok(
      Buffer.compare(
        heap.u8.slice(address + from * width, address + to * width),
        expected.slice(from * width, to * width),
      ) === 0,
      told,
    );
  const rows = Int32Array.from({ length: 1 + random(random(4) === 0 ? 3000 : 5) }, () => random(rowCount)).sort();
  const isGathered = () =>
    rows.forEach((row, k) => {
      const got = heap.u8.slice(out + k * width, out + (k + 1) * width).join();
      assert.equal(got, expected.slice(row * width, (row + 1) * width).join(), `${told}, row ${row}`);
    });
  const list = out + 8 * ROWS_MAX, plainList = plain.out + 8 * ROWS_MAX;
  switch (random(7)) {
    case 0: {
      const range = rangeOf(random, rowCount), address = lease.pin(source, segment, column, range);
      isEqual(address, range.from, range.to);
      return lease.unpin(source, segment, column, address);
    }
    case 1:
      if (lease.gather(source, segment, column, rows, rows.length, out)) isGathered();
      return;
    case 2:
      heap.i32.set(rows, list / 4);
      if (lease.gatherRows(source, segment, column, list, rows.length, out)) isGathered();
      return;
    case 3: {
      const bounds: ChunkBound[] = [{
        column: 1,
        low: BigInt(segment * 1000 + 100),
        high: BigInt(segment * 1000 + 200),
      }];
      if (random(2) === 0) bounds.push({ column: 3, low: 100, high: 700 });
      const range = rangeOf(random, rowCount);
      const found = lease.selectRows(source, segment, bounds, range, list, ROWS_MAX);
      assert.equal(found, plain.lease.selectRows(source, segment, bounds, range, plainList, ROWS_MAX), told);
      assert.deepEqual(
        heap.i32.slice(list / 4, list / 4 + found!),
        plain.heap.i32.slice(plainList / 4, plainList / 4 + found!),
        told,
      );
      return;
    }
    case 4: {
      const range = rangeOf(random, rowCount), of = random(2) === 0 ? 1 : 3;
      const found = lease.readOffsets(source, segment, of, range, list);
      assert.deepEqual(found, plain.lease.readOffsets(source, segment, of, range, plainList), told);
      const [from, to] = [list / 4 + range.from, list / 4 + range.to], plainFrom = plainList / 4 + range.from;
      if (found === undefined) return;
      assert.deepEqual(heap.i32.slice(from, to), plain.heap.i32.slice(plainFrom, plainFrom + to - from), told);
      return;
    }
    case 5: {
      if (!lease.isIndexed(source, segment, column)) return;
      const codes = new Int32Array(expected.buffer), wanted = [-1, random(45)];
      const found = lease.find(source, segment, column, wanted, Infinity)!;
      const all = [...codes.entries()].filter(([, code]) => wanted.includes(code));
      assert.deepEqual(Array.from({ length: found.count }, (_, k) => [found.rows[k], found.codes[k]]), all, told);
      const present = wanted.filter((code) => codes.includes(code));
      assert.deepEqual(lease.present(source, segment, column, wanted), present, told);
      return;
    }
    default: {
      const row = random(rowCount), value = new BigInt64Array(values[segment][0].buffer)[row];
      const found = lease.firstAt(source, segment, 0, value);
      if (found !== undefined) assert.equal(found, row, told);
      const bytes = summariesBytes(rowCount), [got, wanted] = [new Uint8Array(bytes), new Uint8Array(bytes)];
      assert.equal(
        lease.summaries(source, segment, column, got),
        plain.lease.summaries(source, segment, column, wanted),
      );
      assert.deepEqual(got, wanted);
    }
  }
}

Deno.test("packed frames in further memories give what one memory gives, whatever is evicted and pinned", () => {
  const random = randomOf(SEED);
  console.log(`  SEED=${SEED}`);
  const plainHeap = createHeap(64 << 20);
  formatPool(plainHeap, 32 << 20);
  const table = tableOf(plainHeap, random), { files, source } = table;
  const plainPool = new SharedPool(plainHeap, files);
  const plain = { lease: plainPool.lease(), heap: plainHeap, out: plainHeap.allocateExact(16 * ROWS_MAX, "other") };
  for (const sizesKib of [[1024], [384, 256, 512], [16_384]]) {
    const heap = createHeap(16 << 20), further = memoriesOf(sizesKib);
    formatPool(heap, 512 * KIB);
    const pools = [0, 1].map(() => new SharedPool(heap, files, further)), leases = pools.map((pool) => pool.lease());
    // So small a pool would have no windows.
    for (const { windows } of pools) windows.giveBack(windows.take(8 << 20)!);
    const out = heap.allocateExact(16 * ROWS_MAX, "other"), mostKib = further.map(() => 0);
    const before = further.map((memory) => memory.usedBytes());
    const frames = pools[1].further!;
    // What other threads use at the same time.
    const held = new Held(), pinned: Extent[] = [];
    for (let step = 0; step < 2500; step++) {
      const thread = random(2);
      readOnce(table, leases[thread], plain, heap, out, random);
      further.forEach((memory, k) => mostKib[k] = Math.max(mostKib[k], memory.usedBytes() / KIB));
      const pinsMany = step % 1000 >= 800;
      if (random(4) === 0 && (pinsMany || pinned.length < 5)) {
        const chunk = source.segments.at(random(SEGMENTS))!.chunks[random(COLUMNS.length)]!;
        if (!frames.has(chunk, PACKED)) continue;
        frames.pin(held, chunk, PACKED, chunk.sizeBytes, () => assert.fail("it is there"));
        pinned.push(chunk);
      } else if (pinned.length > 0 && random(pinsMany ? 20 : 2) === 0) {
        frames.unpin(held, pinned.splice(random(pinned.length), 1)[0]);
      }
    }
    const stats = frames.stats();
    assert.ok(stats.usedBytes <= stats.limitBytes && stats.usedBytes === stats.packedBytes);
    assert.ok(pools[0].frames.stats().packedBytes > 0, "the heap has its share");
    for (const kib of mostKib) assert.ok(kib > 0, `each memory was used: ${mostKib}`);
    if (sizesKib[0] < 10_000) assert.ok(stats.evictions > 100, `${stats.evictions} evictions`);
    frames.releaseAll(held);
    for (const lease of leases) lease.release();
    assert.equal(pools[0].stats().pins, 0);
    frames.setLimit(0);
    assert.deepEqual(further.map((memory) => memory.usedBytes()), before, "all of the memories is free");
    for (const pool of pools) pool.close();
  }
});

/** A pool in two memories of 256 KiB, with none in the heap, and a table. */
function smallPool() {
  const heap = createHeap(16 << 20), table = tableOf(heap, randomOf(1)), further = memoriesOf([256, 256]);
  formatPool(heap, 0);
  const pool = new SharedPool(heap, table.files, further), frames = pool.further!;
  return { table, heap, further, pool, frames, chunkOf: (k: number) => table.source.segments.at(k)!.chunks[1]! };
}

/** Checks a column of a segment, which gets no frame of values. */
function checkPacked({ source, values }: Table, lease: PoolLease, heap: SharedHeap, segment: number, column = 1): void {
  const { rowCount } = source.segments.at(segment)!, rows = Int32Array.from({ length: rowCount }, (_, row) => row);
  const list = heap.allocate(4 * ROWS_MAX, "other"), out = heap.allocate(8 * ROWS_MAX, "other");
  try {
    heap.i32.set(rows, list / 4);
    assert.ok(lease.gatherRows(source, segment, column, list, rowCount, out));
    assert.deepEqual(heap.u8.slice(out, out + values[segment][column].length), values[segment][column]);
  } finally {
    heap.free(list, 4 * ROWS_MAX, "other");
    heap.free(out, 8 * ROWS_MAX, "other");
  }
}

const ALL = Array.from({ length: SEGMENTS }, (_, k) => k);

Deno.test("when all frames of the further memories are pinned, a thread reads without a frame", () => {
  const { table, heap, pool, frames, chunkOf } = smallPool(), held = new Held(), lease = pool.lease();
  const hasFrame = (segment: number) => frames.has(chunkOf(segment), PACKED);
  const pinned: number[] = [];
  // Other threads use them.
  for (const segment of ALL) {
    checkPacked(table, lease, heap, segment);
    if (!hasFrame(segment)) break;
    frames.pin(held, chunkOf(segment), PACKED, chunkOf(segment).sizeBytes, () => assert.fail("it is there"));
    pinned.push(segment);
  }
  assert.ok(pinned.length > 10, `${pinned.length} fill the memories`);
  const alone = ALL.filter((segment) => (checkPacked(table, lease, heap, segment), !hasFrame(segment)));
  assert.ok(alone.length > 10, `${alone.length} had no frame`);
  assert.ok(pinned.every(hasFrame));
  assert.equal(pool.stats().pins, pinned.length);
  frames.releaseAll(held);
  const { evictions } = pool.stats();
  for (const segment of ALL) checkPacked(table, lease, heap, segment);
  assert.ok(pool.stats().evictions > evictions);
  assert.equal(pool.stats().pins, 0);
});

Deno.test("a damaged extent is reported on each read, and leaves nothing in the further memories", () => {
  const { table, heap, further, pool, chunkOf } = smallPool(), lease = pool.lease();
  const before = further.map((memory) => memory.usedBytes());
  table.files.flipBit(PATH, 8 * chunkOf(5).offset + 300);
  for (let k = 0; k < 3; k++) {
    assert.throws(() => checkPacked(table, lease, heap, 5), (error) => error instanceof CorruptFileError);
  }
  assert.deepEqual(further.map((memory) => memory.usedBytes()), before);
  checkPacked(table, lease, heap, 6);
  assert.equal(pool.stats().pins, 0);
});

Deno.test("a lease that must not read files copies frames of further memories, and does not wait for their lock", () => {
  const { table, heap, further: [first], pool } = smallPool(), lease = pool.lease();
  const onMain = pool.lease(() => {
    throw new Error("not now");
  });
  assert.throws(() => checkPacked(table, onMain, heap, 5), /not now/);
  checkPacked(table, lease, heap, 5);
  checkPacked(table, onMain, heap, 5);
  assert.ok(tryLatch(first.i32, SHARED_WORD.poolLock));
  assert.throws(() => checkPacked(table, onMain, heap, 5), /not now/);
  unlatch(first.i32, SHARED_WORD.poolLock);
  checkPacked(table, onMain, heap, 5);
  assert.equal(pool.stats().pins, 0);
});

Deno.test("what needs memory of the heap evicts no frames of further memories", () => {
  const { table, heap, pool, frames } = smallPool(), lease = pool.lease();
  for (const segment of ALL) checkPacked(table, lease, heap, segment);
  const address = lease.pin(table.source, 0, 0);
  lease.unpin(table.source, 0, 0, address);
  const count = frames.stats().frames;
  assert.ok(count > 0);
  while (pool.evict(1 << 20));
  assert.deepEqual([pool.frames.stats().frames, frames.stats().frames], [0, count]);
});

Deno.test("scans of more than the further memories have room for use most of them, also if they are full of another column", () => {
  const { table, heap, pool, frames } = smallPool(), lease = pool.lease();
  const missesOf = (column: number) => {
    const { misses } = frames.stats();
    for (const segment of ALL) checkPacked(table, lease, heap, segment, column);
    return frames.stats().misses - misses;
  };
  for (const column of [1, 3]) {
    for (let round = 0; round < 30; round++) missesOf(column);
    const found = SEGMENTS - missesOf(column), { frames: count } = frames.stats();
    assert.ok(count > 25 && count < SEGMENTS, `${count} frames`);
    assert.ok(found > count / 2, `column ${column}: ${found} of ${count} frames were found`);
  }
});
