/**
 * Rows of segments that conditions of a scan leave, found by the codes of packed chunks: the conditions that compare a column with a
 * constant become ranges of codes. Only the values of these rows are read, and all conditions are tested on them again. Segments of which more
 * are left are read as a whole. The way depends on the values of a range of segments alone, not on what is in memory, so an answer does not
 * change from run to run.
 */
import type { Expr, ScanNode } from "../../sql/plan.ts";
import type { ChunkBound } from "../../storage/contract.ts";
import { typeOf } from "../../types/mod.ts";
import { Workspace } from "../columns.ts";
import { MORSEL_ROWS, type QueryContext } from "../contract.ts";
import { SELECTED_ROWS_MIN, SELECTED_ROWS_SHARE } from "../physical/thresholds.ts";
import type { Rows } from "./base-plan.ts";
import { GatheredRows } from "./gathered-rows.ts";
import { codesOf } from "./lookup.ts";
import type { Morsel } from "./morsel.ts";
import { boundsOf, hasIntegers } from "../bounds.ts";
import { ScanReader } from "./scan.ts";

/** After a segment of which many rows are left, this many are read without a test. */
const UNTESTED_SEGMENTS = 15;
const ROWS_MAX = MORSEL_ROWS / SELECTED_ROWS_SHARE;

export class SelectedRows {
  private readonly space: Workspace;
  private bounds?: readonly ChunkBound[];
  private reader?: ScanReader;
  private readonly gathered: GatheredRows;
  /** Address of numbers of rows, i32. */
  private rows = 0;
  private hasPassed = false;
  private untested = 0;

  constructor(
    private node: ScanNode,
    private readonly needed: ReadonlySet<number>,
    private predicates: readonly Expr[],
    private readonly context: QueryContext,
  ) {
    this.space = Workspace.of(context, "scan");
    this.gathered = new GatheredRows(needed, context, this.space);
  }

  /** Forgets the segments before. Call it where another thread could begin. */
  restart(): void {
    this.hasPassed = false;
    this.untested = 0;
  }

  /** Reads another source with the same dictionaries, or for other constants. */
  rebind(node: ScanNode, predicates: readonly Expr[]): void {
    this.node = node;
    this.predicates = predicates;
    this.bounds = undefined;
    this.reader?.rebind(node);
  }

  /** Undefined if the rows have to be read. */
  read(morsel: Morsel): Rows | undefined {
    const { segment, start, end } = morsel, { node, predicates, context } = this;
    if (predicates.length === 0 || node.rowId || end - start < SELECTED_ROWS_MIN) return undefined;
    if (this.untested > 0) {
      this.untested--;
      return undefined;
    }
    const reader = this.reader ??= new ScanReader(node, this.needed, context);
    this.bounds ??= this.boundsOf(reader);
    if (this.bounds.length === 0) return undefined;
    context.poll();
    const count = this.select(morsel, reader, this.bounds);
    reader.countFrames();
    if (count === undefined) return undefined;
    this.hasPassed = count <= (end - start) / SELECTED_ROWS_SHARE;
    if (!this.hasPassed) {
      this.untested = UNTESTED_SEGMENTS;
      return undefined;
    }
    reader.count(end - start);
    context.analysis?.countSelected(node.id, count, context.pool.vectorCounts());
    const columns = count === 0 ? [] : this.gathered.read(node, reader, segment, this.rows, count);
    return { columns, start: 0, end: count, rowBase: 0n };
  }

  private boundsOf({ source }: ScanReader): ChunkBound[] {
    const { node, predicates, context } = this;
    const bounds = boundsOf(predicates, context).filter(({ column }) => column < node.columnIds.length)
      .map((bound): ChunkBound => {
        const { type } = node.columns[bound.column]!;
        return hasIntegers(type) ? { ...bound, integerBytes: typeOf(type).width } : bound;
      });
    const symbols = codesOf(source, predicates, context);
    // NULL is not found by codes.
    if (symbols !== undefined && symbols.codes.length > 0 && symbols.codes[0]! >= 0) {
      bounds.push({ column: symbols.column, low: symbols.codes[0], high: symbols.codes.at(-1) });
    }
    return bounds;
  }

  /**
   * The number of rows that are left, or a greater one than the share of the rows that is read so; undefined if no column of the bounds is
   * packed.
   */
  private select(
    { segment, start, end }: Morsel,
    { source }: ScanReader,
    bounds: readonly ChunkBound[],
  ): number | undefined {
    const { context: { pool } } = this;
    this.rows ||= this.space.allocate(4 * (ROWS_MAX + 1));
    const among = (to: number) => {
      const rowsMax = Math.floor((to - start) / SELECTED_ROWS_SHARE) + 1;
      return pool.selectRows(source, segment, bounds, { from: start, to }, this.rows, rowsMax);
    };
    if (!this.hasPassed) {
      const to = start + SELECTED_ROWS_MIN, count = among(to);
      if (count === undefined || to === end) return count;
      if (count > SELECTED_ROWS_MIN / SELECTED_ROWS_SHARE) return end - start;
    }
    return among(end);
  }

  close(): void {
    this.reader?.close();
    this.space.release();
  }
}
