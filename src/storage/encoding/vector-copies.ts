/**
 * Copies of stored chunks from a memory that kernels do not see. The copy has the headers, and the data of the vectors that are needed, each at its
 * place. What lies between them is undefined.
 */
import type { RowRange } from "../contract.ts";
import { VECTOR_ROWS } from "./bits.ts";
import { AT, CHUNK_AT, HEADER_BYTES, VECTOR_HEADER_BYTES } from "./vectors.ts";

/** Copies the vectors of some rows. */
export function copyRange(stored: Uint8Array, copy: Uint8Array, { from, to }: RowRange): void {
  const offsets = copyHeaders(stored, copy);
  copyVectors(stored, copy, offsets, Math.floor(from / VECTOR_ROWS), Math.ceil(to / VECTOR_ROWS));
}

/** Copies the vectors of `rows`. Neighbours should have the same. */
export function copyRows(stored: Uint8Array, copy: Uint8Array, rows: Int32Array): void {
  const offsets = copyHeaders(stored, copy);
  let from = 0, to = 0;
  for (const row of rows) {
    const vector = Math.floor(row / VECTOR_ROWS);
    if (vector >= from && vector < to) continue;
    if (vector !== to) {
      copyVectors(stored, copy, offsets, from, to);
      from = vector;
    }
    to = vector + 1;
  }
  copyVectors(stored, copy, offsets, from, to);
}

/** Returns a view of the copy's headers. */
function copyHeaders(stored: Uint8Array, copy: Uint8Array): DataView {
  copy.set(stored.subarray(0, HEADER_BYTES));
  const headers = new DataView(copy.buffer, copy.byteOffset, copy.length);
  const vectors = Math.ceil(headers.getUint32(CHUNK_AT.rowCount, true) / VECTOR_ROWS);
  copy.set(stored.subarray(HEADER_BYTES, HEADER_BYTES + vectors * VECTOR_HEADER_BYTES), HEADER_BYTES);
  return headers;
}

function copyVectors(stored: Uint8Array, copy: Uint8Array, headers: DataView, from: number, to: number): void {
  if (from === to) return;
  const vectors = Math.ceil(headers.getUint32(CHUNK_AT.rowCount, true) / VECTOR_ROWS);
  const dataAt = (vector: number) =>
    vector < vectors ? headers.getUint32(HEADER_BYTES + vector * VECTOR_HEADER_BYTES + AT.data, true) : stored.length;
  const start = dataAt(from);
  copy.set(stored.subarray(start, dataAt(to)), start);
}
