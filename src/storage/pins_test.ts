import assert from "node:assert/strict";
import { randomOf, SEED } from "../testing.ts";
import { PAGE_BYTES } from "../wasm/assembler.ts";
import type { Command } from "./commands.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap, PIN_SLOTS } from "./heap.ts";
import { type MemoryBlock, WriterMemory } from "./memory.ts";
import { Pins } from "./pins.ts";
import { batchOf, newTable, readRows } from "./test-rows.ts";
import { openTestStore } from "./test-store.ts";

const TYPES = { 0: "TIMESTAMP", 1: "LONG", 2: "VARCHAR" };
const UNIT = 4096;
const heap = createHeap(48 << 20);

/** A store with two tables, in which freed memory is overwritten. */
class Database {
  private readonly parts = openTestStore(heap, new FaultyFiles({}, () => 0.5), { segmentRowsMax: 50 });
  private readonly free = heap.free.bind(heap);

  constructor() {
    heap.free = (address, sizeBytes, tag) => {
      heap.u8.fill(0xaa, address, address + sizeBytes);
      this.free(address, sizeBytes, tag);
    };
    for (const name of ["t", "u"]) {
      this.run({ kind: "createTable", table: newTable(name, { ts: "TIMESTAMP", x: "LONG", s: "VARCHAR" }, "ts") });
    }
  }

  run(command: Command): void {
    const [{ error }] = this.parts.store.execute([command]);
    if (error !== undefined) throw error;
  }

  append(tableId: number, times: readonly number[]): void {
    const rows = times.map((time) => ({ 0: BigInt(time), 1: BigInt(time), 2: `text ${time} `.repeat(time % 5) }));
    this.run({ kind: "append", changes: [{ tableId, batches: [batchOf(TYPES, rows)] }] });
  }

  rows(tableId: number): () => unknown[][] {
    const snapshot = this.parts.catalogue.tableById(tableId)!;
    return () => readRows(heap, this.parts.pool, snapshot);
  }

  pin(): () => void {
    return this.parts.catalogue.pin();
  }

  [Symbol.dispose](): void {
    this.run({ kind: "close" });
    heap.free = this.free;
  }
}

Deno.test("commits free the segments that they have replaced, although an earlier version is pinned", () => {
  using db = new Database();
  db.append(1, [1, 2, 3]);
  const unpin = db.pin();
  db.append(2, [1000]);
  // Each replaces the last segment.
  for (let k = 0; k < 190; k++) db.append(2, [500 - k]);
  const used = () => heap.usedBytes("tail") + heap.usedBytes("pages"), usedBesidePin = used();
  unpin();
  db.append(2, [500 - 190]);
  assert.equal(usedBesidePin, used());
});

Deno.test("a pinned version keeps its rows, whatever others are pinned and released", () => {
  for (let seed = SEED; seed < SEED + 4; seed++) {
    using db = new Database();
    const random = randomOf(seed), pinned: { unpin: () => void; rows: () => unknown[][]; expected: unknown[][] }[] = [];
    for (let step = 0; step < 300; step++) {
      const what = random(12), tableId = 1 + random(2);
      if (what < 6) db.append(tableId, Array.from({ length: 1 + random(5) }, () => random(1000)));
      else if (what === 6) db.run({ kind: "checkpoint" });
      else if (what === 7 && random(4) === 0) db.run({ kind: "truncate", tableId });
      else if (what < 10 && pinned.length < 6) {
        const rows = db.rows(tableId);
        pinned.push({ unpin: db.pin(), rows, expected: rows() });
      } else if (pinned.length > 0) {
        const [{ unpin, rows, expected }] = pinned.splice(random(pinned.length), 1);
        assert.deepEqual(rows(), expected, `seed ${seed}, step ${step}`);
        unpin();
      }
    }
    for (const { unpin, rows, expected } of pinned) {
      assert.deepEqual(rows(), expected, `seed ${seed}`);
      unpin();
    }
    for (const tableId of [1, 2]) db.run({ kind: "dropTable", tableId });
    db.run({ kind: "checkpoint" });
    for (const tag of ["tail", "pages", "dictionary"] as const) assert.equal(heap.usedBytes(tag), 0);
  }
});

/**
 * Blocks that come and go, with a reader that sees publications later. It pins up to `pinsMax` times, then releases most pins, and so on. Returns the
 * largest number of versions that were pinned at once.
 */
function run(random: (max: number) => number, pinsMax: number, steps: number): number {
  heap.u8.fill(0, 0, PAGE_BYTES);
  heap.format();
  const pins = new Pins(heap), memory = new WriterMemory(heap);
  let published = 0, seen = 0, isPinning = true, most = 0;
  const live: { block: MemoryBlock; since: number }[] = [];
  const retired: { block: MemoryBlock; since: number; until: number }[] = [];
  const pinned: { version: number; unpin: () => void }[] = [];
  for (let step = 0; step < steps; step++) {
    const what = random(8);
    if (what < 3) {
      const version = published + 1, block = memory.allocate(UNIT, "tail");
      block.refs = 1;
      live.push({ block, since: version });
      for (let k = Math.min(random(3), live.length); k > 0; k--) {
        const [gone] = live.splice(random(live.length), 1);
        gone.block.refs = 0;
        memory.retire(gone.block, version);
        if (gone.block !== block) retired.push({ ...gone, until: version });
      }
      memory.settle(version);
      published = version;
    } else if (what < 5 && seen < published) pins.proceed(++seen);
    else if (isPinning === what < 7 && pinned.length < pinsMax) pinned.push({ version: seen, unpin: pins.add() });
    else if (pinned.length > 0) pinned.splice(random(pinned.length), 1)[0].unpin();
    if (pinned.length === (isPinning ? pinsMax : 0)) isPinning = !isPinning;
    most = Math.max(most, pins.count);
    memory.reclaim();
    for (const { block, since, until } of retired) {
      const isNeeded = until > seen || pinned.some(({ version }) => since <= version && version < until);
      if (isNeeded) assert.ok(!block.isFree, "a reader may need it");
      else if (pinned.length <= PIN_SLOTS) assert.ok(block.isFree, "no reader needs it");
    }
  }
  while (seen < published) pins.proceed(++seen);
  for (const { unpin } of pinned) unpin();
  memory.reclaim();
  assert.equal(pins.count, 0);
  assert.equal(heap.usedBytes("tail"), live.length * UNIT);
  return most;
}

Deno.test("a block is freed exactly when no version that had it can be read", () => {
  for (let seed = SEED; seed < SEED + 20; seed++) run(randomOf(seed), 8, 400);
});

Deno.test("more pinned versions than there are slots keep memory for longer, but never too short", () => {
  assert.ok(run(randomOf(SEED), 2 * PIN_SLOTS, 5000) > PIN_SLOTS);
});
