import assert from "node:assert/strict";
import type { Command, Outcome } from "./commands.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { packAppendBatch } from "./packed.ts";
import { batchOf, newTable } from "./test-rows.ts";
import { Opened, randomOf, testHeap } from "../../tests/faults/harness.ts";

const COLUMNS = { sym: "SYMBOL", note: "VARCHAR", ts: "TIMESTAMP" };
const TYPES = { 0: "SYMBOL", 1: "VARCHAR", 2: "TIMESTAMP" };
const DAY = 86_400_000_000;

const rowsOf = (times: number[], text: string) =>
  times.map((time, k) => ({ 0: `S${k % 3} ${text}`, 1: `${text} ${time}`, 2: BigInt(time) }));

function opened() {
  const db = new Opened(new FaultyFiles({}, randomOf(1)), testHeap(), randomOf(1));
  const run = (command: Command): Outcome => db.store.execute([command])[0];
  const done = (command: Command): number => {
    const { error, value } = run(command);
    assert.equal(error, undefined);
    return value!;
  };
  const tableId = done({ kind: "createTable", table: newTable("t", COLUMNS, "ts") });
  const append = (times: number[], text: string) =>
    done({ kind: "append", changes: [{ tableId, batches: [batchOf(TYPES, rowsOf(times, text))] }] });
  const begin = () => done({ kind: "beginAppend", tableId, columnIds: [0, 1, 2] });
  const packed = (times: number[], text: string) => packAppendBatch(batchOf(TYPES, rowsOf(times, text)));
  const load = (loadId: number, times: number[], text: string) =>
    done({ kind: "load", loadId, packed: packed(times, text) });
  const notes = () =>
    db.rows(db.catalogue.table("t")!).map(([sym, note]) => {
      assert.equal((sym as string).slice(3), (note as string).split(" ")[0]);
      return note;
    });
  return { db, run, done, tableId, append, begin, packed, load, notes };
}

Deno.test("staged rows are invisible until their commit, and lie in order with rows that came meanwhile", () => {
  const { done, append, begin, load, notes, db } = opened();
  append([DAY, DAY + 10, 2 * DAY], "a");
  const loadId = begin();
  load(loadId, [3 * DAY, DAY + 5, 0], "b");
  append([DAY + 6, 4 * DAY], "c");
  done({ kind: "checkpoint" });
  load(loadId, [DAY + 20, 5 * DAY], "b");
  const times = (...list: number[]) => list;
  assert.equal(notes().length, 5);
  done({ kind: "endLoad", loadId });
  const order = [
    ["b", 0],
    ["a", DAY],
    ["b", DAY + 5],
    ["c", DAY + 6],
    ["a", DAY + 10],
    ["b", DAY + 20],
    ["a", 2 * DAY],
    [
      "b",
      3 * DAY,
    ],
    ["c", 4 * DAY],
    ["b", 5 * DAY],
  ];
  const expected = order.map(([text, time]) => `${text} ${time}`);
  assert.deepEqual(notes(), expected);
  append(times(6 * DAY), "d");
  const after = new Opened(db.files.afterPowerCut(), testHeap(), randomOf(2));
  assert.deepEqual(after.rows(after.catalogue.table("t")!).map((row) => row[1]), [...expected, `d ${6 * DAY}`]);
});

Deno.test("staged rows of a load that is aborted, or whose table is dropped, leave neither rows nor memory", () => {
  const { db, run, done, append, begin, packed, load, notes, tableId } = opened();
  append([DAY], "a");
  done({ kind: "checkpoint" });
  const first = begin();
  load(first, [2 * DAY, 3 * DAY], "b");
  done({ kind: "abortLoad", loadId: first });
  assert.deepEqual(notes(), [`a ${DAY}`]);
  assert.match(String(run({ kind: "endLoad", loadId: first }).error), /has ended/);
  const second = begin();
  load(second, [2 * DAY], "b");
  done({ kind: "dropTable", tableId });
  const { error } = run({ kind: "load", loadId: second, packed: packed([DAY], "b") });
  assert.match(String(error), /dropped/);
  done({ kind: "checkpoint" });
  assert.equal(db.store.memory.tailBytes, 0);
});

Deno.test("staged rows keep to columns that were dropped and keys that were set before their commit", () => {
  const { done, append, begin, load, tableId, db } = opened();
  append([DAY], "a");
  const loadId = begin();
  load(loadId, [DAY, 2 * DAY, 2 * DAY], "b");
  done({ kind: "dropColumns", tableId, columnIds: [0] });
  done({ kind: "setOptions", tableId, options: { dedupKeys: [2] } });
  done({ kind: "endLoad", loadId });
  const rows = db.rows(db.catalogue.table("t")!);
  assert.deepEqual(rows.map((row) => row[0]), [`b ${DAY}`, `b ${2 * DAY}`]);
});

Deno.test("staged rows for which the disk has no space leave the table as it was", () => {
  const { run, done, append, begin, load, notes, db } = opened();
  append([DAY], "a");
  done({ kind: "checkpoint" });
  const loadId = begin();
  load(loadId, Array.from({ length: 5000 }, (_, k) => k * 1000), "b");
  db.files.faults.capacityBytes = db.files.usedBytes();
  assert.match(String(run({ kind: "endLoad", loadId }).error), /disk is full|space/i);
  db.files.faults.capacityBytes = undefined;
  assert.deepEqual(notes(), [`a ${DAY}`]);
  append([2 * DAY], "c");
  done({ kind: "checkpoint" });
  const after = new Opened(db.files.afterPowerCut(), testHeap(), randomOf(2));
  assert.deepEqual(after.rows(after.catalogue.table("t")!).map((row) => row[1]), [`a ${DAY}`, `c ${2 * DAY}`]);
});
