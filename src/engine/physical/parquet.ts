/** Chooses how many rows of a Parquet file are read at a time. */
import { MORSEL_ROWS } from "../contract.ts";
import { PARQUET_BATCH_BYTES, PARQUET_BATCH_ROWS_MIN } from "./thresholds.ts";

/**
 * Rows with long texts or arrays are read in smaller batches. `plainSizeBytes`: uncompressed size of all columns that
 * are read.
 */
export function parquetBatchRows(group: { rowCount: number; plainSizeBytes: number }): number {
  const rows = Math.floor(PARQUET_BATCH_BYTES * group.rowCount / Math.max(1, group.plainSizeBytes));
  return Math.max(PARQUET_BATCH_ROWS_MIN, Math.min(MORSEL_ROWS, rows));
}
