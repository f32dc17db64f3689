/** For benchmarks of the storage alone: a store without HTTP and fsync, and tables whose segments have one row each. */
import type { CatalogueMirror } from "../src/storage/catalogue.ts";
import type { Command } from "../src/storage/commands.ts";
import type { AppendBatch } from "../src/storage/contract.ts";
import type { SharedHeap } from "../src/storage/heap.ts";
import type { WriterOptions } from "../src/storage/options.ts";
import { batchOf, newTable } from "../src/storage/test-rows.ts";
import { openTestStore, UNSYNCED_FILES } from "../src/storage/test-store.ts";
import type { TableStore } from "../src/storage/writer.ts";
import type { PartitionUnit } from "../src/sql/plan.ts";

export const HOUR = 3_600_000_000n;
const COLUMNS = { ts: "TIMESTAMP", ...Object.fromEntries(Array.from({ length: 9 }, (_, k) => [`c${k}`, "LONG"])) };
const TYPES = Object.fromEntries(Object.values(COLUMNS).map((type, id) => [id, type]));
/** Of the table of `fill`. */
export const COLUMN_IDS: readonly number[] = Object.keys(TYPES).map(Number);
const ROWS_OF_APPEND = 10_000;

export interface BenchStore {
  store: TableStore;
  catalogue: CatalogueMirror;
  execute(command: Command): void;
  /** Executes a command and the housekeeping after it. */
  run(command: Command): void;
}

export function newRoot(): string {
  return Deno.makeTempDirSync({ prefix: "sundial-" });
}

/** Opens a store in the heap, which loses its content. */
export function openStore(
  heap: SharedHeap,
  root: string,
  options: Partial<WriterOptions> & { poolBytes?: number } = {},
): BenchStore {
  const { store, catalogue } = openTestStore(heap, UNSYNCED_FILES, {
    root,
    log: (_, message) => console.error(message),
    onDamage: (message) => console.error(message),
    memoryBytes: heap.buffer.byteLength / 2,
    random: Math.random,
    compactBytes: 4 << 20,
    evict: () => false,
    poolBytes: heap.buffer.byteLength / 4,
    ...options,
  });
  const execute = (command: Command) => {
    const [{ error }] = store.execute([command]);
    if (error !== undefined) throw error;
  };
  const run = (command: Command) => {
    execute(command);
    store.maintain();
  };
  return { store, catalogue, execute, run };
}

/** The same for the table of `fill`. */
export function openSegments(heap: SharedHeap, root: string): BenchStore {
  return openStore(heap, root, { segmentRowsMax: 1 });
}

/** A row of ten columns for each of `count` hours. */
export function rowsOf(firstHour: number, count = 1): AppendBatch {
  return batchOf(
    TYPES,
    Array.from(
      { length: count },
      (_, k) => Object.fromEntries(COLUMN_IDS.map((id) => [id, BigInt(firstHour + k) * HOUR])),
    ),
  );
}

/** Makes table 1 with `count` segments, an hour after another. */
export function fill({ run }: BenchStore, count: number, unit: PartitionUnit): void {
  run({ kind: "createTable", table: newTable("t", COLUMNS, "ts", unit) });
  for (let hour = 0; hour < count; hour += ROWS_OF_APPEND) {
    const batch = rowsOf(hour, Math.min(ROWS_OF_APPEND, count - hour));
    run({ kind: "append", changes: [{ tableId: 1, batches: [batch] }] });
    run({ kind: "checkpoint" });
  }
}
