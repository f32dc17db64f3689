/** The changes that a transaction keeps, for the log and for savepoints. */
import type { Definition } from "./blocks.ts";
import type { AppendBatch, AppendColumn, TableSchema } from "./contract.ts";
import type { Segments } from "./segments.ts";

/** A change of one table. */
export interface Entry {
  ordinal: number;
  tableId: number;
  /** Schema before the change. */
  schema: TableSchema;
  what: What;
}

export type What =
  | { kind: "definition"; definition: Definition }
  | { kind: "append"; batch: AppendBatch; group: number }
  | RowChange;

/** `ordinals` are row ordinals in the segments `before`. */
export type RowChange = {
  ordinals: Float64Array;
  before: Segments;
} & ({ kind: "update"; columns: AppendColumn[] } | { kind: "delete" });
