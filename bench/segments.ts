/**
 * What a commit of one row, the first small query after it, a checkpoint and an open cost by the number of segments of a
 * table, within the engine: without HTTP and without fsync. Each segment has one row. The table with few segments and the one with
 * many are measured in turn.
 *
 *     deno run -A --v8-flags=--expose-gc bench/segments.ts [number of segments, default 100000] [units of partitions, default HOUR NONE YEAR]
 *
 * The heap is that of writer and main together, with the table open and a query over all of it planned, less that before.
 */
import type { CatalogueMirror } from "../src/storage/catalogue.ts";
import type { Command } from "../src/storage/commands.ts";
import { createHeap } from "../src/storage/heap.ts";
import { batchOf, newTable } from "../src/storage/test-rows.ts";
import type { PartitionUnit } from "../src/sql/plan.ts";
import { openTestStore, UNSYNCED_FILES } from "../src/storage/test-store.ts";
import type { TableStore } from "../src/storage/writer.ts";

const HOUR = 3_600_000_000n;
const COLUMNS = { ts: "TIMESTAMP", ...Object.fromEntries(Array.from({ length: 9 }, (_, k) => [`c${k}`, "LONG"])) };
const TYPES = Object.fromEntries(Object.values(COLUMNS).map((type, id) => [id, type]));
const FEW = 100, many = Number(Deno.args[0] ?? 100_000);
const units = (Deno.args.length > 1 ? Deno.args.slice(1) : ["HOUR", "NONE", "YEAR"]) as PartitionUnit[];

const heap = createHeap(2 ** 30);

function open(root: string): { store: TableStore; catalogue: CatalogueMirror; run(command: Command): void } {
  const { store, catalogue } = openTestStore(heap, UNSYNCED_FILES, {
    root,
    log: (_, message) => console.error(message),
    onDamage: (message) => console.error(message),
    memoryBytes: 2 ** 29,
    random: Math.random,
    compactBytes: 4 << 20,
    evict: () => false,
    segmentRowsMax: 1,
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

type Times = Record<"commit" | "query" | "checkpoint" | "open" | "heap", number[]>;

const columnIds = Object.keys(TYPES).map(Number);

/** A root with a table of `count` segments. */
function build(count: number, unit: PartitionUnit): string {
  const root = Deno.makeTempDirSync({ prefix: "sundial-" });
  const db = open(root);
  db.run({ kind: "createTable", table: newTable("t", COLUMNS, "ts", unit) });
  for (let hour = 0; hour < count; hour += 10_000) {
    const hours = Array.from({ length: Math.min(10_000, count - hour) }, (_, k) => hour + k);
    db.run({ kind: "append", changes: [{ tableId: 1, batches: [rowsOf(hours)] }] });
    db.run({ kind: "checkpoint" });
  }
  db.run({ kind: "close" });
  return root;
}

/** Opens the table and changes it. `hour`: of the next row. */
function measure(root: string, hour: number, times: Times): number {
  const timed = (name: keyof Times, work: () => void) => {
    const start = performance.now();
    work();
    times[name].push(performance.now() - start);
  };
  const heapBefore = heapMiB();
  let db!: ReturnType<typeof open>;
  timed("open", () => {
    db = open(root);
    db.run({ kind: "open", tableId: 1 });
  });
  for (let round = 0; round < 16; round++, hour++) {
    timed("commit", () => db.run({ kind: "append", changes: [{ tableId: 1, batches: [rowsOf([hour])] }] }));
    timed("query", () => {
      const low = BigInt(hour) * HOUR;
      const { segments } = db.catalogue.tableById(1)!.source(columnIds, [[low, low + HOUR]]);
      if (segments.length !== 1) throw new Error("one segment is read");
    });
    if (round % 4 === 3) timed("checkpoint", () => db.run({ kind: "checkpoint" }));
  }
  const { segments } = db.catalogue.tableById(1)!.source(columnIds);
  for (const { rowCount } of segments) if (rowCount === 0) throw new Error("segments have rows");
  times.heap.push(heapMiB() - heapBefore);
  db.run({ kind: "close" });
  return hour;
}

const newTimes = (): Times => ({ commit: [], query: [], checkpoint: [], open: [], heap: [] });

for (const unit of units) {
  const sides = [FEW, many].map((count) => ({ root: build(count, unit), hour: count, times: newTimes() }));
  // The first round warms up.
  for (let round = 0; round < 8; round++) {
    for (const side of sides) {
      if (round === 1) side.times = newTimes();
      side.hour = measure(side.root, side.hour, side.times);
    }
  }
  console.log(`BY ${unit}: one row of ten columns, in ms (heap: MiB): ${FEW} segments, ${many} segments, ratio`);
  for (const name of Object.keys(sides[0].times) as (keyof Times)[]) {
    const [few, more] = sides.map(({ times }) => median(times[name]));
    console.log(
      `${name.padEnd(10)} ${few.toFixed(3).padStart(9)} ${more.toFixed(3).padStart(10)} ` +
        `${(more / few).toFixed(1).padStart(8)}`,
    );
  }
  for (const { root } of sides) Deno.removeSync(root, { recursive: true });
}
