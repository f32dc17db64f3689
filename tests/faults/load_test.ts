/** A bulk-loaded table has all of its rows, or does not exist. */
import assert from "node:assert/strict";
import { Died, FaultyFiles } from "../../src/storage/faulty-files.ts";
import type { Command } from "../../src/storage/commands.ts";
import { packAppendBatch } from "../../src/storage/packed.ts";
import { batchOf, newTable } from "../../src/storage/test-rows.ts";
import type { Value } from "../../src/types/mod.ts";
import { Opened, randomOf, testHeap } from "./harness.ts";

const COLUMNS = { sym: "SYMBOL", note: "VARCHAR", ts: "TIMESTAMP" };
const TYPES = { 0: "SYMBOL", 1: "VARCHAR", 2: "TIMESTAMP" };
const HOUR = 3_600_000_000n;

/** `from`: number of the first row. Rows are a quarter of an hour apart. */
function rowsFrom(from: bigint, count: number): Record<number, Value>[] {
  return Array.from({ length: count }, (_, k) => ({
    0: k % 4 === 0 ? null : `S${k % 3}`,
    1: k % 5 === 0 ? null : `note ${k}`,
    2: from + BigInt(k) * (HOUR / 4n),
  }));
}

const LOADED = [rowsFrom(0n, 300), rowsFrom(90n * HOUR, 200), rowsFrom(30n * HOUR + 1n, 50)];
const EXPECTED = LOADED.flat().sort((a, b) => Number((a[2] as bigint) - (b[2] as bigint))).map((row) =>
  Object.values(row)
);
const ADDED = rowsFrom(200n * HOUR, 3);

const pack = (rows: Record<number, Value>[]) => packAppendBatch(batchOf(TYPES, rows));
const appendTo = (tableId: number, rows: Record<number, Value>[]): Command => ({
  kind: "append",
  changes: [{ tableId, batches: [batchOf(TYPES, rows)] }],
});

const COMMANDS: Command[] = [
  { kind: "createTable", table: newTable("other", COLUMNS, "ts") },
  { kind: "beginLoad", table: newTable("loaded", COLUMNS, "ts") },
  { kind: "load", loadId: 2, packed: pack(LOADED[0]) },
  appendTo(1, ADDED),
  { kind: "load", loadId: 2, packed: pack(LOADED[1]) },
  { kind: "checkpoint" },
  { kind: "load", loadId: 2, packed: pack(LOADED[2]) },
  { kind: "endLoad", loadId: 2 },
  appendTo(2, ADDED),
  { kind: "checkpoint" },
];
const END_LOAD = COMMANDS.findIndex(({ kind }) => kind === "endLoad");

/** Returns the number of acknowledged commands. */
function live(files: FaultyFiles): number {
  let done = 0;
  try {
    const db = new Opened(files, testHeap(), randomOf(1));
    for (const command of COMMANDS) {
      const { error } = db.store.execute([command])[0];
      if (error !== undefined || files.died) break;
      done++;
    }
  } catch (error) {
    if (!(error instanceof Died)) throw error;
  }
  return done;
}

function check(files: FaultyFiles, done: number): void {
  const db = new Opened(files, testHeap(), randomOf(2));
  const table = db.catalogue.table("loaded");
  if (table === undefined) assert.ok(done <= END_LOAD, "the table was acknowledged");
  else {
    const rows = db.rows(table);
    assert.deepEqual(rows.slice(0, EXPECTED.length), EXPECTED);
    const more = rows.length - EXPECTED.length;
    assert.ok(more === ADDED.length || (more === 0 && done <= END_LOAD + 1));
  }
  const directories = db.catalogue.tables().map(({ schema }) => `t${schema.id}`);
  for (const name of files.list("/db")) if (/^t\d+$/.test(name)) assert.ok(directories.includes(name), name);
  assert.equal(db.store.execute([{ kind: "createTable", table: newTable("next", COLUMNS, "ts") }])[0].error, undefined);
}

Deno.test("a bulk load without faults: all rows in order, also after reopening", () => {
  const files = new FaultyFiles({}, randomOf(1));
  assert.equal(live(files), COMMANDS.length);
  check(files.afterKill(), COMMANDS.length);
});

Deno.test("after a kill or power cut at every I/O point of a bulk load, the table is complete or does not exist", () => {
  const whole = new FaultyFiles({}, randomOf(1));
  live(whole);
  for (let point = 1; point <= whole.points; point++) {
    for (const cut of [false, true]) {
      const files = new FaultyFiles({ dieAt: point }, randomOf(point));
      const done = live(files);
      try {
        check(cut ? files.afterPowerCut() : files.afterKill(), done);
      } catch (error) {
        throw new Error(`${cut ? "power cut" : "killed"} at I/O point ${point} after ${done} commands`, {
          cause: error,
        });
      }
    }
  }
});

Deno.test("a failed load leaves nothing behind and frees its memory", () => {
  const files = new FaultyFiles({}, randomOf(1));
  const db = new Opened(files, testHeap(), randomOf(1));
  const run = (command: Command) => db.store.execute([command])[0];
  const before = db.heap.usedBytes();
  const loadId = run({ kind: "beginLoad", table: newTable("t", COLUMNS, "ts") }).value!;
  assert.equal(run({ kind: "load", loadId, packed: pack(LOADED[0]) }).error, undefined);
  assert.match(
    String(run({ kind: "load", loadId, packed: pack([{ 0: null, 1: null, 2: null }]) }).error),
    /it is null/,
  );
  assert.match(String(run({ kind: "endLoad", loadId }).error), /has ended/);
  assert.equal(db.catalogue.tables().length, 0);
  assert.equal(files.exists(`/db/t${loadId}`), false);
  db.store.maintain();
  assert.equal(db.heap.usedBytes(), before);
  db.store.execute([{ kind: "close" }]);
});
