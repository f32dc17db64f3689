/**
 * What statements about partitions cost the writer and the main thread, within the engine: without HTTP and without fsync. Each segment
 * has one row.
 *
 *     deno run -A bench/partitions.ts [number of segments, default 100000] [units of partitions, default HOUR YEAR]
 */
import type { Command } from "../src/storage/commands.ts";
import type { PartitionMove } from "../src/storage/contract.ts";
import { createHeap } from "../src/storage/heap.ts";
import { batchOf, newTable } from "../src/storage/test-rows.ts";
import type { PartitionUnit } from "../src/sql/plan.ts";
import { openTestStore, UNSYNCED_FILES } from "../src/storage/test-store.ts";

const HOUR = 3_600_000_000n;
const COLUMNS = { ts: "TIMESTAMP", ...Object.fromEntries(Array.from({ length: 9 }, (_, k) => [`c${k}`, "LONG"])) };
const TYPES = Object.fromEntries(Object.values(COLUMNS).map((type, id) => [id, type]));
const segmentCount = Number(Deno.args[0] ?? 100_000), ROWS_OF_APPEND = 10_000;
const units = (Deno.args.length > 1 ? Deno.args.slice(1) : ["HOUR", "YEAR"]) as PartitionUnit[];

const heap = createHeap(2 ** 30);

for (const unit of units) {
  const root = Deno.makeTempDirSync({ prefix: "sundial-" });
  const { store, catalogue } = openTestStore(heap, UNSYNCED_FILES, {
    root,
    memoryBytes: 2 ** 29,
    poolBytes: 2 ** 28,
    compactBytes: 4 << 20,
    evict: () => false,
    segmentRowsMax: 1,
  });
  const run = (command: Command) => {
    const [{ error }] = store.execute([command]);
    if (error !== undefined) throw error;
    store.maintain();
  };
  run({ kind: "createTable", table: newTable("t", COLUMNS, "ts", unit) });
  for (let hour = 0; hour < segmentCount; hour += ROWS_OF_APPEND) {
    const rows = Array.from(
      { length: Math.min(ROWS_OF_APPEND, segmentCount - hour) },
      (_, k) => Object.fromEntries(Object.keys(TYPES).map((id) => [id, BigInt(hour + k) * HOUR])),
    );
    run({ kind: "append", changes: [{ tableId: 1, batches: [batchOf(TYPES, rows)] }] });
    run({ kind: "checkpoint" });
  }
  const list = () => catalogue.tableById(1)!.partitions();
  const partitions = list(), middle = partitions.length >> 1;
  const move = (from: PartitionMove["from"], to: PartitionMove["to"], starts: readonly { start: bigint }[]) =>
    run({ kind: "partitions", tableId: 1, moves: starts.map(({ start }) => ({ start, from, to })) });
  const timed = (name: string, work: () => void) => {
    const start = performance.now();
    work();
    console.log(`BY ${unit}: ${name.padEnd(20)} ${(performance.now() - start).toFixed(1).padStart(8)} ms`);
  };
  timed("list all", () => void list());
  const one = partitions.slice(middle, middle + 1);
  timed("detach one", () => move("attached", "detached", one));
  timed("checkpoint", () => run({ kind: "checkpoint" }));
  timed("attach it", () => move("detached", "attached", one));
  timed("checkpoint", () => run({ kind: "checkpoint" }));
  timed("drop it", () => move("attached", "nowhere", one));
  timed("drop half of all", () => move("attached", "nowhere", partitions.slice(0, middle)));
  run({ kind: "close" });
  Deno.removeSync(root, { recursive: true });
}
