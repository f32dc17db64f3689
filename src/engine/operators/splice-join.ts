/**
 * SPLICE joins: all rows of both sides in time order, each with the other side's last row at or before it. Rows with equal time and key are
 * paired one by one into one row; remaining ones get the other side's last row. Both sides are kept, and divided into ranges of time, which
 * any thread can merge: it begins with the last rows of each key before the range. If the memory does not hold both sides, they are merged
 * in order (`merged-splice.ts`).
 */
import { assert, VERIFY } from "../../assert.ts";
import type { Column } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { POLL_ROWS, Workspace } from "../columns.ts";
import { type Changes, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { KeyTable } from "../keys.ts";
import { isOutOfMemory } from "../memory.ts";
import type { PhysicalSplice } from "../physical/plan.ts";
import type { BasePlan, JoinBase, RowReader, Rows, SplicedRange, SplicedRows, SplicedSide } from "./base-plan.ts";
import { AllMorsels, readSameRows, rowsOfBatch } from "./base.ts";
import { allOrNone, isTooMany, keepAll, type KeptRows, leavesRoom, TooManyRows } from "./input.ts";
import { mergedSplice } from "./merged-splice.ts";
import { lowerBound } from "./morsels.ts";
import { readerBytes, splicedMorsels, SpliceReader } from "./splice-reader.ts";

/** Least number of rows of a side between two ranges; with more keys, there are as many rows as keys. */
const SPACING_MIN = 32_768;

/** Besides its columns, each row has the number of its group, and as much for the last rows before ranges. */
const BYTES_PER_ROW = 3 * 4;

/** `open`: both sides, again after they have been read in part. */
export function createSpliceJoin(
  plan: PhysicalSplice,
  open: () => [Operator, Operator],
  context: QueryContext,
): JoinBase {
  return new SpliceJoin(plan, open, context);
}

class SpliceJoin implements JoinBase {
  readonly columns: readonly Column[];
  private readonly space: Workspace;
  /** Undefined if they are merged in order. */
  private sides?: [left: Operator, right: Operator];
  /** The sides have other intervals and conditions than those that `openSides` makes. */
  private isRebound = false;
  /** Such sides, which were read in part and begin again. */
  private rewound?: [left: Operator, right: Operator];
  private rows?: SplicedRows;
  private merged?: MergedSides;

  constructor(
    private readonly physical: PhysicalSplice,
    private readonly openSides: () => [Operator, Operator],
    private readonly context: QueryContext,
  ) {
    this.columns = physical.columns;
    this.space = Workspace.of(context, "splice join");
    this.sides = openSides();
  }

  plan(): BasePlan | undefined {
    const rows = this.build();
    return rows && { kind: "splice", rows };
  }

  dictionaries(): (Dictionary | undefined)[] | undefined {
    const rows = this.build();
    return rows && [...rows.left.columns, ...rows.right.columns].map(({ dictionary }) => dictionary);
  }

  open(needed: ReadonlySet<number>): RowReader {
    const { physical, context } = this, rows = this.build();
    if (rows === undefined) return this.merged ??= new MergedSides(physical, needed, () => this.sidesAgain(), context);
    return new AllMorsels(new SpliceReader(rows, needed, context), splicedMorsels(rows));
  }

  /** Undefined if the memory does not hold both sides. */
  private build(): SplicedRows | undefined {
    const { sides, space, context } = this;
    if (this.rows !== undefined || sides === undefined) return this.rows;
    try {
      this.rows = this.buildNow(sides);
      context.chose?.("all rows");
    } catch (error) {
      if (!isTooMany(error) || (this.isRebound && isOutOfMemory(error))) throw error;
      space.release();
      this.sides = undefined;
      if (this.isRebound) {
        assert(sides.every((side) => side.rewind?.() === true), "sides that were rebound can be rewound");
        this.rewound = sides;
      } else for (const side of sides) side.close();
      context.chose?.("last rows");
    }
    return this.rows;
  }

  /** Both sides from their first rows on. */
  private sidesAgain(): [Operator, Operator] {
    const { rewound } = this;
    if (rewound === undefined) return this.openSides();
    this.rewound = undefined;
    return rewound;
  }

  private buildNow([leftInput, rightInput]: [Operator, Operator]): SplicedRows {
    const { physical: { id, node }, space, context } = this, overflow = allOrNone(BYTES_PER_ROW, context);
    const table = new KeyTable(node.leftKeys.map((key) => key.type), space, () => context.poll());
    const left = keepAll(leftInput, [node.leftTime, ...node.leftKeys], space, context, overflow);
    const right = keepAll(rightInput, [node.rightTime, ...node.rightKeys], space, context, overflow);
    const sides = { left: this.side(left, table), right: this.side(right, table) },
      groupCount = Math.max(1, table.count);
    const ranges = this.ranges(sides.left, sides.right, Math.max(SPACING_MIN, groupCount));
    const states = this.states(sides.left, sides.right, ranges, groupCount);
    const rows = { id, ...sides, groupCount, ranges, states },
      readers = Math.max(1, context.parallel?.workerCount ?? 1);
    if (!leavesRoom(context, readers * readerBytes(rows))) throw new TooManyRows();
    return rows;
  }

  private side({ store, rowCount, columns, computed: [time, ...keys] }: KeptRows, table: KeyTable): SplicedSide {
    const groups = this.space.words(Math.max(1, rowCount));
    for (let from = 0; from < rowCount; from += MORSEL_ROWS) {
      const n = Math.min(MORSEL_ROWS, rowCount - from), slice = store.slice(from, n).columns;
      const ofSlice = keys.map((vector) => slice[store.vectors.indexOf(vector)]);
      groups.set(table.groups(ofSlice, n, true).subarray(0, n), from);
    }
    const side = { columns: columns.map((column): Vector => ({ ...column })), rowCount, groups: groups.byteOffset };
    if (VERIFY) this.assertInOrder(time, rowCount);
    return { ...side, times: time.address };
  }

  private assertInOrder({ address }: Vector, rowCount: number): void {
    const { i64 } = this.context.heap, at = address / 8;
    for (let row = 1; row < rowCount; row++) assert(i64[at + row - 1] <= i64[at + row], "rows are in time order");
  }

  /** Rows with equal times are in the same range. */
  private ranges(left: SplicedSide, right: SplicedSide, spacing: number): SplicedRange[] {
    const { context } = this, { i64 } = context.heap, starts = new Set<bigint>();
    for (const { times, rowCount } of [left, right]) {
      for (let row = spacing; row < rowCount; row += spacing) starts.add(i64[times / 8 + row]);
    }
    const before = (side: SplicedSide, time: bigint) => lowerBound(context, side.times, side.rowCount, time);
    const bounds = [...starts].sort((a, b) => (a < b ? -1 : 1)).map((
      time,
    ) => [before(left, time), before(right, time)]);
    let leftStart = 0, rightStart = 0;
    return [...bounds, [left.rowCount, right.rowCount]].map(([leftEnd, rightEnd]) => {
      const range = { leftStart, leftEnd, rightStart, rightEnd };
      leftStart = leftEnd;
      rightStart = rightEnd;
      return range;
    });
  }

  /** The address of the last rows of each group before each range: those of the left side, then those of the right side. */
  private states(left: SplicedSide, right: SplicedSide, ranges: readonly SplicedRange[], groupCount: number): number {
    const { space, context } = this, { i32 } = context.heap;
    const states = space.words(ranges.length * 2 * groupCount), last = space.words(2 * groupCount).fill(-1);
    const walk = ({ groups }: SplicedSide, first: number, start: number, end: number) => {
      for (let from = start; from < end; from += POLL_ROWS) {
        context.poll();
        for (let row = from, to = Math.min(end, from + POLL_ROWS); row < to; row++) {
          last[first + i32[groups / 4 + row]] = row;
        }
      }
    };
    ranges.forEach(({ leftStart, leftEnd, rightStart, rightEnd }, k) => {
      states.set(last, k * 2 * groupCount);
      walk(left, 0, leftStart, leftEnd);
      walk(right, groupCount, rightStart, rightEnd);
    });
    space.freeWords(last);
    return states.byteOffset;
  }

  rewind(reader?: RowReader): boolean {
    reader?.close();
    return this.sides?.every((side) => side.rewind?.() === true) === true;
  }

  rebind(changes: Changes): "kept" | "anew" | undefined {
    const { takenCount } = changes, { node: { left, right }, spill } = this.physical;
    // On disk, the sides are opened anew.
    if (spill !== undefined) return undefined;
    if (this.sides?.every((side) => side.rebind?.(changes) === true) !== true) return undefined;
    if (readSameRows([left, right], changes, takenCount)) return "kept";
    this.isRebound = true;
    this.rows = undefined;
    this.space.release();
    return "anew";
  }

  close(): void {
    this.space.release();
    for (const side of this.sides ?? this.rewound ?? []) side.close();
    this.merged?.end();
  }
}

/** The join of both sides in order, with the columns of the base. */
class MergedSides implements RowReader {
  /** The columns of the base that are read. */
  private readonly output: number[];
  private readonly operator: Operator;

  constructor(
    private readonly physical: PhysicalSplice,
    needed: ReadonlySet<number>,
    openSides: () => [Operator, Operator],
    private readonly context: QueryContext,
  ) {
    this.output = [...needed].sort((a, b) => a - b);
    this.operator = mergedSplice(physical, this.output, openSides, context);
  }

  next(): Rows | undefined {
    const { physical, output, operator, context } = this, batch = operator.next();
    if (batch === undefined) return undefined;
    context.analysis?.countPairs(physical.id, batch.rowCount);
    return rowsOfBatch(physical.columns, output, batch);
  }

  /** The join ends it. */
  close(): void {}

  end(): void {
    this.operator.close();
  }
}
