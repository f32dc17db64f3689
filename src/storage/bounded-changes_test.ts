/** Changes of a table that is larger than the shared memory. */
import assert from "node:assert/strict";
import type { Command } from "./commands.ts";
import type { AppendBatch } from "./contract.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap, HeapFullError, SharedHeap } from "./heap.ts";
import { newTable, readRows, rowIdsOf } from "./test-rows.ts";
import { openTestStore } from "./test-store.ts";

const ROWS = 600_000, STEP = 100_000;
const COLUMNS = { ts: "TIMESTAMP", a: "LONG", b: "LONG" };
/** One row a second, so that all are in one partition. */
const SECOND = 1_000_000n;
const heap = createHeap(8 << 20);

function open(files: FaultyFiles) {
  const { store, catalogue } = openTestStore(heap, files, { memoryBytes: 1 << 20, compactBytes: 1 << 30 });
  const run = (command: Command): void => {
    const [{ error }] = store.execute([command]);
    if (error !== undefined) throw error;
    store.maintain();
  };
  return { store, catalogue, run };
}

const longs = (from: number, count: number, valueOf: (k: number) => bigint) =>
  new Uint8Array(BigInt64Array.from({ length: count }, (_, k) => valueOf(from + k)).buffer);

function batch(from: number, count: number, timeOf: (k: number) => bigint): AppendBatch {
  const columns = [0, 1, 2].map((columnId) => ({
    columnId,
    values: longs(from, count, columnId === 0 ? timeOf : BigInt),
  }));
  return { rowCount: count, columns };
}

/** A table of `ROWS` rows that are on disk. */
function opened() {
  const db = open(new FaultyFiles({}, () => 0.5));
  db.run({ kind: "createTable", table: newTable("t", COLUMNS, "ts", "YEAR") });
  for (let from = 0; from < ROWS; from += STEP) append(db, batch(from, STEP, (k) => BigInt(k) * SECOND));
  db.run({ kind: "checkpoint" });
  return db;
}

type Database = ReturnType<typeof open>;

function append({ run }: Database, rows: AppendBatch): void {
  run({ kind: "append", changes: [{ tableId: 1, batches: [rows] }] });
}

/** Every `step`-th row. */
function idsOf({ catalogue }: Database, step: number): BigInt64Array {
  return rowIdsOf(catalogue.tableById(1)!, Array.from({ length: ROWS / step }, (_, k) => k * step));
}

/** Number of rows, and the sum of column `a`. */
function totals({ store }: Database): [number, bigint] {
  const { segments } = store.tables.get(1)!;
  return [
    segments.rowCount,
    segments.slice().reduce((sum, { chunks }) => sum + BigInt(chunks[1]!.plain.stats.sum!), 0n),
  ];
}

const SUM = BigInt(ROWS) * BigInt(ROWS - 1) / 2n;

const changes = [
  {
    title: "an UPDATE",
    change: (db: Database) =>
      db.run({
        kind: "update",
        tableId: 1,
        batches: [{
          rowIds: idsOf(db, 1),
          columns: [1, 2].map((columnId) => ({ columnId, values: longs(0, ROWS, (k) => BigInt(k + 1)) })),
        }],
      }),
    after: [ROWS, SUM + BigInt(ROWS)],
  },
  {
    title: "a DELETE",
    change: (db: Database) => db.run({ kind: "delete", tableId: 1, batches: [{ rowIds: idsOf(db, 3), columns: [] }] }),
    after: [2 * ROWS / 3, SUM - 3n * BigInt(ROWS / 3) * BigInt(ROWS / 3 - 1) / 2n],
  },
  {
    title: "late rows",
    change: (db: Database) => append(db, batch(0, 1000, (k) => BigInt(k) * SECOND * BigInt(ROWS / 1000))),
    after: [ROWS + 1000, SUM + 999n * 500n],
  },
];

for (const { title, change, after } of changes) {
  Deno.test(`${title} of a table that is larger than memory, and its replay`, () => {
    const db = opened();
    change(db);
    assert.deepEqual(totals(db), after);
    const next = open((db.store.options.files as FaultyFiles).afterKill());
    next.run({ kind: "open", tableId: 1 });
    assert.deepEqual(totals(next), after);
  });
}

/** The heap has no block any more from the `count`-th allocation on, until it is asked again. */
function full(count: number): { isFull: boolean } & Disposable {
  const state = { isFull: true, [Symbol.dispose]: () => void Reflect.deleteProperty(heap, "allocate") };
  heap.allocate = (sizeBytes, tag) => {
    if (state.isFull && --count < 0) throw new HeapFullError("no free block");
    return SharedHeap.prototype.allocate.call(heap, sizeBytes, tag);
  };
  return state;
}

Deno.test("opening a table that runs out of memory at any point can be repeated", () => {
  const open = (files: FaultyFiles) =>
    openTestStore(heap, files, { memoryBytes: 60_000, segmentRowsMax: 8, compactBytes: 1 << 30 });
  const { store, catalogue } = open(new FaultyFiles({}, () => 0.5));
  const run = (command: Command) => assert.equal(store.execute([command])[0].error, undefined);
  const appended = (from: number, count: number): Command => ({
    kind: "append",
    changes: [{ tableId: 1, batches: [batch(from, count, (k) => BigInt(k) * SECOND)] }],
  });
  run({ kind: "createTable", table: newTable("t", COLUMNS, "ts", "YEAR") });
  run(appended(0, 20));
  // Rows in front of and behind it are applied separately.
  run({ kind: "delete", tableId: 1, batches: [{ rowIds: rowIdsOf(catalogue.tableById(1)!, [0]), columns: [] }] });
  run(appended(20, 80));
  const files = store.options.files as FaultyFiles;
  for (let count = 1, isOpened = false; !isOpened; count++) {
    const { store, catalogue, pool } = open(files.copy());
    using memory = full(count);
    const opening: Command = { kind: "open", tableId: 1 };
    isOpened = store.execute([opening])[0].error === undefined;
    memory.isFull = false;
    assert.equal(store.execute([opening])[0].error, undefined);
    const rows = readRows(heap, pool, catalogue.tableById(1)!, [1]);
    assert.deepEqual(rows.map(([a]) => Number(a)), Array.from({ length: 99 }, (_, k) => k + 1), `${count} allocations`);
  }
});
