import assert from "node:assert/strict";
import type { CatalogueMirror } from "./catalogue.ts";
import type { Command } from "./commands.ts";
import { CODEC_BYTES, Codecs } from "./encoding/codecs.ts";
import { EncodingWorker, SharedEncoders } from "./encoding-jobs.ts";
import { failJobs } from "./jobs.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { LOAD_STEP } from "./load.ts";
import { packAppendBatch } from "./packed.ts";
import { createHeap, type SharedHeap } from "./heap.ts";
import type { SharedPool } from "./pool.ts";
import { LIMITS } from "./packing.ts";
import { batchOf, newTable, readRows, rowIdsOf } from "./test-rows.ts";
import { openTestStore } from "./test-store.ts";
import type { TableStore } from "./writer.ts";
import { randomOf, SEED } from "../testing.ts";

// So that few rows have many pages and lists.
Object.assign(LIMITS, { pageMin: 2, pageMax: 3, listMax: 3, listMin: 2 });
LOAD_STEP.rows = 400;

const COLUMNS = { ts: "TIMESTAMP", x: "LONG", s: "VARCHAR", y: "SYMBOL" };
const TYPES = { 0: "TIMESTAMP", 1: "LONG", 2: "VARCHAR", 3: "SYMBOL" };
const heap = createHeap(64 << 20);

/** A thread that encodes when the test says so. */
class Thread {
  isIdle = true;
  private codecs: Codecs | undefined;
  private worker: EncodingWorker;

  constructor(private readonly heap: SharedHeap) {
    this.worker = this.begin();
  }

  readonly encoders = new SharedEncoders(heap, () => this.isIdle);

  step(count = Infinity): void {
    for (let k = 0; k < count && this.worker.step(); k++);
  }

  /** Ends the thread, of which main hears, and starts another one. */
  fail(): void {
    this.worker = this.begin();
    failJobs(this.heap, 0);
  }

  private begin(): EncodingWorker {
    return new EncodingWorker(
      this.heap,
      0,
      () => this.codecs ??= new Codecs(this.heap, this.heap.allocateExact(CODEC_BYTES, "other")),
    );
  }
}

/** Calls `action` with numbers from a generator, each time from another seed. */
function forRandom(runs: number, action: (random: (below: number) => number) => void): void {
  for (let run = 0; run < runs; run++) {
    try {
      action(randomOf(SEED + run));
    } catch (error) {
      throw new Error(`SEED=${SEED}, run ${run}`, { cause: error });
    }
  }
}

class Database {
  readonly thread = new Thread(heap);
  readonly store: TableStore;
  readonly catalogue: CatalogueMirror;
  private readonly pool: SharedPool;

  constructor(readonly files: FaultyFiles, { memoryBytes = 512 << 10, patienceMs = 60_000 } = {}) {
    ({ store: this.store, catalogue: this.catalogue, pool: this.pool } = openTestStore(heap, files, {
      memoryBytes,
      patienceMs,
      encoders: this.thread.encoders,
      checkpointStepMs: 0,
      flushStepBytes: 4096,
      segmentRowsMax: 100,
      checkpointLogBytes: 60_000,
    }));
  }

  static make(options?: { memoryBytes?: number; patienceMs?: number }): Database {
    const db = new Database(new FaultyFiles({}, () => 0.5), options);
    db.do({
      kind: "createTable",
      table: newTable("t", COLUMNS, "ts", "HOUR"),
    });
    return db;
  }

  do(command: Command): void {
    const [{ error }] = this.store.execute([command]);
    if (error !== undefined) throw error;
  }

  append(times: readonly number[], value = 0): void {
    const batch = batchOf(TYPES, times.map((ts) => rowOf(ts, value)));
    this.do({ kind: "append", changes: [{ tableId: 1, batches: [batch] }] });
  }

  get snapshot() {
    return this.catalogue.tableById(1)!;
  }

  rows(tableId = 1): string[] {
    return readRows(heap, this.pool, this.catalogue.tableById(tableId)!).map((row) => row.join(" "));
  }

  counter(name: "flushedSegments" | "flushedSegmentsOfHelpers"): number {
    return heap.counter(name);
  }

  liveBlocks(): number {
    return [...this.store.tables.get(1)!.segments].filter(({ chunks }) => chunks.some((c) => c!.plain.address !== 0))
      .length;
  }

  close(): void {
    this.do({ kind: "close" });
  }
}

const rowOf = (ts: number, value = 0) => (
  { 0: BigInt(ts), 1: BigInt(ts * 31 + value), 2: `text ${ts % 7}`, 3: `s${ts % 3}` }
);
const upTo = (count: number, from = 0) => Array.from({ length: count }, (_, k) => from + k);
const textOf = (ts: number, value = 0) => `${ts} ${ts * 31 + value} text ${ts % 7} s${ts % 3}`;

Deno.test("a flush under memory pressure hands segments over, and commits go on until they come back", () => {
  const db = Database.make();
  for (let from = 0; from < 5000; from += 50) {
    db.append(upTo(50, from));
    db.store.maintain();
    if (from % 1000 === 0) db.thread.step();
  }
  db.thread.step();
  db.store.maintain();
  assert.ok(db.counter("flushedSegmentsOfHelpers") > 20, `${db.counter("flushedSegmentsOfHelpers")} segments`);
  assert.deepEqual(db.rows(), upTo(5000).map((ts) => textOf(ts)));
  db.close();
});

Deno.test("segments that a commit has replaced meanwhile are not overwritten by what was encoded", () => {
  const db = Database.make({ memoryBytes: 1 << 30 });
  db.append(upTo(1000).map((k) => 10 * k));
  db.store.options.memoryBytes = 0.8 * db.store.memory.tailBytes;
  db.store.maintain();
  const handedOver = db.store.background.sizeBytes;
  assert.ok(handedOver > 0);
  db.thread.step(3);
  const rowIds = rowIdsOf(db.snapshot, [5, 105, 995]);
  db.do({ kind: "delete", tableId: 1, batches: [{ rowIds, columns: [] }] });
  db.append([203, 307]); // late rows
  db.thread.step();
  const before = db.counter("flushedSegmentsOfHelpers");
  db.store.maintain();
  assert.ok(db.counter("flushedSegmentsOfHelpers") > before, "the others are stored");
  const expected = upTo(1000).map((k) => 10 * k).filter((ts) => ![50, 1050, 9950].includes(ts)).concat([203, 307]);
  assert.deepEqual(db.rows(), expected.sort((a, b) => a - b).map((ts) => textOf(ts)));
  db.close();
});

Deno.test("without an idle thread, or with one that takes too long, the writer flushes by itself", () => {
  for (const isIdle of [false, true]) {
    const db = Database.make({ patienceMs: 0 });
    db.thread.isIdle = isIdle;
    for (let from = 0; from < 5000; from += 50) {
      db.append(upTo(50, from));
      db.store.maintain();
    }
    assert.ok(db.counter("flushedSegments") > 20);
    assert.equal(db.counter("flushedSegmentsOfHelpers"), 0);
    assert.ok(db.store.memory.tailBytes < 800_000, `${db.store.memory.tailBytes} bytes in memory`);
    assert.deepEqual(db.rows(), upTo(5000).map((ts) => textOf(ts)));
    db.close();
  }
});

Deno.test("a checkpoint waits for what was handed over while commits go on, and ends at once when it has to", () => {
  const db = Database.make({ memoryBytes: 1 << 30 });
  const { store, thread } = db;
  const checkpoint = () => {
    db.append(upTo(3000, 10_000 * ++round), round);
    store.maintain();
    assert.ok(store.checkpoints.isUnderway);
  };
  let round = 0;
  checkpoint();
  for (let k = 0; k < 20 && store.isBusy; k++) store.maintain();
  assert.ok(store.checkpoints.isUnderway && !store.isBusy && store.isWaiting, "it waits");
  db.append([50_000]);
  thread.step();
  assert.ok(store.isBusy, "the outcome is to be taken");
  for (let k = 0; k < 100 && store.checkpoints.isUnderway; k++) {
    store.maintain();
    thread.step();
  }
  assert.ok(!store.checkpoints.isUnderway, "it has ended");
  assert.ok(db.counter("flushedSegmentsOfHelpers") >= 29, `${db.counter("flushedSegmentsOfHelpers")} segments`);
  const before = db.counter("flushedSegmentsOfHelpers");
  checkpoint();
  store.maintain();
  db.do({ kind: "checkpoint" });
  assert.ok(!store.checkpoints.isUnderway);
  assert.equal(db.counter("flushedSegmentsOfHelpers"), before, "the writer did it");
  const rows = db.rows();
  db.close();
  const again = new Database(db.files);
  again.do({ kind: "open", tableId: 1 });
  assert.deepEqual(again.rows(), rows);
  again.close();
});

Deno.test("segments of bulk loads are handed over, and come back to the load, if it goes on", () => {
  let helped = 0;
  forRandom(40, (random) => {
    const db = Database.make({ memoryBytes: 1 << 30, patienceMs: random(4) > 0 ? 60_000 : 0 });
    const { store, thread } = db;
    const value = (command: Command): number => {
      const [{ error, value }] = store.execute([command]);
      if (error !== undefined) throw error;
      return value!;
    };
    const isNew = random(2) === 0;
    const loadId = isNew
      ? value({ kind: "beginLoad", table: newTable("u", COLUMNS, "ts", "HOUR") })
      : value({ kind: "beginAppend", tableId: 1, columnIds: [0, 1, 2, 3] });
    let count = 0;
    const work = () => {
      if (random(3) > 0) thread.step(random(100));
      if (random(12) === 0) thread.fail();
      thread.isIdle = random(5) > 0;
      if (random(4) > 0) store.maintain(random(2) === 0);
      if (random(6) === 0) db.append([1_000_000_000 + count]);
    };
    for (let k = 0; k < 15; k++) {
      const times = upTo(100 + random(200), count);
      count += times.length;
      value({ kind: "load", loadId, packed: packAppendBatch(batchOf(TYPES, times.map((ts) => rowOf(ts)))) });
      work();
    }
    const what = random(5);
    const rows = () => db.rows().filter((text) => Number(text.split(" ")[0]) < 1_000_000_000);
    if (what === 0) {
      value({ kind: "abortLoad", loadId });
      work();
      assert.deepEqual(rows(), []);
    } else if (what === 1 && !isNew) {
      db.do({ kind: "dropTable", tableId: 1 });
      db.do({ kind: "checkpoint" });
      thread.step();
      store.maintain();
      assert.ok(!store.seal.isSet);
      assert.throws(() => value({ kind: "prepareLoad", loadId }), /was dropped/);
    } else {
      for (let k = 0; k < 1000 && value({ kind: "prepareLoad", loadId }) === 1; k++) work();
      const id = value({ kind: "endLoad", loadId });
      work();
      assert.deepEqual(isNew ? db.rows(id) : rows(), upTo(count).map((ts) => textOf(ts)));
    }
    helped += db.counter("flushedSegmentsOfHelpers");
    thread.isIdle = true;
    thread.step();
    store.maintain();
    assert.equal(store.background.sizeBytes, 0);
    assert.equal(heap.usedBytes("batch"), 0, "results and orders are freed");
    assert.ok(!store.seal.isSet);
    db.close();
  });
  assert.ok(helped > 50, `${helped} segments were encoded by the thread`);
});

Deno.test("random changes with threads that are fast, late, busy and fail give the rows that they would give without", () => {
  let helped = 0;
  forRandom(30, (random) => {
    let db = Database.make({ memoryBytes: 1 << (16 + random(6)), patienceMs: random(4) > 0 ? 60_000 : 0 });
    const rows = new Map<number, string>();
    // Two partitions, so that segments that are not the last one of the table grow, too.
    const next = [1000, 1000], HOURS = 7_200_000_000;
    for (let k = 0; k < 120; k++) {
      const what = random(12);
      if (what < 4) {
        const p = random(2), times = upTo(1 + random(150), next[p]).map((n) => p * HOURS + 10 * n);
        next[p] += times.length;
        db.append(times, k);
        for (const ts of times) rows.set(ts, textOf(ts, k));
      } else if (what === 4) {
        const times = upTo(1 + random(5)).map(() => 10 * (1000 + random(next[0] - 1000)) + 1 + random(9))
          .filter((ts, n, all) => !rows.has(ts) && all.indexOf(ts) === n);
        if (times.length > 0) db.append(times, k);
        for (const ts of times) rows.set(ts, textOf(ts, k));
      } else if (what === 5 && rows.size > 0) {
        const ordinal = random(rows.size), ts = [...rows.keys()].sort((a, b) => a - b)[ordinal];
        db.do({ kind: "delete", tableId: 1, batches: [{ rowIds: rowIdsOf(db.snapshot, [ordinal]), columns: [] }] });
        rows.delete(ts);
      } else if (what === 6) db.thread.isIdle = random(4) > 0;
      else if (what === 7) db.thread.fail();
      else if (what === 8 && random(6) === 0) db.do({ kind: "checkpoint" });
      else if (what === 9 && random(8) === 0) {
        db.close();
        db = new Database(db.files, { memoryBytes: 1 << (16 + random(6)), patienceMs: random(4) > 0 ? 60_000 : 0 });
        db.do({ kind: "open", tableId: 1 });
      } else db.thread.step(random(60));
      if (random(3) > 0) db.store.maintain(random(2) === 0);
    }
    const expected = [...rows].sort(([a], [b]) => a - b).map(([, text]) => text);
    assert.deepEqual(db.rows(), expected);
    helped += db.counter("flushedSegmentsOfHelpers");
    db.thread.isIdle = true;
    db.thread.step();
    db.store.maintain();
    db.do({ kind: "checkpoint" });
    db.thread.step();
    db.store.maintain();
    db.append([2 * HOURS]); // Publishes a version, so that memory is given back.
    db.store.maintain();
    assert.equal(db.store.background.sizeBytes, 0);
    assert.ok(db.store.memory.tailBytes < 200_000, `${db.store.memory.tailBytes} bytes are left in memory`);
    assert.equal(heap.usedBytes("batch"), 0, "results and orders are freed");
    const last = db.rows();
    db.close();
    const again = new Database(db.files);
    again.do({ kind: "open", tableId: 1 });
    assert.deepEqual(again.rows(), last);
    assert.equal(last.length, expected.length + 1);
    again.close();
  });
  assert.ok(helped > 50, `${helped} segments were encoded by the thread`);
});
