/** Whole partitions: moved by a change, and dropped by the time to live. */
import assert from "node:assert/strict";
import { crc32 } from "./bytes.ts";
import type { CatalogueMirror } from "./catalogue.ts";
import type { Command, Outcome } from "./commands.ts";
import type { PartitionSums } from "./contract.ts";
import { extentBytes } from "./datafile.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap } from "./heap.ts";
import { LIMITS } from "./packing.ts";
import type { PartitionUnit } from "../sql/plan.ts";
import { batchOf, newTable, rowIdsOf } from "./test-rows.ts";
import { openTestStore } from "./test-store.ts";
import { BLOCK_KIND, FLAG_LAST } from "./wal/format.ts";
import type { TableStore } from "./writer.ts";

const DAY = 86_400_000_000n;
const heap = createHeap(48 << 20);

class Database {
  readonly store: TableStore;
  readonly catalogue: CatalogueMirror;

  constructor(readonly files: FaultyFiles, clock: { days: bigint }, segmentRowsMax?: number) {
    ({ store: this.store, catalogue: this.catalogue } = openTestStore(heap, files, {
      checkpointLogBytes: 1 << 30,
      nowMicros: () => clock.days * DAY,
      evict: () => false,
      segmentRowsMax,
    }));
  }

  run(command: Command): Outcome {
    const [outcome] = this.store.execute([command]);
    return outcome;
  }

  do(command: Command): void {
    const { error } = this.run(command);
    if (error !== undefined) throw error;
  }

  append(...days: number[]): void {
    const rows = days.map((day) => ({ 0: BigInt(day) * DAY }));
    this.do({ kind: "append", changes: [{ tableId: 1, batches: [batchOf({ 0: "TIMESTAMP" }, rows)] }] });
  }

  /** Days since 1970. */
  get days(): number[] {
    this.do({ kind: "open", tableId: 1 });
    return this.catalogue.tableById(1)!.partitions().map(({ start }) => Number(start / DAY));
  }
}

const withTtl = { ...newTable("t", { ts: "TIMESTAMP" }, "ts"), ttl: { count: 2, unit: "DAY" } };

Deno.test("the time to live counts from the newest row, or from now if that row is in the future", () => {
  const clock = { days: 10n };
  const db = new Database(new FaultyFiles({}, () => 0.5), clock);
  db.do({ kind: "createTable", table: withTtl });
  db.append(1, 2, 3, 4, 5);
  assert.deepEqual(db.days, [3, 4, 5]);
  db.append(8, 9, 1000);
  assert.deepEqual(db.days, [8, 9, 1000]);
  clock.days = 12n;
  db.append(1000);
  assert.deepEqual(db.days, [1000]);
});

Deno.test("replay drops the same partitions as before, regardless of the clock", () => {
  const files = new FaultyFiles({}, () => 0.5);
  const db = new Database(files, { days: 10n });
  db.do({ kind: "createTable", table: withTtl });
  db.append(7, 8, 9, 1000);
  assert.deepEqual(db.days, [8, 9, 1000]);
  assert.deepEqual(new Database(files.afterKill(), { days: 2n }).days, [8, 9, 1000]);
});

Deno.test("a start drops partitions that have expired in the meantime", () => {
  const files = new FaultyFiles({}, () => 0.5);
  const db = new Database(files, { days: 10n });
  db.do({ kind: "createTable", table: withTtl });
  db.append(8, 9, 1000);
  assert.deepEqual(new Database(files.afterKill(), { days: 500n }).days, [1000]);
});

Deno.test("if one move of partitions is impossible, all are refused", () => {
  const db = new Database(new FaultyFiles({}, () => 0.5), { days: 0n });
  db.do({ kind: "createTable", table: newTable("t", { ts: "TIMESTAMP" }, "ts") });
  db.append(1, 2, 3);
  const moves = (
    from: "attached" | "detached",
    to: "attached" | "detached" | "nowhere",
    ...days: bigint[]
  ): Command => ({
    kind: "partitions",
    tableId: 1,
    moves: days.map((day) => ({ start: day * DAY, from, to })),
  });
  db.do(moves("attached", "detached", 2n));
  db.append(2);
  for (const refused of [moves("attached", "nowhere", 1n, 7n), moves("detached", "attached", 2n)]) {
    assert.match(String(db.run(refused).error), /Cannot move the partition/);
  }
  assert.deepEqual(db.days, [1, 2, 3]);
  db.do(moves("detached", "nowhere", 2n));
  assert.deepEqual(db.catalogue.tableById(1)!.detachedPartitions(), []);
});

Deno.test("a partition that is attached again has no values of columns that were dropped meanwhile", () => {
  for (const restarts of [false, true]) {
    let db = new Database(new FaultyFiles({}, () => 0.5), { days: 0n });
    db.do({ kind: "createTable", table: newTable("t", { ts: "TIMESTAMP", x: "LONG" }, "ts") });
    const rows = [1n, 1n, 2n].map((day) => ({ 0: day * DAY, 1: day }));
    db.do({ kind: "append", changes: [{ tableId: 1, batches: [batchOf({ 0: "TIMESTAMP", 1: "LONG" }, rows)] }] });
    const move = (from: "attached" | "detached", to: "attached" | "detached") =>
      db.do({ kind: "partitions", tableId: 1, moves: [{ start: DAY, from, to }] });
    const columnIds = () => [...db.store.tables.get(1)!.segments].map(({ chunks }) => Object.keys(chunks).map(Number));
    move("attached", "detached");
    move("detached", "attached");
    assert.deepEqual(columnIds(), [[0, 1], [0, 1]]);
    move("attached", "detached");
    db.do({ kind: "dropColumns", tableId: 1, columnIds: [1] });
    if (restarts) {
      db.do({ kind: "checkpoint" });
      db = new Database(db.files.afterKill(), { days: 0n });
      assert.deepEqual(db.days, [2]);
    }
    move("detached", "attached");
    assert.deepEqual(db.days, [1, 2]);
    const withValues = [...db.store.tables.get(1)!.segments].map(({ chunks }) => chunks[1]);
    assert.deepEqual(withValues, [undefined, undefined]);
    db.do({ kind: "checkpoint" });
  }
});

Deno.test("logs of format 2 drop expired partitions with the rows", () => {
  const files = new FaultyFiles({}, () => 0.5);
  const db = new Database(files, { days: -1_000_000n });
  db.do({ kind: "createTable", table: withTtl });
  db.append(1, 2, 3);
  db.append(8);
  // Format 2 has dropped the days before 6 by now, so that the first row is that of day 8.
  const info = { kind: BLOCK_KIND.delete, flags: FLAG_LAST, tableId: 1, schemaVersion: 0 };
  db.store.commits.write((log) => [log.add(info, [new Uint8Array(Float64Array.of(0).buffer)])]);
  const left = files.afterKill();
  const log = left.open("/db/log/0000000000000001.wal", "write");
  const header = new Uint8Array(64);
  log.read(header, 0);
  const view = new DataView(header.buffer);
  view.setUint32(24, 2, true);
  view.setUint32(4, crc32(header.subarray(8)), true);
  log.write([header], 0);
  const upgraded = new Database(left, { days: 10n });
  assert.deepEqual(upgraded.days, []);
  upgraded.append(9);
  assert.deepEqual(new Database(left.afterKill(), { days: 10n }).days, [9]);
  assert.deepEqual(left.list("/db/log").length, 2, "later blocks are in a file of the new format");
});

Deno.test("a checkpoint does not move small extents repeatedly", () => {
  const files = new FaultyFiles({}, () => 0.5);
  const db = new Database(files, { days: 0n });
  db.do({ kind: "createTable", table: newTable("t", { ts: "TIMESTAMP" }, "ts") });
  for (let round = 0; round < 3; round++) {
    db.append(...Array.from({ length: 100 }, (_, day) => 100 * round + day));
    db.do({ kind: "checkpoint" });
  }
  assert.deepEqual(files.list("/db/t1").filter((name) => name.endsWith(".seg")), ["d1.seg"]);
});

/** The last whole day of 64 bits of microseconds. */
const LAST_DAY = 106_751_990;

for (const [unit, count] of [["DAY", 11], ["YEAR", 2], ["NONE", 1]] as const) {
  const title = `partitions by ${unit} have the sums of their segments, in memory and on disk`;
  Deno.test(title, () => sumsAreRight(unit, count));
}

function sumsAreRight(unit: PartitionUnit, count: number): void {
  const files = new FaultyFiles({}, () => 0.5), limits = { ...LIMITS };
  Object.assign(LIMITS, { pageMin: 2, pageMax: 3, listMax: 3, listMin: 2 });
  try {
    const db = new Database(files, { days: 0n }, 2);
    db.do({ kind: "createTable", table: newTable("t", { ts: "TIMESTAMP" }, "ts", unit) });
    const check = (from: Database) => {
      from.do({ kind: "open", tableId: 1 });
      const snapshot = from.catalogue.tableById(1)!, expected = new Map<bigint, PartitionSums>();
      for (const { partition: start, rowCount, timestampMin, timestampMax, chunks } of snapshot.source([0]).segments) {
        const { file, sizeBytes, valueBytes } = chunks[0]!;
        const diskSizeBytes = file < 0 ? valueBytes : extentBytes(sizeBytes), sums = expected.get(start);
        const { version, format } = from.store.tables.get(1)!.segments.partition(start)!;
        const first = { start, version, format, rowCount, timestampMin, timestampMax, diskSizeBytes };
        if (sums === undefined) expected.set(start, first);
        else {
          sums.rowCount += rowCount;
          sums.timestampMax = timestampMax;
          sums.diskSizeBytes += diskSizeBytes;
        }
      }
      assert.deepEqual(snapshot.partitions().map(({ name: _, ...sums }) => sums), [...expected.values()]);
      return snapshot;
    };
    for (let round = 0; round < 4; round++) {
      db.append(...Array.from({ length: 40 }, (_, k) => (k < 20 ? 5 : k % 7) + round));
      check(db);
      db.do({ kind: "checkpoint" });
      check(db);
    }
    db.append(0, LAST_DAY, LAST_DAY);
    check(db);
    db.do({ kind: "checkpoint" });
    const [first, ...others] = check(db).partitions(), { segments } = db.store.tables.get(1)!;
    assert.equal(others.length, count - 1);
    const pages = [...segments.pages()].filter(({ first }) => first.partition === BigInt(5) * DAY || unit !== "DAY");
    assert.ok(pages.length > LIMITS.listMax, "a partition has several lists of pages");
    // Without rows a partition is gone.
    const rowIds = rowIdsOf(check(db), Array.from({ length: first.rowCount }, (_, row) => row));
    db.do({ kind: "delete", tableId: 1, batches: [{ rowIds, columns: [] }] });
    assert.deepEqual(check(db).partitions(), others);
    db.do({ kind: "checkpoint" });
    assert.deepEqual(check(new Database(files.afterKill(), { days: 0n }, 2)).partitions(), others);
  } finally {
    Object.assign(LIMITS, limits);
  }
}
