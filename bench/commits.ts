/**
 * What a commit of rows for many tables costs by its number of tables, within the engine: without HTTP and without fsync. Each table gets
 * rows of six columns, as many in each commit, within some days.
 *
 *     deno run -A --v8-flags=--no-parallel-scavenge bench/commits.ts [tables, default 200] [rows of a table in a commit, default 50] [commits, default 200]
 *
 * Prints the median of the commits, and of those after the first half.
 */
import type { AppendBatch } from "../src/storage/contract.ts";
import { createHeap } from "../src/storage/heap.ts";
import { batchOf, newTable } from "../src/storage/test-rows.ts";
import { median } from "./report.ts";
import { newRoot, openStore } from "./stores.ts";

const [tableCount, rowCount, commits] = [200, 50, 200].map((n, k) => Number(Deno.args[k] ?? n));
/** As many rows as a day has. */
const ROWS_OF_DAY = 1_000, DAY = 86_400_000_000;
const COLUMNS = {
  symbol: "SYMBOL",
  side: "SYMBOL",
  price: "DOUBLE",
  amount: "DOUBLE",
  trader: "LONG",
  timestamp: "TIMESTAMP",
};
const TYPES = Object.fromEntries(Object.values(COLUMNS).map((type, id) => [id, type]));

function batchFrom(first: number): AppendBatch {
  return batchOf(
    TYPES,
    Array.from({ length: rowCount }, (_, k) => {
      const row = first + k;
      return {
        0: `SYM${row * 7919 % 100}`,
        1: row % 2 === 0 ? "buy" : "sell",
        2: (row * 31 % 10_000) / 100,
        3: (row * 17 % 10_000) / 1000,
        4: BigInt(row * 65_537 % 1_000_000),
        5: BigInt(Math.floor(row * DAY / ROWS_OF_DAY)),
      };
    }),
  );
}

const root = newRoot(), heap = createHeap(2 ** 30), { store, run } = openStore(heap, root);
for (let k = 0; k < tableCount; k++) {
  run({ kind: "createTable", table: newTable(`t${k}`, COLUMNS, "timestamp") });
}
const tableIds = [...store.tables.keys()], times: number[] = [];
for (let commit = 0; commit < commits; commit++) {
  const changes = tableIds.map((tableId) => ({ tableId, batches: [batchFrom(commit * rowCount)] }));
  const start = performance.now();
  run({ kind: "append", changes });
  times.push(performance.now() - start);
}
const perTable = (some: number[]) => `${(1000 * median(some) / tableCount).toFixed(1)} us a table`;
console.log(
  `${commits} commits of ${rowCount} rows for each of ${tableCount} tables: first ${
    perTable(times.slice(0, 20))
  }, all ${perTable(times)}, second half ${perTable(times.slice(commits >> 1))}`,
);
run({ kind: "close" });
Deno.removeSync(root, { recursive: true });
