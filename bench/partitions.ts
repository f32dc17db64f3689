/**
 * What statements about partitions cost the writer and the main thread, within the engine: without HTTP and without fsync. Each segment
 * has one row.
 *
 *     deno run -A bench/partitions.ts [number of segments, default 100000] [units of partitions, default HOUR YEAR]
 */
import type { PartitionMove } from "../src/storage/contract.ts";
import { createHeap } from "../src/storage/heap.ts";
import type { PartitionUnit } from "../src/sql/plan.ts";
import { fill, newRoot, openSegments } from "./stores.ts";

const segmentCount = Number(Deno.args[0] ?? 100_000);
const units = (Deno.args.length > 1 ? Deno.args.slice(1) : ["HOUR", "YEAR"]) as PartitionUnit[];

const heap = createHeap(2 ** 30);

for (const unit of units) {
  const root = newRoot(), db = openSegments(heap, root), { catalogue, run } = db;
  fill(db, segmentCount, unit);
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
