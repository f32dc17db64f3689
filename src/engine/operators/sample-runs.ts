/**
 * SAMPLE BY over a scan in time order: bucket edges are found by search, and the rows between two edges are processed by a kernel as
 * one run, without computing a bucket for each row. All workers process ranges of morsels; a bucket that spans two ranges is
 * merged afterwards.
 */
import { assert } from "../../assert.ts";
import type { Column, Expr, ScanNode } from "../../sql/plan.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { Workspace } from "../columns.ts";
import type { FusedAggregate } from "../../sql/functions/entry.ts";
import {
  type AggregateShape,
  type CompiledKernel,
  finishKernel,
  initialiseKernel,
  type KeyOutput,
  singleMergeKernel,
  strideOf,
} from "../compiler/aggregate.ts";
import { BoundKernel, flushKernelRows } from "../compiler/binding.ts";
import { columnsOf, formOf } from "../compiler/expression.ts";
import { i64 } from "../compiler/ir.ts";
import { edgesKernel, flushKernel, runsKernel } from "../compiler/sample.ts";
import { type Batch, type Changes, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { registerTask } from "../parallel.ts";
import { type Bucket, TimeBuckets } from "../time-buckets.ts";
import { scanDictionaries, sourceOf } from "../physical/facts.ts";
import { exprsOf } from "../physical/grouping.ts";
import type { RunsWay } from "../physical/plan.ts";
import { OFFSET_ROWS_MIN } from "../physical/thresholds.ts";
import { countedSpec, countPassed, isCounted } from "./counted-spec.ts";
import { type FusedShape, Grouper, type GroupTable } from "./group-table.ts";
import { MarkedRows } from "./marked-rows.ts";
import { markedShapes, markedShareMax } from "./masked-rows.ts";
import { openMorsels } from "./base.ts";
import type { MorselReader } from "./base-plan.ts";
import type { Morsel } from "./morsel.ts";
import { firstAt, lowerBound, morselsOf, rangesOf } from "./morsels.ts";
import { ScanReader } from "./scan.ts";
import { SegmentWays } from "./segment-ways.ts";
import { SummedRows } from "./summed-rows.ts";

const OPERATOR = "SAMPLE BY";
const TASK = "SAMPLE BY";
const RUNS_MAX = 4_096;
/** Runs that are shorter on average are processed together in one kernel call. */
const SHORT_RUN_ROWS = 2_048;

/** If more buckets end in a segment, its times are read instead of searched for summaries. */
const SEARCHED_BUCKETS_MAX = 8;

/** The rows of a morsel that are in a bucket. */
type Piece = { bucket: Bucket } & Pick<Morsel, "segment" | "start" | "end" | "around">;

/** Kernels for rows of another form than those of the scan. */
interface RunKernels {
  grouper: Grouper;
  shortRuns: BoundKernel | undefined;
}

/** Records of one range: (bucket, header of the group if there are keys, states). */
interface RangeRecords {
  range: number;
  address: number;
  sizeBytes: number;
  count: number;
}

/** Counts the rows of a bucket, because buckets without rows that pass the filter are not output. */
const ROWS: FusedAggregate = {
  kind: "fused",
  state: () => [{ type: "i64", initial: 0n }],
  update: ([n]) => [i64.add(n, i64.const(1n))],
  merge: ([a], [b]) => [i64.add(a, b)],
  finish: ([n]) => n,
  summarised: ({ rowCount }) => [rowCount],
};
const ROWS_SHAPE: AggregateShape = { aggregate: ROWS, id: "rows of the run", types: [], args: [] };

/** The grouped rows: bucket, keys, aggregates. */
export function createSampleRuns(
  columns: readonly Column[],
  way: RunsWay,
  context: QueryContext,
): { groups: Operator; buckets: TimeBuckets } {
  const task = { ...way, spec: countedSpec(way.spec, way.reader, context) };
  const runs = new Runs(task, context);
  return { groups: new SampledRuns(columns, task, runs, context), buckets: runs.buckets };
}

/** Rows start … end-1 of a segment, whose times are in memory. */
interface TimedRows {
  /** Address of the time of row 0. */
  times: number;
  /** For short runs of these columns. */
  shortRuns: BoundKernel | undefined;
  rowBase: bigint;
  start: number;
  end: number;
  /** All columns that are read. */
  columns: () => Vector[];
  add: (table: GroupTable, start: number, end: number) => void;
}

class Runs {
  readonly buckets: TimeBuckets;
  readonly grouper: Grouper;
  /** Words before the states. */
  readonly headerWords: number;
  readonly aggregates: readonly AggregateShape[];
  ranges: Morsel[][];
  private readonly space: Workspace;
  private reader: MorselReader | undefined;
  /** Reads the times alone, if other columns have summaries. */
  private timesReader: ScanReader | undefined;
  private summed: SummedRows | undefined;
  /** Reads pieces of segments, without their times. */
  private pieces: MorselReader | undefined;
  private ways: SegmentWays | undefined;
  /** Rows that pass the conditions, with their times. */
  private marked: { rows: MarkedRows; listed: RunKernels; masked: RunKernels } | undefined;
  private readonly needed: ReadonlySet<number>;
  private readonly results: RangeRecords[] = [];
  private readonly edges: BoundKernel;
  private readonly initialiser: BoundKernel;
  private readonly flusher?: BoundKernel;
  private readonly shortRuns?: BoundKernel;
  private readonly starts: number;
  private readonly ends: number;
  private table?: GroupTable;
  /** Records of the current range. */
  private records = { address: 0, sizeBytes: 0, count: 0 };
  private bucket?: bigint;
  /** The conditions of this run. */
  private predicates: readonly Expr[];

  constructor(private readonly task: RunsWay, private readonly context: QueryContext) {
    const { node, spec, sampling, timeType } = task, source = sourceOf(node, context);
    const grouper = new Grouper(spec, node.columns.map((column) => column.type), context);
    grouper.prepare(scanDictionaries(node, source));
    const shape = grouper.fusedShape;
    assert(shape !== undefined && shape.kind !== "hash", "the keys of runs are fused, and few");
    this.base = grouper;
    this.aggregates = shape.kind === "single" ? [...shape.aggregates, ROWS_SHAPE] : shape.aggregates;
    this.grouper = shape.kind === "single"
      ? grouper.withShape({ ...shape, aggregates: [...this.aggregates] }, context)
      : grouper;
    this.headerWords = shape.kind === "single" ? 1 : 2;
    this.buckets = new TimeBuckets(sampling, timeType, 0n);
    this.space = Workspace.of(context, OPERATOR);
    const needed = new Set<number>([node.timestamp]);
    for (const expr of exprsOf(spec)) columnsOf(expr, needed);
    this.needed = needed;
    this.node = node;
    this.predicates = spec.predicates;
    this.ranges = rangesOf(morselsOf(node, source, context, spec.predicates, [], true));
    const { memory } = context.heap;
    const bind = (kernel: CompiledKernel) => new BoundKernel(kernel, [], context, this.space);
    this.edges = bind(edgesKernel(memory));
    this.initialiser = bind(initialiseKernel(memory, 0, this.aggregates));
    if (shape.kind === "dense") this.flusher = bind(flushKernel(memory, this.aggregates));
    else this.shortRuns = this.shortRunsOf(shape);
    this.starts = this.space.allocate(RUNS_MAX * 8);
    this.ends = this.space.allocate(RUNS_MAX * 4);
    const { edges, buckets } = this;
    edges.setI32(edges.cells.starts, this.starts);
    edges.setI32(edges.cells.ends, this.ends);
    edges.setI32(edges.cells.capacity, RUNS_MAX);
    if (buckets.fixed !== undefined) {
      edges.setI64(edges.cells.origin, buckets.fixed.origin);
      edges.setI64(edges.cells.stride, buckets.fixed.stride);
    }
  }

  private shortRunsOf({ inputs, predicate }: FusedShape): BoundKernel {
    const kernel = runsKernel(this.context.heap.memory, inputs, predicate, this.aggregates);
    return new BoundKernel(kernel, inputs, this.context, this.space);
  }

  private readonly base: Grouper;
  /** The scan of this run. */
  private node: ScanNode;

  get stride(): number {
    return strideOf(this.headerWords, this.aggregates);
  }

  run(range: number): void {
    const { context, node, grouper } = this, reader = this.reader ??= this.open();
    reader.restart?.();
    this.pieces?.restart?.();
    this.ways?.restart();
    this.marked?.rows.restart();
    this.records = { address: 0, sizeBytes: 0, count: 0 };
    this.bucket = undefined;
    if (this.flusher !== undefined) this.table ??= this.grouper.create();
    for (const morsel of this.ranges[range]) {
      context.poll();
      if (morsel.lookup === undefined && this.runPacked(morsel, reader)) continue;
      reader.start(morsel);
      for (let rows = reader.next(); rows !== undefined; rows = reader.next()) {
        context.poll();
        const { columns, start, end, rowBase } = rows, times = columns[node.timestamp].address, { shortRuns } = this;
        const add = (table: GroupTable, from: number, to: number) => grouper.consume(table, columns, from, to, rowBase);
        this.runsOf({ times, rowBase, start, end, shortRuns, columns: () => columns, add });
      }
    }
    this.endBucket();
    this.results.push({ range, ...this.records });
  }

  /** Makes the readers of a run. */
  private open(): MorselReader {
    const { context, node, grouper, predicates } = this, spec = { ...this.task.spec, predicates };
    const plan = { kind: "scan", node } as const, { fusedShape: shape } = grouper;
    this.summed = SummedRows.of(spec, this.aggregates, node, grouper, context);
    this.ways = SegmentWays.of(spec, grouper, node, context);
    if (this.ways !== undefined) {
      const columns = new Set<number>(), taker = this.ways.takerFor(() => this.table!);
      for (const expr of exprsOf(spec)) columnsOf(expr, columns);
      this.pieces = openMorsels({ ...plan, reader: this.task.reader }, columns, context, predicates, taker);
      const needed = new Set<number>();
      for (const expr of exprsOf({ ...spec, predicates: [] })) columnsOf(expr, needed);
      const options = { operator: OPERATOR, shareMax: markedShareMax(shape!, predicates, needed, node) };
      const rows = MarkedRows.of(predicates, new Set([node.timestamp, ...needed]), node, context, options);
      const kernelsOf = (shape: FusedShape): RunKernels => ({
        grouper: grouper.withShape(shape, context),
        shortRuns: this.shortRuns && this.shortRunsOf(shape),
      });
      if (rows !== undefined) {
        const shapes = markedShapes(shape!, node);
        this.marked = { rows, listed: kernelsOf(shapes.listed), masked: kernelsOf(shapes.masked) };
      }
    }
    return openMorsels(plan, this.needed, context, predicates);
  }

  /** Adds a morsel by summaries or packed codes. False if its rows have to be read. */
  private runPacked(morsel: Morsel, reader: MorselReader): boolean {
    const { summed, marked, node } = this;
    if (summed === undefined && (this.ways === undefined || morsel.end - morsel.start < OFFSET_ROWS_MIN)) return false;
    const pieces = this.piecesOf(morsel);
    if (pieces !== undefined) {
      for (const piece of pieces) this.addPiece(piece);
      return true;
    }
    if (summed !== undefined) {
      this.runSummed(morsel, summed, reader);
      return true;
    }
    if (marked === undefined) return false;
    const { listed, masked } = marked;
    return marked.rows.read(morsel, {
      listed: (columns, count) => this.runMarked(listed, columns, 0, count, 0n, node),
      masked: (columns, from, to, rowBase) => this.runMarked(masked, columns, from, to, rowBase, node),
    });
  }

  private runMarked(
    { grouper, shortRuns }: RunKernels,
    columns: Vector[],
    start: number,
    end: number,
    rowBase: bigint,
    { timestamp }: ScanNode,
  ): void {
    const add = (table: GroupTable, from: number, to: number) => grouper.consume(table, columns, from, to, rowBase);
    this.runsOf({ times: columns[timestamp].address, rowBase, start, end, shortRuns, columns: () => columns, add });
  }

  /** The rows of each bucket, whose ends are searched. Undefined if these are many. */
  private piecesOf({ segment, start, end }: Morsel): Piece[] | undefined {
    const { context, node, task: { sampling: { from, to } } } = this, source = sourceOf(node, context);
    const { timestampMin: min, timestampMax: max } = source.segments.at(segment)!;
    if ((from !== undefined && from > min) || (to !== undefined && max >= to)) return undefined;
    // Each needs some steps of its own.
    const count = this.summed === undefined ? Math.floor((end - start) / OFFSET_ROWS_MIN) : SEARCHED_BUCKETS_MAX;
    const buckets = this.bucketsBetween(min, max, count);
    if (buckets === undefined) return undefined;
    const pieces: Piece[] = [], around = { from: start, to: end };
    let row = start;
    for (const bucket of buckets) {
      const stop = bucket.end > max ? end : firstAt(context, source, segment, node.timestamp, bucket.end);
      if (stop > row) pieces.push({ bucket, segment, start: row, end: row = Math.min(stop, end), around });
    }
    return pieces;
  }

  private addPiece({ bucket, ...piece }: Piece): void {
    const { context, summed, grouper, pieces, task: { reader: counter } } = this;
    this.enterBucket(bucket.start);
    if (summed !== undefined) {
      if (counter !== undefined) context.analysis?.countTaken(counter, piece.end - piece.start);
      return summed.consume(this.table!, piece);
    }
    assert(pieces !== undefined);
    pieces.start(piece);
    for (let rows = pieces.next(); rows !== undefined; rows = pieces.next()) {
      context.poll();
      grouper.consume(this.table!, rows.columns, rows.start, rows.end, rows.rowBase);
    }
  }

  /** Adds rows by summaries, and reads their times. */
  private runSummed(morsel: Morsel, summed: SummedRows, reader: MorselReader): void {
    const { context, node, shortRuns } = this, { segment, start, end } = morsel;
    const times = this.timesReader ??= new ScanReader(node, new Set([node.timestamp]), context);
    let columns: Vector[] | undefined;
    this.runsOf({
      times: times.open(segment, { from: start, to: end })[node.timestamp].address,
      rowBase: 0n,
      start,
      end,
      shortRuns,
      columns: () => {
        if (columns === undefined) reader.start(morsel);
        return columns ??= reader.next()!.columns;
      },
      add: (table, from, to) => summed.consume(table, { segment, start: from, end: to }),
    });
  }

  /** The buckets of times from `min` to `max`; undefined if they are more than `countMax`. */
  private bucketsBetween(min: bigint, max: bigint, countMax: number): Bucket[] | undefined {
    const list = [this.buckets.of(min)];
    for (let last = list[0]!; last.end <= max; list.push(last = this.buckets.of(last.end))) {
      if (list.length === countMax) return undefined;
    }
    return list;
  }

  private runsOf(rows: TimedRows): void {
    const { context, task: { reader, sampling: { from, to } } } = this;
    // Rows outside of the morsel may not be in memory.
    const placeOf = (time: bigint) =>
      rows.start + lowerBound(context, rows.times + rows.start * 8, rows.end - rows.start, time);
    const start = from === undefined ? rows.start : placeOf(from), end = to === undefined ? rows.end : placeOf(to);
    if (reader !== undefined) context.analysis?.countTaken(reader, Math.max(0, end - start));
    for (let row = start; row < end;) row = this.someRuns(rows, row, end);
  }

  /** Processes runs from `row` on, as many as the lists hold, and returns where they end. */
  private someRuns(rows: TimedRows, row: number, end: number): number {
    const { heap } = this.context;
    const count = this.cut(rows.times, row, end);
    if (rows.shortRuns !== undefined && count > 1) {
      const stop = heap.i32[this.ends / 4 + count - 1];
      if ((stop - row) / count < SHORT_RUN_ROWS) {
        return this.allAtOnce(rows.shortRuns, rows.columns(), count, row, stop, rows.rowBase);
      }
    }
    let start = row;
    for (let k = 0; k < count; k++) {
      const stop = heap.i32[this.ends / 4 + k];
      this.enterBucket(heap.i64[this.starts / 8 + k]);
      rows.add(this.table!, start, stop);
      start = stop;
    }
    return start;
  }

  private enterBucket(bucket: bigint): void {
    if (bucket === this.bucket) return;
    this.endBucket();
    this.beginBucket(bucket);
  }

  private allAtOnce(
    kernel: BoundKernel,
    columns: Vector[],
    count: number,
    start: number,
    stop: number,
    rowBase: bigint,
  ): number {
    const { heap } = this.context, { records, stride, starts, ends } = this;
    this.endBucket();
    const { cells } = kernel;
    let free = this.reserve(count + 1);
    const last = free - stride;
    const continued = records.count > 0 && heap.i64[last / 8] === heap.i64[starts / 8];
    if (continued) {
      free = last;
      records.count--;
    }
    kernel.setColumns(columns, rowBase);
    kernel.setI32(cells.starts, starts);
    kernel.setI32(cells.ends, ends);
    kernel.setI32(cells.runs, count);
    kernel.setI32(cells.records, free);
    kernel.setI32(cells.continued, continued ? 1 : 0);
    records.count += kernel.run(start, stop);
    return stop;
  }

  private cut(times: number, row: number, end: number): number {
    const { heap } = this.context, { edges, buckets } = this;
    if (buckets.fixed !== undefined) {
      edges.setI32(edges.cells.times, times);
      return edges.run(row, end);
    }
    let count = 0;
    for (let at = row; at < end && count < RUNS_MAX; count++) {
      const bucket = buckets.of(heap.i64[times / 8 + at]);
      at += lowerBound(this.context, times + at * 8, end - at, bucket.end);
      // The zone's clocks have changed within the bucket.
      if (count > 0 && heap.i64[this.starts / 8 + count - 1] === bucket.start) count--;
      heap.i64[this.starts / 8 + count] = bucket.start;
      heap.i32[this.ends / 4 + count] = at;
    }
    return count;
  }

  /** Reserves space for `count` more records and returns the address of the first one. */
  private reserve(count: number): number {
    const { records, stride } = this, { memory, heap } = this.context;
    const wanted = (records.count + count) * stride;
    if (wanted > records.sizeBytes) {
      const sizeBytes = Math.max(2 * records.sizeBytes, wanted, 4_096);
      const address = memory.allocate(sizeBytes, OPERATOR);
      if (records.sizeBytes > 0) {
        heap.u8.copyWithin(address, records.address, records.address + records.count * stride);
        memory.free(records.address, records.sizeBytes);
      }
      records.address = address;
      records.sizeBytes = sizeBytes;
    }
    return records.address + records.count * stride;
  }

  private beginBucket(bucket: bigint): void {
    this.bucket = bucket;
    if (this.flusher !== undefined) return;
    const record = this.reserve(1);
    if (this.records.count > 0 && this.context.heap.i64[(record - this.stride) / 8] === bucket) {
      // Short runs of the last segment have started this bucket.
      this.records.count--;
      this.table = { kind: "single", records: record - this.stride + 8, sizeBytes: 0 };
      return;
    }
    this.context.heap.i64[record / 8] = bucket;
    this.initialiser.setI32(this.initialiser.cells.states, record + 8);
    this.initialiser.run(0, 1);
    this.table = { kind: "single", records: record + 8, sizeBytes: 0 };
  }

  private endBucket(): void {
    const { flusher, table, bucket } = this, { heap } = this.context;
    if (bucket === undefined) return;
    this.bucket = undefined;
    if (flusher === undefined) {
      // The row count is the last state.
      if (heap.i64[(table!.records + this.stride) / 8 - 2] > 0n) this.records.count++;
      return;
    }
    assert(table?.kind === "dense");
    if (table.groups === 0) return;
    flusher.setI32(flusher.cells.table, table.records);
    flusher.setI32(flusher.cells.list, table.list);
    flusher.setI32(flusher.cells.target, this.reserve(table.groups));
    flusher.setI64(flusher.cells.bucket, bucket);
    flusher.run(0, table.groups);
    this.records.count += table.groups;
    table.groups = 0;
  }

  finish(): RangeRecords[] {
    return this.results;
  }

  /** Prepares another run, after the records of the last one were freed. */
  rewind(): void {
    this.results.length = 0;
    this.bucket = undefined;
    if (this.table?.kind === "single") this.table = undefined;
    this.closeReaders();
  }

  private closeReaders(): void {
    const { reader, timesReader, summed, pieces, ways, marked } = this;
    const readers = [reader, timesReader, summed, pieces, ways, marked?.rows];
    for (const closed of [...readers, marked?.listed.grouper, marked?.masked.grouper]) closed?.close();
    this.reader =
      this.timesReader =
      this.summed =
      this.pieces =
      this.ways =
      this.marked =
        undefined;
  }

  rebind(changes: Changes): boolean {
    const { context, predicates } = this, node = this.node = changes.scanOf(this.node);
    this.predicates = changes.take(predicates);
    this.ranges = rangesOf(morselsOf(node, sourceOf(node, context), context, this.predicates, [], true));
    if (this.predicates === predicates) return true;
    const changed = this.base.change(this.predicates, changes);
    if (changed === undefined) return false;
    if (this.grouper !== this.base) this.grouper.changeInputs(changed);
    this.shortRuns?.change(changed);
    return true;
  }

  close(): void {
    if (this.table?.kind === "dense") this.grouper.drop(this.table);
    if (this.grouper !== this.base) this.grouper.close();
    this.base.close();
    this.closeReaders();
    this.space.release();
    flushKernelRows(this.context.heap.i64);
  }

  /** The bucket's start, then the parts of the group number. */
  keyOutputs(): KeyOutput[] {
    const bucket: KeyOutput = { kind: "words", word: 0, words: 1, form: "i64" };
    return [
      bucket,
      ...this.base.fusedShape!.keyOutputs.map((key): KeyOutput => (key.kind === "dense" ? { ...key, word: 1 } : key)),
    ];
  }
}

registerTask(TASK, (data, context) => new Runs(data as RunsWay, context));

/** The groups of all ranges, with shared buckets merged. */
class SampledRuns implements Operator {
  private readonly space: Workspace;
  private readonly blocks: RangeRecords[] = [];
  private list?: { address: number; count: number };
  private out?: Vector[];
  private counts?: number;
  private finisher?: BoundKernel;
  private position = 0;

  constructor(
    readonly columns: readonly Column[],
    private readonly task: RunsWay,
    private readonly runs: Runs,
    private readonly context: QueryContext,
  ) {
    this.space = Workspace.of(context, OPERATOR);
  }

  next(): Batch | undefined {
    this.list ??= this.fill();
    const { list, context, columns, runs, task } = this;
    const rowCount = Math.min(MORSEL_ROWS, list.count - this.position);
    if (rowCount <= 0) return undefined;
    context.poll();
    if (this.out === undefined) {
      const dictionaries = runs.grouper.outputDictionaries(columns.slice(1));
      this.out = columns.map(({ type }, k) => ({
        type,
        address: this.space.allocate(rowCount * typeOf(type).width),
        dictionary: k === 0 || layoutOf(type) !== "symbol" ? undefined : dictionaries[k - 1],
      }));
      const kernel = finishKernel(
        context.heap.memory,
        "addresses",
        runs.headerWords,
        runs.keyOutputs(),
        runs.aggregates,
        task.spec.calls.map((call) => formOf(call.type)!),
      );
      this.finisher = new BoundKernel(kernel, [], context, this.space);
      this.finisher.setI32(kernel.cells.list, list.address);
      const keyCount = 1 + task.spec.keys.length;
      if (isCounted(task.reader, context)) {
        this.counts = this.space.allocate(rowCount * 8);
        this.finisher.setI32(kernel.cells[`out${task.spec.calls.length - 1}`], this.counts);
      }
      this.out.forEach(({ address }, k) =>
        this.finisher!.setI32(kernel.cells[k < keyCount ? `key${k}` : `out${k - keyCount}`], address)
      );
    }
    this.finisher!.run(this.position, this.position + rowCount);
    if (this.counts !== undefined) countPassed(task.reader!, this.counts, rowCount, context);
    this.position += rowCount;
    return { rowCount, columns: this.out };
  }

  private fill(): { address: number; count: number } {
    const { context, task, runs } = this, { heap } = context;
    let results: RangeRecords[];
    if (context.parallel !== undefined && runs.ranges.length > 1) {
      results = (context.parallel.run(TASK, task, runs.ranges.length) as RangeRecords[][]).flat();
    } else {
      runs.ranges.forEach((_, range) => runs.run(range));
      results = runs.finish();
    }
    results.sort((a, b) => a.range - b.range);
    this.blocks.push(...results.filter((result) => result.sizeBytes > 0));
    const { stride, headerWords } = runs;
    const address = this.space.allocate(Math.max(4, results.reduce((sum, result) => sum + result.count, 0) * 4));
    const list = heap.u32.subarray(address / 4);
    let count = 0;
    for (const { address: block, count: records } of results) {
      let next = 0;
      if (count > 0 && records > 0 && heap.i64[list[count - 1] / 8] === heap.i64[block / 8]) {
        // The bucket continues: its groups so far, by number.
        const bucket = heap.i64[block / 8];
        const known = new Map<number, number>();
        for (let k = count - 1; k >= 0 && heap.i64[list[k] / 8] === bucket; k--) {
          known.set(this.groupOf(list[k]), list[k]);
        }
        for (; next < records && heap.i64[(block + next * stride) / 8] === bucket; next++) {
          const record = block + next * stride, earlier = known.get(this.groupOf(record));
          if (earlier === undefined) list[count++] = record;
          else this.merge(earlier + 8 * headerWords, record + 8 * headerWords);
        }
      }
      for (; next < records; next++) list[count++] = block + next * stride;
    }
    return { address, count };
  }

  private groupOf(record: number): number {
    return this.runs.headerWords === 1 ? 0 : this.context.heap.i32[record / 4 + 2];
  }

  private merger?: BoundKernel;
  private merge(record: number, later: number): void {
    if (this.merger === undefined) {
      const kernel = singleMergeKernel(this.context.heap.memory, this.runs.aggregates);
      this.merger = new BoundKernel(kernel, [], this.context, this.space);
    }
    this.merger.setI32(this.merger.cells.record, record);
    this.merger.setI32(this.merger.cells.laters, later);
    this.merger.run(0, 1);
  }

  rewind(): boolean {
    this.freeBlocks();
    this.space.release();
    this.list =
      this.out =
      this.counts =
      this.finisher =
      this.merger =
        undefined;
    this.position = 0;
    this.runs.rewind();
    return true;
  }

  rebind(changes: Changes): boolean {
    return this.runs.rebind(changes);
  }

  private freeBlocks(): void {
    for (const { address, sizeBytes } of this.blocks.splice(0)) this.context.memory.free(address, sizeBytes);
  }

  close(): void {
    this.freeBlocks();
    this.runs.close();
    this.space.release();
  }
}
