import assert from "node:assert/strict";
import { decodeBatch } from "../blocks.ts";
import { FaultyFiles } from "../faulty-files.ts";
import { type Files, join, realFiles } from "../files.ts";
import { createHeap } from "../heap.ts";
import { createPool, openStorage } from "../mod.ts";
import { packAppendBatch } from "../packed.ts";
import { batchOf, newTable, readRows, rowIdsOf } from "../test-rows.ts";
import { openTestStore } from "../test-store.ts";
import { LogFollower, LogGoneError } from "./follower.ts";
import { BLOCK_KIND, FLAG_LAST, logFiles } from "./format.ts";
import { Log } from "./log.ts";

const TYPES = { 0: "TIMESTAMP", 1: "LONG" };
const rowsOf = (from: bigint, count: number) =>
  Array.from({ length: count }, (_, k) => ({ 0: from + BigInt(k), 1: (from + BigInt(k)) * 7n }));

/** A copy of a table whose rows lie in one partition, made of the log alone. */
class Copy {
  readonly rows: [bigint, bigint][] = [];
  private readonly follower: LogFollower;

  constructor(files: Files, directory: string, lsn: number, private readonly tableId: number) {
    this.follower = new LogFollower(files, directory, lsn);
  }

  /** Returns the LSN from which on it needs the log. `bytesMax`: small, so that commits come one by one. */
  follow(lsn: number): number {
    for (;;) {
      const blocks = this.follower.read(lsn, 1);
      if (blocks.length === 0) return this.follower.nextLsn;
      assert.equal(blocks.at(-1)!.flags & FLAG_LAST, FLAG_LAST, "commits are read as a whole");
      for (const { kind, tableId, payload } of blocks) {
        if (tableId !== this.tableId) continue;
        if (kind === BLOCK_KIND.append) {
          const { batch } = decodeBatch(payload);
          const [times, values] = batch.columns.map(({ values }) =>
            new BigInt64Array(values.slice(0, 8 * batch.rowCount).buffer)
          );
          times.forEach((time, k) => this.rows.push([time, values[k]]));
        } else if (kind === BLOCK_KIND.delete) {
          // One partition: a head of 24 bytes, then the places.
          const places = new Set(new Float64Array(payload.slice(24).buffer));
          this.rows.splice(0, this.rows.length, ...this.rows.filter((_, k) => !places.has(k)));
        } else assert.equal(kind, BLOCK_KIND.definition);
      }
    }
  }
}

Deno.test("a LogFollower copies a table while the writer's thread writes, deletes and makes checkpoints", async () => {
  const root = Deno.makeTempDirSync();
  const storage = await openStorage({
    root,
    heapSizeBytes: 64 << 20,
    checkpointLogBytes: 64 << 10,
    commitMode: "nosync",
  });
  const { writer, catalogue, heap } = storage;
  const table = await writer.createTable(newTable("t", { ts: "TIMESTAMP", v: "LONG" }, "ts", "YEAR"));
  const tableId = table.schema.id;
  const copy = new Copy(realFiles, join(root, "log"), await writer.holdLog("copy"), tableId);
  const firstFile = logFiles(realFiles, join(root, "log"))[0].firstLsn;
  for (let round = 0; round < 60; round++) {
    const written = writer.append([{ tableId, batches: [batchOf(TYPES, rowsOf(BigInt(round * 500), 500))] }]);
    // Moves the hold now and then, and reads while the writer writes.
    const next = copy.follow(catalogue.lsn);
    if (round % 10 === 9) await writer.holdLog("copy", next);
    await written;
    if (round % 7 === 3) {
      const rowIds = rowIdsOf(catalogue.tableById(tableId)!, [0, 5, 6]);
      await writer.change({ kind: "delete", tableId, batches: [{ rowIds, columns: [] }] });
    }
    if (round % 20 === 11) await writer.checkpoint();
  }
  copy.follow(catalogue.lsn);
  const pool = createPool(heap);
  assert.deepEqual(copy.rows, readRows(heap, pool, catalogue.tableById(tableId)!));
  pool.close();
  assert.ok(logFiles(realFiles, join(root, "log"))[0].firstLsn > firstFile, "blocks that no one needs are truncated");
  await writer.close();
  Deno.removeSync(root, { recursive: true });
});

function database(heldLogBytes?: number) {
  const messages: string[] = [];
  const files = new FaultyFiles({}, () => 0.5);
  const { store, catalogue } = openTestStore(createHeap(48 << 20), files, {
    heldLogBytes,
    log: (_, message) => messages.push(message),
  });
  const run = (command: Parameters<typeof store.execute>[0][number]) => {
    const [{ error, value }] = store.execute([command]);
    if (error !== undefined) throw error;
    return value;
  };
  const append = (from: bigint) =>
    run({ kind: "append", changes: [{ tableId: 1, batches: [batchOf(TYPES, rowsOf(from, 50))] }] });
  run({ kind: "createTable", table: newTable("t", { ts: "TIMESTAMP", v: "LONG" }, "ts") });
  const follow = (lsn: number) => new LogFollower(files, "/db/log", lsn).read(catalogue.lsn);
  const heldBytes = () => store.options.heap.counter("heldLogBytes");
  return { files, catalogue, run, append, follow, messages, heldBytes };
}

Deno.test("checkpoints keep the log from the oldest hold on, until it is released", () => {
  const { run, append, follow, catalogue, heldBytes } = database();
  append(0n);
  const lsn = run({ kind: "holdLog", name: "slow" })!;
  assert.equal(run({ kind: "holdLog", name: "fast" }), lsn);
  for (const from of [100n, 200n, 300n]) {
    append(from);
    run({ kind: "checkpoint" });
  }
  assert.deepEqual(follow(lsn).map((block) => block.lsn), [lsn, lsn + 1, lsn + 2]);
  assert.equal(catalogue.lsn, lsn + 2);
  run({ kind: "holdLog", name: "fast", lsn: lsn + 2 });
  run({ kind: "releaseLog", name: "slow" });
  append(400n);
  run({ kind: "checkpoint" });
  assert.throws(() => follow(lsn), LogGoneError);
  assert.equal(follow(lsn + 2).length, 2);
  assert.ok(heldBytes() > 0, "the metric shows what is kept");
  assert.throws(() => run({ kind: "holdLog", name: "late", lsn }), /Cannot keep the log from block/);
  assert.throws(
    () => run({ kind: "holdLog", name: "early", lsn: catalogue.lsn + 2 }),
    /Cannot keep the log from block/,
  );
  run({ kind: "close" });
});

Deno.test("a forgotten hold ends when more of the log would be kept than allowed", () => {
  const { run, append, follow, messages, catalogue } = database(5_000);
  const forgotten = run({ kind: "holdLog", name: "forgotten" })!;
  for (let k = 0; k < 8; k++) {
    append(BigInt(100 * k));
    run({ kind: "checkpoint" });
    run({ kind: "holdLog", name: "live", lsn: catalogue.lsn + 1 });
  }
  assert.throws(() => follow(forgotten), LogGoneError);
  assert.equal(messages.length, 1);
  assert.match(messages[0], /no longer kept for forgotten.* more than 5000 bytes/);
  append(1_000n);
  run({ kind: "checkpoint" });
  assert.equal(follow(catalogue.lsn).length, 1, "the other hold remains");
  run({ kind: "close" });
});

Deno.test("a LogFollower leaves out commits that were taken back, wherever a read ends", () => {
  const files = new FaultyFiles({}, () => 0.5);
  files.makeDirectory("/log");
  const log = Log.create(files, "/log", 1, () => 0.5);
  const add = (kind: number, payload: Uint8Array) =>
    log.add({ kind, flags: FLAG_LAST, tableId: 1, schemaVersion: 0 }, [payload]);
  for (let k = 0; k < 4; k++) {
    add(BLOCK_KIND.append, new Uint8Array(100));
    const lsn = add(BLOCK_KIND.append, new Uint8Array(100));
    add(BLOCK_KIND.abort, new Uint8Array(Float64Array.of(lsn).buffer));
    log.write();
    if (k === 1) log.roll();
    else log.mark();
  }
  for (const bytesMax of [1, 150, 250, 1000]) {
    const follower = new LogFollower(files, "/log", 1), found: number[] = [];
    for (let blocks = follower.read(12, bytesMax); blocks.length > 0; blocks = follower.read(12, bytesMax)) {
      found.push(...blocks.map(({ lsn }) => lsn));
    }
    assert.deepEqual(found, [1, 4, 7, 10], `${bytesMax} bytes at a time`);
    assert.equal(follower.nextLsn, 13);
  }
});

Deno.test("bulk loads are marks in the log", () => {
  const { run, follow, catalogue } = database();
  run({ kind: "checkpoint" });
  const lsn = run({ kind: "holdLog", name: "reader" })!;
  const loadId = run({ kind: "beginAppend", tableId: 1, columnIds: [0, 1] })!;
  run({ kind: "load", loadId, packed: packAppendBatch(batchOf(TYPES, rowsOf(0n, 50))) });
  run({ kind: "endLoad", loadId });
  assert.equal(catalogue.tableById(1)!.rowCount, 50);
  const blocks = follow(lsn);
  assert.deepEqual(blocks.map(({ payload }) => JSON.parse(new TextDecoder().decode(payload))), [{ op: "rows" }]);
  run({ kind: "close" });
});
