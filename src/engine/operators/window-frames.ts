/** Computes each row's frame within its partition: positions in `OrderedRows.rows`, inclusive, empty if high < low. */
import { notSupported } from "../../errors.ts";
import type { WindowCall } from "../../sql/plan.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { gather, POLL_ROWS, type Workspace } from "../columns.ts";
import type { QueryContext, Vector } from "../contract.ts";
import type { OrderWords } from "../order.ts";
import { usesFrame } from "../physical/window.ts";

/** The rows of a window: partition p has rows[starts[p]] … rows[starts[p+1] - 1], in the window's order. */
export interface OrderedRows {
  rows: Int32Array;
  starts: Int32Array;
  partitionCount: number;
  rowCount: number;
  /** Words of the sort keys, by row; none without ORDER BY. */
  words: OrderWords;
  /** The first sort key, by row. */
  orderKey?: Vector;
  /** Row i is at position i. */
  isInOrder: boolean;
}

/** A column by positions instead of rows: the rows of a partition are neighbours then. */
export function byPosition({ rows, rowCount, isInOrder }: OrderedRows, column: Vector, space: Workspace): Vector {
  if (isInOrder) return column;
  const address = space.allocate(Math.max(1, rowCount) * typeOf(column.type).width);
  gather(space.heap, column.type, column.address, rows, rowCount, address, false);
  return { ...column, address };
}

/** Both are non-decreasing within a partition. */
export interface Frame {
  low: Int32Array;
  high: Int32Array;
  free(): void;
}

/** undefined for functions that do not use a frame. */
export function frameBounds(
  call: WindowCall,
  ordered: OrderedRows,
  space: Workspace,
  context: QueryContext,
): Frame | undefined {
  if (!usesFrame(call)) return undefined;
  const { frame } = call, { starts, partitionCount, rowCount } = ordered;
  const low = space.words(rowCount + 1), high = space.words(rowCount + 1);
  if (frame.excludeCurrentRow && (frame.end === undefined || frame.end > 0n)) {
    throw notSupported("EXCLUDE CURRENT ROW with a frame that ends after the current row", call.at);
  }
  // If the current row is excluded, the frame ends at the row before it.
  const exclude = frame.excludeCurrentRow && frame.end === 0n ? 1 : 0;
  const unit = frame.unit === "rows" || isByRows(call) ? "rows" : "range";
  const keys = unit === "range" ? byPosition(ordered, rangeKey(call, ordered), space) : undefined;
  for (let p = 0; p < partitionCount; p++) {
    const first = starts[p], end = starts[p + 1];
    if (keys === undefined) rowBounds(frame.start, frame.end, first, end, low, high);
    else rangeBounds(call, keys, first, end, low, high, context);
    if (exclude) { for (let i = first; i < end; i++) high[i] = Math.min(high[i], i - 1); }
    if (p % POLL_ROWS === 0) context.poll();
  }
  if (keys !== undefined && keys !== ordered.orderKey) space.free(keys.address);
  return {
    low,
    high,
    free() {
      space.freeWords(low);
      space.freeWords(high);
    },
  };
}

function rowBounds(
  startOffset: bigint | undefined,
  endOffset: bigint | undefined,
  first: number,
  end: number,
  low: Int32Array,
  high: Int32Array,
): void {
  // Offsets beyond any row count are equivalent to unbounded ones.
  const from = startOffset === undefined ? -Infinity : Number(startOffset),
    to = endOffset === undefined ? Infinity : Number(endOffset);
  for (let i = first; i < end; i++) {
    low[i] = Math.min(end, Math.max(first, i + from));
    high[i] = Math.max(first - 1, Math.min(end - 1, i + to));
  }
}

/** A RANGE frame from the first row to the current or the last one depends on no key. */
function isByRows({ frame: { start, end } }: WindowCall): boolean {
  return start === undefined && (end === undefined || end === 0n);
}

function rangeKey({ orderBy, at }: WindowCall, { orderKey }: OrderedRows): Vector {
  if (orderKey === undefined || layoutOf(orderKey.type) !== "i64" || orderBy.length !== 1) {
    throw notSupported("RANGE over keys other than one 64-bit key", at);
  }
  return orderKey;
}

/** By distance in the order key, by position. CURRENT ROW as the start includes earlier peers; as the end it is the row itself. */
function rangeBounds(
  call: WindowCall,
  key: Vector,
  first: number,
  end: number,
  low: Int32Array,
  high: Int32Array,
  context: QueryContext,
): void {
  const { start: startOffset, end: endOffset } = call.frame;
  const { i32 } = context.heap, keys = key.address >>> 2, sign = call.orderBy[0].descending ? -1 : 1;
  /** From position a to position b, in the direction of the order: exact below 2^53. */
  const distance = (a: number, b: number) => {
    const p = keys + a * 2, q = keys + b * 2;
    return sign * ((i32[q + 1] - i32[p + 1]) * 4294967296 + ((i32[q] >>> 0) - (i32[p] >>> 0)));
  };
  const from = startOffset === undefined ? -Infinity : Number(startOffset),
    to = endOffset === undefined ? Infinity : Number(endOffset);
  let l = first, h = first;
  for (let i = first; i < end; i++) {
    if (i % POLL_ROWS === 0) context.poll();
    while (l < end && distance(i, l) < from) l++;
    low[i] = l;
    if (to === 0) high[i] = i;
    else {
      while (h < end && distance(i, h) <= to) h++;
      high[i] = h - 1;
    }
  }
}
