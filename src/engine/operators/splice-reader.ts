/** Merges ranges of time of a SPLICE join, on any thread. */
import { SharedHeap } from "../../storage/heap.ts";
import { fillNull, typeOf } from "../../types/mod.ts";
import { gather, POLL_ROWS, Workspace } from "../columns.ts";
import type { QueryContext, Vector } from "../contract.ts";
import type { MorselReader, Rows, SplicedRows } from "./base-plan.ts";
import type { Morsel } from "./morsel.ts";

/** Most rows of a batch. */
const BATCH_ROWS = 16_384;

/** A morsel for each range. */
export function splicedMorsels({ ranges }: SplicedRows): Morsel[] {
  let start = 0;
  return ranges.map(({ leftStart, leftEnd, rightStart, rightEnd }, segment) => {
    const end = start + leftEnd - leftStart + rightEnd - rightStart, morsel = { segment, start, end };
    start = end;
    return morsel;
  });
}

/** Rows of the largest range, and those of the right side in one. */
function largestRange({ ranges }: SplicedRows): { rows: number; rightRows: number } {
  let rows = 1, rightRows = 1;
  for (const { leftStart, leftEnd, rightStart, rightEnd } of ranges) {
    rows = Math.max(rows, leftEnd - leftStart + rightEnd - rightStart);
    rightRows = Math.max(rightRows, rightEnd - rightStart);
  }
  return { rows, rightRows };
}

/** Memory of a reader that outputs all columns. */
export function readerBytes(rows: SplicedRows): number {
  const { groupCount, left, right } = rows, most = largestRange(rows);
  const lists = [groupCount, groupCount, groupCount, groupCount, most.rightRows, most.rows, most.rows].map((n) =>
    4 * n
  );
  const columns = [...left.columns, ...right.columns].map(({ type }) => columnBytes(type, most.rows));
  return [...lists, most.rightRows, ...columns].reduce((sum, bytes) => sum + SharedHeap.blockBytes(bytes), 0);
}

/** Lanes may read beyond the last row. */
function columnBytes(type: string, rowCount: number): number {
  return Math.min(rowCount, BATCH_ROWS) * typeOf(type).width + 16;
}

export class SpliceReader implements MorselReader {
  private readonly space: Workspace;
  /** The last rows up to now by group, or -1. */
  private readonly lastLeft: Int32Array;
  private readonly lastRight: Int32Array;
  /** Right rows of the current time without a partner, chained by group: the first and the last one by group, and the next one by right row. */
  private readonly waiting: Int32Array;
  private readonly waitingEnd: Int32Array;
  private readonly nextWaiting: Int32Array;
  /** By right row of the range: 1 if it has a partner. */
  private readonly isPaired: Uint8Array;
  /** The merged rows. */
  private readonly leftRows: Int32Array;
  private readonly rightRows: Int32Array;
  /** Addresses by column. */
  private readonly outputs = new Map<number, number>();
  private rowCount = 0;
  private position = 0;

  constructor(
    private readonly rows: SplicedRows,
    private readonly needed: ReadonlySet<number>,
    private readonly context: QueryContext,
  ) {
    const { groupCount, left, right } = rows, most = largestRange(rows);
    const space = this.space = Workspace.of(context, "splice join");
    this.lastLeft = space.words(groupCount);
    this.lastRight = space.words(groupCount);
    this.waiting = space.words(groupCount).fill(-1);
    this.waitingEnd = space.words(groupCount);
    this.nextWaiting = space.words(most.rightRows);
    this.isPaired = space.bytes(most.rightRows);
    this.leftRows = space.words(most.rows);
    this.rightRows = space.words(most.rows);
    const types = [...left.columns, ...right.columns].map(({ type }) => type);
    for (const column of needed) {
      this.outputs.set(column, space.allocate(columnBytes(types[column], most.rows)));
    }
  }

  start({ segment }: Morsel): void {
    const { rows: { states, groupCount }, lastLeft, lastRight, context: { heap: { i32 } } } = this;
    const state = states / 4 + segment * 2 * groupCount;
    lastLeft.set(i32.subarray(state, state + groupCount));
    lastRight.set(i32.subarray(state + groupCount, state + 2 * groupCount));
    this.position = 0;
    this.merge(segment);
  }

  private merge(segment: number): void {
    const { lastLeft, lastRight, waiting, waitingEnd, nextWaiting, isPaired, leftRows, rightRows, context } = this;
    const { left, right, ranges } = this.rows, { leftStart, leftEnd, rightStart, rightEnd } = ranges[segment];
    const { i32, u32 } = context.heap, leftTimes = left.times / 4, rightTimes = right.times / 4;
    const leftGroups = left.groups / 4, rightGroups = right.groups / 4;
    /** Compares times at addresses / 4. */
    const compare = (p: number, q: number) => i32[p + 1] !== i32[q + 1] ? i32[p + 1] - i32[q + 1] : u32[p] - u32[q];
    isPaired.fill(0, 0, rightEnd - rightStart);
    let n = 0;
    for (let l = leftStart, r = rightStart, polled = 0; l < leftEnd || r < rightEnd;) {
      if (n - polled >= POLL_ROWS) {
        context.poll();
        polled = n;
      }
      const order = l >= leftEnd ? 1 : r >= rightEnd ? -1 : compare(leftTimes + 2 * l, rightTimes + 2 * r);
      if (order < 0) {
        const group = i32[leftGroups + l];
        leftRows[n] = l;
        rightRows[n++] = lastRight[group];
        lastLeft[group] = l++;
        continue;
      }
      if (order > 0) {
        const group = i32[rightGroups + r];
        leftRows[n] = lastLeft[group];
        rightRows[n++] = r;
        lastRight[group] = r++;
        continue;
      }
      const firstRight = r, time = rightTimes + 2 * r;
      for (; r < rightEnd && compare(time, rightTimes + 2 * r) === 0; r++) {
        const group = i32[rightGroups + r];
        nextWaiting[r - rightStart] = -1;
        if (waiting[group] < 0) waiting[group] = r;
        else nextWaiting[waitingEnd[group] - rightStart] = r;
        waitingEnd[group] = r;
      }
      for (; l < leftEnd && compare(leftTimes + 2 * l, time) === 0; l++) {
        const group = i32[leftGroups + l], partner = waiting[group];
        if (partner >= 0) {
          waiting[group] = nextWaiting[partner - rightStart];
          isPaired[partner - rightStart] = 1;
          lastRight[group] = partner;
        }
        leftRows[n] = l;
        rightRows[n++] = lastRight[group];
        lastLeft[group] = l;
      }
      for (let row = firstRight; row < r; row++) {
        const group = i32[rightGroups + row];
        waiting[group] = -1;
        if (isPaired[row - rightStart] === 0) {
          leftRows[n] = lastLeft[group];
          rightRows[n++] = row;
        }
        lastRight[group] = row;
      }
    }
    this.rowCount = n;
  }

  next(): Rows | undefined {
    const { rows: { id, left, right }, context, position } = this, n = Math.min(BATCH_ROWS, this.rowCount - position);
    if (n <= 0) return undefined;
    context.poll();
    const leftRows = this.leftRows.subarray(position), rightRows = this.rightRows.subarray(position);
    const columns = [
      ...left.columns.map((column, k) => this.gathered(k, column, leftRows, n)),
      ...right.columns.map((column, k) => this.gathered(left.columns.length + k, column, rightRows, n)),
    ];
    this.position += n;
    if (id !== undefined) context.analysis?.countPairs(id, n);
    return { columns, start: 0, end: n, rowBase: 0n };
  }

  private gathered(index: number, column: Vector, rows: Int32Array, n: number): Vector {
    const address = this.outputs.get(index), { heap } = this.context;
    if (address === undefined) return { ...column, address: 0 };
    // A side without rows has no memory.
    if (column.address === 0) fillNull(heap, column.type, address, 0, n);
    else gather(heap, column.type, column.address, rows, n, address, true);
    return { ...column, address };
  }

  close(): void {
    this.space.release();
  }
}
