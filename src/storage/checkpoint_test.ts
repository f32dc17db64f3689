import assert from "node:assert/strict";
import { checkpointSteps } from "./checkpoint.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap } from "./heap.ts";
import { batchOf, newTable, readRows } from "./test-rows.ts";
import { openTestStore } from "./test-store.ts";

const heap = createHeap(48 << 20);
const TYPES = { 0: "TIMESTAMP", 1: "LONG" };
const SEGMENT_ROWS = 512, SEGMENT_BYTES = SEGMENT_ROWS * 16, STEP_SEGMENTS = 5, SEGMENTS = 50;

/** A store with a table of rows 0 to `SEGMENTS * SEGMENT_ROWS` in memory. */
function setUp() {
  const files = new FaultyFiles({}, () => 0.5);
  const options = {
    encoding: "raw" as const,
    segmentRowsMax: SEGMENT_ROWS,
    memoryBytes: 40 << 20,
    flushStepBytes: STEP_SEGMENTS * SEGMENT_BYTES,
  };
  const { store, catalogue, pool } = openTestStore(heap, files, options);
  store.execute([{ kind: "createTable", table: newTable("t", { ts: "TIMESTAMP", v: "LONG" }, "ts", "YEAR") }]);
  const append = (from: number, count: number) => {
    const rows = Array.from({ length: count }, (_, k) => ({ 0: BigInt(from + k), 1: BigInt(from + k) }));
    const [{ error }] = store.execute([{
      kind: "append",
      changes: [{ tableId: 1, batches: [batchOf(TYPES, rows)] }],
    }]);
    assert.equal(error, undefined);
  };
  append(0, SEGMENTS * SEGMENT_ROWS);
  return { files, options, store, catalogue, pool, append };
}

/** All rows of the files as a killed process leaves them. */
function rowsAfterKill({ files, options }: ReturnType<typeof setUp>): number[] {
  const { store, catalogue, pool } = openTestStore(heap, files.afterKill(), options);
  store.execute([{ kind: "open", tableId: 1 }]);
  return readRows(heap, pool, catalogue.tableById(1)!).map(([time]) => Number(time));
}

Deno.test("checkpointSteps() writes a table's rows in steps of some segments, between which rows come", () => {
  const db = setUp();
  let steps = 0;
  const added: number[] = [];
  for (const _ of checkpointSteps(db.store, db.store.commits.log)) {
    const next = SEGMENTS * SEGMENT_ROWS + steps++;
    db.append(next, 1);
    added.push(next);
  }
  assert.ok(steps >= SEGMENTS / STEP_SEGMENTS, `${steps} steps`);
  const expected = [...Array.from({ length: SEGMENTS * SEGMENT_ROWS }, (_, k) => k), ...added];
  assert.deepEqual(rowsAfterKill(db), expected);
});

Deno.test("checkpointSteps() ends, although more rows come in each step than it writes", () => {
  const db = setUp();
  let rows = SEGMENTS * SEGMENT_ROWS, steps = 0;
  for (const _ of checkpointSteps(db.store, db.store.commits.log)) {
    if (++steps > 2 * SEGMENTS) break;
    db.append(rows, 2 * STEP_SEGMENTS * SEGMENT_ROWS);
    rows += 2 * STEP_SEGMENTS * SEGMENT_ROWS;
  }
  assert.ok(steps < 2 * SEGMENTS / STEP_SEGMENTS, `${steps} steps`);
  assert.equal(rowsAfterKill(db).length, rows);
});

Deno.test("checkpointSteps() goes on when a table is dropped between its steps", () => {
  const db = setUp();
  let steps = 0;
  for (const _ of checkpointSteps(db.store, db.store.commits.log)) {
    if (++steps === 3) db.store.execute([{ kind: "dropTable", tableId: 1 }]);
  }
  assert.equal(steps, 3);
  assert.equal(openTestStore(heap, db.files.afterKill(), db.options).catalogue.tables().length, 0);
});

Deno.test("checkpoints fail without sealing the database when no more files may be open, and succeed when they may", () => {
  const db = setUp(), { files, store } = db;
  const open = files.open.bind(files);
  files.open = (path, mode) => {
    if (mode === "create") {
      throw Object.assign(new Error(`EMFILE: too many open files, open '${path}'`), { code: "EMFILE" });
    }
    return open(path, mode);
  };
  const [{ error }] = store.execute([{ kind: "checkpoint" }]);
  assert.match(String(error), /EMFILE/);
  assert.equal(store.seal.isSet, false);
  db.append(SEGMENTS * SEGMENT_ROWS, 1);
  files.open = open;
  assert.equal(store.execute([{ kind: "checkpoint" }])[0].error, undefined);
  assert.equal(rowsAfterKill(db).length, SEGMENTS * SEGMENT_ROWS + 1);
});
