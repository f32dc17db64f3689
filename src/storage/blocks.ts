/**
 * Payloads of the log's blocks.
 *
 *     append   row count u32, column count u32, then for each column: id, bytes of values, bytes of heap, number of symbols (u32 each);
 *              then for each column its values, heap and symbols, each part padded to 8 bytes
 *     update   as append, followed by the places of the rows
 *     delete   places
 *     places   number of partitions u32, 0 u32; for each its start i64 and number of rows f64; then, for each row, its place in its
 *              partition, f64. Before format 5: the ordinals in the table, f64 each
 *     access   JSON: a list of keys with their texts, or null
 *     others   JSON
 */
import type { TableEvent } from "../access/mod.ts";
import type { AppendBatch, AppendColumn, EncodedBatch, PartitionMove, RowBatch, TableSchema } from "./contract.ts";
import { assert } from "../assert.ts";
import { align } from "./bytes.ts";
import { columnById } from "./schema.ts";
import type { Segments } from "./segments.ts";
import { LAYOUT_WIDTH, layoutOf } from "../types/mod.ts";

/** `access`: the change of grants that results. */
export type Definition =
  & { access?: TableEvent }
  & (
    /**
     * Set for a table that was loaded with rows: the generation of the manifest that was made durable before this block.
     */
    | { op: "create"; schema: TableSchema; generation?: number }
    | { op: "schema"; schema: TableSchema; dropped: number[] }
    | { op: "drop" }
    | { op: "truncate" }
    /** Changes of rows that did not go through the log follow in the next manifest, unless it could not be written. */
    | { op: "rows" }
    /** A column has another type in the next manifest, unless it could not be written. A start reads it for that. */
    | { op: "type" }
    /** Moves whole partitions. */
    | { op: "partitions"; moves: readonly PartitionMove[] }
  );

const ZEROS = new Uint8Array(8);
const NO_BYTES = new Uint8Array(0);
const NO_SYMBOLS = new Int32Array(0);

function bytesOf(view: ArrayBufferView): Uint8Array {
  return new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength);
}

/** `places`: of an update. */
export function encodeBatch(schema: TableSchema, batch: AppendBatch, places?: Uint8Array): Uint8Array[] {
  const { rowCount, columns, payload } = batch;
  if (payload !== undefined && places === undefined) return [payload];
  const head = new Uint32Array(2 + 4 * columns.length);
  head[0] = rowCount;
  head[1] = columns.length;
  const parts: Uint8Array[] = [bytesOf(head)];
  const add = (bytes: Uint8Array) => {
    parts.push(bytes);
    if (bytes.length % 8 !== 0) parts.push(ZEROS.subarray(0, 8 - bytes.length % 8));
  };
  columns.forEach(({ columnId, values, heap, symbols }, k) => {
    const width = LAYOUT_WIDTH[layoutOf(columnById(schema, columnId)!.type)];
    const trimmed = values.subarray(0, rowCount * width);
    head.set([columnId, trimmed.length, heap?.length ?? 0, (symbols?.length ?? 0) / 2], 2 + 4 * k);
    add(trimmed);
    if (heap !== undefined) add(heap);
    if (symbols !== undefined) add(bytesOf(symbols));
  });
  if (places !== undefined) add(places);
  return parts;
}

/** The payloads of append blocks, in one buffer. */
export function encodeBatches(all: readonly { schema: TableSchema; batch: AppendBatch }[]): EncodedBatch[] {
  const encoded = all.map(({ schema, batch }) => {
    const parts = encodeBatch(schema, batch);
    return { rowCount: batch.rowCount, parts, sizeBytes: parts.reduce((sum, part) => sum + part.length, 0) };
  });
  const buffer = new ArrayBuffer(encoded.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0));
  let start = 0;
  return encoded.map(({ rowCount, parts, sizeBytes }) => {
    const payload = new Uint8Array(buffer, start, sizeBytes);
    let at = 0;
    for (const part of parts) {
      payload.set(part, at);
      at += part.length;
    }
    start += sizeBytes;
    return { rowCount, payload, buffer };
  });
}

/** The batch as columns. */
export function openedBatch(batch: RowBatch): AppendBatch {
  if ("columns" in batch) return batch;
  const { payload } = batch;
  return { ...decodeBatch(payload).batch, payload };
}

/** The ids of the columns of a payload, and the bytes of a value of each. */
export function encodedColumns({ payload, rowCount }: EncodedBatch): { columnId: number; width: number }[] {
  const head = headOf(payload);
  return Array.from({ length: head[1] }, (_, k) => ({
    columnId: head[HEAD_WORDS + COLUMN_WORDS * k],
    width: head[HEAD_WORDS + COLUMN_WORDS * k + 1] / rowCount,
  }));
}

/** Gives the columns of a payload other ids. */
export function renumberColumns({ payload }: EncodedBatch, idOf: (columnId: number) => number): void {
  const head = headOf(payload);
  for (let k = 0; k < head[1]; k++) {
    const at = HEAD_WORDS + COLUMN_WORDS * k;
    head[at] = idOf(head[at]);
  }
}

/** The words at the start of a batch, and those of each column behind them. */
export const HEAD_WORDS = 2, COLUMN_WORDS = 4;

function headOf({ buffer, byteOffset, length }: Uint8Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, length >> 2);
}

/** The batch's arrays are views of `payload`, which begins at a multiple of 8. */
export function decodeBatch(payload: Uint8Array): { batch: AppendBatch; rest: Uint8Array } {
  const { buffer, byteOffset } = payload;
  const view = new DataView(buffer, byteOffset, payload.length);
  const rowCount = view.getUint32(0, true), columnCount = view.getUint32(4, true);
  let at = 8 + 16 * columnCount;
  // Replay reads very many small blocks, so no unnecessary view is made.
  const take = (size: number) => {
    if (size === 0) return NO_BYTES;
    const bytes = payload.subarray(at, at + size);
    at += align(size, 8);
    return bytes;
  };
  const columns: AppendColumn[] = [];
  for (let k = 0; k < columnCount; k++) {
    const entry = 8 + 16 * k;
    const columnId = view.getUint32(entry, true), symbolCount = view.getUint32(entry + 12, true);
    const values = take(view.getUint32(entry + 4, true));
    const heap = take(view.getUint32(entry + 8, true));
    const symbols = symbolCount === 0 ? NO_SYMBOLS : new Int32Array(buffer, byteOffset + at, 2 * symbolCount);
    at += 8 * symbolCount;
    columns.push({ columnId, values, heap, symbols });
  }
  return { batch: { rowCount, columns }, rest: payload.subarray(at) };
}

/** Of formats before 5. */
export function decodeOrdinals(bytes: Uint8Array): Float64Array {
  return new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length >> 3);
}

/** Rows of `segments`, given by ascending ordinals, as places in their partitions. */
export function encodePlaces(ordinals: Float64Array, segments: Segments): Uint8Array {
  const starts: bigint[] = [], counts: number[] = [];
  const places = new Float64Array(ordinals.length);
  for (let at = 0; at < ordinals.length;) {
    const start = segments.partitionAt(segments.indexOfRow(ordinals[at]).index);
    const { firstRow, rowCount } = segments.partition(start)!;
    const from = at;
    for (; at < ordinals.length && ordinals[at] < firstRow + rowCount; at++) places[at] = ordinals[at] - firstRow;
    starts.push(start);
    counts.push(at - from);
  }
  const bytes = new Uint8Array(8 + 16 * starts.length + 8 * places.length);
  new Uint32Array(bytes.buffer)[0] = starts.length;
  starts.forEach((start, k) => {
    new BigInt64Array(bytes.buffer)[1 + 2 * k] = start;
    new Float64Array(bytes.buffer)[2 + 2 * k] = counts[k];
  });
  new Float64Array(bytes.buffer).set(places, 1 + 2 * starts.length);
  return bytes;
}

/** The inverse of `encodePlaces`, for the same state of the partitions. */
export function decodePlaces(bytes: Uint8Array, segments: Segments): Float64Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const partitions = view.getUint32(0, true);
  const ordinals: number[] = [];
  let at = 8 + 16 * partitions;
  for (let k = 0; k < partitions; k++) {
    const partition = segments.partition(view.getBigInt64(8 + 16 * k, true));
    for (let left = view.getFloat64(16 + 16 * k, true); left > 0; left--, at += 8) {
      const place = view.getFloat64(at, true);
      assert(partition !== undefined && place < partition.rowCount, "the row is in its partition");
      ordinals.push(partition.firstRow + place);
    }
  }
  return Float64Array.from(ordinals);
}
