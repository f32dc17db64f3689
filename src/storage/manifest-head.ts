/** The contents of a manifest except its segments. */
import type { TableSchema } from "./contract.ts";

export interface ManifestHead {
  lsn: number;
  schema: TableSchema;
  nextColumnId: number;
  /** Since format 5. */
  nextUid?: number;
  files: { id: number; sizeBytes: number }[];
  dictionaries: { columnId: number; count: number; sizeBytes: number; crc: number }[];
}
