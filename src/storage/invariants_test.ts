/** The invariants of storage that `docs/architecture/storage.md` lists, as far as no other test of this layer is about them. */
import assert from "node:assert/strict";
import type { CatalogueMirror } from "./catalogue.ts";
import type { Command } from "./commands.ts";
import type { TableSnapshot } from "./contract.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap } from "./heap.ts";
import type { SharedPool } from "./pool.ts";
import { readManifest } from "./manifest-files.ts";
import { LIMITS } from "./packing.ts";
import { batchOf, newTable, readRows, rowIdsOf } from "./test-rows.ts";
import { openTestStore } from "./test-store.ts";
import type { TableStore } from "./writer.ts";
import { randomOf, SEED } from "../testing.ts";

// So that few rows have many pages and lists.
Object.assign(LIMITS, { pageMin: 2, pageMax: 3, listMax: 3, listMin: 2 });

const DAY = 86_400_000_000n;
const TYPES = { 0: "TIMESTAMP", 1: "LONG" };
const heap = createHeap(48 << 20);

class Database {
  readonly store: TableStore;
  readonly catalogue: CatalogueMirror;
  private readonly pool: SharedPool;

  constructor(readonly files: FaultyFiles, segmentRowsMax = 4) {
    ({ store: this.store, catalogue: this.catalogue, pool: this.pool } = openTestStore(heap, files, {
      checkpointLogBytes: 1 << 30,
      segmentRowsMax,
    }));
  }

  /** A table of a row an hour for 20 days, in which `x` is the number of the row. */
  static make(files: FaultyFiles): Database {
    const db = new Database(files);
    db.do({ kind: "createTable", table: newTable("t", { ts: "TIMESTAMP", x: "LONG" }, "ts") });
    db.append(Array.from({ length: 480 }, (_, hour) => [hour, hour]));
    return db;
  }

  do(command: Command): void {
    const [{ error }] = this.store.execute([command]);
    if (error !== undefined) throw error;
  }

  /** Rows of an hour since 1970 and a value of `x`. */
  append(rows: number[][]): void {
    const batch = batchOf(TYPES, rows.map(([hour, x]) => ({ 0: BigInt(hour) * DAY / 24n, 1: BigInt(x) })));
    this.do({ kind: "append", changes: [{ tableId: 1, batches: [batch] }] });
  }

  delete(rowIds: BigInt64Array): void {
    this.do({ kind: "delete", tableId: 1, batches: [{ rowIds, columns: [] }] });
  }

  update(rowIds: BigInt64Array, x: number): void {
    const { columns } = batchOf({ 1: "LONG" }, Array.from(rowIds, () => ({ 1: BigInt(x) })));
    this.do({ kind: "update", tableId: 1, batches: [{ rowIds, columns }] });
  }

  get snapshot() {
    this.do({ kind: "open", tableId: 1 });
    return this.catalogue.tableById(1)!;
  }

  rowIds(...ordinals: number[]): BigInt64Array {
    return rowIdsOf(this.snapshot, ordinals);
  }

  get x(): number[] {
    return this.xOf(this.snapshot);
  }

  xOf(snapshot: TableSnapshot): number[] {
    return readRows(heap, this.pool, snapshot, [1]).map(([x]) => Number(x));
  }

  /** Bytes that the table uses of each data file. */
  get liveBytes(): [file: number, bytes: number][] {
    return [...this.store.tables.get(1)!.data.list.values()].map(({ id, liveBytes }) => [id, liveBytes]);
  }
}

const hours = (count: number) => Array.from({ length: count }, (_, hour) => hour);

Deno.test("a list of pages that was not read counts the same bytes of data files as its pages", () => {
  const files = new FaultyFiles({}, () => 0.5);
  const db = Database.make(files);
  db.do({ kind: "checkpoint" });
  db.append([[30, 1000], [200, 1001], [470, 1002]]);
  db.delete(db.rowIds(5, 100, 101, 102, 103, 300));
  db.do({ kind: "checkpoint" });
  assert.ok(db.store.tables.get(1)!.segments.lists.length > 10);
  db.do({ kind: "close" });
  const { liveBytes } = db;
  const opened = new Database(files.afterKill());
  opened.do({ kind: "open", tableId: 1 });
  const { segments } = opened.store.tables.get(1)!;
  assert.equal(segments.lists.filter(({ isRead }) => isRead).length, 1, "only the last list is read");
  assert.deepEqual(opened.liveBytes, liveBytes);
  opened.do({ kind: "truncate", tableId: 1 });
  assert.ok(opened.liveBytes.every(([, bytes]) => bytes === 0));
});

Deno.test("row ids name the same rows after inserts elsewhere, flushes and checkpoints, and are refused for rows that were changed", () => {
  const db = Database.make(new FaultyFiles({}, () => 0.5));
  const rowIds = db.rowIds(100, 101, 400);
  db.append([[10, 1000], [200, 1001]]);
  db.do({ kind: "checkpoint" });
  db.append([[480, 480]]);
  db.do({ kind: "checkpoint" });
  db.update(rowIds, -1);
  const expected = hours(481).map((x) => [100, 101, 400].includes(x) ? -1 : x);
  expected.splice(201, 0, 1001);
  expected.splice(11, 0, 1000);
  assert.deepEqual(db.x, expected);
  assert.throws(() => db.delete(rowIds), { sqlState: "40001" });
});

Deno.test("replay of updates and deletes does not depend on where segments begin and end", () => {
  const files = new FaultyFiles({}, () => 0.5);
  const db = Database.make(files);
  db.do({ kind: "checkpoint" });
  db.append([[30, 1000], [31, 1001], [200, 1002]]);
  db.delete(db.rowIds(5, 31, 250));
  db.append([[5, 1003], [250, 1004]]);
  db.update(db.rowIds(6, 30, 251, 400), -1);
  db.delete(db.rowIds(0, 30));
  const { x } = db;
  for (const segmentRowsMax of [3, 4, 1000]) assert.deepEqual(new Database(files.afterKill(), segmentRowsMax).x, x);
});

Deno.test("a data file stays while a reader is pinned to a version that lists it, or files are being copied", () => {
  const files = new FaultyFiles({}, () => 0.5);
  const db = Database.make(files);
  db.do({ kind: "checkpoint" });
  const isThere = () => files.exists("/db/t1/d1.seg");
  const release = db.catalogue.pin();
  db.do({ kind: "truncate", tableId: 1 });
  db.append([[0, 0]]);
  // Nothing more goes to the file, so that it can be removed.
  for (const file of db.store.tables.get(1)!.data.list.values()) file.full = true;
  db.do({ kind: "checkpoint" });
  db.append([[1, 1]]);
  db.do({ kind: "checkpoint" });
  db.store.maintain();
  assert.ok(isThere());
  db.do({ kind: "hold" });
  release();
  db.store.maintain();
  assert.ok(isThere());
  db.do({ kind: "release" });
  db.store.maintain();
  assert.ok(!isThere());
});

/** Rows of a table with a symbol column, in which `x` numbers the rows. */
class Symbols extends Database {
  private next = 0;

  static override make(files: FaultyFiles): Symbols {
    const db = new Symbols(files);
    db.do({ kind: "createTable", table: newTable("t", { ts: "TIMESTAMP", x: "LONG", s: "SYMBOL" }, "ts") });
    return db;
  }

  /** Opens what is left. */
  again(isKilled: boolean): Symbols {
    if (!isKilled) this.do({ kind: "close" });
    const db = new Symbols(this.files.afterKill());
    db.next = this.next;
    db.do({ kind: "open", tableId: 1 });
    return db;
  }

  add(hours: readonly number[]): void {
    const rows = hours.toSorted((a, b) => a - b).map((hour) => {
      const x = this.next++;
      return { 0: BigInt(hour) * DAY / 24n, 1: BigInt(x), 2: `s${x % 7 + Math.floor(x / 50)}` };
    });
    const batch = batchOf({ ...TYPES, 2: "SYMBOL" }, rows);
    this.do({ kind: "append", changes: [{ tableId: 1, batches: [batch] }] });
  }

  move(start: bigint, from: "attached" | "detached", to: "attached" | "detached" | "nowhere"): void {
    this.do({ kind: "partitions", tableId: 1, moves: [{ start, from, to }] });
  }

  get table() {
    return this.store.tables.get(1)!;
  }

  /** By start and version: the rows of the partition. */
  get versions(): Map<string, string> {
    const { x } = this;
    return new Map(
      Array.from(this.table.segments.partitions(), ({ partition, version, firstRow, rowCount }) => {
        assert.ok(version > 0);
        return [`${partition} ${version}`, x.slice(firstRow, firstRow + rowCount).join()];
      }),
    );
  }
}

Deno.test("a version of a partition that was stored has the same rows after restarts, and its symbols and columns are stored with it", () => {
  for (let seed = SEED; seed < SEED + 6; seed++) {
    const random = randomOf(seed);
    const stored = new Map<string, string>();
    let db = Symbols.make(new FaultyFiles({}, () => 0.5));
    const check = () => {
      for (const [version, rows] of db.versions) {
        const known = stored.get(version);
        if (known !== undefined) assert.equal(rows, known, `SEED=${seed}: the rows of version ${version}`);
      }
    };
    const checkpoint = () => {
      db.do({ kind: "checkpoint" });
      check();
      for (const [version, rows] of db.versions) stored.set(version, rows);
      const { manifest } = readManifest(db.files, "/db/t1", 0), { head } = manifest;
      const codes = new Map(head.dictionaries.map(({ columnId, count }) => [columnId, count]));
      const { table } = db, numbers: number[] = [];
      for (const segments of [table.segments, ...table.detached.values()]) {
        for (const { version } of segments.partitions()) numbers.push(version);
        for (const { chunks } of segments) {
          assert.ok(chunks.length <= head.nextColumnId);
          const max = chunks[2]?.plain.stats.max;
          assert.ok(max === undefined || Number(max) < codes.get(2)!, "the dictionary that is stored has the symbols");
        }
      }
      assert.ok(Math.max(0, ...numbers) < head.nextVersion!, "no version of the manifest will be given again");
    };
    for (let step = 0; step < 60; step++) {
      const { rowCount } = db.snapshot, first = db.table.segments.bounds?.[0].partition;
      switch (random(8)) {
        case 0:
        case 1:
        case 2:
          db.add(Array.from({ length: 1 + random(30) }, () => random(random(3) > 0 ? 24 * 8 : 24)));
          break;
        case 3:
          if (rowCount > 0) db.delete(db.rowIds(random(rowCount)));
          break;
        case 4:
          if (rowCount > 0) db.update(db.rowIds(random(rowCount)), -step);
          break;
        case 5: {
          const [there] = db.table.detached.keys();
          if (there !== undefined) {
            const isFree = db.table.segments.partition(there) === undefined;
            db.move(there, "detached", isFree ? "attached" : "nowhere");
          } else if (first !== undefined) db.move(first, "attached", "detached");
          break;
        }
        case 6:
          checkpoint();
          break;
        default:
          db = db.again(random(2) > 0);
          check();
      }
    }
    checkpoint();
    assert.ok(stored.size > 10);
  }
});

Deno.test("a version of a partition holds its extents until it is dropped by the table and by all readers", () => {
  const files = new FaultyFiles({}, () => 0.5), db = Database.make(files);
  const add = (hour: number) => db.append([[hour, hour]]);
  db.do({ kind: "checkpoint" });
  const { data } = db.store.tables.get(1)!, start = 3n * DAY;
  const bytes = () => [...data.list.values()].reduce((sum, { liveBytes }) => sum + liveBytes, 0);
  const move = (from: "attached" | "detached", to: "attached" | "detached" | "nowhere") =>
    db.do({ kind: "partitions", tableId: 1, moves: [{ start, from, to }] });
  const moved = (from: "attached" | "detached", to: "attached" | "detached") => {
    const before = chunkBytes();
    move(from, to);
    db.do({ kind: "checkpoint" });
    assert.equal(chunkBytes(), before, `${from} to ${to}`);
  };
  /** Bytes of the chunks of the table and of its detached partitions. */
  const chunkBytes = () => {
    const { segments, detached } = db.store.tables.get(1)!;
    return [segments, ...detached.values()].flatMap((each) => [...each.pages()])
      .flatMap(({ fileBytes }) => fileBytes.map(([, bytes]) => bytes)).reduce((sum, bytes) => sum + bytes, 0);
  };
  moved("attached", "detached");
  moved("detached", "attached");
  // A reader sees the former version, although the table has changed all of it.
  const snapshot = db.snapshot, release = db.catalogue.pin(), before = bytes();
  move("attached", "nowhere");
  assert.ok(bytes() < before, "what the table has given up is not counted");
  for (const file of data.list.values()) file.full = true;
  add(1000);
  db.do({ kind: "truncate", tableId: 1 });
  db.do({ kind: "checkpoint" });
  db.store.maintain();
  assert.deepEqual(db.xOf(snapshot), hours(480), "a reader is pinned to the version");
  assert.ok(files.exists("/db/t1/d1.seg"));
  release();
  add(1001);
  db.do({ kind: "checkpoint" });
  db.store.maintain();
  assert.ok(!files.exists("/db/t1/d1.seg"));
});
