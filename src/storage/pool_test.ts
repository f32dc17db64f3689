import assert from "node:assert/strict";
import { CorruptFileError } from "../errors.ts";
import { crc32 } from "./bytes.ts";
import type { ScanSource } from "./contract.ts";
import { writeFully } from "./files.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap, SHARED_WORD } from "./heap.ts";
import { tryLatch, unlatch } from "./latch.ts";
import { formatPool, SharedPool } from "./pool.ts";

const FRAME = 4096;

/** A file of `count` extents; every word of extent k is k. */
function sourceOf(files: FaultyFiles, count: number): ScanSource {
  files.makeDirectory("/t1");
  const file = files.open("/t1/d1.seg", "create");
  const segments = Array.from({ length: count }, (_, k) => {
    const bytes = new Uint8Array(new Int32Array(FRAME / 4).fill(k).buffer);
    writeFully(file, [bytes], k * FRAME);
    const chunk = {
      address: 0,
      file: 1,
      offset: k * FRAME,
      sizeBytes: FRAME,
      crc: crc32(bytes),
      valueBytes: FRAME,
      stats: { nullCount: 0 },
    };
    return { rowCount: FRAME / 4, timestampMin: 0n, timestampMax: 0n, uid: k, partition: 0n, chunks: [chunk] };
  });
  return {
    tableId: 1,
    version: 1,
    rowCount: 0,
    sorted: false,
    directory: "/t1",
    segments,
    dictionaries: [undefined],
  };
}

function touch(pool: SharedPool, heap: ReturnType<typeof createHeap>, source: ScanSource, k: number): void {
  const address = pool.pin(source, k, 0);
  assert.equal(heap.i32[address / 4 + 7], k);
  pool.unpin(source, k, 0);
}

Deno.test("SharedPool keeps to its limit, and a long scan does not evict frames in repeated use", () => {
  const heap = createHeap(16 << 20);
  formatPool(heap, 64 * FRAME);
  const files = new FaultyFiles();
  const source = sourceOf(files, 1000);
  const pool = new SharedPool(heap, files);
  for (let round = 0; round < 3; round++) for (let k = 0; k < 20; k++) touch(pool, heap, source, k);
  for (let k = 100; k < 1000; k++) touch(pool, heap, source, k);
  assert.ok(pool.stats().usedBytes <= 64 * FRAME);
  const { misses } = pool.stats();
  for (let k = 0; k < 20; k++) touch(pool, heap, source, k);
  assert.equal(pool.stats().misses, misses, "the hot frames are all there");
  pool.setLimit(0);
  assert.equal(pool.stats().frames, 0);
});

Deno.test("SharedPool never evicts a pinned frame, and releases all pins of a query together", () => {
  const heap = createHeap(16 << 20);
  formatPool(heap, 8 * FRAME);
  const files = new FaultyFiles();
  const source = sourceOf(files, 200);
  const pool = new SharedPool(heap, files), other = new SharedPool(heap, files);
  const lease = pool.lease();
  const addresses = [0, 1, 2, 3].map((k) => lease.pin(source, k, 0));
  for (let k = 10; k < 200; k++) touch(other, heap, source, k);
  addresses.forEach((address, k) => assert.equal(heap.i32[address / 4], k));
  lease.release();
  assert.equal(pool.stats().pins, 0);
  other.setLimit(0);
  assert.equal(pool.stats().frames, 0);
});

Deno.test("SharedPool reports the file of a damaged extent on each read", () => {
  const heap = createHeap(16 << 20);
  formatPool(heap, 8 * FRAME);
  const files = new FaultyFiles();
  const source = sourceOf(files, 3);
  files.flipBit("/t1/d1.seg", 8 * FRAME + 5);
  const pool = new SharedPool(heap, files);
  for (let k = 0; k < 3; k++) {
    assert.throws(() => pool.pin(source, 1, 0), (e) => e instanceof CorruptFileError && e.path === "/t1/d1.seg");
  }
  touch(pool, heap, source, 2);
  pool.setLimit(0);
  assert.equal(pool.stats().usedBytes, 0);
});

Deno.test("a lease that must not read files does not wait for the lock either, and unpinning takes no lock", () => {
  const heap = createHeap(16 << 20);
  formatPool(heap, 8 * FRAME);
  const files = new FaultyFiles(), source = sourceOf(files, 3);
  const pool = new SharedPool(heap, files);
  for (let k = 0; k < 2; k++) touch(pool, heap, source, k);
  let missCount = 0;
  const lease = pool.lease(() => {
    missCount++;
    throw new Error("not now");
  });
  lease.pin(source, 0, 0);
  lease.pin(source, 1, 0);
  // Another thread holds it.
  assert.ok(tryLatch(heap.i32, SHARED_WORD.poolLock));
  assert.throws(() => lease.pin(source, 0, 0), /not now/);
  lease.unpin(source, 0, 0);
  lease.release();
  assert.deepEqual([missCount, pool.stats().pins], [1, 0]);
  unlatch(heap.i32, SHARED_WORD.poolLock);
  lease.pin(source, 0, 0);
  lease.release();
});
