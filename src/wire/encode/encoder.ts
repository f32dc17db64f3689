/** The contract of an encoder: result batches in, bytes of a reply out. */
import type { Batch } from "../../engine/contract.ts";

export interface Encoder {
  /** False if the reader takes what each call returns as a unit, so that it must not be joined with what follows. */
  readonly joinable: boolean;
  /**
   * Encodes rows `firstRow` … `firstRow + rowCount - 1` of `batch`. `isFirst`: nothing of the result was encoded
   * before. The caller owns the bytes: their buffer has exactly their size and is not shared, so that it can be
   * transferred.
   */
  encode(batch: Batch, firstRow: number, rowCount: number, isFirst: boolean): Uint8Array<ArrayBuffer>;
  /** The same without a copy, where that is possible: the next call overwrites the bytes. */
  lend(batch: Batch, firstRow: number, rowCount: number, isFirst: boolean): Uint8Array<ArrayBuffer>;
}
