/** The changes that a transaction keeps, for the log and for savepoints. */
import type { Definition } from "./blocks.ts";
import type { AppendBatch, AppendColumn, TableSchema } from "./contract.ts";
import type { Segment } from "./table.ts";

/** A change of one table. */
export interface Entry {
  ordinal: number;
  tableId: number;
  /** Before the change. */
  schema: TableSchema;
  what: What;
}

export type What =
  | { kind: "definition"; definition: Definition }
  | { kind: "append"; batch: AppendBatch; group: number }
  | RowChange;

/** `before`: the segments that `places` count in. */
export type RowChange = {
  places: Float64Array;
  before: readonly Segment[];
} & ({ kind: "update"; columns: AppendColumn[] } | { kind: "delete" });
