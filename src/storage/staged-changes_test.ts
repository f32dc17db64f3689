import assert from "node:assert/strict";
import type { Command, Outcome } from "./commands.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { packAppendBatch } from "./packed.ts";
import { batchOf, newTable, rowIdsOf } from "./test-rows.ts";
import { Opened, randomOf, testHeap } from "../../tests/faults/harness.ts";

const TYPES = { 0: "SYMBOL", 1: "VARCHAR", 2: "TIMESTAMP" };
const DAY = 86_400_000_000;

/** A table of a row a day, whose note is the number of the day. */
function opened(days: number) {
  const db = new Opened(new FaultyFiles({}, randomOf(1)), testHeap(), randomOf(1));
  const run = (command: Command): Outcome => db.store.execute([command])[0];
  const done = (command: Command): number => {
    const { error, value } = run(command);
    assert.equal(error, undefined);
    return value!;
  };
  const columns = { sym: "SYMBOL", note: "VARCHAR", ts: "TIMESTAMP" };
  const tableId = done({ kind: "createTable", table: newTable("t", columns, "ts", "MONTH") });
  const rowsOf = (list: number[]) => list.map((day) => ({ 0: `S${day % 3}`, 1: `${day}`, 2: BigInt(day * DAY) }));
  const append = (...list: number[]) =>
    done({ kind: "append", changes: [{ tableId, batches: [batchOf(TYPES, rowsOf(list))] }] });
  append(...Array.from({ length: days }, (_, day) => day));
  const table = () => db.catalogue.table("t")!;
  const ids = (...ordinals: number[]) => rowIdsOf(table(), ordinals);
  const begin = (change: "update" | "delete") =>
    done({ kind: "beginChange", tableId, change, columnIds: change === "update" ? [1] : [] });
  /** `note`: of an update. */
  const batch = (rowIds: BigInt64Array, note?: string) => {
    const rows = Array.from(rowIds, () => ({ 1: note ?? null }));
    const { columns } = batchOf(note === undefined ? {} : { 1: "VARCHAR" }, rows);
    const values = new Uint8Array(rowIds.buffer);
    return packAppendBatch({ rowCount: rows.length, columns: [...columns, { columnId: -1, values }] });
  };
  const load = (loadId: number, rowIds: BigInt64Array, note?: string) =>
    done({ kind: "load", loadId, packed: batch(rowIds, note) });
  const notes = (from = db) => from.rows(from.catalogue.table("t")!).map((row) => row[1]).join(" ");
  /** What a process finds after a power cut. */
  const reopened = () => new Opened(db.files.afterPowerCut(), testHeap(), randomOf(2));
  return { db, run, done, tableId, append, ids, begin, batch, load, notes, reopened };
}

Deno.test("staged changes are invisible until their commit, and leave what is changed elsewhere meanwhile", () => {
  const { done, append, ids, begin, load, notes, reopened } = opened(40);
  const loadId = begin("update");
  load(loadId, ids(9, 2), "x");
  append(60, 61);
  load(loadId, ids(3, 31), "y");
  append(62);
  done({ kind: "checkpoint" });
  load(loadId, ids(2), "z");
  assert.match(notes(), /^0 1 2 3 4 .* 39 60 61 62$/);
  done({ kind: "endLoad", loadId });
  const changed = "0 1 z y 4 5 6 7 8 x 10";
  assert.match(notes(), new RegExp(`^${changed} .* 30 y 32 .* 60 61 62$`));
  const deletion = begin("delete");
  load(deletion, ids(5, 0));
  load(deletion, ids(...Array.from({ length: 23 }, (_, k) => 8 + k)));
  done({ kind: "endLoad", loadId: deletion });
  const left = "1 z y 4 6 7 y 32 33 34 35 36 37 38 39 60 61 62";
  assert.equal(notes(), left);
  append(70);
  assert.equal(notes(reopened()), `${left} 70`);
});

const conflicts = [
  {
    title: "was changed",
    meanwhile: ({ done, tableId, ids }: ReturnType<typeof opened>) =>
      done({ kind: "delete", tableId, batches: [{ rowIds: ids(1), columns: [] }] }),
    left: "0 2 3 4 5 6 7 8 9",
  },
  {
    title: "has got rows",
    meanwhile: ({ append }: ReturnType<typeof opened>) => append(10),
    left: "0 1 2 3 4 5 6 7 8 9 10",
  },
];
for (const { title, meanwhile, left } of conflicts) {
  Deno.test(`staged changes are refused at the end if a segment of theirs ${title} meanwhile`, () => {
    const database = opened(10), { run, ids, begin, load, notes } = database;
    const loadId = begin("update");
    // The new version of the last segment is made at once, that of the first one at the end.
    load(loadId, ids(8, 9, 0, 1, 2, 3, 4, 5, 6, 7), "x");
    meanwhile(database);
    const { error } = run({ kind: "endLoad", loadId });
    assert.deepEqual([(error as { sqlState: string }).sqlState, `${error}`], [
      "40001",
      "SqlError: Cannot change the rows: another statement has changed them meanwhile",
    ]);
    assert.equal(notes(), left);
    assert.match(String(run({ kind: "endLoad", loadId }).error), /has ended/);
  });
}

Deno.test("staged changes keep to columns that were added and dropped before their commit", () => {
  const { db, run, done, tableId, ids, begin, load } = opened(20);
  const update = begin("update"), deletion = begin("delete");
  load(update, ids(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), "x");
  load(deletion, ids(16, 17));
  done({ kind: "dropColumns", tableId, columnIds: [0] });
  const column = { name: "n", type: "INT", indexed: false, symbolCapacity: 16, symbolCached: true };
  done({ kind: "addColumns", tableId, columns: [column] });
  for (const loadId of [update, deletion]) done({ kind: "endLoad", loadId });
  const rows = db.rows(db.catalogue.table("t")!);
  assert.deepEqual(rows.map(([note]) => note), [...Array(11).fill("x"), "11", "12", "13", "14", "15", "18", "19"]);
  assert.ok(rows.every(([, , n]) => n === null));
  for (const rowCount of [1, 10]) {
    const loadId = begin("update");
    load(loadId, ids(...Array(rowCount).keys()), "z");
    if (rowCount > 1) done({ kind: "dropColumns", tableId, columnIds: [1] });
    const { error } = run({ kind: "endLoad", loadId });
    assert.equal(
      error?.toString(),
      rowCount > 1 ? "SqlError: Cannot write to a column of t: it was dropped" : undefined,
    );
  }
});

Deno.test("a transaction finds its rows behind staged changes of others, and is refused if they are the same", () => {
  for (const [row, expected] of [[4, "0 x x x mine 5 6 7"], [2, undefined]] as const) {
    const { db, run, done, tableId, ids, begin, load, notes } = opened(10);
    const id = { transactionId: row, limitBytes: 1 << 20 };
    const branch = db.catalogue.branch(row);
    done({ kind: "fork", ...id, tableId });
    const own = rowIdsOf(branch.table("t")!, [row]);
    const { columns } = batchOf({ 1: "VARCHAR" }, [{ 1: "mine" }]);
    done({
      kind: "change",
      ...id,
      changes: [{ kind: "update", tableId, batches: [{ rowIds: own, columns }], ordinal: 1 }],
    });
    const update = begin("update"), deletion = begin("delete");
    load(update, ids(1, 2, 3), "x");
    load(deletion, ids(8, 9));
    for (const loadId of [update, deletion]) done({ kind: "endLoad", loadId });
    const { error } = run({ kind: "commit", ...id, changes: [] });
    assert.equal((error as { sqlState?: string })?.sqlState, expected === undefined ? "40001" : undefined);
    assert.equal(notes(), expected ?? "0 x x x 4 5 6 7");
  }
});

Deno.test("staged changes that are aborted, or whose table is dropped, leave neither changes nor memory", () => {
  const { db, run, done, tableId, ids, begin, batch, load, notes } = opened(30);
  const before = notes();
  const first = begin("update");
  load(first, ids(...Array.from({ length: 30 }, (_, k) => k)), "x");
  done({ kind: "abortLoad", loadId: first });
  assert.equal(notes(), before);
  const second = begin("delete");
  load(second, ids(...Array.from({ length: 29 }, (_, k) => k)));
  const late = batch(ids(29));
  done({ kind: "dropTable", tableId });
  assert.match(String(run({ kind: "load", loadId: second, packed: late }).error), /dropped/);
  done({ kind: "checkpoint" });
  assert.equal(db.store.memory.tailBytes, 0);
});

Deno.test("staged changes for which the disk has no space leave the table as it was", () => {
  const { db, run, done, ids, begin, load, notes, reopened } = opened(50);
  done({ kind: "checkpoint" });
  const before = notes();
  const loadId = begin("update");
  load(loadId, ids(...Array.from({ length: 50 }, (_, k) => k)), "a long text that needs space ".repeat(40));
  db.files.faults.capacityBytes = db.files.usedBytes();
  assert.match(String(run({ kind: "endLoad", loadId }).error), /disk is full|space/i);
  assert.equal(notes(), before);
  // A deletion may use the reserve.
  const deletion = begin("delete");
  load(deletion, ids(...Array.from({ length: 50 }, (_, k) => k)));
  done({ kind: "endLoad", loadId: deletion });
  assert.equal(notes(), "");
  db.files.faults.capacityBytes = undefined;
  assert.equal(notes(reopened()), "");
});
