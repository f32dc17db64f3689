/** Joins the batches of rows that an UPDATE or DELETE changes. */
import type { AppendColumn, ChangedBatch } from "./contract.ts";

/** One batch of all rows, in order. Heaps and dictionaries are appended. */
export function joined(batches: readonly ChangedBatch[]): ChangedBatch {
  if (batches.length === 1) return batches[0];
  const bytes = joinedBytes(batches.map(({ rowIds }) => rowIds));
  return {
    rowIds: new BigInt64Array(bytes.buffer),
    columns: batches[0].columns.map((_, i) => joinedColumns(batches.map(({ columns }) => columns[i]))),
  };
}

function joinedColumns(all: readonly AppendColumn[]): AppendColumn {
  const [{ columnId, heap, symbols }] = all;
  const values = joinedBytes(all.map((column) => column.values));
  if (!heap) return { columnId, values };
  const heaps = all.map((column) => column.heap!), heapSizes = heaps.map(({ byteLength }) => byteLength);
  const words = new Int32Array(values.buffer), valueSizes = all.map((column) => column.values.byteLength);
  if (!symbols) {
    shiftEach(words, 2, valueSizes.map((size) => size / 8), heapSizes);
    return { columnId, values, heap: joinedBytes(heaps) };
  }
  const entries = all.map((column) => column.symbols!), counts = entries.map(({ length }) => length / 2);
  const joinedEntries = new Int32Array(joinedBytes(entries).buffer);
  shiftEach(words, 1, valueSizes.map((size) => size / 4), counts);
  shiftEach(joinedEntries, 2, counts, heapSizes);
  return { columnId, values, heap: joinedBytes(heaps), symbols: joinedEntries };
}

function joinedBytes(parts: readonly ArrayBufferView[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0));
  let at = 0;
  for (const { buffer, byteOffset, byteLength } of parts) {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at);
    at += byteLength;
  }
  return bytes;
}

/** Adds to each `stride`-th word of part k the total size of the parts before it. Null codes (-1 with stride 1) stay. */
function shiftEach(words: Int32Array, stride: number, counts: readonly number[], sizes: readonly number[]): void {
  let at = 0, base = 0;
  counts.forEach((count, k) => {
    for (let i = 0; i < count; i++, at += stride) if (stride === 2 || words[at] >= 0) words[at] += base;
    base += sizes[k];
  });
}
