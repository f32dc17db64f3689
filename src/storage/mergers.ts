/**
 * What the writer asks of other threads while it applies late rows: to merge some of them with a segment, beside its own merges. Other
 * threads help only while they have nothing else to do, and may be slow or fail, so the writer can do the same itself at any time.
 */
import type { ColumnStats } from "./contract.ts";
import type { RowColumn } from "./rows.ts";
import type { Segment } from "./segment.ts";

/** A column of the late rows, in shared memory. */
export interface SharedColumn {
  readonly values: number;
  readonly valueBytes: number;
  readonly heap: number;
  readonly heapBytes: number;
}

export interface MergedColumn {
  readonly columnId: number;
  /** Name of its type. */
  readonly type: string;
  /** Undefined: all null. */
  readonly added: SharedColumn | undefined;
  /** Where the values of each new segment go. */
  readonly to: readonly number[];
  /** Where the texts of the late rows go. */
  readonly textsAt: number;
  /** Where stored texts are read to, as they stay there; 0 for other types. */
  readonly loadAt: number;
}

export interface MergeOrder {
  readonly segment: Segment;
  /** Of its data files. */
  readonly directory: string;
  readonly timestampId: number;
  /** The late rows of the segment: rows `from` … `to`-1. */
  readonly from: number;
  readonly to: number;
  /** Rows of each new segment. */
  readonly partRows: readonly number[];
  /** In the order of their ids: those that have a chunk afterwards. */
  readonly columns: readonly MergedColumn[];
}

/** Statistics by new segment and column. */
export type MergedStats = readonly (readonly ColumnStats[])[];

export interface Mergers {
  /** A thread is idle. */
  readonly hasIdle: boolean;
  /**
   * Hands over a merge, and wakes idle threads if `wakes`. What it reads and writes must stay as it is until `outcome` or `withdraw` says that no thread uses it any more.
   * Returns the number of the job; "full" if there are as many jobs as there can be, "none" if no thread is idle.
   */
  offer(order: MergeOrder, wakes: boolean): number | "full" | "none";
  /** Undefined as long as a thread works on it. The caller must call `release` after that. */
  outcome(job: number): MergedStats | "failed" | undefined;
  release(job: number): void;
  /** Takes a job back that no thread has begun. */
  withdraw(job: number): boolean;
}

export function rowColumnOf(u8: Uint8Array, { values, valueBytes, heap, heapBytes }: SharedColumn): RowColumn {
  return { values: u8.subarray(values, values + valueBytes), heap: u8.subarray(heap, heap + heapBytes) };
}
