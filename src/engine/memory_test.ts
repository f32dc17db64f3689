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
