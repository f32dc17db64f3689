/**
 * What a commit of one row, the first small query after it, a checkpoint and an open cost by the number of segments of a
 * table, within the engine: without HTTP and without fsync.
 *
 *     deno run -A --v8-flags=--expose-gc bench/segments.ts [number of segments, default 100000]
 *
 * The heap is that of writer and main together, with the table open and a query over all of it planned, less that before.
 */
import { CatalogueMirror } from "../src/storage/catalogue.ts";
import type { Command } from "../src/storage/commands.ts";
import { type Files, realFiles } from "../src/storage/files.ts";
import { createHeap } from "../src/storage/heap.ts";
import { formatPool } from "../src/storage/pool.ts";
import { batchOf, newTable } from "../src/storage/test-rows.ts";
import { TableStore } from "../src/storage/writer.ts";

const HOUR = 3_600_000_000n;
const COLUMNS = { ts: "TIMESTAMP", ...Object.fromEntries(Array.from({ length: 9 }, (_, k) => [`c${k}`, "LONG"])) };
const TYPES = Object.fromEntries(Object.values(COLUMNS).map((type, id) => [id, type]));
const many = Number(Deno.args[0] ?? 100_000);

const files: Files = {
  ...realFiles,
  open(path, mode) {
    const file = realFiles.open(path, mode);
    return Object.assign(Object.create(file), { path, sync() {}, dataSync() {} });
  },
  syncDirectory() {},
};

const heap = createHeap(2 ** 30);

function open(root: string): { store: TableStore; catalogue: CatalogueMirror; run(command: Command): void } {
  heap.format();
  formatPool(heap, 1 << 20);
  const catalogue = new CatalogueMirror(heap, files);
  const store = new TableStore({
    files,
    root,
    heap,
    commitMode: "sync",
    log: (_, message) => console.error(message),
    onDamage: (message) => console.error(message),
    publish: (publication) => catalogue.apply(publication),
    checkpointLogBytes: 2 ** 40,
    memoryBytes: 2 ** 29,
    random: Math.random,
    nowMicros: () => 0n,
    reserveBytes: 0,
    compactBytes: 4 << 20,
    evict: () => false,
  });
  const run = (command: Command) => {
    const [{ error }] = store.execute([command]);
    if (error !== undefined) throw error;
    store.maintain();
  };
  return { store, catalogue, run };
}

const rowsOf = (hours: number[]) =>
  batchOf(TYPES, hours.map((hour) => Object.fromEntries(Object.keys(TYPES).map((id) => [id, BigInt(hour) * HOUR]))));

/** After a collection of garbage, if the process may ask for one. */
function heapMiB(): number {
  (globalThis as { gc?: () => void }).gc?.();
  return Deno.memoryUsage().heapUsed / 2 ** 20;
}

function median(times: number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1];
}

function measure(count: number) {
  const root = Deno.makeTempDirSync({ prefix: "sundial-" });
  const times: Record<string, number[]> = { commit: [], query: [], checkpoint: [], open: [] };
  const timed = (name: string, work: () => void) => {
    const start = performance.now();
    work();
    times[name].push(performance.now() - start);
  };
  let db = open(root);
  db.run({ kind: "createTable", table: newTable("t", COLUMNS, "ts", "HOUR") });
  const append = (hours: number[]) => db.run({ kind: "append", changes: [{ tableId: 1, batches: [rowsOf(hours)] }] });
  for (let hour = 0; hour < count; hour += 10_000) {
    append(Array.from({ length: Math.min(10_000, count - hour) }, (_, k) => hour + k));
    db.run({ kind: "checkpoint" });
  }
  let hour = count;
  const columnIds = Object.keys(TYPES).map(Number);
  for (let round = 0; round < 40; round++) {
    timed("commit", () => append([hour]));
    timed("query", () => {
      const low = BigInt(hour) * HOUR;
      const { segments } = db.catalogue.tableById(1)!.source(columnIds, [[low, low + HOUR]]);
      if (segments.length !== 1) throw new Error("one segment is read");
    });
    hour++;
    if (round % 8 === 0) timed("checkpoint", () => db.run({ kind: "checkpoint" }));
  }
  db.run({ kind: "close" });
  const heapBefore = heapMiB();
  for (let round = 0; round < 3; round++) {
    timed("open", () => {
      db = open(root);
      db.run({ kind: "open", tableId: 1 });
    });
    if (round === 2) {
      const { segments } = db.catalogue.tableById(1)!.source(columnIds);
      for (const { rowCount } of segments) if (rowCount === 0) throw new Error("segments have rows");
      times.heap = [heapMiB() - heapBefore];
    }
    db.run({ kind: "close" });
  }
  Deno.removeSync(root, { recursive: true });
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, median(all)]));
}

measure(100);
const few = measure(100), more = measure(many);
console.log(`of one row of ten columns, in ms (heap: MiB): 100 segments, ${many} segments, ratio`);
for (const name of Object.keys(few)) {
  console.log(
    `${name.padEnd(10)} ${few[name].toFixed(3).padStart(9)} ${more[name].toFixed(3).padStart(10)} ` +
      `${(more[name] / few[name]).toFixed(1).padStart(8)}`,
  );
}
