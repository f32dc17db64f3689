/** The contents of an entry of `types.ts`: the writers for the values of a column type. */
import type { Vector } from "../../engine/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { OperationName } from "./kernel/operations.ts";
import type { ByteSink } from "./sink.ts";

export interface ValueWriter {
  bind(vector: Vector): void;
  write(row: number, at: number): number;
}

/** How quotation marks in text are escaped: `\"`, `""`, or not at all. */
export type Escape = "json" | "csv" | "none";

export type WriterFactory = (heap: SharedHeap, sink: ByteSink, escape: Escape) => ValueWriter;

/** Who writes the values. */
export interface ValueForm {
  /** In the row kernel. */
  operation: OperationName;
  /** Writes the values that the kernel leaves, if it leaves any. */
  writer?: WriterFactory;
}

export interface TypeForms {
  text: ValueForm;
  /** Default: `text`. */
  pgText?: ValueForm;
  pgBinary: ValueForm;
  maxBytes: number;
  jsonQuoted: boolean;
  jsonNull: string;
  csvQuoted: boolean;
  csvNull: string;
  /** Quoted in JSON if the client wants large numbers as text. */
  large?: boolean;
}
