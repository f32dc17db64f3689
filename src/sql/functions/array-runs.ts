/** Runs of rows that kernels over arrays process. */
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";

/** Longer arrays are left to JavaScript, which looks more often at whether the query is cancelled. */
export const SHORT_ARRAY_BYTES = 65_536;
/** Of a run. */
const RUN_BYTES = 1 << 18;
const RUN_ROWS = 4_096;

/**
 * Runs `kernel` over rows with short arrays, and `other` over each row that it cannot process. The kernel gets the total size of the first column's
 * arrays, and returns `to`, or the row that it cannot process.
 */
export function inRuns(
  arrays: readonly [BatchColumn, BatchColumn?],
  rowCount: number,
  context: FunctionContext,
  kernel: (from: number, to: number, sizeBytes: number) => number,
  other: (row: number) => void,
): void {
  const [pairs, others] = arrays.map((column) => column?.values as Int32Array);
  const isShort = (pairs: Int32Array, row: number) => pairs[2 * row + 1] <= SHORT_ARRAY_BYTES;
  let runRows = RUN_ROWS;
  for (let row = 0; row < rowCount;) {
    const to = Math.min(rowCount, row + runRows);
    let end = row, sizeBytes = 0;
    for (; end < to && sizeBytes < RUN_BYTES && isShort(pairs, end); end++) {
      if (others !== undefined && !isShort(others, end)) break;
      sizeBytes += Math.max(0, pairs[2 * end + 1]);
    }
    const reached = end > row ? kernel(row, end, sizeBytes) : row;
    // After a row that the kernel cannot process, there are often more.
    runRows = reached === end && end > row ? Math.min(RUN_ROWS, 2 * runRows) : 1;
    row = reached;
    if (row < end || end < to && sizeBytes < RUN_BYTES) other(row++);
    context.poll();
  }
}

/** As `inRuns`, for a kernel that writes arrays from `at` on, which take at most as many bytes as those of the first column. */
export function toArraysInRuns(
  arrays: readonly [BatchColumn, BatchColumn?],
  out: BatchOut,
  rowCount: number,
  context: FunctionContext,
  kernel: (from: number, to: number, at: number) => number,
  other: (row: number) => void,
): void {
  const pairs = out.values as Int32Array;
  inRuns(arrays, rowCount, context, (from, to, sizeBytes) => {
    const at = out.reserve(sizeBytes), reached = kernel(from, to, at);
    let last = reached - 1;
    while (last >= from && pairs[2 * last + 1] < 0) last--;
    const end = last < from ? at : (pairs[2 * last] >>> 0) + pairs[2 * last + 1];
    out.giveBack(at + sizeBytes - end);
    return reached;
  }, other);
}
