/** Reads runs of rows of a stored table's segments, whose chunks are pinned meanwhile. */
import type { ScanNode } from "../../sql/plan.ts";
import type { ScanSource } from "../../storage/contract.ts";
import { SHARED_WORD } from "../../storage/heap.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { fillNull, NO_DICTIONARY, Workspace } from "../columns.ts";
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
  private pinned: { segment: number; column: number }[] = [];
  private readonly nulls = new Map<string, number>();
  private readonly space: Workspace;
  readonly source: ScanSource;
  /** Number of rows in the null columns made so far. */
  private nullRows = 0;

  constructor(
    readonly node: ScanNode,
    private readonly needed: ReadonlySet<number>,
    private readonly context: QueryContext,
  ) {
    this.space = Workspace.of(context, "scan");
    this.source = sourceOf(node, context);
  }

  get types(): string[] {
    return this.node.columns.map((column) => column.type);
  }

  /**
   * Vectors of the whole segment, by the scan's columns; columns that are not needed have address 0. Valid until the
   * next call.
   */
  open(segment: number): Vector[] {
    this.unpin();
    Atomics.add(this.context.heap.i32, SHARED_WORD.morsels, 1);
    const { chunks, rowCount } = this.source.segments[segment];
    this.context.countRead?.(rowCount);
    this.countScanned(rowCount);
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

  private countScanned(rowCount: number): void {
    const { analysis } = this.context;
    if (analysis === undefined) return;
    const widths = this.node.columns.map(({ type }, column) => this.needed.has(column) ? typeOf(type).width : 0);
    const rowBytes = widths.reduce((sum, width) => sum + width, 0);
    analysis.countScanned(this.node.id, rowCount, rowCount * rowBytes);
  }

  /** The base of a segment's row ids. */
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
