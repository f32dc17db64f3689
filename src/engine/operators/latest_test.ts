import assert from "node:assert/strict";
import { createRegistry } from "../../sql/functions/mod.ts";
import type { Column, Expr, LatestNode } from "../../sql/plan.ts";
import type { ColumnChunk, ScanSource } from "../../storage/contract.ts";
import { setValue, TextArena, valueAt } from "../columns.ts";
import type { Pool, QueryContext } from "../contract.ts";
import {
  chunkAt,
  col,
  fn,
  lit,
  randomFrom,
  type Row,
  rowsOf,
  scanOf,
  segmentOf,
  sourceOf,
  spaceOfRows,
  testContext,
} from "../testing.ts";
import { createOperator } from "./mod.ts";

const COLUMNS: Column[] = [
  { name: "t", type: "TIMESTAMP" },
  { name: "y", type: "SYMBOL" },
  { name: "n", type: "LONG" },
  { name: "s", type: "VARCHAR" },
];
const STATS = { nullCount: 0 };

/** A stored table of segments; `pins` records which chunks were read. */
function stored(
  rows: Row[],
  segmentRows: number,
  symbols: string[],
): {
  context: QueryContext & { memory: { usedBytes: number } };
  source: ScanSource;
  pins: string[];
  open: Set<string>;
} {
  const pins: string[] = [], open = new Set<string>(), addresses = new Map<string, number>();
  const pool: Pool = {
    pin: (_, segment, column) => {
      pins.push(`${segment}.${column}`);
      open.add(`${segment}.${column}`);
      return addresses.get(`${segment}.${column}`)!;
    },
    unpin: (_, segment, column) => {
      open.delete(`${segment}.${column}`);
    },
    gather: () => false,
    summaries: () => false,
    selectRows: () => undefined,
    maskRows: () => undefined,
    listRows: () => {},
    readOffsets: () => undefined,
    vectorCounts: () => ({ skipped: 0, whole: 0, tested: 0, withExceptions: 0, withoutCodes: 0 }),
    gatherRows: () => false,
    firstAt: () => undefined,
    takeFrameCounts: () => ({ found: 0, read: 0 }),
    isIndexed: () => false,
    present: () => undefined,
    find: () => undefined,
  };
  const context = testContext(1 << 28, { pool, functions: createRegistry() });
  const { heap } = context;
  const space = spaceOfRows(heap), arena = new TextArena(space), entries = space.allocate(8 * symbols.length);
  symbols.forEach((symbol, code) => setValue(heap, "STRING", entries, code, symbol, arena));
  const segments = [];
  for (let from = 0, ordinal = 0; from < rows.length; from += segmentRows, ordinal++) {
    const part = rows.slice(from, from + segmentRows);
    const chunks = COLUMNS.map(({ type }, c): ColumnChunk | undefined => {
      // A column added later is not in the first segment.
      if (c === 3 && ordinal === 0) return undefined;
      const address = space.allocate(part.length * 8);
      addresses.set(`${ordinal}.${c}`, address);
      let stats: ColumnChunk["stats"] = STATS;
      if (type === "SYMBOL") {
        const codes = part.map((row) => row[c] === null ? -1 : symbols.indexOf(row[c] as string));
        codes.forEach((code, i) => heap.i32[address / 4 + i] = code);
        const present = codes.filter((code) => code >= 0);
        stats = {
          nullCount: codes.length - present.length,
          min: present.length > 0 ? Math.min(...present) : undefined,
          max: present.length > 0 ? Math.max(...present) : undefined,
        };
      } else part.forEach((row, i) => setValue(heap, type, address, i, row[c], arena));
      return chunkAt(0, stats);
    });
    segments.push(segmentOf(ordinal, part.length, chunks, [part[0][0] as bigint, part.at(-1)![0] as bigint]));
  }
  const dictionaries = [undefined, { tableId: 1, columnId: 1, entries, count: symbols.length }, undefined, undefined];
  const source = sourceOf(segments, { dictionaries });
  context.sources.push(source);
  return {
    context,
    source,
    pins,
    open,
  };
}

function latestOf(rows: Row[], keys: number[]): Row[] {
  const keyOf = (row: Row) => keys.map((key) => `${row[key]}`).join();
  const last = new Map(rows.map((row) => [keyOf(row), row]));
  return rows.filter((row) => last.get(keyOf(row)) === row);
}

const base = { timestamp: 0, order: "asc" as const };
const scan = scanOf(COLUMNS, base);

function planOf(keys: number[], predicate?: Expr): LatestNode {
  return {
    node: "latest",
    input: { ...scan, predicate },
    columns: COLUMNS,
    time: { kind: "column", index: 0, type: "TIMESTAMP" },
    keys: keys.map((key) => col(key, COLUMNS[key].type)),
    ...base,
  };
}

function run(table: ReturnType<typeof stored>, keys: number[], predicate?: Expr): Row[] {
  const rows = rowsOf(planOf(keys, predicate), table.context);
  assert.equal(table.open.size, 0);
  assert.equal(table.context.memory.usedBytes, 0);
  return rows;
}

function randomTable(symbols: string[], count: number): Row[] {
  const random = randomFrom(11);
  return Array.from(
    { length: count },
    (
      _,
      n,
    ): Row => [
      BigInt(Math.floor(n / 3)),
      random() % 9 === 0 ? null : symbols[random() % symbols.length],
      BigInt(n % 40),
      n < 500 ? null : `row ${n % 700}`,
    ],
  );
}

Deno.test("latest by symbol equals the last rows, and reads only the necessary segments", () => {
  const symbols = Array.from({ length: 30 }, (_, k) => `s${k}`);
  const rows = randomTable(symbols, 12_000);
  const table = stored(rows, 500, symbols);
  assert.deepEqual(run(table, [1]), latestOf(rows, [1]));
  assert.deepEqual(table.pins.filter((pin) => pin.endsWith(".1") && !pin.startsWith("23.")), []);
  // A symbol that occurs only in old segments is found there; segments that cannot contain it are skipped.
  const old: Row[] = [[-2n, "only here", 0n, null], [-1n, "s3", 0n, null], ...rows.slice(1_000)];
  const longer = stored(old, 500, [...symbols, "only here", "nowhere"]);
  assert.deepEqual(run(longer, [1]), latestOf(old, [1]));
  assert.deepEqual(longer.pins.slice(0, 4), ["22.1", "21.1", "0.1", "0.0"]);
});

Deno.test("latest by symbol stops at the row with the last of the symbols, and runs again with its buffers", () => {
  const symbols = ["a", "b", "c"];
  const rows = Array.from({ length: 1_000 }, (_, n): Row => [BigInt(n), symbols[n % 3], BigInt(n), `row ${n}`]);
  const table = stored(rows, 500, symbols);
  let rowsRead = 0;
  const operator = createOperator(planOf([1]), { ...table.context, countRead: (count) => rowsRead += count });
  const times = () => {
    const found: unknown[] = [];
    for (let batch = operator.next(); batch !== undefined; batch = operator.next()) {
      for (let row = 0; row < batch.rowCount; row++) found.push(valueAt(table.context.heap, batch.columns[0], row));
    }
    return found;
  };
  assert.deepEqual(times(), [997n, 998n, 999n]);
  const used = table.context.memory.usedBytes;
  for (let k = 0; k < 3; k++) {
    assert.ok(operator.rewind!());
    assert.deepEqual(times(), [997n, 998n, 999n]);
  }
  assert.equal(table.context.memory.usedBytes, used);
  assert.equal(rowsRead, 4 * 3);
  operator.close();
  assert.equal(table.open.size, 0);
  assert.equal(table.context.memory.usedBytes, 0);
});

Deno.test("latest by other columns groups the rows", () => {
  const symbols = ["a", "b"], rows = randomTable(symbols, 3_000), table = stored(rows, 500, symbols);
  assert.deepEqual(run(table, [2]), latestOf(rows, [2]));
  assert.deepEqual(run(table, [3]), latestOf(rows, [3]));
  assert.deepEqual(run(table, [1, 2]), latestOf(rows, [1, 2]));
  const predicate = fn(">", "BOOLEAN", col(2, "LONG"), lit(10n, "LONG"));
  assert.deepEqual(run(table, [2], predicate), latestOf(rows.filter((row) => (row[2] as bigint) > 10n), [2]));
});

Deno.test("latest by symbols under a condition stops when all keys are found, and groups the rows if some are old", () => {
  const symbols = ["a", "b", "c"], predicate = fn(">=", "BOOLEAN", col(2, "LONG"), lit(0n, "LONG"));
  const rows = Array.from({ length: 384_000 }, (_, n): Row => [BigInt(n), symbols[n % 2], BigInt(n % 7), null]);
  const rowsRead = (rows: Row[], expected: Row[]) => {
    const table = stored(rows, 64_000, symbols);
    let count = 0;
    const found = rowsOf(planOf([1], predicate), { ...table.context, countRead: (more) => count += more });
    assert.deepEqual(found, expected);
    assert.equal(table.open.size, 0);
    assert.equal(table.context.memory.usedBytes, 0);
    return count;
  };
  const old = rows.with(5, [5n, "c", 1n, null]).with(8, [8n, "c", -1n, null]);
  assert.ok(rowsRead(old, [old[5], ...rows.slice(-2)]) > 1.5 * rows.length);
  const fresh = rows.with(-9, [BigInt(rows.length - 9), "c", 1n, null]);
  assert.ok(rowsRead(fresh, [fresh.at(-9)!, ...rows.slice(-2)]) < 2_000);
});
