/**
 * Aggregates without keys and conditions over plain columns, by the summaries that stored chunks have of their vectors, or the statistics of segments.
 * The values of rows outside of whole vectors, and of chunks without summaries, are read. The way depends on how chunks are stored alone, not on what is in
 * memory, so an answer does not change from run to run.
 */
import type { ScanNode } from "../../sql/plan.ts";
import type { RowsSummary } from "../../sql/functions/entry.ts";
import { type ColumnStats, SUMMARY, SUMMARY_ROWS, SUMMARY_WORDS } from "../../storage/contract.ts";
import { typeOf } from "../../types/mod.ts";
import { Workspace } from "../columns.ts";
import { columnsOf, type Input } from "../compiler/expression.ts";
import { type AggregateShape, singleKernel } from "../compiler/aggregate.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { f64, i64, input, type IrNode } from "../compiler/ir.ts";
import { MORSEL_ROWS, type QueryContext, type Vector } from "../contract.ts";
import type { GroupSpec } from "../physical/plan.ts";
import type { Grouper, GroupTable } from "./group-table.ts";
import type { Morsel } from "./morsel.ts";
import { ScanReader } from "./scan.ts";

const VECTORS_MAX = MORSEL_ROWS / SUMMARY_ROWS, WIDTH = 8 * SUMMARY_WORDS;
/** Memory for the summaries of a segment, and for what follows them when they are read. */
const SUMMARIES_BYTES = WIDTH * (VECTORS_MAX + 1);
/** Of a column of a type without NULL that was added later. */
const ZEROS = { min: 0, max: 0, sum: 0n } as const;
const FLOATS: ReadonlySet<string> = new Set(["FLOAT", "DOUBLE"]);

export class SummedRows {
  private readonly space: Workspace;
  private readonly reader: ScanReader;
  /** The columns of the scan, with the addresses of their summaries. */
  private readonly summaries: { column: number; address: number }[];
  private readonly kernel: BoundKernel;
  /** Rows whose values are in memory. */
  private opened?: { segment: number; from: number; to: number; columns: Vector[] };

  /** `aggregates`: of the grouper, the spec's first. Undefined if the rows have to be read. */
  static of(
    spec: GroupSpec,
    aggregates: readonly AggregateShape[],
    node: ScanNode,
    grouper: Grouper,
    context: QueryContext,
  ): SummedRows | undefined {
    const { predicates, keys, calls, rowIdColumn } = spec;
    if (predicates.length > 0 || keys.length > 0 || rowIdColumn !== undefined) return undefined;
    const isPlain = calls.every(({ args }) => args.every((arg) => arg.kind === "column"));
    if (!isPlain || !calls.some(({ args }) => args.length > 0)) return undefined;
    if (!aggregates.every(({ aggregate }) => aggregate.summarised !== undefined)) return undefined;
    return new SummedRows(spec, aggregates, node, grouper, context);
  }

  private constructor(
    { calls }: GroupSpec,
    aggregates: readonly AggregateShape[],
    private readonly node: ScanNode,
    private readonly grouper: Grouper,
    private readonly context: QueryContext,
  ) {
    const space = this.space = Workspace.of(context, "GROUP BY"), { memory } = context.heap;
    const columns = new Set<number>();
    for (const arg of calls.flatMap(({ args }) => args)) columnsOf(arg, columns);
    this.reader = new ScanReader(node, columns, context);
    this.summaries = [...columns].map((column) => ({ column, address: space.allocate(SUMMARIES_BYTES) }));
    const inputs = this.summaries.flatMap((_, column) =>
      Array.from({ length: SUMMARY_WORDS }, (_, k): Input => ({ kind: "word", column, width: WIDTH, k }))
    );
    const shapes = aggregates.map((shape, k) => {
      const arg = calls[k]?.args[0];
      const place = arg?.kind === "column" ? this.summaries.findIndex(({ column }) => column === arg.index) : 0;
      return overSummaries(shape, place * SUMMARY_WORDS, arg !== undefined && FLOATS.has(arg.type));
    });
    this.kernel = new BoundKernel(singleKernel(memory, inputs, undefined, shapes), inputs, context, space);
    this.kernel.setColumns(this.summaries);
  }

  /** Adds rows of a segment to the table. */
  consume(table: GroupTable, { segment, start, end }: Morsel): void {
    const { rowCount } = this.reader.source.segments.at(segment)!;
    this.reader.count(end - start);
    const first = Math.ceil(start / SUMMARY_ROWS);
    const last = end === rowCount ? Math.ceil(end / SUMMARY_ROWS) : Math.floor(end / SUMMARY_ROWS);
    const isWhole = start === 0 && end === rowCount;
    if (first >= last || !this.readSummaries(segment, isWhole)) return this.readRows(table, segment, start, end);
    this.readRows(table, segment, start, first * SUMMARY_ROWS);
    this.reader.countFrames();
    this.context.analysis?.countSummarised(this.node.id, last - first);
    this.kernel.setI32(this.kernel.cells.record, table.records);
    this.kernel.run(first, last);
    this.readRows(table, segment, last * SUMMARY_ROWS, end);
  }

  private readSummaries(segment: number, isWhole: boolean): boolean {
    const { context: { pool, heap }, reader: { source } } = this, { chunks, rowCount } = source.segments.at(segment)!;
    return this.summaries.every(({ column, address }) => {
      const chunk = chunks[column], { nullable } = typeOf(this.node.columns[column]!.type);
      if (!nullable) return isWhole && this.writeStatistics(chunk?.stats ?? ZEROS, address, rowCount);
      if (chunk === undefined) return this.writeNulls(address, rowCount);
      return pool.summaries(source, segment, column, heap.u8.subarray(address, address + SUMMARIES_BYTES));
    });
  }

  /** The summaries of a column that was added later. */
  private writeNulls(address: number, rowCount: number): true {
    const { i32 } = this.context.heap;
    for (let vector = 0; vector * SUMMARY_ROWS < rowCount; vector++) {
      const at = (address + vector * WIDTH) / 4 + 2 * SUMMARY.counts;
      i32[at] = 0;
      i32[at + 1] = Math.min(SUMMARY_ROWS, rowCount - vector * SUMMARY_ROWS);
    }
    return true;
  }

  /**
   * The statistics of a segment's column as the summary of its first vector, as if the others had no rows: chunks of types without NULL, integers of
   * less than 4 bytes, have no summaries, which would be a large part of them.
   */
  private writeStatistics({ min, max, sum }: Partial<ColumnStats>, address: number, rowCount: number): boolean {
    if (min === undefined || max === undefined || sum === undefined) return false;
    const { heap } = this.context, first = address / 8;
    heap.i64.fill(0n, first, first + Math.ceil(rowCount / SUMMARY_ROWS) * SUMMARY_WORDS);
    heap.i64[first + SUMMARY.sum] = sum;
    heap.i64[first + SUMMARY.min] = BigInt(min);
    heap.i64[first + SUMMARY.max] = BigInt(max);
    heap.i32.fill(rowCount, 2 * (first + SUMMARY.counts), 2 * (first + SUMMARY.counts) + 2);
    return true;
  }

  private readRows(table: GroupTable, segment: number, start: number, end: number): void {
    if (start < end) this.grouper.consume(table, this.open(segment, start, end), start, end, 0n);
  }

  /** The next rows are often of the same vector. */
  private open(segment: number, start: number, end: number): Vector[] {
    const { opened, reader } = this;
    if (opened?.segment === segment && opened.from <= start && end <= opened.to) return opened.columns;
    const from = Math.floor(start / SUMMARY_ROWS) * SUMMARY_ROWS;
    const to = Math.min(reader.source.segments.at(segment)!.rowCount, Math.ceil(end / SUMMARY_ROWS) * SUMMARY_ROWS);
    const columns = reader.open(segment, { from, to }, { isAgain: true });
    this.opened = { segment, from, to, columns };
    return columns;
  }

  close(): void {
    this.reader.close();
    this.space.release();
  }
}

/** The aggregate over rows of summaries. `first`: the input with the first word of its argument's. */
function overSummaries({ aggregate, ...shape }: AggregateShape, first: number, isFloat: boolean): AggregateShape {
  const words = Array.from({ length: SUMMARY_WORDS }, (_, k) => input(first + k, "i64"));
  const update = (states: IrNode[], args: IrNode[], types: string[]) =>
    aggregate.merge(states, aggregate.summarised!(summaryOf(args, isFloat)), types);
  return { ...shape, id: `summaries of ${shape.id}`, args: words, aggregate: { ...aggregate, update } };
}

function summaryOf(words: readonly IrNode[], isFloat: boolean): RowsSummary {
  const value = (word: IrNode) => isFloat ? f64.reinterpret(word) : word, counts = words[SUMMARY.counts]!;
  return {
    rowCount: i64.shrU(counts, i64.const(32n)),
    valueCount: i64.and(counts, i64.const(0xffff_ffffn)),
    sum: value(words[SUMMARY.sum]!),
    min: value(words[SUMMARY.min]!),
    max: value(words[SUMMARY.max]!),
  };
}
