/** The contents of a manifest except its segments. */
import type { TableSchema } from "./contract.ts";

export interface ManifestHead {
  lsn: number;
  schema: TableSchema;
  nextColumnId: number;
  /** Since format 5. */
  nextUid?: number;
  /** Greater than the versions of all partitions. Since format 9. */
  nextVersion?: number;
  /** `packing`: 0 if it is missing. */
  files: { id: number; sizeBytes: number; packing?: number }[];
  /** Indexed columns of symbols whose chunks all have postings, where they pay. */
  posted?: number[];
  dictionaries: { columnId: number; count: number; sizeBytes: number; crc: number }[];
}
