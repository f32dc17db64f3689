/**
 * SAMPLE BY: each row gets its bucket. In ordered times edges are found by search, so a bucket costs one search, and a row one store.
 * The aggregate operator groups by bucket and keys, and FILL adds rows for empty buckets.
 */
import type { Column, Fill, SampleNode } from "../../sql/plan.ts";
import { LAYOUT_WIDTH, layoutOf, NULL_I64, type Value } from "../../types/mod.ts";
import { fillNull, OutputColumns, setValue, TextArena, valueAt, Workspace } from "../columns.ts";
import { type Batch, type Changes, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { KeyTable } from "../keys.ts";
import { type Bucket, TimeBuckets } from "../time-buckets.ts";
import type { PhysicalSample } from "../physical/plan.ts";
import { typesOf } from "../physical/reading.ts";
import { createGrouping } from "./aggregate.ts";
import type { OpenBase } from "./base-plan.ts";
import { assertingContract } from "./contract.ts";
import { createSampleRuns } from "./sample-runs.ts";
import { Expressions, keepAll, type KeptRows } from "./input.ts";

export function createSample(
  node: SampleNode,
  way: PhysicalSample["way"],
  open: OpenBase,
  input: () => Operator,
  context: QueryContext,
): Operator {
  if (way.kind === "runs") {
    const runs = createSampleRuns(node.columns, way, context);
    return new SampleOutput(node, runs.groups, () => runs.buckets, context);
  }
  if (way.kind === "computed") {
    const buckets = new TimeBuckets(node.sampling, node.time.type, 0n);
    const groups = createGrouping(way.groups, open, input, context);
    return way.isInOrder && node.fills.length === 0 ? groups : new SampleOutput(node, groups, () => buckets, context);
  }
  let rows: BucketInput | undefined;
  // Groups that exceed the memory close their input and open it again.
  const openRows = () => rows = assertingContract(new BucketInput(node, input(), context));
  const groups = createGrouping(way.groups, () => ({ kind: "operator", input: openRows() }), openRows, context);
  return new SampleOutput(node, groups, () => rows?.buckets, context);
}

/** Rows without a time, which only a sub-query can have, are a bucket of their own in front of the others. */
const NO_TIME: Bucket = { start: NULL_I64, end: NULL_I64 + 1n };

/** The input's rows inside FROM … TO, with their bucket as an additional column. */
class BucketInput implements Operator {
  readonly columns: readonly Column[];
  /** Set when the first row is known. */
  buckets: TimeBuckets | undefined;
  /** True while buckets were in ascending order. */
  ascending = true;
  private readonly times: Expressions;
  private readonly space: Workspace;
  /** The buckets of the rows of a batch, and how many rows they can hold. */
  private starts = 0;
  private startsRows = 0;
  private batch: Batch | undefined;
  private at = 0;
  private last: Bucket | undefined;

  constructor(
    private readonly node: SampleNode,
    private readonly input: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = [...input.columns, { name: "bucket", type: node.time.type }];
    this.space = Workspace.of(context, "SAMPLE BY");
    this.times = new Expressions([node.time], typesOf(input.columns), context);
  }

  next(): Batch | undefined {
    for (;;) {
      if (!this.batch || this.at >= this.batch.rowCount) {
        this.batch = this.input.next();
        this.at = 0;
        if (!this.batch) return undefined;
        this.reserve(this.batch.rowCount);
      }
      const part = this.part(this.batch);
      if (part) return part;
    }
  }

  private reserve(rowCount: number): void {
    if (rowCount <= this.startsRows) return;
    if (this.startsRows > 0) this.space.free(this.starts);
    this.startsRows = rowCount;
    this.starts = this.space.allocate(rowCount * 8);
  }

  /** The next run of rows of the batch inside FROM … TO, from `at` on. */
  private part(batch: Batch): Batch | undefined {
    const { from, to } = this.node.sampling;
    const [vector] = this.times.run(batch);
    const times = this.context.heap.i64.subarray(vector.address >>> 3, (vector.address >>> 3) + batch.rowCount);
    const starts = this.context.heap.i64.subarray(this.starts >>> 3, (this.starts >>> 3) + batch.rowCount);
    const isOutside = (time: bigint) => (from !== undefined && time < from) || (to !== undefined && time >= to);
    while (this.at < batch.rowCount && isOutside(times[this.at])) this.at++;
    if (this.at >= batch.rowCount) return undefined;
    const first = this.at;
    while (this.at < batch.rowCount && !isOutside(times[this.at])) {
      const time = times[this.at], bucket = this.bucketOf(time);
      if (this.last && bucket.start < this.last.start) this.ascending = false;
      this.last = bucket;
      const end = to !== undefined && to < bucket.end ? to : bucket.end;
      const next = this.endOfRun(times, this.at, end, time);
      starts.fill(bucket.start, this.at, next);
      this.at = next;
    }
    this.context.poll();
    return {
      rowCount: this.at - first,
      columns: [...batch.columns.map((column) => shifted(column, first)), {
        type: this.node.time.type,
        address: this.starts + first * 8,
      }],
    };
  }

  private bucketOf(time: bigint): Bucket {
    if (time === NULL_I64) return NO_TIME;
    this.buckets ??= new TimeBuckets(this.node.sampling, this.node.time.type, time);
    return this.buckets.of(time);
  }

  /** The first row after `from` whose time is not in [low, high); uses galloping search if times ascend. */
  private endOfRun(times: BigInt64Array, from: number, high: bigint, low: bigint): number {
    if (this.node.input.order !== "asc") {
      let row = from + 1;
      while (row < times.length && times[row] < high && times[row] >= low) row++;
      return row;
    }
    let inside = from, step = 64;
    while (inside + step < times.length && times[inside + step] < high) {
      inside += step;
      step *= 2;
    }
    let outside = Math.min(times.length, inside + step);
    while (outside - inside > 1) {
      const middle = (inside + outside) >>> 1;
      if (times[middle] < high) inside = middle;
      else outside = middle;
    }
    return outside;
  }

  rewind(): boolean {
    this.buckets = this.batch = this.last = undefined;
    this.ascending = true;
    this.at = 0;
    return this.input.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    return this.input.rebind?.(changes) === true;
  }

  close(): void {
    this.times.close();
    this.space.release();
    this.input.close();
  }
}

function shifted(column: Vector, rows: number): Vector {
  return rows === 0 ? column : { ...column, address: column.address + rows * LAYOUT_WIDTH[layoutOf(column.type)] };
}

/** Groups in order of their buckets, with the rows that FILL adds. */
class SampleOutput implements Operator {
  readonly columns: readonly Column[];
  private kept: KeptRows | undefined;
  /** Rows in front that are sent as they are; `filler` has the others. */
  private unfilled = 0;
  private filler: Filler | undefined;
  private readonly space: Workspace;
  private rowsSent = 0;
  private ordered: Int32Array | undefined;

  constructor(
    private readonly node: SampleNode,
    private readonly groups: Operator,
    private readonly buckets: () => TimeBuckets | undefined,
    private readonly context: QueryContext,
  ) {
    this.columns = node.columns;
    this.space = Workspace.of(context, "SAMPLE BY");
  }

  next(): Batch | undefined {
    if (!this.kept) {
      this.kept = keepAll(this.groups, [], this.space, this.context);
      this.ordered = orderByBucket(this.kept, this.context);
      this.unfilled = this.kept.rowCount;
      if (this.node.fills.length > 0) {
        this.unfilled = withoutTime(this.kept, this.ordered, this.context);
        this.filler = Filler.of(
          this.node,
          this.kept,
          this.ordered,
          this.unfilled,
          this.buckets(),
          this.space,
          this.context,
        );
      }
    }
    const from = this.rowsSent, rowCount = Math.min(MORSEL_ROWS, this.unfilled - from);
    if (rowCount <= 0) return this.filler?.next();
    this.rowsSent += rowCount;
    if (!this.ordered) return this.kept.store.slice(from, rowCount);
    this.output ??= new OutputColumns(typesOf(this.columns), this.space);
    const rows = this.ordered.subarray(from, from + rowCount);
    this.kept.columns.forEach((column, c) => this.output!.gather(c, column, rows, rowCount, false));
    return { rowCount, columns: this.output.vectors };
  }

  private output: OutputColumns | undefined;

  rewind(): boolean {
    this.space.release();
    this.kept = undefined;
    this.filler = undefined;
    this.ordered = undefined;
    this.output = undefined;
    this.rowsSent = 0;
    return this.groups.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    return this.groups.rebind?.(changes) === true;
  }

  close(): void {
    this.space.release();
    this.groups.close();
  }
}

/** How many of the groups have no time. They come first. */
function withoutTime(kept: KeptRows, ordered: Int32Array | undefined, context: QueryContext): number {
  const first = kept.columns[0].address >>> 3;
  let count = 0;
  while (count < kept.rowCount && context.heap.i64[first + (ordered ? ordered[count] : count)] === NULL_I64) count++;
  return count;
}

/** A stable order of the groups' rows by bucket; undefined if they are already in order. */
function orderByBucket(kept: KeptRows, context: QueryContext): Int32Array | undefined {
  const first = kept.columns[0].address >>> 3;
  const starts = context.heap.i64.subarray(first, first + kept.rowCount);
  for (let row = 1; row < kept.rowCount; row++) {
    if (starts[row] < starts[row - 1]) {
      return Int32Array.from({ length: kept.rowCount }, (_, i) => i).sort((a, b) =>
        starts[a] < starts[b] ? -1 : starts[a] > starts[b] ? 1 : a - b
      );
    }
  }
  return undefined;
}

/**
 * Outputs a row for each bucket of the whole range and each key. An aggregate without a row there is null, a constant,
 * the key's previous value (PREV) or that of another aggregate, or interpolated (LINEAR; integers are truncated towards zero).
 */
class Filler {
  private readonly output: OutputColumns;
  private readonly arena: TextArena;
  /** Rows of groups, by bucket. */
  private readonly rowAt: (i: number) => number;
  private readonly starts: BigInt64Array;
  /** By key: its latest row so far, and its next row. */
  private readonly previous: Int32Array;
  /** By row: the same key's next row, or -1. */
  private readonly following: Int32Array;
  /** By row: the same key's previous row, or -1. */
  private readonly preceding: Int32Array;
  private readonly coming: Int32Array;
  /** By row, for LINEAR: the start of the bucket before. */
  private readonly startsBefore: BigInt64Array;
  private bucketBefore: bigint;
  private nextRow = 0;
  private key = 0;
  /** Row of each key in the current bucket, or -1. */
  private readonly current: Int32Array;

  static of(
    node: SampleNode,
    kept: KeptRows,
    ordered: Int32Array | undefined,
    untimed: number,
    buckets: TimeBuckets | undefined,
    space: Workspace,
    context: QueryContext,
  ): Filler | undefined {
    const { from, to } = node.sampling;
    const padded = node.fills.every((fill) => fill.kind === "null" || fill.kind === "value");
    const known = buckets ??
      (padded && from !== undefined ? new TimeBuckets(node.sampling, node.time.type, from) : undefined);
    if (!known) return undefined;
    const start = context.heap.i64, first = kept.columns[0].address >>> 3;
    const bucketOf = (i: number) => start[first + (ordered ? ordered[i] : i)];
    const hasTimes = untimed < kept.rowCount;
    if (!hasTimes && !(padded && from !== undefined && to !== undefined)) return undefined;
    let low = padded && from !== undefined ? known.of(from).start : bucketOf(untimed);
    // Clocks that are turned back at FROM.
    if (hasTimes && bucketOf(untimed) < low) low = bucketOf(untimed);
    let high = hasTimes ? bucketOf(kept.rowCount - 1) : low;
    if (padded && to !== undefined) {
      if (from !== undefined && from >= to) return undefined;
      const last = known.of(known.shownAt(to) - 1n).start;
      if (last > high) high = last;
    }
    return new Filler(node, kept, ordered, untimed, known, low, high, space, context);
  }

  private constructor(
    private readonly node: SampleNode,
    private readonly kept: KeptRows,
    ordered: Int32Array | undefined,
    untimed: number,
    private readonly buckets: TimeBuckets,
    private bucket: bigint,
    private readonly lastBucket: bigint,
    private readonly space: Workspace,
    private readonly context: QueryContext,
  ) {
    this.output = new OutputColumns(typesOf(node.columns), space);
    this.arena = new TextArena(space);
    this.rowAt = ordered ? (i) => ordered[i] : (i) => i;
    const first = kept.columns[0].address >>> 3;
    this.starts = context.heap.i64.subarray(first, first + kept.rowCount);
    const keyColumns = kept.columns.slice(1, 1 + node.keys.length);
    const keyOf = this.numberKeys(keyColumns);
    const keyCount = keyColumns.length === 0 ? 1 : keyOf.reduce((most, key) => Math.max(most, key + 1), 0);
    this.keyOf = keyOf;
    this.previous = space.words(keyCount).fill(-1);
    this.coming = space.words(keyCount).fill(-1);
    this.current = space.words(keyCount).fill(-1);
    this.following = space.words(kept.rowCount);
    this.preceding = space.words(kept.rowCount);
    this.keyRow = space.words(keyCount);
    const linearRows = node.fills.some(({ kind }) => kind === "linear") ? kept.rowCount : 0;
    const startsBefore = space.allocate(8 * linearRows) >>> 3;
    this.startsBefore = context.heap.i64.subarray(startsBefore, startsBefore + linearRows);
    this.bucketBefore = bucket;
    for (let i = kept.rowCount - 1; i >= 0; i--) {
      const row = this.rowAt(i), key = keyOf[row];
      this.keyRow[key] = row;
      if (i < untimed) continue;
      this.following[row] = this.coming[key];
      this.preceding[row] = -1;
      if (this.coming[key] >= 0) this.preceding[this.coming[key]] = row;
      this.coming[key] = row;
    }
    this.nextRow = untimed;
    this.keyCount = keyCount;
    this.enterBucket();
  }

  private readonly keyOf: Int32Array;
  private readonly keyCount: number;
  /** A row with the key's values. */
  private readonly keyRow: Int32Array;

  /** By row: the number of its key, in order of first appearance. */
  private numberKeys(columns: Vector[]): Int32Array {
    const numbers = this.space.words(this.kept.rowCount).fill(0);
    if (columns.length === 0) return numbers;
    const table = new KeyTable(columns.map((column) => column.type), this.space, () => this.context.poll());
    for (let from = 0; from < this.kept.rowCount; from += MORSEL_ROWS) {
      const rowCount = Math.min(MORSEL_ROWS, this.kept.rowCount - from);
      numbers.set(
        table.groups(columns.map((column) => shifted(column, from)), rowCount, true).subarray(0, rowCount),
        from,
      );
    }
    return numbers;
  }

  /** Finds the rows of the current bucket. */
  private enterBucket(): void {
    this.current.fill(-1);
    for (; this.nextRow < this.kept.rowCount; this.nextRow++) {
      const row = this.rowAt(this.nextRow);
      if (this.starts[row] !== this.bucket) break;
      const key = this.keyOf[row];
      this.current[key] = row;
      this.coming[key] = this.following[row];
      this.startsBefore[row] = this.bucketBefore;
    }
  }

  /** If clocks skip hours, a bucket with rows may begin between two regular ones. */
  private bucketAfter(): bigint {
    const next = this.buckets.after(this.bucket);
    const withRows = this.nextRow < this.kept.rowCount ? this.starts[this.rowAt(this.nextRow)] : next;
    return withRows < next ? withRows : next;
  }

  next(): Batch | undefined {
    const { heap } = this.context;
    const fills = this.node.fills, firstFill = 1 + this.node.keys.length;
    const target = this.output.vectors[0].address >>> 3;
    const rows = new Int32Array(MORSEL_ROWS),
      keys = new Int32Array(MORSEL_ROWS),
      before = new Int32Array(MORSEL_ROWS),
      after = new Int32Array(MORSEL_ROWS);
    let count = 0;
    this.arena.release();
    while (count < MORSEL_ROWS && this.bucket <= this.lastBucket) {
      const { key } = this;
      const row = this.current[key];
      heap.i64[target + count] = this.bucket;
      rows[count] = row;
      keys[count] = this.keyRow[key];
      before[count] = this.previous[key];
      after[count] = this.coming[key];
      if (row >= 0) this.previous[key] = row;
      count++;
      if (++this.key < this.keyCount) continue;
      this.key = 0;
      this.bucketBefore = this.bucket;
      this.bucket = this.bucketAfter();
      this.enterBucket();
      if ((count & 4095) === 0) this.context.poll();
    }
    this.context.poll();
    if (count === 0) return undefined;
    this.node.keys.forEach((_, k) => this.output.gather(1 + k, this.kept.columns[1 + k], keys, count, false));
    fills.forEach((fill, k) => this.fillColumn(firstFill + k, fill, rows, before, after, count));
    return { rowCount: count, columns: this.output.vectors };
  }

  private fillColumn(
    c: number,
    fill: Fill,
    rows: Int32Array,
    before: Int32Array,
    after: Int32Array,
    count: number,
  ): void {
    const source = this.kept.columns[c], target = this.output.vectors[c];
    if (fill.kind === "prev" && fill.from === undefined) {
      return this.output.gather(
        c,
        source,
        rows.map((row, i) => row >= 0 ? row : before[i]),
        count,
        true,
      );
    }
    this.output.gather(c, source, rows, count, true);
    const set = (i: number, value: Value) =>
      setValue(this.context.heap, target.type, target.address, i, value, this.arena);
    if (fill.kind === "value") {
      for (let i = 0; i < count; i++) if (rows[i] < 0) set(i, fill.value);
    } else if (fill.kind === "prev") {
      const other = this.kept.columns[1 + this.node.keys.length + fill.from!];
      for (let i = 0; i < count; i++) {
        if (rows[i] < 0 && before[i] >= 0) set(i, valueAt(this.context.heap, other, before[i]));
      }
    } else if (fill.kind === "linear") {
      for (let i = 0; i < count; i++) if (rows[i] < 0) this.interpolate(source, target, i, before[i], after[i]);
    }
  }

  private interpolate(source: Vector, target: Vector, i: number, before: number, after: number): void {
    const { heap } = this.context, time = heap.i64[(this.output.vectors[0].address >>> 3) + i];
    let value: Value = null;
    if (before >= 0 && after >= 0) value = this.between(source, before, after, time);
    else if (before >= 0) value = this.beyond(source, before, time);
    // Before a key's first row, extrapolate from the first two.
    else if (after >= 0 && this.following[after] >= 0) value = this.between(source, after, this.following[after], time);
    if (value === null) fillNull(heap, target.type, target.address, i, 1);
    else setValue(heap, target.type, target.address, i, value, this.arena);
  }

  private between(source: Vector, before: number, after: number, time: bigint): Value {
    const { starts } = this;
    return this.onLine(
      source,
      starts[before],
      this.read(source, before),
      starts[after],
      this.read(source, after),
      time,
    );
  }

  /** After a key's last row, extrapolate from it and the bucket before, which may be interpolated and truncated itself. */
  private beyond(source: Vector, last: number, time: bigint): Value {
    const before = this.preceding[last], start = this.startsBefore[last];
    if (before < 0) return null;
    const value = this.between(source, before, last, start);
    return this.onLine(source, start, value, this.starts[last], this.read(source, last), time);
  }

  /** The value at a time on the line through two points; null if one has none. Integers are limited to their range. */
  private onLine(
    { type }: Vector,
    start: bigint,
    value: Value,
    laterStart: bigint,
    laterValue: Value,
    time: bigint,
  ): Value {
    if (value === null || laterValue === null) return null;
    const width = Number(laterStart - start), at = Number(time - start), layout = layoutOf(type);
    const found = (Number(value) * (width - at) + Number(laterValue) * at) / width;
    if (layout === "f64" || layout === "f32") return found;
    const limit = (1n << BigInt(8 * LAYOUT_WIDTH[layout] - 1)) - 1n, whole = BigInt(Math.trunc(found));
    const limited = whole > limit ? limit : whole < -limit ? -limit : whole;
    return layout === "i64" ? limited : Number(limited);
  }

  private read(source: Vector, row: number): Value {
    return valueAt(this.context.heap, source, row);
  }
}
