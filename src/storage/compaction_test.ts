import assert from "node:assert/strict";
import { Compaction } from "./compaction.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap } from "./heap.ts";
import { batchOf, newTable, readRows, rowIdsOf } from "./test-rows.ts";
import { openTestStore } from "./test-store.ts";

const TYPES = { 0: "TIMESTAMP", 1: "LONG" };
const rowsOf = (from: number, count: number) =>
  Array.from({ length: count }, (_, k) => ({ 0: BigInt(from + k), 1: BigInt((from + k) * 7919) }));

function database(checkpointStepMs?: number) {
  const files = new FaultyFiles({}, () => 0.5);
  const { store, catalogue, pool } = openTestStore(createHeap(48 << 20), files, {
    checkpointStepMs,
    checkpointLogBytes: 20_000,
    encoding: "raw",
    segmentRowsMax: 100,
    compactBytes: 1,
    compactStepBytes: 1_000,
  });
  const run = (command: Parameters<typeof store.execute>[0][number]) => {
    const [{ error }] = store.execute([command]);
    if (error !== undefined) throw error;
  };
  const append = (from: number, count: number) =>
    run({ kind: "append", changes: [{ tableId: 1, batches: [batchOf(TYPES, rowsOf(from, count))] }] });
  const remove = (from: number, count: number) => {
    const rowIds = rowIdsOf(catalogue.tableById(1)!, Array.from({ length: count }, (_, k) => from + k));
    run({ kind: "delete", tableId: 1, batches: [{ rowIds, columns: [] }] });
  };
  const rows = () => readRows(store.options.heap, pool, catalogue.tableById(1)!).map(([time]) => Number(time));
  run({ kind: "createTable", table: newTable("t", { ts: "TIMESTAMP", v: "LONG" }, "ts", "YEAR") });
  return { store, run, append, remove, rows, table: store.tables.get(1)!, files };
}

/** A table with a file of which most is dead. */
function sparseDatabase(checkpointStepMs?: number) {
  const db = database(checkpointStepMs);
  db.append(0, 5_000);
  db.run({ kind: "checkpoint" });
  db.remove(300, 4_000);
  return db;
}

Deno.test("a Compaction moves what is left in sparse files, step by step, while the table changes", () => {
  const { run, append, remove, rows, table, store, files } = sparseDatabase();
  const [sparse] = [...table.data.list.values()];
  const compaction = new Compaction(table, store.options);
  let steps = 0;
  while (compaction.step()) {
    store.publisher.touch(table);
    store.publisher.publish();
    // Late rows, new rows and deletes between the steps: each may touch segments that were moved or will be.
    append(20 * steps, 2);
    remove(2, 1);
    append(10_000 + steps++, 1);
  }
  assert.ok(steps > 5, `${steps} steps`);
  assert.equal(rows().length, 1_000 + 2 * steps);
  store.publisher.touch(table);
  store.publisher.publish();
  assert.equal(sparse.liveBytes, 0);
  const before = rows();
  run({ kind: "checkpoint" });
  assert.ok(!files.exists(sparse.path), "the file is removed");
  assert.deepEqual(rows(), before);
  run({ kind: "close" });
});

Deno.test("a table may be dropped between two steps of a checkpoint", () => {
  const { run, store } = sparseDatabase(0);
  const { size } = store.tables.get(1)!.data.list;
  store.maintain();
  assert.ok(store.isBusy && store.tables.get(1)!.data.list.size > size, "the compaction is under way");
  run({ kind: "dropTable", tableId: 1 });
  while (store.isBusy) store.maintain();
  assert.ok(!store.seal.isSet);
  run({ kind: "close" });
});
