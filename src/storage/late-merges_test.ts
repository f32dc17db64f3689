import assert from "node:assert/strict";
import type { Value } from "../types/mod.ts";
import { FULL, randomOf, SEED } from "../testing.ts";
import type { ColumnStats } from "./contract.ts";
import type { Command } from "./commands.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap, type SharedHeap } from "./heap.ts";
import { MERGE_HELP } from "./late-merges.ts";
import type { Mergers } from "./mergers.ts";
import { MergeWorker, SharedMergers } from "./merge-jobs.ts";
import { SharedPool } from "./pool.ts";
import { TestMergers } from "./test-mergers.ts";
import { batchOf, newTable, readRows, rowIdsOf } from "./test-rows.ts";
import { openTestStore, type TestStore } from "./test-store.ts";

Object.assign(MERGE_HELP, { bytesMin: 0, skipped: 0 });

const COLUMNS = { ts: "TIMESTAMP", x: "LONG", s: "VARCHAR", y: "SYMBOL", d: "DOUBLE", i: "INT", b: "BOOLEAN" };
const TYPES = { 0: "TIMESTAMP", 1: "LONG", 2: "VARCHAR", 3: "SYMBOL", 4: "DOUBLE", 5: "INT", 6: "BOOLEAN" };
const heap = createHeap(64 << 20);

type Random = (below: number) => number;

/** Calls `action` with numbers from a generator, each time from another seed. */
function forRandom(runs: number, action: (random: Random) => void): void {
  for (let run = 0; run < runs; run++) {
    try {
      action(randomOf(SEED + run));
    } catch (error) {
      throw new Error(`SEED=${SEED}, run ${run}`, { cause: error });
    }
  }
}

interface Database extends TestStore {
  run(command: Command): void;
  rows(): Value[][];
}

/** `mergersOf`: undefined: the writer merges alone. */
function opened(memory: SharedHeap, mergersOf?: (files: FaultyFiles) => Mergers): Database {
  const files = new FaultyFiles({}, () => 0.5);
  const { store, catalogue, pool } = openTestStore(memory, files, {
    mergers: mergersOf?.(files),
    memoryBytes: 60_000,
    segmentRowsMax: 40,
  });
  const run = (command: Command) => {
    const [{ error }] = store.execute([command]);
    if (error !== undefined) throw error;
  };
  const rows = () => readRows(memory, pool, catalogue.tableById(1)!);
  const db: Database = { store, catalogue, pool, run, rows };
  run({ kind: "createTable", table: newTable("t", COLUMNS, "ts", "HOUR") });
  return db;
}

function rowOf(random: Random, time: number): Record<number, Value> {
  const n = random(1000), text = random(20) === 0 ? "x".repeat(random(3000)) : `text ${n}`;
  return {
    0: BigInt(time),
    1: n % 9 === 0 ? null : BigInt(n) * 2n ** 40n,
    2: n % 7 === 0 ? null : text,
    3: n % 5 === 0 ? null : `s${n % 20}`,
    4: n % 6 === 0 ? null : n === 500 ? -0 : n / 8,
    5: n % 4 === 0 ? null : n - 500,
    6: n & 1,
  };
}

const valuesOf = ({ nullCount, min, max, sum }: ColumnStats) => [nullCount, min, max, sum];

/** Statistics of all chunks, which queries rely on. */
function statsOf({ store }: Database) {
  return [...store.tables.get(1)!.segments].map(({ rowCount, timestampMin, timestampMax, chunks }) => (
    {
      rowCount,
      timestampMin,
      timestampMax,
      stats: Object.keys(TYPES).map((id) => chunks[Number(id)] && valuesOf(chunks[Number(id)]!.plain.stats)),
    }
  ));
}

const HOUR = 3_600_000_000, HOURS = 5;

/** Commands with late rows into all partitions. "delete": of some rows. */
function script(random: Random): (Command | "delete")[] {
  const append = (count: number, types: Record<number, string> = TYPES): Command => {
    const times = Array.from({ length: count }, () => random(HOURS) * HOUR + random(60));
    const batch = batchOf(types, times.map((time) => rowOf(random, time)));
    return { kind: "append", changes: [{ tableId: 1, batches: [batch] }] };
  };
  const next = [
    ...Array.from({ length: 6 }, () => () => append(1 + random(100))),
    () => append(1 + random(100), { 0: "TIMESTAMP", 5: "INT" }),
    (): Command => ({ kind: "checkpoint" }),
    () => "delete" as const,
  ];
  return [append(random(2) === 0 ? 400 : 40, random(2) === 0 ? TYPES : { 0: "TIMESTAMP", 1: "LONG" })]
    .concat(Array.from({ length: 12 }, () => next[random(next.length)]() as Command));
}

/** Runs the script, and returns what the table has after each command. `mergers`: undefined: the writer merges alone. */
function statesOf(
  random: Random,
  mergersOf?: (files: FaultyFiles) => TestMergers,
): { found: unknown[]; merged: number } {
  let mergers: TestMergers | undefined;
  const db: Database = opened(heap, mergersOf && ((files) => mergers = mergersOf(files)));
  const found = script(random).map((command) => {
    if (command === "delete") {
      const places = Array.from({ length: Math.min(5, db.store.tables.get(1)!.rowCount >> 3) }, (_, k) => 7 * k);
      const rowIds = rowIdsOf(db.catalogue.tableById(1)!, places);
      db.run({ kind: "delete", tableId: 1, batches: [{ rowIds, columns: [] }] });
    } else db.run(command);
    const state = [db.rows(), statsOf(db)];
    db.store.maintain();
    return state;
  });
  mergers?.finish();
  db.store.maintain();
  db.run({ kind: "truncate", tableId: 1 });
  db.store.maintain();
  assert.equal(db.store.memory.tailBytes, 0, "no memory of segments is left");
  db.run({ kind: "close" });
  return { found, merged: mergers?.merged ?? 0 };
}

Deno.test("late rows that other threads merge, also if these fail or are slow, are those that the writer merges alone", () => {
  let merged = 0;
  forRandom(FULL ? 30 : 15, (random) => {
    const seed = random(1 << 30), thread = randomOf(seed + 1);
    const number = () => thread(1 << 20) / (1 << 20);
    const alone = statesOf(randomOf(seed));
    const together = statesOf(randomOf(seed), (files) => new TestMergers(heap, files, number));
    assert.deepEqual(together.found, alone.found);
    merged += together.merged;
  });
  assert.ok(merged > 50, `${merged} merges`);
});

Deno.test("a commit does not wait for a thread that has begun and does nothing more", () => {
  let worker: MergeWorker | undefined;
  const db: Database = opened(heap, (files) =>
    new SharedMergers(heap, {
      hasIdle: () => true,
      wakeIdle: () => (worker ??= new MergeWorker(heap, 0, new SharedPool(heap, files))).step(),
    }));
  const random = randomOf(7);
  const append = (from: number, count: number) => {
    const rows = Array.from({ length: count }, (_, k) => rowOf(random, (k % HOURS) * HOUR + from + k));
    db.run({ kind: "append", changes: [{ tableId: 1, batches: [batchOf(TYPES, rows)] }] });
  };
  append(1000, 600);
  append(1010, 50);
  assert.equal(db.rows().length, 650);
  const used = heap.usedBytes();
  assert.ok(worker!.step(), "it goes on with what nobody needs any more");
  while (worker!.step());
  db.store.maintain();
  assert.ok(heap.usedBytes() < used, "its memory is freed when it ends");
  assert.deepEqual(
    db.rows().map(([time]) => time),
    db.rows().map(([time]) => time as bigint).sort((a, b) => a < b ? -1 : 1),
  );
  db.run({ kind: "close" });
});

Deno.test("after a commit of which others did little, the writer merges some alone", () => {
  MERGE_HELP.skipped = 2;
  try {
    const offered: number[] = [];
    let wakes = 0;
    // It is woken, and does nothing.
    const db = opened(heap, () => new SharedMergers(heap, { hasIdle: () => true, wakeIdle: () => (wakes++, true) }));
    const random = randomOf(5);
    for (let k = 0; k < 8; k++) {
      const times = Array.from({ length: k === 0 ? 400 : 20 }, () => random(HOURS) * HOUR + random(60));
      const batch = batchOf(TYPES, times.map((time) => rowOf(random, time)));
      wakes = 0;
      db.run({ kind: "append", changes: [{ tableId: 1, batches: [batch] }] });
      offered.push(Math.min(1, wakes));
    }
    assert.deepEqual(offered, [0, 1, 0, 0, 1, 0, 0, 1]);
    assert.equal(db.rows().length, 540);
    db.run({ kind: "close" });
  } finally {
    MERGE_HELP.skipped = 0;
  }
});

Deno.test("a thread that cannot read the files leaves its merges to the writer", () => {
  const broken = Object.assign(new FaultyFiles({}, () => 0.5), {
    open() {
      throw new Error("ENOENT");
    },
  });
  const worker = new MergeWorker(heap, 0, new SharedPool(heap, broken));
  let jobs = 0;
  const threads = { hasIdle: () => true, wakeIdle: () => (worker.step() && jobs++, true) };
  const db = opened(heap, () => new SharedMergers(heap, threads)), random = randomOf(3);
  for (const count of [400, 50, 50]) {
    const times = Array.from({ length: count }, () => random(HOURS) * HOUR + random(60));
    const batch = batchOf(TYPES, times.map((time) => rowOf(random, time)));
    db.run({ kind: "append", changes: [{ tableId: 1, batches: [batch] }] });
    db.run({ kind: "checkpoint" });
  }
  assert.ok(jobs > 0);
  const times = db.rows().map(([time]) => time as bigint);
  assert.equal(times.length, 500);
  assert.deepEqual(times, times.toSorted((a, b) => a < b ? -1 : 1));
  db.run({ kind: "close" });
});

Deno.test("without memory for late rows nothing of them is left, whoever merges", () => {
  const small = createHeap(12 << 20);
  let failures = 0;
  forRandom(FULL ? 5 : 2, (random) => {
    let thread: TestMergers;
    const number = () => random(1 << 20) / (1 << 20);
    const db: Database = opened(small, (files) => thread = new TestMergers(small, files, number));
    for (let k = 0; k < 20; k++) {
      const before = db.rows();
      const times = Array.from({ length: 100 + random(400) }, () => random(HOURS) * HOUR + random(600));
      const rows = times.map((time) => ({ ...rowOf(random, time), 2: "x".repeat(random(1500)) }));
      const change = { tableId: 1, batches: [batchOf(TYPES, rows)] };
      const [{ error }] = db.store.execute([{ kind: "append", changes: [change] }]);
      if (error === undefined) continue;
      assert.match((error as Error).message, /^Cannot take the rows/);
      assert.deepEqual(db.rows(), before);
      failures++;
    }
    thread!.finish();
    db.store.maintain();
    db.run({ kind: "truncate", tableId: 1 });
    db.store.maintain();
    assert.equal(db.store.memory.tailBytes, 0, "no memory of segments is left");
    db.run({ kind: "close" });
  });
  assert.ok(failures > 5, `${failures} failures`);
});
