/** Rows of a stored table: runs of rows of segments, whose chunks are pinned while they are read. */
import { assert } from "../../errors.ts";
import type { Column, Expr, ScanNode } from "../../sql/plan.ts";
import type { ScanSource } from "../../storage/contract.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { fillNull, NO_DICTIONARY, Workspace } from "../columns.ts";
import type { Operator, QueryContext, Vector } from "../contract.ts";
import { Pipeline } from "./pipeline.ts";

/** Rows `start` … `end`-1 of a segment, by its place in the source. */
export interface Morsel {
  segment: number;
  start: number;
  end: number;
}

export function createScan(node: ScanNode, source: ScanSource, context: QueryContext): Operator {
  const exprs: Expr[] = node.columns.map((column, index) => ({ kind: "column", index, type: column.type }));
  return new Pipeline({ kind: "scan", node, source }, node.predicate === undefined ? [] : [node.predicate], exprs, node.columns, context);
}

/** What of the table the scan's intervals leave, in the order of the table. */
export function morselsOf(node: ScanNode, source: ScanSource, context: QueryContext): Morsel[] {
  const { intervals } = node;
  const morsels: Morsel[] = [];
  source.segments.forEach((segment, index) => {
    if (segment.rowCount === 0) return;
    if (intervals === undefined) {
      morsels.push({ segment: index, start: 0, end: segment.rowCount });
      return;
    }
    const { timestampMin: min, timestampMax: max } = segment;
    const touching = intervals.filter(([low, high]) => low <= max && high >= min);
    if (touching.length === 0) return;
    if (touching.length === 1 && touching[0][0] <= min && touching[0][1] >= max) {
      morsels.push({ segment: index, start: 0, end: segment.rowCount });
      return;
    }
    assert(node.timestamp >= 0 && source.sorted, "a scan with intervals reads the designated timestamp");
    withChunk(context, source, index, node.timestamp, (address) => {
      for (const [low, high] of touching) {
        const start = lowerBound(context, address, segment.rowCount, low);
        const end = high >= max ? segment.rowCount : lowerBound(context, address, segment.rowCount, high + 1n);
        if (start < end) morsels.push({ segment: index, start, end });
      }
    });
  });
  return morsels;
}

function withChunk(context: QueryContext, source: ScanSource, segment: number, column: number, use: (address: number) => void): void {
  const chunk = source.segments[segment].chunks[column];
  assert(chunk !== undefined, "the designated timestamp is in every segment");
  if (chunk.address !== 0) return use(chunk.address);
  const address = context.pool.pin(source, segment, column);
  try {
    use(address);
  } finally {
    context.pool.unpin(source, segment, column);
  }
}

/** First row whose time is not below `time`. */
export function lowerBound(context: QueryContext, address: number, rowCount: number, time: bigint): number {
  const times = context.heap.i64, base = address / 8;
  let low = 0, high = rowCount;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[base + middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The columns of a scan that are read, morsel by morsel. */
export class ScanReader {
  private pinned: { segment: number; column: number }[] = [];
  private readonly nulls = new Map<string, number>();
  private readonly space: Workspace;
  /** Rows of null columns made so far. */
  private nullRows = 0;

  constructor(readonly node: ScanNode, readonly source: ScanSource, private readonly needed: ReadonlySet<number>, private readonly context: QueryContext) {
    this.space = Workspace.of(context, "scan");
  }

  get types(): string[] {
    return this.node.columns.map((column) => column.type);
  }

  /** Vectors of the whole segment, by the scan's columns; those not needed have address 0. Valid until the next call. */
  open(segment: number): Vector[] {
    this.unpin();
    const { chunks, rowCount } = this.source.segments[segment];
    return this.node.columns.map(({ type }, column): Vector => {
      const dictionary = layoutOf(type) === "symbol" ? this.source.dictionaries[column] ?? NO_DICTIONARY : undefined;
      if (!this.needed.has(column) || column >= this.node.columnIds.length) return { type, address: 0, dictionary };
      const chunk = chunks[column];
      if (chunk === undefined) return { type, address: this.nullColumn(type, rowCount), dictionary };
      if (chunk.address !== 0) return { type, address: chunk.address, dictionary };
      const address = this.context.pool.pin(this.source, segment, column);
      this.pinned.push({ segment, column });
      return { type, address, dictionary };
    });
  }

  /** What row ids of a segment start from. */
  rowBase(segment: number): bigint {
    return BigInt(this.source.segments[segment].ordinal) << 32n;
  }

  private nullColumn(type: string, rowCount: number): number {
    if (rowCount > this.nullRows) {
      for (const address of this.nulls.values()) this.space.free(address);
      this.nulls.clear();
      this.nullRows = rowCount;
    }
    let address = this.nulls.get(type);
    if (address === undefined) {
      address = this.space.allocate(this.nullRows * typeOf(type).width + 16);
      fillNull(this.context.heap, type, address, 0, this.nullRows);
      this.nulls.set(type, address);
    }
    return address;
  }

  private unpin(): void {
    for (const { segment, column } of this.pinned) this.context.pool.unpin(this.source, segment, column);
    this.pinned = [];
  }

  close(): void {
    this.unpin();
    this.space.release();
  }
}

export type { Column };
