/** A segment in the writer. */
import type { Chunk } from "./chunks.ts";
import type { TableSchema } from "./contract.ts";

/** A segment as it is in the words of a page with these columns. */
export interface SegmentWords {
  readonly columnIds: readonly number[];
  readonly bytes: Uint8Array;
}

export interface Segment {
  /** Stays the same while rows are only appended: row numbers in the segment stay valid. */
  readonly uid: number;
  /** Start of its partition; 0n without partitions. */
  readonly partition: bigint;
  readonly rowCount: number;
  /** 0n without a designated timestamp. */
  readonly timestampMin: bigint;
  readonly timestampMax: bigint;
  /** By column id; undefined: all null. */
  readonly chunks: readonly (Chunk | undefined)[];
  /** The published form, once it was made. */
  words?: SegmentWords;
}

/** A segment is to be stored: it is "handed over", the writer is to store it "here", or it is to be asked again "later". */
export type HandOver = (segment: Segment) => "handed over" | "here" | "later";

/** Leaves out chunks of columns that were dropped while the segment was detached or staged. */
export function inSchema(segment: Segment, schema: TableSchema): Segment {
  const ids = new Set(schema.columns.map(({ id }) => id));
  if (segment.chunks.every((chunk, id) => chunk === undefined || ids.has(id))) return segment;
  return { ...segment, chunks: segment.chunks.map((c, id) => ids.has(id) ? c : undefined), words: undefined };
}
