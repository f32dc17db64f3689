/** What the writer tells the readers: changes of tables, as plain data. */
import type { ColumnChunk, TableSchema } from "./contract.ts";

export interface SegmentRecord {
  partition: bigint;
  rowCount: number;
  timestampMin: bigint;
  timestampMax: bigint;
  /** By column id. `file` is a place in the table's list of files. */
  chunks: (ColumnChunk | undefined)[];
}

export interface TableChange {
  tableId: number;
  lsn: bigint;
  dropped?: true;
  schema?: TableSchema;
  /** Paths of data files, when there are more than before. */
  files?: string[];
  /** The list of segments is the old one with `count` of them from `start` on replaced. */
  splice?: { start: number; count: number; segments: SegmentRecord[] };
  /** All of them, when one has changed. */
  dictionaries?: { columnId: number; entries: number; count: number }[];
  /** Set when the table cannot be read: where, and what is wrong. */
  damage?: { path: string; message: string };
}

export interface Publication {
  version: number;
  tables: TableChange[];
}
