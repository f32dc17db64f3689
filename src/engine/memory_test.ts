import assert from "node:assert/strict";
import { collectWith, CountedMemory } from "./memory.ts";
import { createHeap } from "../storage/mod.ts";

const MIB = 1 << 20;

Deno.test("CountedMemory: buffers that are about to be made collect garbage, and so do more held buffers than before", () => {
  let collections = 0;
  collectWith(() => collections++);
  const memory = new CountedMemory(createHeap(MIB), 0);
  for (let k = 0; k < 1_000; k++) {
    memory.account(MIB, "read_parquet");
    memory.account(-MIB, "read_parquet");
  }
  assert.equal(collections, 0);
  // The garbage is still collected when the query ends.
  assert.equal(memory.madeBytes, 1_000 * MIB);
  for (let k = 0; k < 100; k++) memory.need(MIB, "a function");
  assert.ok(collections >= 5, `${collections} collections`);
  assert.equal(memory.usedBytes, 0);
  collections = 0;
  memory.account(100 * MIB, "a function");
  assert.equal(collections, 1);
  memory.account(-100 * MIB, "a function");
});

Deno.test("CountedMemory: what an operator has given up is collected before the query goes on", () => {
  let collections = 0;
  collectWith(() => collections++);
  const memory = new CountedMemory(createHeap(MIB), 0);
  memory.account(100 * MIB, "group by");
  collections = 0;
  memory.account(-100 * MIB, "group by");
  // The operator may still refer to it.
  assert.equal(collections, 0);
  memory.need(1, "a function");
  assert.equal(collections, 1);
  const blocks = memory.mark();
  memory.account(100 * MIB, "group by");
  memory.account(-100 * MIB, "group by");
  collections = 0;
  memory.freeSince(blocks);
  assert.equal(collections, 1);
});

Deno.test("CountedMemory evicts frames only if enough memory is free, but in pieces", () => {
  const KIB = 1 << 10, heap = createHeap(8 * MIB);
  const frames: number[] = [];
  while (heap.sizeBytes() - heap.usedBytes() >= 64 * KIB) frames.push(heap.allocate(64 * KIB, "pool"));
  const evictOne = () => {
    const frame = frames.shift();
    if (frame !== undefined) heap.free(frame, 64 * KIB, "pool");
    return frame !== undefined;
  };
  const memory = new CountedMemory(heap, 0, undefined, evictOne), before = frames.length;
  assert.throws(() => memory.allocate(MIB, "sort"), { message: /shared memory is full/ });
  assert.equal(frames.length, before);
  // 1 MiB is free, in pieces.
  const isOdd = (address: number) => (address / (64 * KIB)) & 1;
  frames.sort((a, b) => isOdd(a) - isOdd(b));
  for (let k = 0; k < 16; k++) evictOne();
  memory.free(memory.allocate(MIB, "sort"), MIB);
  assert.ok(frames.length > 0 && frames.length < before);
});
