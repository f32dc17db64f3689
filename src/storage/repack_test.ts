import assert from "node:assert/strict";
import type { CatalogueMirror } from "./catalogue.ts";
import type { Command } from "./commands.ts";
import { CODEC_BYTES, Codecs } from "./encoding/codecs.ts";
import { encodingNames } from "./encoding/encodings.ts";
import { EncodingWorker, SharedEncoders } from "./encoding-jobs.ts";
import { Died, FaultyFiles } from "./faulty-files.ts";
import { createHeap } from "./heap.ts";
import type { WriterOptions } from "./options.ts";
import type { SharedPool } from "./pool.ts";
import { LIMITS } from "./packing.ts";
import type { Segment } from "./segments.ts";
import type { Table } from "./table.ts";
import { batchOf, newTable, readRows, rowIdsOf } from "./test-rows.ts";
import { openTestStore } from "./test-store.ts";
import type { TableStore } from "./writer.ts";
import { FULL, SEED } from "../testing.ts";

// So that few rows have many pages and lists.
Object.assign(LIMITS, { pageMin: 2, pageMax: 3, listMax: 3, listMin: 2 });

const COLUMNS = { ts: "TIMESTAMP", x: "LONG", s: "VARCHAR", noise: "DOUBLE", id: "UUID" };
const TYPES = { 0: "TIMESTAMP", 1: "LONG", 2: "VARCHAR", 3: "DOUBLE" };
const heap = createHeap(64 << 20);

class Database {
  readonly store: TableStore;
  readonly catalogue: CatalogueMirror;
  private readonly pool: SharedPool;

  constructor(readonly files: FaultyFiles, options: Partial<WriterOptions> = {}) {
    ({ store: this.store, catalogue: this.catalogue, pool: this.pool } = openTestStore(heap, files, {
      memoryBytes: 8 << 20,
      checkpointStepMs: 0,
      segmentRowsMax: 100,
      checkpointLogBytes: 1 << 30,
      compactBytes: 4000,
      idleMs: 0,
      ...options,
    }));
  }

  do(command: Command): void {
    const [{ error }] = this.store.execute([command]);
    if (error !== undefined) throw error;
  }

  append(from: number, count: number, step = 10): void {
    const rows = Array.from({ length: count }, (_, n) => {
      const ts = from + n * step;
      return { 0: BigInt(ts), 1: BigInt(ts * 31), 2: `text ${ts % 7}`, 3: Math.sin(ts) * 1e9 };
    });
    this.do({ kind: "append", changes: [{ tableId: 1, batches: [batchOf(TYPES, rows)] }] });
  }

  delete(ordinals: number[]): void {
    this.do({ kind: "delete", tableId: 1, batches: [{ rowIds: rowIdsOf(this.snapshot, ordinals), columns: [] }] });
  }

  open(): this {
    this.do({ kind: "open", tableId: 1 });
    return this;
  }

  get snapshot() {
    return this.catalogue.tableById(1)!;
  }

  get table() {
    return this.store.tables.get(1)!;
  }

  rows(): string[] {
    return readRows(heap, this.pool, this.snapshot, [0, 1, 2, 3]).map((row) => row.join(" "));
  }

  /** Lets it be idle until nothing is left to do. Returns how often it was asked. */
  rest(): number {
    let steps = 0;
    while (this.store.isBusy) {
      this.store.maintain(true);
      assert.ok(++steps < 5_000, "it comes to an end");
    }
    return steps;
  }

  /** The encodings of a column's chunks. Few values do not shrink. */
  encodings(columnId: number): string[] {
    const names = new Set<string>();
    for (const { chunks, rowCount } of segmentsOf(this.table)) {
      if (rowCount >= 20) names.add(encodingNames(chunks[columnId]!.plain.encodings ?? 0).join());
    }
    return [...names];
  }

  get repacked(): number {
    return heap.counter("repackedSegments");
  }

  diskBytes(): number {
    return this.files.list("/db/t1").filter((name) => name.endsWith(".seg"))
      .reduce((sum, name) => sum + this.files.open(`/db/t1/${name}`, "read").size(), 0);
  }

  close(): void {
    this.do({ kind: "close" });
  }
}

function segmentsOf(table: Table): Segment[] {
  return [table.segments, ...table.detached.values()].flatMap((segments) => [...segments]);
}

/** A table that was stored raw, with a detached partition. */
function rawFiles(rows = 3000): FaultyFiles {
  const db = new Database(new FaultyFiles({}, () => 0.5), { encoding: "raw" });
  db.do({ kind: "createTable", table: newTable("t", COLUMNS, "ts", "HOUR") });
  db.append(0, rows);
  db.append(3_600_000_000, 500);
  db.do({ kind: "partitions", tableId: 1, moves: [{ start: 3_600_000_000n, from: "attached", to: "detached" }] });
  db.rest();
  assert.equal(db.repacked, 0, "with raw nothing is encoded");
  db.close();
  return db.files;
}

Deno.test("what was stored raw is encoded when the server is idle, once, and the raw files go", () => {
  const files = rawFiles();
  let db = new Database(files);
  const raw = db.diskBytes();
  db.rest(); // opens the table
  const expected = db.rows();
  assert.equal(expected.length, 3000);
  assert.equal(db.repacked, 35, "each segment once");
  assert.deepEqual(db.encodings(0), ["frame"]);
  assert.deepEqual(db.encodings(2), ["dictionary"]);
  assert.deepEqual(db.encodings(3), [""], "noise stays as it is");
  assert.ok(db.diskBytes() < 0.8 * raw, `${db.diskBytes()} of ${raw} bytes`);
  db.close();
  db = new Database(files);
  assert.ok(db.rest() <= 2, "a start has nothing to do");
  assert.ok(db.table.unread !== undefined, "and does not open the table");
  assert.deepEqual(db.open().rows(), expected);
  db.rest();
  assert.equal(db.repacked, 0);
  db.do({ kind: "partitions", tableId: 1, moves: [{ start: 3_600_000_000n, from: "detached", to: "attached" }] });
  assert.equal(db.rows().length, 3500);
  db.close();
});

Deno.test("it goes on where it has stopped, and later with what was written raw in between", () => {
  const files = rawFiles();
  let db = new Database(files);
  for (let k = 0; k < 12; k++) db.store.maintain(true);
  const first = db.repacked;
  assert.ok(first > 5 && first < 30, `${first} segments`);
  db.close();
  db = new Database(files);
  db.rest();
  assert.equal(db.repacked, 35 - first);
  db.close();
  db = new Database(files, { encoding: "raw" }).open();
  db.append(40_000, 250);
  db.close();
  db = new Database(files);
  db.rest();
  assert.equal(db.repacked, 3);
  const rows = db.rows();
  db.close();
  db = new Database(files).open();
  db.rest();
  assert.equal(db.repacked, 0);
  assert.deepEqual(db.rows(), rows);
  db.close();
});

Deno.test("chunks that a compaction moves stay to be encoded", () => {
  const files = rawFiles();
  let db = new Database(files, { idleMs: 1e9 }).open();
  db.delete(Array.from({ length: 1900 }, (_, k) => 100 + k));
  db.do({ kind: "checkpoint" });
  db.do({ kind: "checkpoint" });
  db.close();
  db = new Database(files).open();
  db.rest();
  assert.deepEqual(db.encodings(0), ["frame"]);
  assert.equal(db.rows().length, 1100);
  db.close();
});

for (let run = 0; run < (FULL ? 4 : 1); run++) {
  const seed = SEED + run;
  Deno.test(`a replacement is dropped if the segment has changed while another thread encodes it, SEED=${seed}`, () =>
    changeMeanwhile(seed));
}

function changeMeanwhile(seed: number): void {
  const files = rawFiles();
  let isIdle = true;
  const encoders = new SharedEncoders(heap, () => isIdle);
  const logged: string[] = [];
  const db = new Database(files, { encoders, log: (_, message) => logged.push(message) });
  const codecs = new Codecs(heap, heap.allocateExact(CODEC_BYTES, "other"));
  const worker = new EncodingWorker(heap, 0, () => codecs);
  db.open();
  let random = seed;
  const next = (below: number) => (random = (Math.imul(random, 1664525) + 1013904223) >>> 0) % below;
  let expected = db.rows();
  for (let k = 0; k < 400; k++) {
    const what = next(8);
    isIdle = next(5) > 0;
    if (what < 4) { for (let left = next(30); left > 0; left--) worker.step(); }
    else if (what === 4 && next(3) === 0) {
      const ordinal = next(expected.length);
      db.delete([ordinal]);
      expected.splice(ordinal, 1);
    } else if (what === 5 && next(3) === 0) {
      db.append(10 * next(3000) + 1 + next(9), 1);
      expected = db.rows();
    }
    if (next(10) === 0) db.do({ kind: "checkpoint" });
    db.store.maintain(true);
    assert.equal(db.rows().join("\n"), expected.join("\n"));
  }
  assert.deepEqual(logged, []);
  assert.ok(db.repacked > 10, `${db.repacked} segments`);
  isIdle = true;
  for (let k = 0; k < 5000 && (db.store.isBusy || db.store.isWaiting); k++) {
    while (worker.step());
    db.store.maintain(true);
  }
  db.do({ kind: "checkpoint" });
  assert.deepEqual(db.encodings(2), ["dictionary"], "late rows and deletes have left nothing raw");
  assert.ok(db.table.isPacked);
  assert.equal(heap.usedBytes("batch"), 0);
  assert.deepEqual(db.rows(), expected);
  db.close();
}

Deno.test("a column that is indexed later gets postings where they pay, once", () => {
  const files = new FaultyFiles({}, () => 0.5), options = { segmentRowsMax: 1500 };
  let db = new Database(files, options);
  const columns = { ts: "TIMESTAMP", many: "SYMBOL", few: "SYMBOL" };
  db.do({ kind: "createTable", table: newTable("t", columns, "ts", "HOUR") });
  const types = { 0: "TIMESTAMP", 1: "SYMBOL", 2: "SYMBOL" };
  const rows = Array.from(
    { length: 6000 },
    (_, k) => ({ 0: BigInt(k), 1: `many ${k * 7919 % 100}`, 2: `few ${k % 5}` }),
  );
  db.do({ kind: "append", changes: [{ tableId: 1, batches: [batchOf(types, rows)] }] });
  db.do({ kind: "checkpoint" });
  db.rest();
  assert.equal(db.repacked, 0);
  for (const columnId of [1, 2]) {
    const options = { indexed: true, indexCapacity: 256 } as const;
    db.do({ kind: "setColumn", tableId: 1, columnId, options });
  }
  db.do({ kind: "checkpoint" });
  db.rest();
  const segments = segmentsOf(db.table).length;
  assert.equal(db.repacked, segments);
  assert.deepEqual([db.encodings(1), db.encodings(2)], [["frame,postings"], ["frame"]]);
  db.close();
  db = new Database(files, options).open();
  db.rest();
  assert.equal(db.repacked, 0, "few symbols have no postings, and are not tried again");
  db.close();
});

Deno.test("an open transaction keeps older chunks as they are until its end", () => {
  const db = new Database(rawFiles()).open();
  db.do({ kind: "fork", transactionId: 1, tableId: 1, limitBytes: 1 << 20 });
  db.rest();
  assert.equal(db.repacked, 0);
  db.do({ kind: "rollback", transactionId: 1 });
  db.rest();
  assert.equal(db.repacked, 35);
  db.close();
});

Deno.test("a damaged chunk stays, and does not keep the others from being encoded", () => {
  const files = rawFiles();
  const [name] = files.list("/db/t1").filter((name) => name.endsWith(".seg"));
  const file = files.open(`/db/t1/${name}`, "write");
  file.write([new Uint8Array(200).fill(0x55)], 20_000);
  file.close();
  const db = new Database(files);
  db.rest();
  assert.ok(db.repacked >= 33, `${db.repacked} segments`);
  assert.ok(!db.table.isPacked);
  db.close();
});

Deno.test("killed at any I/O point while older segments are encoded, all rows are there, and it comes to its end", () => {
  const seeded = rawFiles(1200), expected = new Database(seeded.copy()).open().rows();
  const whole = seeded.copy(), before = whole.points;
  const db = new Database(whole);
  db.rest();
  db.close();
  const { points } = whole;
  assert.ok(points - before > 50);
  for (let dieAt = before + 1; dieAt <= points; dieAt += 3) {
    const files = seeded.copy();
    files.faults.dieAt = files.points + dieAt - before;
    try {
      const dying = new Database(files);
      while (dying.store.isBusy && !files.died) dying.store.maintain(true);
      dying.close();
    } catch (error) {
      if (!(error instanceof Died)) throw error;
    }
    const left = dieAt % 2 === 0 ? files.afterKill() : files.afterPowerCut();
    const again = new Database(left).open();
    assert.deepEqual(again.rows(), expected, `killed at I/O point ${dieAt}`);
    again.rest();
    assert.deepEqual(again.encodings(0), ["frame"]);
    assert.deepEqual(again.rows(), expected);
    again.close();
  }
});
