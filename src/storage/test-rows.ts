/** Test helpers: rows as plain values, in and out. */
import {
  type AppendBatch,
  type AppendColumn,
  type Catalogue,
  ROW_BITS,
  type StorageWriter,
  type TableSnapshot,
} from "./contract.ts";
import type { SharedHeap } from "./heap.ts";
import type { SharedPool } from "./pool.ts";
import type { NewTable } from "../sql/plan.ts";
import { ARRAY_CONSTRUCTOR, LAYOUT_WIDTH, layoutOf, typeOf, type Value } from "../types/mod.ts";

const utf8 = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export function newTable(
  name: string,
  columns: Record<string, string>,
  timestamp?: string,
  partitionBy: NewTable["partitionBy"] = "DAY",
): NewTable {
  const names = Object.keys(columns);
  return {
    name,
    columns: names.map((column) => ({
      name: column,
      type: columns[column],
      indexed: false,
      symbolCapacity: 256,
      symbolCached: true,
    })),
    timestamp: timestamp === undefined ? -1 : names.indexOf(timestamp),
    partitionBy: timestamp === undefined ? "NONE" : partitionBy,
    wal: true,
    dedupKeys: [],
  };
}

/** Values by column id; text and symbols are strings, 64-bit integers bigints. */
export function batchOf(types: Record<number, string>, rows: readonly Record<number, Value>[]): AppendBatch {
  const columns = Object.entries(types).map(([id, type]): AppendColumn => {
    const values = rows.map((row) => row[Number(id)]);
    const layout = layoutOf(type);
    if (layout === "text") return { columnId: Number(id), ...texts(values as (string | null)[]) };
    if (layout === "symbol") {
      const distinct = [...new Set(values.filter((value) => value !== null))] as string[];
      const { values: pairs, heap } = texts(distinct);
      const codes = Int32Array.from(values, (value) => (value === null ? -1 : distinct.indexOf(value as string)));
      return {
        columnId: Number(id),
        values: new Uint8Array(codes.buffer),
        heap,
        symbols: new Int32Array(pairs.buffer as ArrayBuffer),
      };
    }
    // deno-lint-ignore no-explicit-any
    const array = new ARRAY_CONSTRUCTOR[layout](values.map((value) => value ?? typeOf(type).nullValue) as any);
    return { columnId: Number(id), values: new Uint8Array(array.buffer) };
  });
  return { rowCount: rows.length, columns };
}

function texts(values: (string | null)[]): { values: Uint8Array; heap: Uint8Array } {
  const pairs = new Int32Array(2 * values.length);
  const parts: number[] = [];
  values.forEach((value, k) => {
    const bytes = value === null ? undefined : utf8.encode(value);
    pairs[2 * k] = parts.length;
    pairs[2 * k + 1] = bytes?.length ?? -1;
    if (bytes !== undefined) parts.push(...bytes);
  });
  return { values: new Uint8Array(pairs.buffer), heap: Uint8Array.from(parts) };
}

/** Opens all tables, as a session does on the first use of a table. */
export async function openTables(
  { catalogue, writer }: { catalogue: Catalogue; writer: StorageWriter },
): Promise<void> {
  for (const { schema } of catalogue.tables()) await writer.open(schema.id);
}

/** All rows of a snapshot, each an array of the columns' values. */
export function readRows(
  heap: SharedHeap,
  pool: SharedPool,
  snapshot: TableSnapshot,
  columnIds = snapshot.schema.columns.map((c) => c.id),
): Value[][] {
  const types = columnIds.map((id) => snapshot.schema.columns.find((column) => column.id === id)!.type);
  const source = snapshot.source(columnIds);
  const rows: Value[][] = [], lease = pool.lease();
  [...source.segments].forEach((segment, s) => {
    const first = rows.length;
    for (let row = 0; row < segment.rowCount; row++) rows.push([]);
    columnIds.forEach((_, c) => {
      const chunk = segment.chunks[c];
      const address = chunk === undefined ? 0 : lease.pin(source, s, c);
      const layout = layoutOf(types[c]);
      for (let row = 0; row < segment.rowCount; row++) {
        rows[first + row].push(
          chunk === undefined
            ? null
            : valueAt(heap, layout, address + row * LAYOUT_WIDTH[layout], source.dictionaries[c]?.entries ?? 0),
        );
      }
      if (chunk !== undefined) lease.unpin(source, s, c);
    });
  });
  return rows;
}

/** The ids of the rows at these ordinals of a snapshot. */
export function rowIdsOf(snapshot: TableSnapshot, ordinals: readonly number[]): BigInt64Array {
  let first = 0;
  const segments = [...snapshot.source([]).segments].map(({ rowCount, uid }) => ({
    first,
    end: first += rowCount,
    uid,
  }));
  return BigInt64Array.from(ordinals, (row) => {
    const segment = segments.find(({ end }) => row < end)!;
    return (BigInt(segment.uid) << BigInt(ROW_BITS)) | BigInt(row - segment.first);
  });
}

function textAt(heap: SharedHeap, at: number): string | null {
  const length = heap.i32[at / 4 + 1];
  return length < 0 ? null : decoder.decode(heap.u8.slice(heap.u32[at / 4], heap.u32[at / 4] + length));
}

function valueAt(heap: SharedHeap, layout: string, at: number, entries: number): Value {
  switch (layout) {
    case "text":
      return textAt(heap, at);
    case "symbol":
      return heap.i32[at / 4] < 0 ? null : textAt(heap, entries + 8 * heap.i32[at / 4]);
    case "i64":
      return heap.i64[at / 8] === -(2n ** 63n) ? null : heap.i64[at / 8];
    case "f64":
      return Number.isNaN(heap.f64[at / 8]) ? null : heap.f64[at / 8];
    case "i32":
      return heap.i32[at / 4] === -(2 ** 31) ? null : heap.i32[at / 4];
    case "i16":
      return heap.i16[at / 2];
    default:
      return heap.i8[at];
  }
}
