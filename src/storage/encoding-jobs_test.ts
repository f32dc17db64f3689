import assert from "node:assert/strict";
import { crc32 } from "./bytes.ts";
import type { ChunkOrder } from "./encoders.ts";
import { CODEC_BYTES, Codecs } from "./encoding/codecs.ts";
import { atOnce, storedForm } from "./encoding/stored.ts";
import { EncodingWorker, SharedEncoders } from "./encoding-jobs.ts";
import { failJobs } from "./jobs.ts";
import { createHeap, ENCODING_JOBS, SHARED_WORD } from "./heap.ts";

const ROWS = 20_000;

/** Columns in shared memory: integers, noise that stays as it is, texts that repeat and texts that do not. */
function setUp() {
  const heap = createHeap(64 << 20);
  const codecs = new Codecs(heap, heap.allocateExact(CODEC_BYTES, "other"));
  const order = (columnId: number, type: string, address: number, isIndexed = false): ChunkOrder => (
    { columnId, type, address, rowCount: ROWS, isIndexed }
  );
  const longs = heap.allocate(8 * ROWS, "tail"), noise = heap.allocate(8 * ROWS, "tail");
  const symbols = heap.allocate(4 * ROWS, "tail"),
    texts = heap.allocate(8 * ROWS, "tail"),
    arena = heap.allocate(1 << 20, "tail");
  for (let row = 0, at = arena; row < ROWS; row++) {
    heap.i64[longs / 8 + row] = BigInt(row * 17);
    heap.f64[noise / 8 + row] = Math.sin(row) * 1e9;
    heap.i32[symbols / 4 + row] = row * 7919 % 5000;
    const text = new TextEncoder().encode(row % 10 === 0 ? `${Math.sin(row)}` : `text ${row % 100}`);
    heap.u8.set(text, at);
    heap.i32.set([at, text.length], texts / 4 + 2 * row);
    at += text.length;
  }
  const orders = [
    order(0, "LONG", longs),
    order(2, "DOUBLE", noise),
    order(3, "SYMBOL", symbols, true),
    order(5, "VARCHAR", texts),
  ];
  const worker = (seat: number) => new EncodingWorker(heap, seat, () => codecs);
  let hasIdle = true, wakes = 0;
  const encoders = new SharedEncoders(heap, () => (wakes++, hasIdle));
  /** What a chunk would be if the writer encoded it. */
  const expected = (chunk: ChunkOrder) => {
    const { parts, ...form } = atOnce(storedForm(heap, codecs, chunk));
    return { ...form, bytes: Uint8Array.from(parts.flatMap((part) => [...part])) };
  };
  return { heap, orders, worker, encoders, expected, setIdle: (is: boolean) => hasIdle = is, wakes: () => wakes };
}

function finish(worker: EncodingWorker): number {
  let steps = 0;
  while (worker.step()) steps++;
  return steps;
}

Deno.test("a worker encodes a segment in steps, to what the writer would have made of it", () => {
  const { heap, orders, worker, encoders, expected } = setUp();
  const used = heap.usedBytes(), wake = heap.i32[SHARED_WORD.writerWake];
  const job = encoders.offer(orders) as number;
  assert.equal(encoders.outcome(job), undefined, "nobody has begun");
  const thread = worker(1);
  assert.ok(thread.step());
  assert.equal(encoders.outcome(job), undefined, "it is under way");
  assert.equal(encoders.withdraw(job), false);
  assert.ok(finish(thread) > orders.length, "texts take several steps");
  assert.equal(heap.i32[SHARED_WORD.writerWake], wake + 1, "the writer is woken once");
  const chunks = encoders.outcome(job)!;
  assert.notEqual(chunks, "failed");
  assert.equal(chunks.length, orders.length);
  for (const order of orders) {
    const { columnId: _, crc, bytes, ...form } = (chunks as Exclude<typeof chunks, "failed">)
      .find((chunk) => chunk.columnId === order.columnId)!;
    const { bytes: wanted, ...wantedForm } = expected(order);
    assert.deepEqual(form, wantedForm, order.type);
    assert.equal(crc, crc32(wanted));
    if (order.type === "DOUBLE") assert.equal(bytes, undefined, "noise stays as it is in memory");
    else assert.deepEqual(Uint8Array.from(bytes!), wanted);
  }
  encoders.release(job);
  assert.equal(heap.usedBytes(), used, "all memory is freed");
});

Deno.test("a job that no thread has begun is taken back, and then no thread takes it", () => {
  const { heap, orders, worker, encoders, setIdle } = setUp();
  const used = heap.usedBytes();
  const job = encoders.offer(orders) as number;
  assert.ok(encoders.withdraw(job));
  assert.equal(worker(0).step(), false);
  setIdle(false);
  assert.equal(encoders.offer(orders), "none", "no thread is idle");
  assert.equal(worker(0).step(), false);
  assert.equal(heap.usedBytes(), used);
});

Deno.test("there are only so many jobs, and one worker does them one after the other", () => {
  const { heap, orders, worker, encoders } = setUp();
  const used = heap.usedBytes();
  const jobs = Array.from({ length: ENCODING_JOBS }, () => encoders.offer(orders) as number);
  assert.equal(encoders.offer(orders), "full");
  finish(worker(0));
  for (const job of jobs) {
    assert.equal(encoders.outcome(job)!.length, orders.length);
    encoders.release(job);
  }
  assert.equal(heap.usedBytes(), used);
  assert.equal(typeof encoders.offer(orders), "number");
});

Deno.test("the job of a thread that has failed midway fails, its memory is freed, and jobs of others go on", () => {
  const { heap, orders, worker, encoders } = setUp();
  const used = heap.usedBytes();
  const [first, second] = [encoders.offer(orders) as number, encoders.offer(orders) as number];
  const dying = worker(0), other = worker(1);
  for (let k = 0; k < 4; k++) dying.step();
  other.step();
  failJobs(heap, 0);
  assert.equal(encoders.outcome(first), "failed");
  assert.equal(encoders.outcome(second), undefined);
  finish(other);
  assert.equal(encoders.outcome(second)!.length, orders.length);
  encoders.release(first);
  encoders.release(second);
  assert.equal(heap.usedBytes(), used);
});

Deno.test("a job for which the memory does not suffice fails, and the thread goes on", () => {
  const { heap, orders, worker, encoders } = setUp();
  const job = encoders.offer(orders) as number;
  const blocks: [number, number][] = [];
  for (let size = 32 << 20; size >= 4096; size >>= 1) {
    try {
      for (;;) blocks.push([heap.allocate(size, "other"), size]);
    } catch {
      // The next smaller size.
    }
  }
  const thread = worker(0);
  finish(thread);
  assert.equal(encoders.outcome(job), "failed");
  encoders.release(job);
  for (const [address, size] of blocks) heap.free(address, size, "other");
  const again = encoders.offer(orders) as number;
  finish(thread);
  assert.equal(encoders.outcome(again)!.length, orders.length);
});
