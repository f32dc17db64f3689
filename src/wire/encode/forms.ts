/** The contents of an entry of `types.ts`: the writers for the values of a column type. */
import type { Vector } from "../../engine/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { ByteSink } from "./sink.ts";

export interface ValueWriter {
  bind(vector: Vector): void;
  write(row: number, at: number): number;
}

/** How quotation marks in text are escaped: `\"`, `""`, or not at all. */
export type Escape = "json" | "csv" | "none";

export type WriterFactory = (heap: SharedHeap, sink: ByteSink, escape: Escape) => ValueWriter;

export interface TypeForms {
  text: WriterFactory;
  /** Default: `text`. */
  pgText?: WriterFactory;
  pgBinary: WriterFactory;
  maxBytes: number;
  jsonQuoted: boolean;
  jsonNull: string;
  csvQuoted: boolean;
  csvNull: string;
  /** Quoted in JSON if the client wants large numbers as text. */
  large?: boolean;
}
