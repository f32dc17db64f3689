/** How the values of a column type are written: what an entry of `types.ts` holds. */
import type { Vector } from "../../engine/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { ByteSink } from "./sink.ts";

export interface ValueWriter {
  bind(vector: Vector): void;
  write(row: number, at: number): number;
}

/** What a quotation mark inside of text becomes: `\"`, `""`, or all bytes stay as they are. */
export type Escape = "json" | "csv" | "none";

export type WriterFactory = (heap: SharedHeap, sink: ByteSink, escape: Escape) => ValueWriter;

export interface TypeForms {
  text: WriterFactory;
  /** Without it, `text`. */
  pgText?: WriterFactory;
  pgBinary: WriterFactory;
  maxBytes: number;
  jsonQuoted: boolean;
  jsonNull: string;
  csvQuoted: boolean;
  csvNull: string;
  /** Quoted in JSON when the client asks for large numbers as text. */
  large?: boolean;
}
