/**
 * What a commit of one row, the first small query after it, a checkpoint and an open cost by the number of segments of a
 * table, within the engine: without HTTP and without fsync. Each segment has one row. The table with few segments and the one with
 * many are measured in turn.
 *
 *     deno run -A --v8-flags=--expose-gc bench/segments.ts [number of segments, default 100000] [units of partitions, default HOUR NONE YEAR]
 *
 * The heap is that of writer and main together, with the table open and a query over all of it planned, less that before.
 */
import { createHeap } from "../src/storage/heap.ts";
import type { PartitionUnit } from "../src/sql/plan.ts";
import { median } from "./report.ts";
import { type BenchStore, COLUMN_IDS, fill, HOUR, newRoot, openSegments, rowsOf } from "./stores.ts";

const FEW = 100, many = Number(Deno.args[0] ?? 100_000);
const units = (Deno.args.length > 1 ? Deno.args.slice(1) : ["HOUR", "NONE", "YEAR"]) as PartitionUnit[];

const heap = createHeap(2 ** 30);

/** After a collection of garbage, if the process may ask for one. */
function heapMiB(): number {
  (globalThis as { gc?: () => void }).gc?.();
  return Deno.memoryUsage().heapUsed / 2 ** 20;
}

type Times = Record<"commit" | "query" | "checkpoint" | "open" | "heap", number[]>;

/** A root with a table of `count` segments. */
function build(count: number, unit: PartitionUnit): string {
  const root = newRoot(), db = openSegments(heap, root);
  fill(db, count, unit);
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
  let db!: BenchStore;
  timed("open", () => {
    db = openSegments(heap, root);
    db.run({ kind: "open", tableId: 1 });
  });
  for (let round = 0; round < 16; round++, hour++) {
    timed("commit", () => db.run({ kind: "append", changes: [{ tableId: 1, batches: [rowsOf(hour)] }] }));
    timed("query", () => {
      const low = BigInt(hour) * HOUR;
      const { segments } = db.catalogue.tableById(1)!.source(COLUMN_IDS, [[low, low + HOUR]]);
      if (segments.length !== 1) throw new Error("one segment is read");
    });
    if (round % 4 === 3) timed("checkpoint", () => db.run({ kind: "checkpoint" }));
  }
  const { segments } = db.catalogue.tableById(1)!.source(COLUMN_IDS);
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
