import assert from "node:assert/strict";
import type { Value } from "../types/mod.ts";
import { FULL } from "../testing.ts";
import type { Command } from "./commands.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { packAppendBatch } from "./packed.ts";
import { batchOf, rowIdsOf } from "./test-rows.ts";
import * as harness from "../../tests/faults/harness.ts";

const TYPES = { 0: "SYMBOL", 1: "VARCHAR", 2: "TIMESTAMP", 3: "LONG" };
const COLUMNS = { sym: "SYMBOL", note: "VARCHAR", ts: "TIMESTAMP", n: "LONG" };
/** Few times, so that many rows have the same one. */
const DAY = 86_400_000_000n, DAYS = 4, TIMES = 12;

type Row = Record<number, Value>;

/** A table and a model of it. */
function opened(random: harness.Random, dedupKeys?: number[]) {
  const db = new harness.Opened(new FaultyFiles({}, random), harness.testHeap(), random);
  const model: harness.Model = new Map();
  const run = (command: Command): number | undefined => {
    const [{ error, value }] = db.store.execute([command]);
    if (error !== undefined) throw error;
    db.store.maintain();
    return value;
  };
  /** Makes a change, and says what it does to the model. */
  const step = (step: harness.Step) => {
    const command = step.command(db);
    for (const one of Symbol.iterator in command ? command : [command]) run(one);
    step.apply(model);
  };
  const check = (from = db, { rows, columns } = model.get("t")!) => {
    const table = from.catalogue.table("t")!;
    assert.deepEqual(from.rows(table), rows.map((row) => columns.map(({ id }) => row[id] ?? null)));
  };
  step(harness.create("t", COLUMNS, "ts", [], { dedupKeys }));
  return { db, model, run, step, check, tableId: db.catalogue.table("t")!.schema.id };
}

let rowCount = 0;

function rowsOf(random: harness.Random, count: number): Row[] {
  return Array.from({ length: count }, () => {
    const place = Math.floor(random() * DAYS * TIMES);
    const time = DAY * BigInt(Math.floor(place / TIMES)) + BigInt(place % TIMES) * 1000n;
    const n = ++rowCount;
    return { 0: `S${n % 3}`, 1: n % 5 === 0 ? null : `note ${n}`, 2: time, 3: BigInt(n) };
  });
}

/** Rows of one statement replace each other by the keys that the table had when it began. */
function lastOfSameKeys(rows: readonly Row[]): Row[] {
  const keyOf = (row: Row) => `${row[0]} ${row[2]}`;
  const last = new Map(rows.map((row) => [keyOf(row), row]));
  return rows.filter((row) => last.get(keyOf(row)) === row);
}

const inModel = (random: harness.Random, share: number) => {
  const bits = Array.from({ length: 2000 }, () => random() < share);
  return (place: number) => bits[place];
};

/** What others do while rows are staged. */
const MEANWHILE: ((random: harness.Random, model: harness.Model) => harness.Step)[] = [
  (random) => harness.append({ t: rowsOf(random, 1 + Math.floor(random() * 4)) }),
  (random) => harness.append({ t: rowsOf(random, 1 + Math.floor(random() * 4)) }),
  () => harness.checkpoint,
  (random) => harness.change("t", inModel(random, 0.05), 1, (place) => `changed ${place}`),
  (random) => harness.change("t", inModel(random, 0.05), undefined, () => null),
  (random, model) => {
    const days = new Set(model.get("t")!.rows.map((row) => Number((row[2] as bigint) / DAY)));
    const day = Math.floor(random() * DAYS);
    return days.has(day) ? harness.movePartitions("t", "attached", "nowhere", [day]) : harness.checkpoint;
  },
];

const tables: { title: string; dedupKeys?: number[]; meanwhile?: (random: harness.Random) => harness.Step }[] = [
  { title: "a table" },
  { title: "a table with keys", dedupKeys: [0] },
  { title: "a table that gets keys meanwhile", meanwhile: () => harness.setDedup("t", [0]) },
  {
    title: "a table with keys that loses them meanwhile",
    dedupKeys: [0],
    meanwhile: () => harness.setDedup("t", undefined),
  },
  { title: "a table that loses a column meanwhile", meanwhile: () => harness.dropColumns("t", 1) },
  { title: "a table that gets a column meanwhile", meanwhile: () => harness.addColumn("t", "more", "DOUBLE") },
  { title: "a table that is emptied meanwhile", meanwhile: () => harness.truncate("t") },
];
for (const { title, dedupKeys, meanwhile } of tables) {
  Deno.test(`staged rows of ${title} are merged in steps as if they were added at their commit`, () => {
    for (let seed = 1; seed <= (FULL ? 40 : 20); seed++) {
      const random = harness.randomOf(seed);
      const { db, model, run, step, check, tableId } = opened(random, dedupKeys);
      try {
        step(harness.append({ t: rowsOf(random, 10 + Math.floor(random() * 120)) }));
        if (random() < 0.7) step(harness.checkpoint);
        const loadId = run({ kind: "beginAppend", tableId, columnIds: [0, 1, 2, 3] })!;
        const staged: Row[] = [];
        for (let k = 0; k < 3; k++) {
          const rows = rowsOf(random, Math.floor(random() * 60));
          run({ kind: "load", loadId, packed: packAppendBatch(batchOf(TYPES, rows)) });
          staged.push(...rows);
        }
        const share = random() * 0.6;
        const changeAt = Math.floor(random() * 10);
        for (let k = 0; run({ kind: "prepareLoad", loadId }) === 1; k++) {
          assert.ok(k < 10_000, "the steps end");
          if (k === changeAt && meanwhile !== undefined) step(meanwhile(random));
          if (random() > share) continue;
          const hasNotes = model.get("t")!.columns.some(({ id }) => id === 1);
          const other = MEANWHILE[Math.floor(random() * (hasNotes ? MEANWHILE.length : 3))](random, model);
          step(other);
          check();
        }
        run({ kind: "endLoad", loadId });
        // Columns that are gone are not in the model.
        const ids = model.get("t")!.columns.map(({ id }) => id);
        const rows = dedupKeys === undefined ? staged : lastOfSameKeys(staged);
        const known = rows.map((row) => Object.fromEntries(ids.map((id) => [id, row[id] ?? null])));
        if (known.length > 0) harness.append({ t: known }).apply(model);
        check();
        const left = db.files.afterPowerCut(), expected = structuredClone(model.get("t")!);
        step(harness.append({ t: rowsOf(random, 20) }));
        step(harness.checkpoint);
        check();
        run({ kind: "dropTable", tableId });
        db.mergers.finish();
        run({ kind: "checkpoint" });
        assert.equal(db.store.memory.tailBytes, 0);
        check(new harness.Opened(left, harness.testHeap(), random), expected);
      } catch (error) {
        throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
      }
    }
  });
}

const rowsAt = (times: number[]): Row[] => times.map((time, k) => ({ 0: "S", 1: `note ${k}`, 2: BigInt(time), 3: 0n }));

/** A table of 80 rows, and as many that are staged between them. */
function withLateRows() {
  const table = opened(harness.randomOf(1)), { run, step, tableId } = table;
  const stored = Array.from({ length: 80 }, (_, k) => 10 * k), late = rowsAt(stored.map((time) => time + 5));
  step(harness.append({ t: rowsAt(stored) }));
  step(harness.checkpoint);
  const loadId = run({ kind: "beginAppend", tableId, columnIds: [0, 1, 2, 3] })!;
  run({ kind: "load", loadId, packed: packAppendBatch(batchOf(TYPES, late)) });
  const prepare = () => {
    let steps = 0;
    while (run({ kind: "prepareLoad", loadId }) === 1) steps++;
    return steps;
  };
  const end = () => {
    run({ kind: "endLoad", loadId });
    harness.append({ t: late }).apply(table.model);
  };
  return { ...table, prepare, end };
}

for (const meanwhile of [[], [304], [11, 402]]) {
  Deno.test(`the commit of staged rows merges again with the segments of ${meanwhile.length} rows that came meanwhile`, () => {
    const { db, step, check, prepare, end } = withLateRows();
    const merged = () => db.heap.counter("rewrittenSegments");
    assert.ok(prepare() >= 10 && merged() >= 10, "each segment is merged in a step of its own");
    for (const time of meanwhile) step(harness.append({ t: rowsAt([time]) }));
    const before = merged();
    end();
    if (meanwhile.length === 0) assert.equal(merged(), before);
    else assert.ok(merged() > before && merged() <= before + 4 * meanwhile.length);
    check();
  });
}

Deno.test("few staged rows that come behind all others go to the last segment, also of a table that gets a column meanwhile", () => {
  const { run, step, check, model, tableId } = opened(harness.randomOf(1));
  step(harness.append({ t: rowsAt([1, 2]) }));
  step(harness.checkpoint);
  const loadId = run({ kind: "beginAppend", tableId, columnIds: [0, 1, 2, 3] })!;
  const rows = rowsAt([3, 4]);
  run({ kind: "load", loadId, packed: packAppendBatch(batchOf(TYPES, rows)) });
  step(harness.addColumn("t", "more", "DOUBLE"));
  while (run({ kind: "prepareLoad", loadId }) === 1);
  run({ kind: "endLoad", loadId });
  harness.append({ t: rows }).apply(model);
  check();
});

Deno.test("a transaction finds its row behind late rows that were staged meanwhile", () => {
  for (const dedupKeys of [undefined, [0]]) {
    const { db, run, step, check, prepare, end, tableId, model } = withLateRows();
    if (dedupKeys !== undefined) step(harness.setDedup("t", dedupKeys));
    const id = { transactionId: 1, limitBytes: 1 << 20 }, rows = [3, 41, 79];
    const branch = db.catalogue.branch(id.transactionId);
    run({ kind: "fork", ...id, tableId });
    const rowIds = rowIdsOf(branch.table("t")!, rows);
    const { columns } = batchOf({ 1: "VARCHAR" }, rows.map(() => ({ 1: "mine" })));
    run({ kind: "change", ...id, changes: [{ kind: "update", tableId, batches: [{ rowIds, columns }], ordinal: 1 }] });
    prepare();
    end();
    run({ kind: "commit", ...id, changes: [] });
    for (const row of model.get("t")!.rows) if (rows.some((k) => row[2] === BigInt(10 * k))) row[1] = "mine";
    check();
  }
});

Deno.test("staged rows that are aborted in the middle of their merges leave neither rows nor memory", () => {
  const { db, run, step, check, tableId } = withLateRows();
  const loadId = db.store.loads.newestStageId;
  for (let k = 0; k < 9; k++) assert.equal(run({ kind: "prepareLoad", loadId }), 1);
  run({ kind: "abortLoad", loadId });
  step(harness.checkpoint);
  check();
  run({ kind: "dropTable", tableId });
  run({ kind: "checkpoint" });
  assert.equal(db.store.memory.tailBytes, 0);
});
