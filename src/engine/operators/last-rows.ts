/**
 * The last right row of each group up to the time of left rows, for ASOF and LT joins. It walks through the right rows along with the left
 * rows, and begins at the nearest snapshot if these are elsewhere in time. So left rows can be read by morsels in any order.
 */
import { assert, VERIFY } from "../../assert.ts";
import { POLL_ROWS, type Workspace } from "../columns.ts";
import type { QueryContext, Vector } from "../contract.ts";
import { type LastRowsKernel, lastRowsKernel } from "../wasm/last-rows.ts";
import type { LastRowsIndex } from "./base-plan.ts";

/** Least number of rows between two snapshots; with more groups, there are as many rows as groups. */
const SPACING_MIN = 8_192;

/** A walk takes at most this many steps between two polls. */
const STEPS_MAX = 1 << 20;

const NULL_TIME = -(1n << 63n), NO_TOLERANCE = -1n;

/** The snapshots of right rows, whose times ascend. */
export function snapshotsOf(
  times: Vector,
  rowCount: number,
  groups: Int32Array,
  groupCount: number,
  space: Workspace,
  context: QueryContext,
): Pick<LastRowsIndex, "nulls" | "snapshots" | "spacing"> {
  const at = times.address / 8, { i64 } = space.heap;
  if (VERIFY) {
    for (let row = 1; row < rowCount; row++) assert(i64[at + row - 1] <= i64[at + row], "right rows are in time order");
  }
  let nulls = 0;
  while (nulls < rowCount && i64[at + nulls] === NULL_TIME) nulls++;
  const spacing = Math.max(SPACING_MIN, groupCount), count = Math.ceil((rowCount - nulls) / spacing);
  const snapshots = space.words(Math.max(1, count * groupCount)), last = space.words(Math.max(1, groupCount)).fill(-1);
  for (let k = 0; k < count; k++) {
    snapshots.set(last.subarray(0, groupCount), k * groupCount);
    const start = nulls + k * spacing, end = Math.min(rowCount, start + spacing);
    for (let from = start; from < end; from += POLL_ROWS) {
      context.poll();
      for (let row = from, to = Math.min(end, from + POLL_ROWS); row < to; row++) last[groups[row]] = row;
    }
  }
  space.freeWords(last);
  return { nulls, snapshots: snapshots.byteOffset, spacing };
}

export class LastRows {
  /** By group. */
  private readonly last: Int32Array;
  /** The next right row to walk to, and where to stop. */
  private readonly state: Int32Array;
  private readonly kernel: LastRowsKernel;

  constructor(
    private readonly index: LastRowsIndex,
    private readonly rowCount: number,
    space: Workspace,
    private readonly context: QueryContext,
  ) {
    const { isStrict, tolerance, nulls } = index;
    this.last = space.words(Math.max(1, index.groupCount)).fill(-1);
    this.state = space.words(2);
    this.state[0] = nulls;
    this.kernel = lastRowsKernel(context.heap.memory, { isStrict, isLimited: tolerance !== undefined });
  }

  /** Replaces the groups in `rows[0 … n-1]` by their last rows up to the times of the left rows, which ascend. */
  find(leftTimes: number, leftRows: Int32Array, rows: Int32Array, n: number): void {
    const { index, rowCount, last, state, context } = this, { times, groups, tolerance = NO_TOLERANCE } = index;
    this.goTo(context.heap.i64[leftTimes / 8 + leftRows[0]]);
    for (let from = 0; from < n;) {
      context.poll();
      state[1] = Math.min(rowCount, state[0] + STEPS_MAX);
      from = this.kernel(
        leftTimes,
        leftRows.byteOffset,
        rows.byteOffset,
        from,
        n,
        times,
        groups,
        last.byteOffset,
        state.byteOffset,
        rowCount,
        tolerance,
      );
    }
  }

  /** Ensures that the walk can begin: it is before a time, and not far from it. */
  private goTo(time: bigint): void {
    const { index: { nulls, spacing, snapshots, groupCount }, last, state, context } = this;
    const target = this.rowsBefore(time), position = state[0];
    const snapshot = Math.floor(Math.max(0, target - nulls - 1) / spacing), start = nulls + snapshot * spacing;
    if (target >= position && start - position <= spacing / 2) return;
    const from = snapshots / 4 + snapshot * groupCount;
    last.set(context.heap.i32.subarray(from, from + groupCount));
    state[0] = start;
  }

  /** The number of right rows that can match at a time, or have none. */
  private rowsBefore(time: bigint): number {
    const { index: { times, nulls, isStrict }, rowCount, context: { heap: { i64 } } } = this, at = times / 8;
    let low = nulls, high = rowCount;
    while (low < high) {
      const middle = (low + high) >>> 1, row = i64[at + middle];
      if (isStrict ? row < time : row <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
