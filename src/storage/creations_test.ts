import assert from "node:assert/strict";
import type { Command } from "./commands.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { batchOf, newTable } from "./test-rows.ts";
import { openTestStore } from "./test-store.ts";
import { Opened, randomOf, testHeap } from "../../tests/faults/harness.ts";

const creation = (name: string, rows: number[] = []): Command => ({
  kind: "createTable",
  table: newTable(name, { n: "INT" }),
  rows: rows.length === 0 ? [] : [batchOf({ 0: "INT" }, rows.map((n) => ({ 0: n })))],
});

const opened = () => new Opened(new FaultyFiles({}, randomOf(1)), testHeap(), randomOf(1));

/** The names of the tables, with their rows. */
const contentOf = (db: Opened) =>
  db.catalogue.tables().map((table) => `${table.schema.name} ${db.rows(table).flat()}`).sort();

Deno.test("tables that are created together take one sync, and are all there afterwards", () => {
  const db = opened();
  const { syncs } = db.files;
  const outcomes = db.store.execute([creation("a", [1, 2]), creation("b"), creation("c", [3])]);
  assert.deepEqual(outcomes, [{ value: 1 }, { value: 2 }, { value: 3 }]);
  assert.equal(db.files.syncs, syncs + 1);
  assert.deepEqual(contentOf(db), ["a 1,2", "b ", "c 3"]);
  const after = new Opened(db.files.afterPowerCut(), testHeap(), randomOf(2));
  assert.deepEqual(contentOf(after), ["a 1,2", "b ", "c 3"]);
});

Deno.test("a database has at most as many tables as allowed, and one can be created when another was dropped", () => {
  const { store } = openTestStore(testHeap(), new FaultyFiles({}, randomOf(1)), { tableCountMax: 2 });
  const told = (...commands: Command[]) =>
    store.execute(commands).map(({ value, error }) => value ?? (error as Error | undefined)?.message);
  const full = "Cannot create a table: the database has 2, and at most 2 are allowed (cairo.max.tables)";
  assert.deepEqual(told(creation("a"), creation("b"), creation("c")), [1, 2, full]);
  assert.deepEqual(told(creation("c")), [full]);
  store.execute([{ kind: "dropTable", tableId: 1 } as Command]);
  assert.deepEqual(told(creation("c")), [3]);
});

Deno.test("of tables that are created together, those without fault are made", () => {
  const db = opened();
  db.store.execute([creation("old")]);
  const faulty: Command = { ...creation("b"), rows: [batchOf({ 7: "INT" }, [{ 7: 1 }])] } as Command;
  const outcomes = db.store.execute([creation("a"), creation("A"), creation("Old"), faulty, creation("c")]);
  assert.deepEqual(outcomes.map(({ value, error }) => value ?? (error as Error).message), [
    2,
    "Cannot use the name A: there is such a table",
    "Cannot use the name Old: there is such a table",
    "Cannot write to a column of b: it was dropped",
    3,
  ]);
  assert.deepEqual(contentOf(db), ["a ", "c ", "old "]);
});

Deno.test("of tables that are created together, those that fit on the disk are made", () => {
  const db = opened();
  db.store.execute([creation("first")]);
  db.files.faults.capacityBytes = db.files.usedBytes() + 20_000;
  const many = Array.from({ length: 20_000 }, (_, k) => k);
  const outcomes = db.store.execute([creation("a"), creation("b", many), creation("c")]);
  assert.deepEqual(outcomes.map(({ error }) => (error as Error | undefined)?.name), [
    undefined,
    "DiskFullError",
    undefined,
  ]);
  db.files.faults.capacityBytes = undefined;
  const after = new Opened(db.files.afterPowerCut(), testHeap(), randomOf(2));
  assert.deepEqual(contentOf(after), ["a ", "c ", "first "]);
});

const addition = (tableId: number, ...names: string[]): Command => ({
  kind: "addColumns",
  tableId,
  columns: names.map((name) => ({ name, type: "INT", indexed: false, symbolCapacity: 16, symbolCached: true })),
});

const columnsOf = (db: Opened) =>
  db.catalogue.tables().map(({ schema: { name, columns } }) => `${name} ${columns.map(({ name }) => name)}`).sort();

Deno.test("columns that are added to different tables together take one sync, and are all there afterwards", () => {
  const db = opened();
  db.store.execute([creation("a", [1]), creation("b"), creation("c")]);
  const { syncs } = db.files;
  const outcomes = db.store.execute([addition(1, "x"), addition(2, "x", "y"), addition(3, "z")]);
  assert.deepEqual(outcomes, [{}, {}, {}]);
  assert.equal(db.files.syncs, syncs + 1);
  const expected = ["a n,x", "b n,x,y", "c n,z"];
  assert.deepEqual(columnsOf(db), expected);
  assert.deepEqual(columnsOf(new Opened(db.files.afterPowerCut(), testHeap(), randomOf(2))), expected);
});

Deno.test("of columns that are added together, those without fault are there, in the order of the commands", () => {
  const db = opened();
  db.store.execute([creation("a"), creation("b"), creation("gone")]);
  db.store.execute([{ kind: "dropTable", tableId: 3 }]);
  const commands = [addition(1, "x"), addition(3, "x"), addition(2, "x"), addition(1, "y"), addition(2, "x")];
  const outcomes = db.store.execute(commands);
  assert.deepEqual(outcomes.map(({ error }) => (error as Error | undefined)?.message), [
    undefined,
    "Cannot find the table: it was dropped",
    undefined,
    undefined,
    "Cannot use the name x: the table already has a column of that name",
  ]);
  assert.deepEqual(columnsOf(db), ["a n,x,y", "b n,x"]);
});
