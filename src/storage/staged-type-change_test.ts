import assert from "node:assert/strict";
import { toJson } from "./bytes.ts";
import type { Command, Outcome } from "./commands.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap } from "./heap.ts";
import { packAppendBatch } from "./packed.ts";
import { batchOf, newTable, rowIdsOf } from "./test-rows.ts";
import { Opened, randomOf, testHeap } from "../../tests/faults/harness.ts";
import type { Value } from "../types/mod.ts";

const DAY = 86_400_000_000;
const columnOf = (type: string) => ({ name: "", type, indexed: false, symbolCapacity: 64, symbolCached: true });

/** A table of a row a day, whose number is that of the day. */
function opened(days: number, dedupKeys: number[] = []) {
  const db = new Opened(new FaultyFiles({}, randomOf(1)), testHeap(), randomOf(1));
  const run = (command: Command): Outcome => db.store.execute([command])[0];
  const done = (command: Command): number => {
    const { error, value } = run(command);
    assert.equal(error, undefined);
    return value!;
  };
  const columns = { sym: "SYMBOL", n: "INT", ts: "TIMESTAMP" };
  const table = { ...newTable("t", columns, "ts", "DAY"), dedupKeys };
  const tableId = done({ kind: "createTable", table });
  const schema = () => db.catalogue.table("t")!.schema;
  /** Rows for the columns with these ids. */
  const rowsFor = (sym: number, n: number, list: readonly number[]) =>
    batchOf(
      { [sym]: "SYMBOL", [n]: "INT", 2: "TIMESTAMP" },
      list.map((day) => ({ [sym]: `S${day % 3}`, [n]: day % 7 === 6 ? null : day, 2: BigInt(day * DAY) })),
    );
  const append = (...list: number[]) =>
    done({ kind: "append", changes: [{ tableId, batches: [rowsFor(0, 1, list)] }] });
  append(...Array.from({ length: days }, (_, day) => day));
  const begin = (columnId: number, type: string) =>
    done({ kind: "beginTypeChange", tableId, columnId, column: columnOf(type) });
  const step = (loadId: number) => done({ kind: "prepareLoad", loadId });
  const end = (loadId: number) => done({ kind: "endLoad", loadId });
  const columnText = (name: string, from = db) => {
    const snapshot = from.catalogue.table("t")!;
    const rows = from.rows(snapshot), k = from.catalogue.table("t")!.schema.columns.findIndex((c) => c.name === name);
    return rows.map((row) => `${row[k] as Value}`).join(" ");
  };
  /** What a process finds after a power cut. */
  const reopened = () => new Opened(db.files.afterPowerCut(), testHeap(), randomOf(2));
  return { db, run, done, tableId, schema, append, begin, step, end, columnText, reopened, rowsFor };
}

const numbers = (days: number) => Array.from({ length: days }, (_, day) => day % 7 === 6 ? "null" : `${day}`).join(" ");

Deno.test("a column appears with its new type and values at once, and after a power cut", () => {
  const { schema, begin, step, end, columnText, reopened, append } = opened(40);
  const loadId = begin(1, "LONG");
  for (let k = 0; k < 5; k++) step(loadId);
  assert.equal(schema().columns[1].type, "INT");
  assert.equal(columnText("n", reopened()), numbers(40));
  end(loadId);
  assert.deepEqual(schema().columns.map(({ name, type }) => `${name} ${type}`), [
    "sym SYMBOL",
    "n LONG",
    "ts TIMESTAMP",
  ]);
  assert.equal(columnText("n"), numbers(40));
  const after = reopened();
  assert.deepEqual(toJson(after.catalogue.table("t")!.schema.columns), toJson(schema().columns));
  assert.equal(columnText("n", after), numbers(40));
  append(40);
  assert.equal(columnText("n", reopened()), numbers(41));
});

Deno.test("rows that are added, changed and deleted between the steps have the new type, too", () => {
  const { db, done, tableId, begin, step, end, columnText, append } = opened(30);
  const loadId = begin(1, "VARCHAR");
  while (step(loadId) === 1) {
    append(30);
    append(3);
    const table = db.catalogue.table("t")!;
    if (table.rowCount > 40) continue;
    const rowIds = rowIdsOf(table, [5]);
    done({ kind: "update", tableId, batches: [{ rowIds, columns: batchOf({ 1: "INT" }, [{ 1: 500 }]).columns }] });
    done({ kind: "delete", tableId, batches: [{ rowIds: rowIdsOf(table, [0]), columns: [] }] });
    if (table.rowCount === 34) done({ kind: "checkpoint" });
  }
  append(31, 4, 2);
  const before = columnText("n");
  assert.match(before, /500/);
  end(loadId);
  assert.equal(columnText("n"), before);
});

Deno.test("symbols become texts and numbers, and texts symbols, whose dictionary is durable", () => {
  const { db, schema, begin, end, columnText, reopened } = opened(20);
  const symbols = columnText("sym");
  end(begin(0, "STRING"));
  assert.equal(columnText("sym"), symbols);
  end(begin(schema().columns[0].id, "SYMBOL"));
  assert.equal(columnText("sym"), symbols);
  assert.equal(columnText("sym", reopened()), symbols);
  end(begin(1, "SYMBOL"));
  assert.equal(columnText("n"), numbers(20));
  end(begin(schema().columns[1].id, "DOUBLE"));
  assert.equal(columnText("n"), numbers(20));
  db.store.execute([{ kind: "checkpoint" }]);
  assert.equal(columnText("n", reopened()), numbers(20));
});

Deno.test("rows for a column whose type has changed, also several times, are converted as those in the table were", () => {
  const { db, done, tableId, schema, begin, end, columnText, append, rowsFor, run } = opened(10);
  end(begin(1, "BYTE"));
  end(begin(schema().columns[1].id, "SYMBOL"));
  end(begin(0, "VARCHAR"));
  append(302, 301, 11);
  const [sym, n] = schema().columns.map(({ id }) => id);
  assert.equal(columnText("n"), "0 1 2 3 4 5 0 7 8 9 11 45 46");
  assert.equal(columnText("sym").split(" ").slice(-3).join(" "), "S2 S1 S2");
  const numbers = columnText("n");
  const after = new Opened(db.files.afterPowerCut(), createHeap(48 << 20), randomOf(2));
  assert.equal(columnText("n", after), numbers);
  assert.equal(columnText("n"), numbers);
  // Values for rows that were read before are not known to be those of the new type.
  const rowIds = new BigInt64Array([0n]);
  const { error } = run({
    kind: "update",
    tableId,
    batches: [{ rowIds, columns: [rowsFor(sym, 1, [1]).columns[1]] }],
  });
  assert.equal((error as { sqlState: string }).sqlState, "40001");
  assert.notEqual(n, 1);
  done({ kind: "dropColumns", tableId, columnIds: [n] });
  const late = run({ kind: "append", changes: [{ tableId, batches: [rowsFor(0, 1, [12])] }] });
  assert.equal((late.error as { sqlState: string }).sqlState, "42703");
});

Deno.test("many rows that were staged for the old type are refused at the end", () => {
  const { done, run, tableId, begin, end, rowsFor, columnText } = opened(10);
  const loadId = done({ kind: "beginAppend", tableId, columnIds: [0, 1, 2] });
  done({ kind: "load", loadId, packed: packAppendBatch(rowsFor(0, 1, [20, 21])) });
  end(begin(1, "LONG"));
  const { error } = run({ kind: "endLoad", loadId });
  assert.equal((error as { sqlState: string }).sqlState, "40001");
  assert.equal(columnText("n"), numbers(10));
});

Deno.test("detached partitions are converted, too", () => {
  const { done, tableId, begin, end, columnText } = opened(6);
  const moved = (from: "attached" | "detached", to: "attached" | "detached") =>
    done({ kind: "partitions", tableId, moves: [{ start: BigInt(2 * DAY), from, to }] });
  moved("attached", "detached");
  end(begin(1, "VARCHAR"));
  moved("detached", "attached");
  assert.equal(columnText("n"), numbers(6));
});

Deno.test("keys of deduplication are converted, and keep replacing rows", () => {
  const { schema, begin, end, columnText, append } = opened(6, [2, 1]);
  end(begin(1, "LONG"));
  assert.deepEqual(schema().dedupKeys, [2, schema().columns[1].id]);
  append(3, 4);
  assert.equal(columnText("n"), numbers(6));
});

const others = [
  { title: "was dropped", change: { kind: "dropColumns", columnIds: [1] }, state: "42703" },
  { title: "has been converted", change: undefined, state: "40001" },
] as const;
for (const { title, change, state } of others) {
  Deno.test(`a conversion fails at the end if the column ${title} meanwhile, and leaves nothing`, () => {
    const { db, done, run, tableId, begin, step, end, schema } = opened(20);
    const used = () => db.store.memory.tailBytes;
    const loadId = begin(1, "SYMBOL");
    step(loadId);
    if (change === undefined) end(begin(1, "LONG"));
    else done({ ...change, columnIds: [...change.columnIds], tableId });
    done({ kind: "checkpoint" });
    const before = schema();
    const { error } = run({ kind: "endLoad", loadId });
    assert.equal((error as { sqlState: string }).sqlState, state);
    assert.deepEqual(schema(), before);
    done({ kind: "checkpoint" });
    assert.ok(used() < 100_000);
  });
}

Deno.test("columns that are added or renamed meanwhile stay", () => {
  const { done, tableId, schema, begin, step, end, columnText } = opened(12);
  const loadId = begin(1, "LONG");
  step(loadId);
  done({ kind: "addColumns", tableId, columns: [{ ...columnOf("INT"), name: "more" }] });
  done({ kind: "renameColumn", tableId, columnId: 1, to: "number" });
  end(loadId);
  assert.deepEqual(schema().columns.map(({ name, type }) => `${name} ${type}`), [
    "sym SYMBOL",
    "number LONG",
    "ts TIMESTAMP",
    "more INT",
  ]);
  assert.equal(columnText("number"), numbers(12));
  assert.equal(columnText("more"), Array(12).fill("null").join(" "));
});

Deno.test("a conversion that cannot be made durable changes nothing", () => {
  const { db, run, done, schema, begin, step, end, columnText } = opened(12);
  const loadId = begin(1, "SYMBOL");
  while (step(loadId) === 1);
  const before = schema();
  db.files.faults.capacityBytes = 1;
  const { error } = run({ kind: "endLoad", loadId });
  assert.equal((error as Error).name, "DiskFullError");
  db.files.faults.capacityBytes = undefined;
  assert.equal(schema(), before);
  end(begin(1, "SYMBOL"));
  assert.equal(columnText("n"), numbers(12));
  done({ kind: "checkpoint" });
  assert.equal(columnText("n"), numbers(12));
});

Deno.test("the dictionary of a column that was converted or dropped is freed when nobody can use it", () => {
  const { db, run, done, tableId, schema, begin, end, append } = opened(12);
  const files = () => db.files.list("/db/t1").filter((name) => name.endsWith(".dict")).join();
  end(begin(1, "SYMBOL"));
  assert.equal(files(), "s0.dict,s3.dict");
  // A transaction may read the former symbols.
  done({ kind: "fork", transactionId: 1, limitBytes: 1e6, tableId });
  end(begin(0, "VARCHAR"));
  assert.equal(files(), "s0.dict,s3.dict");
  run({ kind: "rollback", transactionId: 1 });
  append(12);
  done({ kind: "checkpoint" });
  assert.equal(files(), "s3.dict");
  const before = db.heap.usedBytes("dictionary");
  done({ kind: "dropColumns", tableId, columnIds: [schema().columns[1].id] });
  done({ kind: "checkpoint" });
  db.store.maintain();
  assert.equal(files(), "");
  assert.ok(db.heap.usedBytes("dictionary") < before);
});

Deno.test("a dictionary of a conversion that a crash has interrupted does not stay", () => {
  const dictionariesOf = (files: FaultyFiles) => files.list("/db/t1").filter((name) => name.endsWith(".dict"));
  const before: string[] = [], after: string[] = [];
  for (let point = 1, isOver = false; !isOver; point++) {
    const { db, done, begin, step, columnText } = opened(12);
    done({ kind: "checkpoint" });
    const loadId = begin(1, "SYMBOL");
    while (step(loadId) === 1);
    db.files.faults.dieAt = db.files.points + point;
    db.store.execute([{ kind: "endLoad", loadId }]);
    isOver = !db.files.died;
    const files = db.files.afterKill();
    before.push(dictionariesOf(files).join());
    const found = new Opened(files, testHeap(), randomOf(2));
    assert.equal(columnText("n", found), numbers(12));
    after.push(dictionariesOf(files).join());
    const isConverted = found.catalogue.table("t")!.schema.columns[1].type === "SYMBOL";
    assert.equal(after.at(-1), isConverted ? "s0.dict,s3.dict" : "s0.dict");
  }
  assert.notDeepEqual(before, after);
  assert.equal(after.at(-1), "s0.dict,s3.dict");
});
