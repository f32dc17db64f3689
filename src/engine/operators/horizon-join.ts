/**
 * HORIZON joins: each left row with each offset, and the last right row of its key at or before its time plus the offset. Some left rows at a
 * time, the right rows between their least and greatest time are kept, and the last ones are found by search.
 */
import type { HorizonJoinNode } from "../../sql/plan.ts";
import { OutputColumns, Workspace } from "../columns.ts";
import type { Batch, Operator, QueryContext, Vector } from "../contract.ts";
import { typesOf } from "../physical/reading.ts";
import { type WindowRowsKernels, windowRowsKernels } from "../wasm/window-rows.ts";
import { Expressions } from "./input.ts";
import { advance } from "./scan.ts";
import { nextLeftRows, SlidingRows } from "./sliding-rows.ts";

const OPERATOR = "horizon join";

/** Rows that are output at a time, unless a left row has more offsets. */
const OUTPUT_ROWS = 16_384;

const NO_TIME = -(1n << 63n);

export function createHorizonJoin(
  plan: HorizonJoinNode,
  left: Operator,
  right: Operator,
  context: QueryContext,
): Operator {
  return new HorizonJoin(plan, left, right, context);
}

class HorizonJoin implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private readonly kernels: WindowRowsKernels;
  private readonly right: SlidingRows;
  /** The time that is compared, the time in its own unit, and the keys. */
  private readonly leftExpressions: Expressions;
  /** Left rows that are output at a time. */
  private readonly leftRows: number;
  private readonly offsets: number;
  private readonly comparedOffsets: number;
  /** The moved times that are compared. */
  private readonly targets: number;
  /** The left row of each output row, counted from the first one. */
  private readonly repeated: Int32Array;
  private readonly rightRows: Int32Array;
  private readonly groups: Int32Array;
  private readonly left: OutputColumns;
  /** The offset and the moved time of each output row. */
  private readonly moved: [offset: Vector, time: Vector];
  private readonly found: OutputColumns;

  private batch?: { rowCount: number; columns: Vector[]; computed: Vector[] };
  private row = 0;

  constructor(
    private readonly plan: HorizonJoinNode,
    private readonly input: Operator,
    right: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = plan.columns;
    const space = this.space = Workspace.of(context, OPERATOR), { heap } = context, leftTypes = typesOf(input.columns);
    const { offsets, leftTime, rightTime, leftKeys, rightKeys, time } = plan, count = offsets.length;
    this.kernels = windowRowsKernels(heap.memory);
    this.leftExpressions = new Expressions([leftTime, time, ...leftKeys], leftTypes, context);
    const leftRows = this.leftRows = Math.max(1, Math.floor(OUTPUT_ROWS / count)), rows = leftRows * count;
    const list = (values: readonly bigint[]) => {
      const address = space.allocate(8 * values.length);
      values.forEach((value, k) => heap.i64[address / 8 + k] = value);
      return address;
    };
    const scale = leftTime.type === time.type ? 1n : 1_000n;
    this.offsets = list(offsets);
    this.comparedOffsets = list(offsets.map((offset) => BigInt.asIntN(64, offset * scale)));
    this.targets = space.allocate(8 * rows);
    this.repeated = space.words(rows);
    for (let k = 0; k < rows; k++) this.repeated[k] = Math.floor(k / count);
    this.rightRows = space.words(rows);
    this.groups = space.words(leftRows);
    this.left = new OutputColumns(leftTypes, space, rows);
    const rightTypes = typesOf(right.columns);
    this.found = new OutputColumns(rightTypes, space, rows);
    this.moved = [{ type: "LONG", address: space.allocate(8 * rows) }, {
      type: time.type,
      address: space.allocate(8 * rows),
    }];
    for (let k = 0; k < rows; k++) heap.i64[this.moved[0].address / 8 + k] = offsets[k % count];
    const columns = [...rightTypes.keys()];
    const needs = { time: rightTime, keys: rightKeys, columns, lastBefore: true };
    this.right = new SlidingRows(right, needs, space, context);
  }

  next(): Batch | undefined {
    this.context.poll();
    const batch = this.batch ??= this.nextLeft();
    if (batch === undefined) return undefined;
    const { kernels, right, targets, moved, left, found, plan: { offsets: { length: count } } } = this;
    const { rowCount, columns, computed: [time, ownTime, ...keys] } = batch;
    const from = this.row, most = Math.min(this.leftRows, rowCount - from);
    kernels.moved(time.address, from, most, this.comparedOffsets, count, targets);
    const n = this.read(most), rows = n * count;
    this.row += n;
    if (this.row === rowCount) this.batch = undefined;
    kernels.moved(ownTime.address, from, n, this.offsets, count, moved[1].address);
    this.groups.set(right.groupsOf(advance(keys, from), n).subarray(0, n));
    kernels.lasts(
      targets,
      this.groups.byteOffset,
      n,
      count,
      right.starts,
      right.times,
      right.rows.byteOffset,
      this.rightRows.byteOffset,
    );
    advance(columns, from).forEach((column, c) => left.gather(c, column, this.repeated, rows, false));
    found.vectors.forEach((_, c) => found.gather(c, right.columns[c], this.rightRows, rows, true));
    return { rowCount: rows, columns: [...left.vectors, ...moved, ...found.vectors] };
  }

  /** Reads the right rows for left rows of which the targets are known, and returns for how many they are there. */
  private read(rowCount: number): number {
    const { kernels, right, targets, plan: { offsets: { length: count } } } = this;
    const lastOf = (row: number) => kernels.greatest(targets + 8 * row * count, count);
    const last = kernels.greatest(targets, rowCount * count);
    if (last === NO_TIME) return rowCount;
    // Left rows are in time order, so the first time is the least of all that follow.
    const read = right.readTo(last, this.context.heap.i64[targets / 8], lastOf(0));
    let low = 1, high = rowCount;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (lastOf(middle - 1) <= read) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  private nextLeft() {
    this.row = 0;
    return nextLeftRows(this.input, this.leftExpressions);
  }

  close(): void {
    this.leftExpressions.close();
    this.right.close();
    this.space.release();
    this.input.close();
  }
}
