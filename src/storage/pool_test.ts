import assert from "node:assert/strict";
import { CorruptFileError } from "../errors.ts";
import { align, crc32 } from "./bytes.ts";
import { type ScanSource, SUMMARY_ROWS, SUMMARY_WORDS } from "./contract.ts";
import { CODEC_BYTES, Codecs } from "./encoding/codecs.ts";
import { atOnce } from "./encoding/stored.ts";
import { writeFully } from "./files.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap, SHARED_WORD, type SharedHeap } from "./heap.ts";
import { tryLatch, unlatch } from "./latch.ts";
import { formatPool } from "./frames.ts";
import type { PoolLease } from "./lease.ts";
import { SharedPool } from "./pool.ts";

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
  const lease = pool.lease(), address = lease.pin(source, k, 0);
  assert.equal(heap.i32[address / 4 + 7], k);
  lease.unpin(source, k, 0);
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
    assert.throws(
      () => pool.lease().pin(source, 1, 0),
      (e) => e instanceof CorruptFileError && e.path === "/t1/d1.seg",
    );
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

const CHUNKS = Array.from({ length: 300 }, (_, k) => k);
const ROWS = 4096, DECODED_BYTES = 8 * ROWS;

/** Chunk `k` has the values k * 1,000 + row % 100, encoded. */
function encodedSourceOf(heap: SharedHeap, files: FaultyFiles): ScanSource {
  const count = CHUNKS.length, source = sourceOf(files, count), file = files.open("/t1/d1.seg", "write");
  const codecs = new Codecs(heap, heap.allocateExact(CODEC_BYTES, "other"));
  const address = heap.allocateExact(DECODED_BYTES, "other");
  let offset = count * FRAME;
  const segments = CHUNKS.map((k) => {
    for (let row = 0; row < ROWS; row++) heap.i64[address / 8 + row] = BigInt(k * 1000 + row % 100);
    const { parts: [bytes], encodings } = atOnce(codecs.encodeSteps("i64", [0, -0x80000000], address, ROWS, false))!;
    const stored = bytes!.slice();
    writeFully(file, [stored], offset);
    const chunk = {
      address: 0,
      file: 1,
      offset,
      sizeBytes: stored.length,
      crc: crc32(stored),
      valueBytes: DECODED_BYTES,
      encodings,
      stats: { nullCount: 0 },
    };
    offset += align(stored.length, FRAME);
    return { ...source.segments.at(k)!, rowCount: ROWS, chunks: [chunk] };
  });
  return { ...source, segments };
}

/** Reads some rows of chunk `k` as a scan does. Returns true if it had a frame of values. */
function read(lease: PoolLease, heap: SharedHeap, source: ScanSource, k: number, from = 0, to = ROWS): boolean {
  const before = lease.windowCount, address = lease.pin(source, k, 0, { from, to });
  for (const row of [from, (from + to) >> 1, to - 1]) {
    assert.equal(heap.i64[address / 8 + row], BigInt(k * 1000 + row % 100), `row ${row} of chunk ${k}`);
  }
  const isFrame = lease.windowCount === before;
  lease.unpin(source, k, 0, address);
  return isFrame;
}

/** Reads chunks until one has no frame of values. */
function firstPacked(lease: PoolLease, heap: SharedHeap, source: ScanSource): number {
  return CHUNKS.find((k) => !read(lease, heap, source, k))!;
}

Deno.test("SharedPool keeps encoded chunks decoded as long as there is room, and packed beyond", () => {
  const heap = createHeap(32 << 20), files = new FaultyFiles(); // 9.6 MB of values, 2.4 MB packed
  formatPool(heap, 4 << 20);
  const source = encodedSourceOf(heap, files), pool = new SharedPool(heap, files), lease = pool.lease();
  const readAll = () => CHUNKS.filter((k) => read(lease, heap, source, k)).length;
  for (let round = 0; round < 12; round++) readAll();
  const { misses } = pool.stats(), decodedCount = readAll();
  assert.equal(pool.stats().misses, misses, "all chunks are in the pool, which is smaller than their values");
  assert.ok(decodedCount > 60 && decodedCount < 150, `${decodedCount} chunks need no decoding`);
  assert.ok(pool.stats().usedBytes <= 4 << 20);
  assert.ok(pool.stats().packedBytes > 0);
  // With free memory again, they are decoded.
  pool.setLimit(24 << 20);
  readAll();
  assert.equal(readAll(), CHUNKS.length);
  lease.release();
  assert.equal(pool.stats().pins, 0);
  pool.setLimit(0);
  assert.deepEqual([pool.stats().usedBytes, pool.stats().packedBytes], [0, 0]);
  pool.close();
});

Deno.test("SharedPool decodes the vectors of the rows that are read, and gathers from packed chunks", () => {
  const heap = createHeap(32 << 20), files = new FaultyFiles();
  formatPool(heap, 8 << 20);
  const source = encodedSourceOf(heap, files), pool = new SharedPool(heap, files), lease = pool.lease();
  const packed = firstPacked(lease, heap, source);
  assert.ok(packed > 0);
  for (const [from, to] of [[0, 1], [1023, 1024], [1023, 1025], [2000, 4096], [4095, 4096]]) {
    assert.equal(read(lease, heap, source, packed, from, to), false);
  }
  const { misses } = pool.stats(), rows = Int32Array.of(5, 1024, 4095), out = heap.allocateExact(4096, "other");
  assert.ok(lease.gather(source, packed, 0, rows, rows.length, out));
  assert.deepEqual([...heap.i64.subarray(out / 8, out / 8 + 3)], [5, 24, 95].map((at) => BigInt(packed * 1000 + at)));
  assert.equal(pool.stats().misses, misses);
  // A pin without rows asks for a frame.
  const address = lease.pin(source, packed, 0);
  assert.equal(lease.windowCount, 0);
  assert.equal(heap.i64[address / 8 + 3], BigInt(packed * 1000 + 3));
  lease.release();
  assert.equal(pool.stats().pins, 0);
});

Deno.test("SharedPool keeps chunks packed from which single rows are gathered again and again", () => {
  const heap = createHeap(32 << 20), files = new FaultyFiles(); // 9.6 MB of values, 2.4 MB packed
  formatPool(heap, 24 << 20);
  const source = encodedSourceOf(heap, files), pool = new SharedPool(heap, files), lease = pool.lease();
  const rows = Int32Array.of(4095, 1024, 5), out = heap.allocateExact(4096, "other");
  for (let round = 0; round < 5; round++) {
    const { misses } = pool.stats();
    for (const k of CHUNKS) {
      assert.ok(lease.gather(source, k, 0, rows, rows.length, out), "a frame of values is not needed");
      const expected = [95, 24, 5].map((at) => BigInt(k * 1000 + at));
      assert.deepEqual([...heap.i64.subarray(out / 8, out / 8 + 3)], expected);
    }
    if (round > 1) assert.equal(pool.stats().misses, misses, "no file is read");
  }
  const { usedBytes, packedBytes } = pool.stats();
  assert.ok(packedBytes > 0);
  assert.equal(usedBytes, packedBytes);
  lease.release();
  assert.equal(pool.stats().pins, 0);
});

Deno.test("SharedPool gives frames of values to few chunks that are read again and again, and keeps these beside a scan of all", () => {
  const heap = createHeap(32 << 20), files = new FaultyFiles(); // 9.6 MB of values, 2.4 MB packed
  formatPool(heap, 4 << 20);
  const source = encodedSourceOf(heap, files), pool = new SharedPool(heap, files), lease = pool.lease();
  const readAll = () => CHUNKS.filter((k) => read(lease, heap, source, k)).length;
  for (let round = 0; round < 12; round++) readAll();
  const hot = CHUNKS.filter((k) => !read(lease, heap, source, k)).slice(0, 4);
  const readHot = () => hot.filter((k) => read(lease, heap, source, k)).length;
  for (let round = 0; round < 8; round++) readHot();
  assert.equal(readHot(), hot.length);
  for (let round = 0; round < 12; round++) {
    for (const k of CHUNKS) {
      if (!hot.includes(k)) read(lease, heap, source, k);
      if (k % 4 === 0) assert.equal(readHot(), hot.length, `the scan is at chunk ${k}`);
    }
  }
  assert.ok(pool.stats().usedBytes <= 4 << 20);
  lease.release();
  assert.equal(pool.stats().pins, 0);
});

Deno.test("SharedPool decodes a small part of a chunk alone, until it is read often", () => {
  const heap = createHeap(32 << 20), files = new FaultyFiles();
  formatPool(heap, 24 << 20);
  const source = encodedSourceOf(heap, files), pool = new SharedPool(heap, files), lease = pool.lease();
  const part = (k: number) => read(lease, heap, source, k, 1100, 1200);
  assert.deepEqual([part(0), part(0), part(0)], [false, false, false]);
  const { usedBytes, packedBytes } = pool.stats();
  assert.equal(usedBytes, packedBytes);
  for (let round = 0; round < 3; round++) part(0);
  assert.ok(part(0));
  assert.equal(part(1), false);
  assert.ok(read(lease, heap, source, 1), "as a whole");
  lease.release();
});

Deno.test("a chunk whose small parts a lease that must not read files has read often gets a frame by the next lease that may", () => {
  const heap = createHeap(32 << 20), files = new FaultyFiles();
  formatPool(heap, 24 << 20);
  const source = encodedSourceOf(heap, files), pool = new SharedPool(heap, files), lease = pool.lease();
  const onMain = pool.lease(() => {
    throw new Error("not now");
  });
  let refused = 0, isDecoded = false;
  for (let round = 0; round < 20; round++) {
    try {
      isDecoded = read(onMain, heap, source, 0, 1100, 1200);
    } catch {
      refused++;
      read(lease, heap, source, 0, 1100, 1200);
      lease.release();
    }
    onMain.release();
  }
  assert.ok(isDecoded, "the chunk has a frame of its values");
  assert.equal(refused, 2, "for its packed frame, and for that of its values");
});

Deno.test("a lease finds rows by ascending values in packed frames, as in frames of values", () => {
  const heap = createHeap(32 << 20), files = new FaultyFiles();
  formatPool(heap, 24 << 20);
  const source = encodedSourceOf(heap, files), pool = new SharedPool(heap, files), lease = pool.lease();
  const onMain = pool.lease(() => {
    throw new Error("not now");
  });
  assert.throws(() => onMain.firstAt(source, 2, 0, 0n), /not now/);
  assert.deepEqual([lease, onMain].map((each) => each.firstAt(source, 2, 0, 0n)), [0, 0]);
  assert.equal(onMain.firstAt(source, 2, 0, 2100n), ROWS, "there is none");
  lease.pin(source, 2, 0);
  assert.equal(lease.firstAt(source, 2, 0, 0n), undefined, "its values are in memory");
  lease.release();
});

Deno.test("SharedPool copies the summaries of a chunk without its values, and reports damaged ones on each read", () => {
  const heap = createHeap(32 << 20), files = new FaultyFiles();
  formatPool(heap, 8 << 20);
  const source = encodedSourceOf(heap, files), pool = new SharedPool(heap, files), lease = pool.lease();
  const into = new BigInt64Array(4 * SUMMARY_WORDS + 2), bytes = new Uint8Array(into.buffer);
  const onMain = pool.lease(() => {
    throw new Error("not now");
  });
  assert.throws(() => onMain.summaries(source, 7, 0, bytes), /not now/);
  for (const each of [lease, lease, onMain]) {
    into.fill(-1n);
    assert.ok(each.summaries(source, 7, 0, bytes));
    for (let vector = 0; vector < 4; vector++) {
      const at = vector * SUMMARY_WORDS, first = vector * SUMMARY_ROWS;
      const sum = Array.from({ length: SUMMARY_ROWS }, (_, k) => 7000 + (first + k) % 100).reduce((a, b) => a + b);
      assert.deepEqual([...into.subarray(at, at + SUMMARY_WORDS)], [BigInt(sum), 7000n, 7099n, (1024n << 32n) + 1024n]);
    }
  }
  assert.deepEqual([pool.stats().misses, pool.stats().usedBytes, pool.stats().pins], [1, FRAME, 0]);
  assert.ok(read(lease, heap, source, 7), "the values have another frame");
  assert.ok(lease.summaries(source, 7, 0, bytes));
  assert.equal(pool.stats().misses, 2);
  const { offset, sizeBytes } = source.segments.at(8)!.chunks[0]!;
  files.flipBit("/t1/d1.seg", 8 * (offset + sizeBytes) - 300);
  for (let k = 0; k < 2; k++) {
    assert.throws(() => lease.summaries(source, 8, 0, bytes), (e) => e instanceof CorruptFileError);
  }
  assert.equal(lease.summaries({ ...source, segments: sourceOf(files, 1).segments }, 0, 0, bytes), false);
  assert.equal(pool.stats().pins, 0);
});

Deno.test("SharedPool gives frames of values when a thread has no window left, and a lease gives windows back", () => {
  const heap = createHeap(32 << 20), files = new FaultyFiles();
  formatPool(heap, 4 << 20); // one window
  const source = encodedSourceOf(heap, files), pool = new SharedPool(heap, files);
  const lease = pool.lease(), other = pool.lease();
  const packed = firstPacked(lease, heap, source);
  const first = lease.pin(source, packed, 0, { from: 0, to: ROWS });
  const second = other.pin(source, packed, 0, { from: 0, to: ROWS });
  assert.deepEqual([lease.windowCount, other.windowCount], [1, 0]);
  for (const address of [first, second]) assert.equal(heap.i64[address / 8 + 7], BigInt(packed * 1000 + 7));
  lease.release();
  other.unpin(source, packed, 0, second);
  assert.equal(read(other, heap, source, packed + 1), false);
  assert.equal(pool.stats().pins, 0);
});

Deno.test("SharedPool reports a damaged extent that it would keep packed on each read", () => {
  const heap = createHeap(32 << 20), files = new FaultyFiles();
  formatPool(heap, 8 << 20);
  const source = encodedSourceOf(heap, files), pool = new SharedPool(heap, files), lease = pool.lease();
  const packed = firstPacked(lease, heap, source) + 1;
  files.flipBit("/t1/d1.seg", 8 * source.segments.at(packed)!.chunks[0]!.offset + 300);
  for (let k = 0; k < 3; k++) {
    assert.throws(() => read(lease, heap, source, packed), (e) => e instanceof CorruptFileError);
    assert.equal(lease.windowCount, 0);
  }
  assert.equal(read(lease, heap, source, packed + 1), false, "the window is free");
  assert.equal(pool.stats().pins, 0);
});

Deno.test("a lease that must not read files reads packed chunks, and ends at others", () => {
  const heap = createHeap(32 << 20), files = new FaultyFiles();
  formatPool(heap, 8 << 20);
  const source = encodedSourceOf(heap, files), pool = new SharedPool(heap, files), lease = pool.lease();
  const packed = firstPacked(lease, heap, source);
  const onMain = pool.lease(() => {
    throw new Error("not now");
  });
  assert.equal(read(onMain, heap, source, packed), false);
  assert.throws(() => read(onMain, heap, source, packed + 1), /not now/);
  assert.ok(tryLatch(heap.i32, SHARED_WORD.poolLock));
  assert.throws(() => read(onMain, heap, source, packed), /not now/);
  unlatch(heap.i32, SHARED_WORD.poolLock);
  assert.equal(onMain.windowCount, 0);
  assert.equal(read(onMain, heap, source, packed), false);
  onMain.release();
  lease.release();
  assert.equal(pool.stats().pins, 0);
});

Deno.test("Frames: who waits for frames that are filled is told of each one, by any thread, and of those since", async () => {
  const heap = createHeap(16 << 20);
  formatPool(heap, 64 * FRAME);
  const files = new FaultyFiles(), source = sourceOf(files, 10);
  const pool = new SharedPool(heap, files), { frames } = new SharedPool(heap, files);
  // Waiting does not keep the event loop going.
  const going = setInterval(() => {}, 5);
  const before = frames.filledCount, waiting = frames.filled(before, 2 ** 30);
  touch(pool, heap, source, 3);
  await waiting;
  assert.equal(frames.filledCount, before + 1);
  // One that was filled before it began to wait.
  await frames.filled(before, 2 ** 30);
  touch(pool, heap, source, 3);
  assert.equal(frames.filledCount, before + 1, "it was there");
  await frames.filled(frames.filledCount, 1);
  clearInterval(going);
});
