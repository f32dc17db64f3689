/**
 * Rows of a base with the ranges of morsels that they are from. Groups add up each range by itself and then all ranges, so that sums of
 * floats do not depend on the number of threads. Groups on disk do the same: the number of a row tells its range.
 */
import type { Column } from "../../sql/plan.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { Batch, Operator, QueryContext, Vector } from "../contract.ts";
import type { BasePlan, MorselReader, PipelineBase } from "./base-plan.ts";
import { closeBase, columnsOfBase, openMorsels } from "./base.ts";
import type { Morsel } from "./morsel.ts";
import { advance } from "./scan.ts";

/** The numbers of a range's rows begin at 2 ** RANGE_BITS times its index. */
const RANGE_BITS = 40;

export class RangedRows implements Operator {
  readonly columns: readonly Column[];
  private readonly reader: MorselReader;
  private readonly morsels: (Morsel & { range: number })[];
  private range = 0;

  /** `plan` is that of the base, which is closed with the operator. */
  constructor(
    private readonly base: PipelineBase,
    plan: BasePlan,
    ranges: readonly Morsel[][],
    needed: ReadonlySet<number>,
    context: QueryContext,
  ) {
    this.columns = columnsOfBase(base);
    this.reader = openMorsels(plan, needed, context);
    this.morsels = ranges.flatMap((morsels, range) => morsels.map((morsel) => ({ ...morsel, range }))).reverse();
  }

  /** The least number for rows of the last batch. */
  get firstNumber(): number {
    return this.range * 2 ** RANGE_BITS;
  }

  next(): Batch | undefined {
    for (;;) {
      const rows = this.reader.next();
      if (rows !== undefined) return { rowCount: rows.end - rows.start, columns: advance(rows.columns, rows.start) };
      const morsel = this.morsels.pop();
      if (morsel === undefined) return undefined;
      this.range = morsel.range;
      this.reader.start(morsel);
    }
  }

  close(): void {
    this.reader.close();
    closeBase(this.base);
  }
}

/** Splits rows from … to-1 by their ranges. `numbers` is the column of their numbers, in ascending order. */
export function* piecesByRange(
  { u32 }: SharedHeap,
  { address }: Vector,
  from: number,
  to: number,
): Generator<{ range: number; from: number; to: number }> {
  const rangeOf = (row: number) => u32[(address >>> 2) + 2 * row + 1] >>> (RANGE_BITS - 32);
  while (from < to) {
    const range = rangeOf(from);
    let end = to;
    if (rangeOf(to - 1) !== range) { for (end = from + 1; rangeOf(end) === range;) end++; }
    yield { range, from, to: end };
    from = end;
  }
}
