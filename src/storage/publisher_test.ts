/** Counts of users. */
import assert from "node:assert/strict";
import type { Command } from "./commands.ts";
import { randomOf } from "../testing.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap } from "./heap.ts";
import type { MemoryBlock } from "./memory.ts";
import { LIMITS } from "./packing.ts";
import type { Page } from "./page.ts";
import type { PageList } from "./page-list.ts";
import { batchOf, newTable, rowIdsOf } from "./test-rows.ts";
import { openTestStore } from "./test-store.ts";
import type { Table } from "./table.ts";

const DAY = 86_400_000_000n;
const TYPES = { 0: "TIMESTAMP", 1: "LONG", 2: "VARCHAR" };
const heap = createHeap(48 << 20);

/** Fails unless what a table uses is counted as often as it does. */
function assertCounts({ segments, published, detached, data }: Table): void {
  assert.equal(segments, published);
  const refs = new Map<PageList | Page | MemoryBlock, number>(), bytes = new Map<number, number>();
  /** True for the first user. */
  const use = (item: PageList | Page | MemoryBlock) => {
    refs.set(item, 1 + (refs.get(item) ?? 0));
    return refs.get(item) === 1;
  };
  const useExtents = (extents: ReturnType<Page["extents"]>) => {
    for (const [file, size] of extents) bytes.set(file, size + (bytes.get(file) ?? 0));
  };
  for (const list of [segments, ...detached.values()].flatMap(({ lists }) => lists)) {
    if (!use(list)) continue;
    useExtents(list.ownExtents());
    for (const page of list.pages) {
      if (!use(page)) continue;
      useExtents(page.extents());
      if (page.block !== undefined) use(page.block);
      for (const { chunks } of page.isLive ? page.segments : []) {
        for (const chunk of chunks) {
          if (chunk?.values !== undefined) use(chunk.values);
          chunk?.texts.forEach(use);
        }
      }
    }
  }
  for (const [item, count] of refs) assert.equal(item.refs, count);
  for (const { id, liveBytes } of data.list.values()) assert.equal(liveBytes, bytes.get(id) ?? 0);
}

Deno.test("publications count each user of lists, pages, memory and files once, whatever a commit exchanges", () => {
  const limits = { ...LIMITS };
  try {
    for (let seed = 1; seed <= 6; seed++) {
      const random = randomOf(seed);
      Object.assign(LIMITS, seed % 2 === 0 ? limits : { pageMin: 2, pageMax: 5, listMax: 3, listMin: 2 });
      const options = { segmentRowsMax: 20, evict: () => false };
      const { store, catalogue } = openTestStore(heap, new FaultyFiles({}, () => 0.5), options);
      const run = (command: Command) => {
        const [{ error }] = store.execute([command]);
        if (error !== undefined) throw error;
      };
      run({ kind: "createTable", table: newTable("t", { ts: "TIMESTAMP", x: "LONG", s: "VARCHAR" }, "ts") });
      const rowCount = () => store.tables.get(1)!.rowCount;
      for (let step = 0, day = 0; step < 300; step++) {
        const what = random(20);
        day += random(12) === 0 ? 1 : 0;
        if (what < 14) {
          const late = random(4) === 0 ? random(5) : 0;
          const rows = Array.from({ length: 1 + random(9) }, (_, k) => (
            {
              0: BigInt(Math.max(0, day - late)) * DAY + BigInt(step * 100 + k),
              1: BigInt(k),
              2: "x".repeat(random(40)),
            }
          ));
          run({ kind: "append", changes: [{ tableId: 1, batches: [batchOf(TYPES, rows)] }] });
        } else if (what < 16 && rowCount() > 0) {
          const rowIds = rowIdsOf(catalogue.tableById(1)!, [random(rowCount())]);
          run({ kind: "delete", tableId: 1, batches: [{ rowIds, columns: [] }] });
        } else if (what === 16) run({ kind: "checkpoint" });
        else if (what === 17) store.maintain(true);
        else {
          const from = what === 18 ? "attached" : "detached", snapshot = catalogue.tableById(1)!;
          const found = from === "attached" ? snapshot.partitions() : snapshot.detachedPartitions();
          const known = new Set(snapshot.partitions().map(({ start }) => start));
          const moved = found[random(Math.max(1, found.length))];
          if (moved === undefined || (from === "detached" && known.has(moved.start))) continue;
          if (from === "attached" && snapshot.detachedPartitions().some(({ start }) => start === moved.start)) continue;
          const to = from === "attached" ? "detached" : "attached";
          run({ kind: "partitions", tableId: 1, moves: [{ start: moved.start, from, to }] });
        }
        try {
          assertCounts(store.tables.get(1)!);
        } catch (error) {
          throw new Error(`seed ${seed}, step ${step}`, { cause: error });
        }
      }
      run({ kind: "dropTable", tableId: 1 });
      store.maintain();
      for (const tag of ["pages", "tail"] as const) {
        assert.equal(heap.usedBytes(tag), 0, "nothing stays of a dropped table");
      }
      run({ kind: "close" });
    }
  } finally {
    Object.assign(LIMITS, limits);
  }
});
