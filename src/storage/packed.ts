/**
 * A batch of rows as one buffer, so that structured cloning between threads need not walk through it:
 *
 *     rowCount u32, columnCount u32, then for each column: values, heap and symbols sizes in bytes (u32 each, 2^32 - 1 for
 *     none), then the columns' bytes in the same order, each part aligned to 8 bytes.
 */
import type { AppendBatch, AppendColumn, ChangedBatch } from "./contract.ts";

const align = (size: number): number => (size + 7) & ~7;

/** The parts of `batch` may be in shared memory; they are copied. */
export function packAppendBatch(batch: AppendBatch): Uint8Array {
  const head = 8 + batch.columns.length * 12;
  let size = align(head);
  for (const column of batch.columns) {
    size += align(column.values.byteLength) + align(column.heap?.byteLength ?? 0) +
      align(column.symbols?.byteLength ?? 0);
  }
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, batch.rowCount, true);
  view.setUint32(4, batch.columns.length, true);
  let at = align(head);
  batch.columns.forEach((column, i) => {
    const symbols = column.symbols &&
      new Uint8Array(column.symbols.buffer, column.symbols.byteOffset, column.symbols.byteLength);
    [column.values, column.heap, symbols].forEach((part, k) => {
      view.setUint32(8 + 12 * i + 4 * k, part?.byteLength ?? 0xffffffff, true);
      if (!part) return;
      bytes.set(part, at);
      at += align(part.byteLength);
    });
  });
  return bytes;
}

/** The inverse of `packAppendBatch`. The parts are views of `bytes`. */
export function unpackAppendBatch(bytes: Uint8Array, columnIds: readonly number[]): AppendBatch {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const rowCount = view.getUint32(0, true), columnCount = view.getUint32(4, true);
  let at = align(8 + columnCount * 12);
  const part = (i: number, k: number): Uint8Array | undefined => {
    const size = view.getUint32(8 + 12 * i + 4 * k, true);
    if (size === 0xffffffff) return undefined;
    const found = bytes.subarray(at, at + size);
    at += align(size);
    return found;
  };
  const columns: AppendColumn[] = [];
  for (let i = 0; i < columnCount; i++) {
    const values = part(i, 0)!, heap = part(i, 1), symbols = part(i, 2);
    columns.push({
      columnId: columnIds[i],
      values,
      heap,
      symbols: symbols && new Int32Array(symbols.buffer, symbols.byteOffset, symbols.byteLength / 4),
    });
  }
  const { buffer } = bytes;
  const isWhole = buffer instanceof ArrayBuffer && bytes.byteLength === buffer.byteLength;
  return isWhole ? { rowCount, columns, buffer } : { rowCount, columns };
}

/** Rows that are changed: the ids of the rows are in the last column, behind those of `columnIds`. */
export function unpackChangedBatch(bytes: Uint8Array, columnIds: readonly number[]): ChangedBatch {
  const { rowCount, columns, buffer } = unpackAppendBatch(bytes, [...columnIds, -1]);
  const { values } = columns.at(-1)!;
  const rowIds = new BigInt64Array(values.buffer, values.byteOffset, rowCount);
  return { rowIds, columns: columns.slice(0, -1), buffer };
}
