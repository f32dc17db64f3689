/** Reads runs of rows of a stored table's segments, whose chunks are pinned meanwhile. */
import type { ScanNode } from "../../sql/plan.ts";
import { ROW_BITS, type RowRange, type ScanSource } from "../../storage/contract.ts";
import { SHARED_WORD } from "../../storage/heap.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { type ColumnStore, fillNull, NO_DICTIONARY, Workspace } from "../columns.ts";
import { gather } from "../columns/gather.ts";
import type { QueryContext, Vector } from "../contract.ts";
import { sourceOf } from "../physical/facts.ts";

/** The vectors from row `start` on. */
export function advance(columns: readonly Vector[], start: number): Vector[] {
  if (start === 0) return [...columns];
  return columns.map((column) =>
    column.address === 0 ? column : { ...column, address: column.address + start * typeOf(column.type).width }
  );
}

/** Reads the needed columns of a scan, morsel by morsel. */
export class ScanReader {
  /** Columns of a segment that are pinned, with their addresses. */
  private readonly pinnedColumns: number[] = [];
  private readonly pinnedAddresses: number[] = [];
  private pinnedCount = 0;
  private pinnedSegment = 0;
  private readonly nulls = new Map<string, number>();
  private readonly space: Workspace;
  private readonly vectors: Vector[];
  source: ScanSource;
  /** Number of rows in the null columns made so far. */
  private nullRows = 0;

  constructor(
    private node: ScanNode,
    private readonly needed: ReadonlySet<number>,
    private readonly context: QueryContext,
  ) {
    this.space = Workspace.of(context, "scan");
    this.source = sourceOf(node, context);
    this.vectors = node.columns.map(({ type }, column) => ({
      type,
      address: 0,
      dictionary: layoutOf(type) === "symbol" ? this.source.dictionaries[column] ?? NO_DICTIONARY : undefined,
    }));
  }

  get types(): string[] {
    return this.node.columns.map((column) => column.type);
  }

  /**
   * Vectors of the segment from row `start` on, by the scan's columns; columns that are not needed have address 0. They
   * are the same objects in each call. `isAgain`: its rows are counted already. `read`: the rows of the segment that the caller reads, if it is not
   * all.
   */
  open(segment: number, read?: RowRange, { start = 0, isAgain = false } = {}): Vector[] {
    this.unpin();
    Atomics.add(this.context.heap.i32, SHARED_WORD.morsels, 1);
    const { chunks, rowCount } = this.source.segments.at(segment)!;
    if (!isAgain) this.count(read === undefined ? rowCount : read.to - read.from);
    for (const column of this.needed) {
      if (column >= this.node.columnIds.length) continue; // row ids
      const vector = this.vectors[column];
      vector.address = this.column(segment, column, read);
      if (chunks[column] !== undefined) vector.address += start * typeOf(vector.type).width;
    }
    return this.vectors;
  }

  /** Address of a column in a segment. Call `rewind` before those of another segment. */
  column(segment: number, column: number, read?: RowRange): number {
    const { chunks, rowCount } = this.source.segments.at(segment)!, chunk = chunks[column];
    if (chunk === undefined) return this.nullColumn(this.vectors[column].type, rowCount);
    return chunk.address !== 0 ? chunk.address : this.pin(segment, column, read ?? { from: 0, to: rowCount });
  }

  private pin(segment: number, column: number, read: RowRange): number {
    const address = this.context.pool.pin(this.source, segment, column, read);
    this.countFrames();
    const at = this.pinnedCount++;
    this.pinnedColumns[at] = column;
    this.pinnedAddresses[at] = address;
    this.pinnedSegment = segment;
    return address;
  }

  /**
   * Adds rows of a segment to a store with `columns`. The vectors of few rows may be decoded without the others. Call `rewind` before
   * those of another segment.
   */
  appendRows(store: ColumnStore, columns: readonly number[], segment: number, rows: Int32Array): void {
    const { context: { pool, heap }, source } = this;
    store.appendWritten(rows.length, (k, address) => {
      if (pool.gather(source, segment, columns[k], rows, rows.length, address)) return this.countFrames();
      gather(heap, store.types[k], this.column(segment, columns[k]), rows, rows.length, address, false);
    });
  }

  /** Releases what is pinned, so that it can be opened again later. */
  rewind(): void {
    this.unpin();
  }

  /** Reads another source, with the same dictionaries. */
  rebind(node: ScanNode): void {
    this.node = node;
    this.source = sourceOf(node, this.context);
  }

  /** Counts rows that are read. `open` does it for whole segments. */
  count(rowCount: number): void {
    const { analysis } = this.context;
    this.context.countRead?.(rowCount);
    if (analysis === undefined) return;
    const widths = this.node.columns.map(({ type }, column) => this.needed.has(column) ? typeOf(type).width : 0);
    const rowBytes = widths.reduce((sum, width) => sum + width, 0);
    analysis.countScanned(this.node.id, rowCount, rowCount * rowBytes);
  }

  /** Counts frames that were used since the last call in this thread. */
  countFrames(): void {
    const { analysis, pool } = this.context;
    analysis?.countFrames(this.node.id, pool.takeFrameCounts());
  }

  /** The base of a segment's row ids. */
  rowBase(segment: number): bigint {
    return BigInt(this.source.segments.at(segment)!.uid) << BigInt(ROW_BITS);
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
    const { pinnedColumns, pinnedAddresses, pinnedCount } = this;
    this.pinnedCount = 0;
    for (let k = 0; k < pinnedCount; k++) {
      this.context.pool.unpin(this.source, this.pinnedSegment, pinnedColumns[k]!, pinnedAddresses[k]!);
    }
  }

  close(): void {
    this.unpin();
    this.space.release();
  }
}
