/**
 * The rows of segments that pass conditions on single columns, which are marked by the codes of packed chunks. The columns of the conditions are not
 * decoded for it, but for vectors that have no codes. The way depends on the values of a range of segments and on how chunks are stored, not on
 * what is in memory.
 */
import { assert } from "../../assert.ts";
import type { Expr, ScanNode } from "../../sql/plan.ts";
import { type RowRange, SUMMARY_ROWS } from "../../storage/contract.ts";
import { Workspace } from "../columns.ts";
import { MORSEL_ROWS, type QueryContext, type Vector } from "../contract.ts";
import { SELECTED_ROWS_SHARE } from "../physical/thresholds.ts";
import { GatheredRows } from "./gathered-rows.ts";
import type { Morsel } from "./morsel.ts";
import { RowConditions } from "./row-conditions.ts";
import { ScanReader } from "./scan.ts";

/** After a segment of which more rows pass than wanted, this many are left to the reader of rows without a test. */
const UNTESTED_SEGMENTS = 15;
/** Words of a vector's bits. */
const VECTOR_WORDS = SUMMARY_ROWS / 32;
/** More runs of vectors are read as one. */
const RUNS_MAX = 4;

export interface MarkedRowsOptions {
  operator: string;
  /** Segments of which more rows pass are left to the reader of rows. */
  shareMax: number;
}

/** What is done with the rows that pass. */
export interface MarkedUse {
  /** Rows 0 … count-1 of the columns. */
  listed(columns: Vector[], count: number): void;
  /** Those of rows `from` … `to`-1 that are marked: the last column is their mask. May be called several times. */
  masked(columns: Vector[], from: number, to: number, rowBase: bigint): void;
}

export class MarkedRows {
  private readonly reader: ScanReader;
  private readonly gathered: GatheredRows;
  /** Address of the bits of a segment's rows. */
  private readonly masks: number;
  /** Address of the numbers of rows, i32. */
  private readonly rows: number;
  private untested = 0;

  /** `needed`: the columns that are read of the rows. Undefined if a condition is of another kind. */
  static of(
    predicates: readonly Expr[],
    needed: ReadonlySet<number>,
    node: ScanNode,
    context: QueryContext,
    options: MarkedRowsOptions,
  ): MarkedRows | undefined {
    if (predicates.length === 0) return undefined;
    const space = Workspace.of(context, options.operator);
    const conditions = RowConditions.of(predicates, node, context, space, false);
    if (conditions !== undefined) return new MarkedRows(needed, node, conditions, context, space, options);
    space.release();
    return undefined;
  }

  private constructor(
    private readonly needed: ReadonlySet<number>,
    private readonly node: ScanNode,
    private readonly conditions: RowConditions,
    private readonly context: QueryContext,
    private readonly space: Workspace,
    private readonly options: MarkedRowsOptions,
  ) {
    this.reader = new ScanReader(node, needed, context);
    this.gathered = new GatheredRows(needed, context, space);
    this.masks = space.allocate(MORSEL_ROWS / 8);
    this.rows = space.allocate(4 * Math.ceil(MORSEL_ROWS / SELECTED_ROWS_SHARE));
  }

  /** Forgets the segments before. Call it where another thread could begin. */
  restart(): void {
    this.untested = 0;
  }

  /** Uses the rows of a morsel that pass. False if all of them have to be read. */
  read({ segment, start, end }: Morsel, use: MarkedUse): boolean {
    if (this.untested > 0) {
      this.untested--;
      return false;
    }
    const { reader, context: { pool, analysis }, masks, conditions, node, needed, rows } = this;
    const count = pool.maskRows(reader.source, segment, conditions.list, { from: start, to: end }, masks);
    reader.countFrames();
    if (count === undefined) return false;
    // If no column is read, all rows are alike.
    const isListed = needed.size === 0 || count <= (end - start) / SELECTED_ROWS_SHARE;
    if (!isListed && count > (end - start) * this.options.shareMax) {
      this.untested = UNTESTED_SEGMENTS;
      return false;
    }
    reader.count(end - start);
    analysis?.countSelected(node.id, count, pool.vectorCounts());
    if (count === 0) return true;
    if (needed.size === 0) use.listed(reader.open(segment, { from: 0, to: 0 }, { isAgain: true }), count);
    else if (isListed) {
      pool.listRows(masks, { from: start, to: end }, rows, count);
      use.listed(this.gathered.read(node, reader, segment, rows, count), count);
    } else {
      const mask: Vector = { type: "BOOLEAN", address: masks, dictionary: undefined };
      for (const run of this.runsOf(start, end)) {
        const columns = reader.open(segment, run, { isAgain: true });
        use.masked([...columns, mask], run.from, run.to, reader.rowBase(segment));
      }
    }
    return true;
  }

  /** The rows of vectors that have marked ones, of which there are some. */
  private runsOf(start: number, end: number): RowRange[] {
    const { context: { heap: { i32 } }, masks } = this, runs: { from: number; to: number }[] = [];
    const isEmpty = (vector: number) => {
      const first = masks / 4 + vector * VECTOR_WORDS;
      for (let k = 0; k < VECTOR_WORDS; k++) if (i32[first + k] !== 0) return false;
      return true;
    };
    for (let vector = Math.floor(start / SUMMARY_ROWS); vector * SUMMARY_ROWS < end; vector++) {
      if (isEmpty(vector)) continue;
      const from = Math.max(start, vector * SUMMARY_ROWS), to = Math.min(end, (vector + 1) * SUMMARY_ROWS);
      if (runs.at(-1)?.to === from) runs.at(-1)!.to = to;
      else runs.push({ from, to });
    }
    assert(runs.length > 0, "a marked row is in a vector");
    return runs.length <= RUNS_MAX ? runs : [{ from: runs[0]!.from, to: runs.at(-1)!.to }];
  }

  close(): void {
    this.reader.close();
    this.space.release();
  }
}
