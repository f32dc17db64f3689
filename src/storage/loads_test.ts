import assert from "node:assert/strict";
import type { AppendBatch } from "./contract.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap } from "./heap.ts";
import { Loads } from "./loads.ts";
import { packAppendBatch } from "./packed.ts";
import { batchOf, newTable } from "./test-rows.ts";
import { openTestStore } from "./test-store.ts";

const HOUR = 3_600_000_000n;
const heap = createHeap(48 << 20);
const batch = (...hours: (bigint | null)[]): AppendBatch =>
  batchOf({ 0: "TIMESTAMP" }, hours.map((hour) => ({ 0: hour === null ? null : hour * HOUR })));
const packed = (...hours: (bigint | null)[]) => packAppendBatch(batch(...hours));

/** Loads over a store that has an empty table of id 1. */
function setUp() {
  const files = new FaultyFiles({}, () => 0.5);
  const { store, catalogue } = openTestStore(heap, files);
  let checkpoints = 0;
  const loads = new Loads(store, () => {
    checkpoints++;
    store.checkpoints.make();
  });
  store.execute([{ kind: "createTable", table: newTable("old", { ts: "TIMESTAMP" }, "ts") }]);
  const rowCount = (name: string) => catalogue.table(name)?.rowCount;
  const beginTable = () => loads.execute({ kind: "beginLoad", table: newTable("new", { ts: "TIMESTAMP" }, "ts") })!;
  const beginAppend = () => loads.execute({ kind: "beginAppend", tableId: 1, columnIds: [0] })!;
  const add = (loadId: number, bytes: Uint8Array) => loads.execute({ kind: "load", loadId, packed: bytes });
  const end = (loadId: number) => loads.execute({ kind: "endLoad", loadId });
  return { files, store, loads, rowCount, beginTable, beginAppend, add, end, checkpoints: () => checkpoints };
}

Deno.test("Loads shows the rows of a new table, and of an existing one, at the end of their load only", () => {
  const { loads, store, rowCount, beginTable, beginAppend, add, end } = setUp();
  const table = beginTable(), rows = beginAppend();
  assert.deepEqual([table, rows, loads.newestStageId], [2, -1, -1]);
  for (const id of [table, rows]) {
    add(id, packed(1n, 2n));
    add(id, packed(5n, 3n, 0n));
    while (loads.execute({ kind: "prepareLoad", loadId: id }) === 1);
  }
  assert.deepEqual([rowCount("new"), rowCount("old")], [undefined, 0]);
  assert.equal(end(table), table);
  assert.deepEqual([rowCount("new"), rowCount("old")], [5, 0]);
  assert.equal(end(rows), 1);
  assert.deepEqual([rowCount("new"), rowCount("old")], [5, 5]);
  assert.equal(store.tables.get(table)!.isListed, true);
});

Deno.test("Loads makes a checkpoint for a table that no manifest lists, once", () => {
  const { beginAppend, add, end, checkpoints } = setUp();
  for (const hour of [1n, 2n]) {
    const rows = beginAppend();
    add(rows, packed(hour));
    end(rows);
  }
  assert.equal(checkpoints(), 1);
});

Deno.test("Loads numbers its loads apart, and a step that fails ends only its own", () => {
  const { loads, files, rowCount, beginTable, beginAppend, add, end } = setUp();
  const all = [beginTable(), beginAppend(), beginAppend()];
  assert.deepEqual(all, [2, -1, -2]);
  for (const id of all.slice(0, 2)) {
    assert.throws(() => add(id, packed(null)), /it is null/);
    for (const kind of ["prepareLoad", "endLoad"] as const) {
      assert.throws(() => loads.execute({ kind, loadId: id }), /has ended/);
    }
    assert.equal(loads.execute({ kind: "abortLoad", loadId: id }), undefined);
  }
  assert.equal(files.exists("/db/t2"), false);
  add(all[2], packed(7n));
  end(all[2]);
  assert.deepEqual([rowCount("new"), rowCount("old")], [undefined, 1]);
});

Deno.test("Loads refuses the name of a table that was created meanwhile", () => {
  const { store, files, rowCount, beginTable, add, end } = setUp();
  const first = beginTable(), second = beginTable();
  for (const id of [first, second]) add(id, packed(BigInt(id)));
  end(first);
  assert.throws(() => end(second), { sqlState: "42P07" });
  assert.equal(rowCount("new"), 1);
  assert.equal(files.exists(store.tables.get(first)!.directory), true);
  assert.equal(files.exists(`/db/t${second}`), false);
});

Deno.test("Loads seals the database if the files of a new table cannot be synced, and ends the load", () => {
  const { files, store, rowCount, beginTable, add, end } = setUp();
  const table = beginTable();
  add(table, packed(1n));
  files.faults.failSyncAt = files.syncs + 1;
  assert.throws(() => end(table));
  assert.equal(store.seal.isSet, true);
  assert.equal(rowCount("new"), undefined);
  assert.equal(files.exists(`/db/t${table}`), false);
});

Deno.test("Loads ends all loads with the store, and leaves nothing of them", () => {
  const { loads, files, rowCount, beginTable, beginAppend, add, end } = setUp();
  const all = [beginTable(), beginAppend()];
  for (const id of all) add(id, packed(1n));
  loads.abortAll();
  for (const id of all) assert.throws(() => end(id), /has ended/);
  assert.equal(files.exists("/db/t2"), false);
  assert.equal(rowCount("old"), 0);
});
