/** Replaces segments of a table one after the other. */
import { memoryOf } from "./table-disk.ts";
import type { Segment, Segments, SplicedSegments } from "./segments.ts";

/** Bytes of memory that new segments take between two steps of a change that rewrites segments. */
const REWRITE_STEP_BYTES = 4 << 20;

/** The table whose segments are replaced. */
export interface RewrittenTable {
  segments: Segments;
  readonly onStep: () => void;
}

/** Replaces segments of a table, in ascending order. All new ones may not fit into memory, so the table flushes them step by step. */
export class Rewrite {
  private waiting: SplicedSegments[] = [];
  private waitingBytes = 0;
  /** How many segments more there are than before. */
  private added = 0;

  constructor(private readonly table: RewrittenTable) {}

  /** The segment that had this index before, or a later one. */
  at(index: number): Segment {
    return this.table.segments.at(index + this.added)!;
  }

  replace(index: number, segments: readonly Segment[]): void {
    this.waiting.push({ start: index + this.added, count: 1, segments });
    for (const segment of segments) this.waitingBytes += memoryOf(segment);
    if (this.waitingBytes < REWRITE_STEP_BYTES) return;
    this.apply();
    this.table.onStep();
  }

  /** Returns the number of segments added. */
  end(): number {
    this.apply();
    return this.added;
  }

  private apply(): void {
    this.table.segments = this.table.segments.apply(this.waiting);
    for (const { segments } of this.waiting) this.added += segments.length - 1;
    this.waiting = [];
    this.waitingBytes = 0;
  }
}

/** The indexes of the segments that have the rows `ordinals`, ascending: for each its rows, of which the first is `ordinals[from]`. */
export function* touchedBy(
  ordinals: Float64Array,
  segments: Segments,
): Iterable<{ index: number; rows: Uint32Array; from: number }> {
  for (let at = 0; at < ordinals.length;) {
    const { index, firstRow } = segments.indexOfRow(ordinals[at]);
    const end = firstRow + segments.at(index)!.rowCount;
    const from = at;
    while (at < ordinals.length && ordinals[at] < end) at++;
    yield { index, rows: Uint32Array.from(ordinals.subarray(from, at), (ordinal) => ordinal - firstRow), from };
  }
}
