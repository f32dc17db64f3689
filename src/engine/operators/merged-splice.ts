/**
 * SPLICE joins whose sides exceed the memory. Both sides are read in time order, a range of time after the other: besides the range, only the
 * last row of each key is kept. If there are too many keys for that, both sides are divided on disk by the hashes of their keys, and each
 * partition is joined in this way.
 */
import type { Column, TimeJoinNode } from "../../sql/plan.ts";
import { ColumnStore, endOfTexts, POLL_ROWS, Workspace } from "../columns.ts";
import type { Batch, Operator, QueryContext, Vector } from "../contract.ts";
import { KeyTable } from "../keys.ts";
import type { PhysicalSplice } from "../physical/plan.ts";
import { typesOf, unnamedColumns } from "../physical/reading.ts";
import type { SplicedSide } from "./base-plan.ts";
import { runParts } from "./hash-parts.ts";
import { textsOf } from "./input.ts";
import type { MergedRows } from "./merged-rows.ts";
import { lowerBound } from "./morsels.ts";
import { orApart } from "./or-apart.ts";
import { advance } from "./scan.ts";
import { SpliceReader } from "./splice-reader.ts";
import { dividedSides, narrowed, type Side, SpareMemory, stepTextBytesOf } from "./time-sides.ts";

const OPERATOR = "splice join";

/** Rows that are read at a time, unless the memory is small: then fewer. */
const READ_ROWS_MAX = 8_192, READ_ROWS_MIN = 1_024;

/** Bytes of the query's memory for each row that is read at a time. */
const MEMORY_PER_ROW = 8_192;

/** In units of the rows that are read at a time: the least number that are merged together. With more keys, there are as many rows as keys. */
const RANGE_READS = 2;

/** In the same units: old rows are dropped when a side exceeds twice the number of keys by this many; similarly for texts. */
const SLACK_READS = 2;

function rowsReadAtOnce({ memory: { limitBytes } }: QueryContext): number {
  return limitBytes === 0
    ? READ_ROWS_MAX
    : Math.max(READ_ROWS_MIN, Math.min(READ_ROWS_MAX, Math.floor(limitBytes / MEMORY_PER_ROW)));
}

/** `open` makes both inputs anew. The columns of the result are the `needed` ones of both sides. */
export function mergedSplice(
  { node, spill, canRestart }: PhysicalSplice,
  needed: readonly number[],
  open: () => [left: Operator, right: Operator],
  context: QueryContext,
): Operator {
  const sides = (): [Side, Side] => {
    const [left, right] = open(), { length } = left.columns;
    const { leftTime, leftKeys, rightTime, rightKeys } = node;
    return [
      narrowed(left, needed.filter((index) => index < length), leftTime, leftKeys, context),
      narrowed(
        right,
        needed.filter((index) => index >= length).map((index) => index - length),
        rightTime,
        rightKeys,
        context,
      ),
    ];
  };
  const [left, right] = sides(), leftCount = left.input.columns.length;
  const ofLeft = needed.filter((index) => index < node.left.columns.length).length;
  // The needed columns come first on each side.
  const output = needed.map((_, k) => k < ofLeft ? k : leftCount + k - ofLeft);
  const inOrder = new SpliceInOrder(node, left, right, output, context, canRestart);
  return spill === undefined
    ? inOrder
    : orApart(inOrder, () => apart(node, sides(), output, context), context, canRestart);
}

/** The join of both sides, each divided on disk. */
function apart(node: TimeJoinNode, [left, right]: [Side, Side], output: number[], context: QueryContext): MergedRows {
  const leftCount = left.input.columns.length, rightCount = right.input.columns.length;
  // The rows' numbers follow the columns of each side.
  const at = { left: 0, right: leftCount + 1 };
  const moved = output.map((index) => index < leftCount ? index : index + 1);
  const times = [left.time, at.right + right.time], numbers = [leftCount, at.right + rightCount];
  return runParts({
    inputs: dividedSides(left, right, context, OPERATOR),
    keys: [[...left.keys], [...right.keys]],
    make: ([l, r]) => {
      const columns = [...moved, ...times, ...numbers];
      return new Positioned(
        new SpliceInOrder(node, { ...left, input: l }, { ...right, input: r }, columns, context),
        context,
      );
    },
    order: [{ column: output.length, descending: false }, { column: output.length + 1, descending: false }],
    columnCount: output.length,
    operator: OPERATOR,
  }, context);
}

/**
 * Replaces the last four columns, the times and the numbers of the left and the right row, by the time and the position of the pair among
 * those of equal time: pairs of left rows come first, in the order of these, and then right rows without a partner.
 */
class Positioned implements Operator {
  readonly columns: readonly Column[];
  private readonly space: Workspace;
  private lists?: { times: number; positions: number; capacity: number };
  /** The greatest number of a left row up to now. A pair of a right row without a partner has an earlier left row. */
  private lastLeft = -1;

  constructor(private readonly input: Operator, private readonly context: QueryContext) {
    const all = input.columns, kept = all.slice(0, -4);
    this.columns = unnamedColumns([...typesOf(kept), all.at(-4)!.type, "LONG"]);
    this.space = Workspace.of(context, OPERATOR);
  }

  next(): Batch | undefined {
    const batch = this.input.next();
    if (batch === undefined) return undefined;
    const { rowCount, columns } = batch, { times, positions } = this.room(rowCount), { i32, u32 } = this.context.heap;
    const [leftTimes, rightTimes, lefts, rights] = columns.slice(-4).map(({ address }) => address >>> 2);
    for (let row = 0; row < rowCount; row++) {
      const at = 2 * row, left = i32[lefts + at + 1] * 2 ** 32 + u32[lefts + at], isLeft = left > this.lastLeft;
      if (isLeft) this.lastLeft = left;
      const time = isLeft ? leftTimes : rightTimes, number = isLeft ? lefts : rights;
      i32[times + at] = i32[time + at];
      i32[times + at + 1] = i32[time + at + 1];
      i32[positions + at] = i32[number + at];
      i32[positions + at + 1] = isLeft ? i32[number + at + 1] : i32[number + at + 1] | AFTER_LEFT_ROWS;
    }
    const made = [times, positions].map((at, k): Vector => ({
      type: this.columns[this.columns.length - 2 + k].type,
      address: at * 4,
    }));
    return { rowCount, columns: [...columns.slice(0, -4), ...made] };
  }

  /** Indices of lists of 64-bit values, as i32. */
  private room(rowCount: number): { times: number; positions: number } {
    if (this.lists === undefined || this.lists.capacity < rowCount) {
      this.space.release();
      const list = () => this.space.allocate(8 * rowCount) >>> 2;
      this.lists = { times: list(), positions: list(), capacity: rowCount };
    }
    return this.lists;
  }

  close(): void {
    this.space.release();
    this.input.close();
  }
}

/** A bit of the high word of a position: numbers of rows are smaller. */
const AFTER_LEFT_ROWS = 1 << 30;

class SpliceInOrder implements Operator {
  readonly columns: readonly Column[];
  private readonly space: Workspace;
  private readonly spare: SpareMemory;
  private readonly table: KeyTable;
  private readonly left: SideInOrder;
  private readonly right: SideInOrder;
  private readonly needed: ReadonlySet<number>;
  /** Merges a range of time. */
  private reader?: SpliceReader;
  private states?: Int32Array;
  private readonly rangeRowsMin: number;

  /** `output`: of the columns of both inputs. `canRestart`: if it throws for want of memory, another operator takes its place. */
  constructor(
    { leftKeys }: TimeJoinNode,
    left: Side,
    right: Side,
    private readonly output: readonly number[],
    private readonly context: QueryContext,
    canRestart = false,
  ) {
    const all = [...left.input.columns, ...right.input.columns];
    this.columns = unnamedColumns(output.map((index) => all[index].type));
    this.needed = new Set(output);
    this.space = Workspace.of(context, OPERATOR);
    this.table = new KeyTable(leftKeys.map(({ type }) => type), this.space, () => context.poll());
    this.spare = new SpareMemory(OPERATOR, canRestart, context);
    this.rangeRowsMin = RANGE_READS * rowsReadAtOnce(context);
    const inOrder = (side: Side) => new SideInOrder(side, this.table, this.space, context, this.spare);
    this.left = inOrder(left);
    this.right = inOrder(right);
  }

  next(): Batch | undefined {
    for (;;) {
      this.context.poll();
      const rows = this.reader?.next();
      if (rows !== undefined) return { rowCount: rows.end, columns: this.output.map((index) => rows.columns[index]) };
      if (!this.startRange()) return undefined;
    }
  }

  /** Reads both sides until there are rows to merge. False at the end of both. */
  private startRange(): boolean {
    const { left, right, table, space } = this;
    this.reader?.close();
    this.reader = undefined;
    if (this.states !== undefined) space.freeWords(this.states);
    this.states = undefined;
    for (const side of [left, right]) side.startRange();
    for (;;) {
      // Rows at or after the last time of a side may have equal ones that are not read yet.
      const open = [left, right].filter((side) => !side.isAtEnd);
      const end = open.reduce<bigint | undefined>(
        (least, { lastTime }) => least === undefined || lastTime < least ? lastTime : least,
        undefined,
      );
      const rowCount = left.endRange(end) + right.endRange(end);
      if (open.length === 0 && rowCount === 0) return false;
      if (open.length === 0 || rowCount >= Math.max(this.rangeRowsMin, table.count)) break;
      if (rowCount > 0 && (left.hasManyTexts || right.hasManyTexts)) break;
      for (const side of open) if (side.lastTime === end) side.read();
    }
    const groupCount = Math.max(1, table.count), states = this.states = space.words(2 * groupCount);
    left.takeLast(states.subarray(0, groupCount));
    right.takeLast(states.subarray(groupCount));
    const range = { leftStart: left.start, leftEnd: left.end, rightStart: right.start, rightEnd: right.end };
    const rows = { left: left.rows(), right: right.rows(), groupCount, ranges: [range], states: states.byteOffset };
    this.reader = new SpliceReader(rows, this.needed, this.context);
    this.reader.start({ segment: 0, start: 0, end: 0 });
    // The table of keys and the lists have grown as well.
    this.spare.check();
    return true;
  }

  close(): void {
    this.reader?.close();
    this.space.release();
    this.left.close();
    this.right.close();
  }
}

/** Before all times. */
const NO_TIME = -(1n << 63n);

/** The rows of a side from the last ones of each key before a range up to those that are read. */
class SideInOrder {
  /** Rows of the range. */
  start = 0;
  end = 0;
  isAtEnd = false;
  lastTime = NO_TIME;
  private readonly input: Operator;
  private readonly time: number;
  private readonly keys: readonly number[];
  private readonly store: ColumnStore;
  private groups: Int32Array;
  private readonly stepTextBytes: number;
  private readonly readRows: number;
  private keptTextBytes = 0;
  private batch?: Batch;
  /** The first row of the batch that is not in the store. */
  private batchRow = 0;
  /** By group: the last row before the range, or -1. */
  private last: Int32Array;

  constructor(
    { input, time, keys }: Side,
    private readonly table: KeyTable,
    private readonly space: Workspace,
    private readonly context: QueryContext,
    private readonly spare: SpareMemory,
  ) {
    this.input = input;
    this.time = time;
    this.keys = keys;
    this.store = new ColumnStore(typesOf(input.columns), space);
    this.groups = space.words(256);
    this.last = space.words(256).fill(-1);
    this.stepTextBytes = stepTextBytesOf(context);
    this.readRows = rowsReadAtOnce(context);
  }

  /** Compared with those of the rows that were kept when old ones were dropped. */
  get hasManyTexts(): boolean {
    return this.store.textBytes > 2 * this.keptTextBytes + this.stepTextBytes;
  }

  /** Reads some rows. */
  read(): void {
    const { store, table, space, context } = this;
    if (this.batch === undefined || this.batchRow === this.batch.rowCount) {
      this.batch = this.input.next();
      this.batchRow = 0;
    }
    if (this.batch === undefined) {
      this.isAtEnd = true;
      return;
    }
    const first = this.batchRow, { columns, rowCount: count } = this.batch;
    const rowCount = endOfTexts(
      context.heap,
      textsOf(columns),
      first,
      Math.min(first + this.readRows, count),
      this.stepTextBytes,
    ) - first;
    if (rowCount === 0) return;
    const from = store.rowCount, to = from + rowCount, bytes = store.bytesToReserve(to);
    if (bytes > 0) this.spare.check(bytes);
    if (to > this.groups.length) this.groups = space.grow(this.groups, Math.max(to, 2 * this.groups.length));
    const keys = this.keys.map((key) => columns[key]);
    this.groups.set(table.groups(advance(keys, first), rowCount, true).subarray(0, rowCount), from);
    store.append(columns, rowCount, first);
    this.batchRow += rowCount;
    this.lastTime = context.heap.i64[store.vectors[this.time].address / 8 + to - 1];
  }

  /** The range begins behind the former one. */
  startRange(): void {
    const { groups, last, context } = this;
    for (let row = this.start; row < this.end; row++) {
      if (row % POLL_ROWS === 0) context.poll();
      last[groups[row]] = row;
    }
    this.start = this.end;
    if (this.store.rowCount > 2 * this.table.count + SLACK_READS * this.readRows || this.hasManyTexts) {
      this.dropOldRows();
    }
  }

  /** Ends the range before a time, or at the end of the input. Returns its number of rows. */
  endRange(time: bigint | undefined): number {
    const { store, start, context } = this, rowCount = store.rowCount - start;
    const times = store.vectors[this.time].address + 8 * start;
    this.end = start + (time === undefined ? rowCount : lowerBound(context, times, rowCount, time));
    return this.end - start;
  }

  /** Keeps the last row of each group before the range, and those from it on. */
  private dropOldRows(): void {
    const { store, last, groups, space } = this, old = [...last.keys()].filter((group) => last[group] >= 0);
    const count = old.length + store.rowCount - this.start, kept = space.words(Math.max(1, count));
    old.forEach((group, n) => kept[n] = last[group]);
    for (let n = old.length, row = this.start; n < count; n++, row++) kept[n] = row;
    store.compact(kept, count);
    old.forEach((group, n) => {
      last[group] = n;
    });
    const ofKept = kept.map((row) => groups[row]);
    groups.set(ofKept.subarray(0, count));
    space.freeWords(kept);
    this.start = this.end = old.length;
    this.keptTextBytes = store.textBytes;
  }

  /** Copies the last row of each group before the range. */
  takeLast(to: Int32Array): void {
    const { space } = this;
    if (to.length > this.last.length) this.last = space.grow(this.last, Math.max(to.length, 2 * this.last.length), -1);
    to.set(this.last.subarray(0, to.length));
  }

  rows(): SplicedSide {
    const { store: { vectors, rowCount }, groups } = this;
    return {
      columns: vectors.map((vector) => ({ ...vector })),
      rowCount,
      times: vectors[this.time].address,
      groups: groups.byteOffset,
    };
  }

  close(): void {
    this.input.close();
  }
}
