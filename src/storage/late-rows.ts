/** The rows of a stage, which are on disk and in the order of time, by their ordinals. */
import { concatenate, firstNotBelow, halves, type Rows, slicedRows, timeAt } from "./rows.ts";
import { inSchema } from "./segment.ts";
import type { Segment, Segments } from "./segments.ts";
import type { Table } from "./table.ts";

/** The staged rows of one partition: ordinals `from` … `to`-1, in segments `first` … `end`-1. */
export interface StagedPartition {
  readonly start: bigint;
  readonly from: number;
  readonly to: number;
  readonly first: number;
  readonly end: number;
}

export class LateRows {
  readonly segments: Segments;
  /** Of the segments that were read last: neighbouring rows are asked for one after the other. */
  private times: { segment: Segment; times: Int32Array } | undefined;
  private read: { segment: Segment; schemaVersion: number; rows: Rows } | undefined;

  /** `table`: to which the rows will be added. */
  constructor(private readonly table: Table, stage: Table) {
    this.segments = stage.segments;
  }

  get rowCount(): number {
    return this.segments.rowCount;
  }

  /** The partition of a row. */
  partitionOf(ordinal: number): StagedPartition {
    const { segments } = this;
    const start = segments.partitionAt(segments.indexOfRow(ordinal).index);
    const { first, end, firstRow, rowCount } = segments.partition(start)!;
    return { start, first, end, from: firstRow, to: firstRow + rowCount };
  }

  timeOf(ordinal: number): bigint {
    const { index, firstRow } = this.segments.indexOfRow(ordinal);
    const segment = this.segments.at(index)!;
    return ordinal === firstRow ? segment.timestampMin : timeAt(this.timesOf(segment), ordinal - firstRow);
  }

  /** The first row of a partition that is not before this time, or, if `isBehind`, that is behind it. */
  firstAt(time: bigint, { from, first, end }: StagedPartition, isBehind = false): number {
    const { segments } = this;
    const isBefore = (other: bigint) => isBehind ? other <= time : other < time;
    const index = Math.min(end, segments.search(({ timestampMax }) => isBefore(timestampMax)));
    if (index < first) return from;
    const firstRow = segments.firstRowOf(index);
    if (index === end) return firstRow;
    const segment = segments.at(index)!;
    if (!isBefore(segment.timestampMin)) return firstRow;
    return firstRow + firstNotBelow(this.timesOf(segment), 0, 0, segment.rowCount, ...halves(time), isBehind);
  }

  /** A copy of rows [from, to). */
  rows(from: number, to: number): Rows {
    const { segments, table: { schema } } = this;
    const parts: Rows[] = [];
    let { index, firstRow } = segments.indexOfRow(from);
    for (; firstRow < to; index++) {
      const segment = segments.at(index)!, end = Math.min(to, firstRow + segment.rowCount);
      parts.push(slicedRows(schema, this.rowsOf(segment), Math.max(from, firstRow) - firstRow, end - firstRow));
      firstRow += segment.rowCount;
    }
    return parts.length === 1 ? parts[0] : concatenate(schema, parts);
  }

  private timesOf(segment: Segment): Int32Array {
    if (this.times?.segment.uid !== segment.uid) this.times = { segment, times: this.table.maker.timesOf(segment) };
    return this.times.times;
  }

  private rowsOf(segment: Segment): Rows {
    const { table, table: { schema: { schemaVersion } } } = this;
    if (this.read?.segment.uid !== segment.uid || this.read.schemaVersion !== schemaVersion) {
      this.read = { segment, schemaVersion, rows: table.maker.rowsOf(inSchema(segment, table.schema)) };
    }
    return this.read.rows;
  }
}
