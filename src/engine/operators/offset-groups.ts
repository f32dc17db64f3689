/**
 * GROUP BY of whole segments by few keys, with a small table for each segment. Sums, averages, counts and extremes of plain columns, and sums of
 * products of two, are over the offsets of packed chunks: integers, which are exact and become values once for each group and segment. Other aggregates of the statement see the
 * rows' values. Vectors of which a column has no offsets are added by their values, and segments with many such vectors are left to the grouper. The
 * way depends on how chunks are stored alone, not on what is in memory, so an answer does not change from run to run.
 */
import { assert } from "../../assert.ts";
import type { ScanNode } from "../../sql/plan.ts";
import { type ChunkOffsets, type RowRange, SUMMARY_ROWS } from "../../storage/contract.ts";
import { layoutOf } from "../../types/mod.ts";
import { Workspace } from "../columns.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { columnsOf, type Input } from "../compiler/expression.ts";
import {
  addOffsetsKernel,
  areNarrow,
  emptyOffsetsKernel,
  factorsOf,
  hasNulls,
  isProduct,
  JOINED_SHIFT,
  mergeInputs,
  mergeOffsetsKernel,
  newGroupsKernel,
  type OffsetsArgument,
  type OffsetsColumn,
  type OffsetsShape,
  offsetsStride,
  type OffsetsVariant,
  rowsOfExactSums,
  setMergeInputs,
} from "../compiler/offsets.ts";
import { type AggregateShape, type CompiledKernel, type DenseKey, strideOf } from "../compiler/aggregate.ts";
import { type FunctionRegistry, MORSEL_ROWS, type QueryContext, type Vector } from "../contract.ts";
import type { GroupSpec } from "../physical/plan.ts";
import { columnsOfOffsets } from "../physical/grouping.ts";
import { OFFSET_GROUPS_MAX } from "../physical/thresholds.ts";
import type { Grouper, GroupTable } from "./group-table.ts";
import { KernelVariants } from "./kernel-variants.ts";
import type { Morsel } from "./morsel.ts";
import { ScanReader } from "./scan.ts";

const OPERATOR = "GROUP BY";
/** New groups are looked for in this many rows at a time. */
const NEW_GROUPS_ROWS = 2_048;
/** Segments are grouped by values if more of their vectors than this share have a column without offsets. */
const MISSING_SHARE_MAX = 1 / 4;
/** Offsets of fewer bits add up to less than a joined word can hold. */
const JOINED_OFFSET_MAX = 2 ** JOINED_SHIFT / MORSEL_ROWS;

const NEEDS: Record<string, Partial<OffsetsArgument["needs"]>> = {
  count: {},
  sum: { sum: true },
  avg: { sum: true },
  min: { min: true },
  max: { max: true },
};

/**
 * What the offsets of plain columns give: the arguments, and where each aggregate comes from. Their columns are added to the list `columns`, in which
 * arguments have their places.
 */
export function argumentsOf(
  calls: GroupSpec["calls"],
  aggregates: readonly AggregateShape[],
  functions: FunctionRegistry,
  columns: number[],
): Pick<OffsetsShape, "arguments" | "sources"> {
  const list: OffsetsArgument[] = [];
  const placeOf = (column: number) => {
    const place = columns.indexOf(column);
    return place >= 0 ? place : columns.push(column) - 1;
  };
  const ofOffsets = columnsOfOffsets(calls, functions);
  const sources = aggregates.map(({ aggregate }, k): number | "rows" | "states" => {
    const call = calls[k];
    // A count of rows may follow the calls, for EXPLAIN ANALYZE.
    if ((call?.args.length ?? 0) === 0 && aggregate.summarised !== undefined) return "rows";
    assert(call !== undefined);
    const read = ofOffsets[k];
    if (read === undefined) return "states";
    const own = NEEDS[nameOf(call.function)], places = read.map(placeOf);
    assert(own !== undefined, `${call.function} is given by a sum or an extreme`);
    let argument = list.findIndex((known) => known.columns.join() === places.join());
    if (argument < 0) argument = list.push({ columns: places, needs: { sum: false, min: false, max: false } }) - 1;
    list[argument] = { columns: places, needs: { ...list[argument]!.needs, ...own } };
    return argument;
  });
  return { arguments: list, sources };
}

/** What the integers of a column of this type stand for. */
export function valuesOf(type: string): OffsetsColumn["values"] {
  const layout = layoutOf(type);
  return layout === "f32" || layout === "f64" ? layout : "integers";
}

/** A kernel, and its cells for the least integers of factors. */
interface AddKernel {
  kernel: BoundKernel;
  leasts: readonly number[];
}

/** Rows of a segment whose offsets have been decoded. */
interface DecodedRows extends RowRange {
  segment: number;
  vectors: OffsetVectors;
  /** The columns of the keys and of aggregates that see the rows, and the offsets. */
  opened: readonly Pick<Vector, "address">[];
  adder: BoundKernel;
}

export class OffsetGroups {
  private readonly space: Workspace;
  private readonly reader: ScanReader;
  /** Of vectors without offsets. */
  private readonly valueReader: ScanReader;
  private readonly shape: OffsetsShape;
  private readonly inputs: readonly Input[];
  private readonly keys: readonly DenseKey[];
  private readonly groups: number;
  /** The columns of the arguments, and the memory for their offsets. */
  private readonly columns: { column: number; address: number }[];
  /** The places of factors of products. */
  private readonly factors: readonly number[];
  private readonly segmentTable: number;
  private readonly merge: BoundKernel;
  private readonly newGroups: BoundKernel;
  private readonly adders: KernelVariants<AddKernel>;
  private decoded?: DecodedRows;

  /** `grouper`: has its kernels. Undefined if they are of another kind, or for too many groups. */
  static of(spec: GroupSpec, grouper: Grouper, node: ScanNode, context: QueryContext): OffsetGroups | undefined {
    const shape = grouper.fusedShape;
    if (spec.segments === undefined || spec.segments === "masks" || shape?.kind !== "dense") return undefined;
    const groups = shape.dense.reduce((product, { count }) => product * count, 1);
    return groups > OFFSET_GROUPS_MAX ? undefined : new OffsetGroups(spec, grouper, groups, node, context);
  }

  private constructor(
    { keys, calls }: GroupSpec,
    private readonly grouper: Grouper,
    groups: number,
    private readonly node: ScanNode,
    private readonly context: QueryContext,
  ) {
    const space = this.space = Workspace.of(context, OPERATOR), { memory } = context.heap;
    this.groups = groups;
    const { dense, aggregates, inputs } = grouper.fusedShape!;
    const columns: number[] = [], allInputs = [...inputs];
    const found = argumentsOf(calls, aggregates, context.functions, columns);
    const values = new Set<number>();
    for (const key of keys) columnsOf(key, values);
    calls.forEach(({ args }, k) => {
      if (found.sources[k] === "states") { for (const arg of args) columnsOf(arg, values); }
    });
    this.columns = columns.map((column) => ({ column, address: space.allocate(4 * MORSEL_ROWS) }));
    const read = columns.map((column, k) => ({
      input: allInputs.push({ kind: "column", column: node.columns.length + k, form: "i32" }) - 1,
      values: valuesOf(node.columns[column]!.type),
    }));
    this.factors = factorsOf(found.arguments);
    this.inputs = allInputs;
    this.reader = new ScanReader(node, values, context);
    this.valueReader = new ScanReader(node, new Set([...values, ...columns]), context);
    const shape = this.shape = {
      columns: read,
      ...found,
      aggregates,
      headerWords: 1 as const,
    };
    this.keys = dense.map(({ spec }) => spec);
    this.segmentTable = space.allocate(groups * offsetsStride(shape));
    this.merge = this.bind(mergeOffsetsKernel(memory, shape), mergeInputs(shape));
    this.merge.setI32(this.merge.cells.segment, this.segmentTable);
    this.newGroups = this.bind(newGroupsKernel(memory, allInputs, this.keys, shape), allInputs);
    const empty = this.bind(emptyOffsetsKernel(memory, shape), []);
    empty.setI32(empty.cells.segment, this.segmentTable);
    empty.run(0, groups);
    this.adders = new KernelVariants(() => this.newAdder());
  }

  private bind(kernel: CompiledKernel, inputs: readonly Input[]): BoundKernel {
    return new BoundKernel(kernel, inputs, this.context, this.space);
  }

  restart(): void {
    this.decoded = undefined;
  }

  /** Adds rows of a segment to the table. False if they have to be grouped by their values. */
  consume(table: GroupTable, { segment, start, end, around = { from: start, to: end } }: Morsel): boolean {
    assert(table.kind === "dense");
    let { decoded } = this;
    if (decoded?.segment !== segment || decoded.from > start || decoded.to < end) {
      decoded = this.decoded = this.decode(segment, around);
    }
    if (decoded === undefined) return false;
    const { vectors, opened, adder } = decoded;
    this.reader.count(end - start);
    for (const { from, to, isMissing } of vectors.runs({ from: start, to: end })) {
      if (isMissing) {
        const values = this.valueReader.open(segment, { from, to }, { isAgain: true });
        this.grouper.consume(table, values, from, to, 0n);
      } else {
        adder.run(from, to);
        this.addNewGroups(table, opened, from, to);
      }
    }
    this.merge.setI32(this.merge.cells.table, table.records);
    this.merge.run(0, this.groups);
    return true;
  }

  /** Undefined if the rows have to be grouped by their values. */
  private decode(segment: number, rows: RowRange): DecodedRows | undefined {
    const { reader, context, columns, shape, merge } = this;
    const offsets: ChunkOffsets[] = [], vectors = new OffsetVectors(rows);
    for (const { column, address } of columns) {
      const choose = (_: ChunkOffsets, ranges: Float64Array) => vectors.without(ranges);
      const found = context.pool.readOffsets(reader.source, segment, column, rows, address, choose, vectors.missingMax);
      reader.countFrames();
      if (found === undefined || vectors.missing > vectors.missingMax) return undefined;
      offsets.push(found);
    }
    if (rowsOfExactSums(shape, offsets) < rows.to - rows.from) return undefined;
    const opened: Pick<Vector, "address">[] = [...reader.open(segment, rows, { isAgain: true }), ...columns];
    const adder = this.adderOf(offsets, opened);
    setMergeInputs(merge, shape, offsets, this.isJoined(offsets));
    if (columns.length > 0) context.analysis?.countOffsets(this.node.id, vectors.present * columns.length);
    return { ...rows, segment, vectors, opened, adder };
  }

  private adderOf(offsets: readonly ChunkOffsets[], vectors: readonly Pick<Vector, "address">[]): BoundKernel {
    const { adders, factors, shape } = this;
    adders.begin();
    adders.next(this.isJoined(offsets));
    adders.next(areNarrow(factors, offsets));
    for (const argument of shape.arguments) adders.next(hasNulls(argument, offsets));
    const { kernel, leasts } = adders.get();
    kernel.setColumns(vectors);
    for (let k = 0; k < factors.length; k++) kernel.setF64(leasts[k]!, offsets[factors[k]!]!.least);
    return kernel;
  }

  private newAdder(): AddKernel {
    const { adders, inputs, keys, shape, context } = this;
    const [isJoined, isNarrow, ...hasNulls] = adders.flags as [boolean, boolean, ...boolean[]];
    const variant: OffsetsVariant = { hasNulls, isJoined, isNarrow };
    const kernel = this.bind(addOffsetsKernel(context.heap.memory, inputs, keys, shape, variant), inputs);
    kernel.setI32(kernel.cells.table, this.segmentTable);
    return { kernel, leasts: this.factors.map((place) => kernel.cells[`least${place}`]!) };
  }

  /** Groups are in the order of their first rows. */
  private addNewGroups(
    table: GroupTable & { kind: "dense" },
    vectors: readonly Pick<Vector, "address">[],
    start: number,
    end: number,
  ): void {
    const { newGroups: kernel, shape } = this, { cells } = kernel;
    const missing = this.missingFrom(table, strideOf(1, shape.aggregates));
    if (missing === 0) return;
    const groups = table.groups + missing;
    kernel.setColumns(vectors);
    kernel.setI32(cells.table, table.records);
    kernel.setI32(cells.list, table.list);
    kernel.setI32(cells.groups, table.groups);
    for (let from = start; table.groups < groups; from += NEW_GROUPS_ROWS) {
      assert(from < end, "each group has a row");
      kernel.run(from, Math.min(end, from + NEW_GROUPS_ROWS));
      table.groups = kernel.getI32(cells.groups);
    }
  }

  /** Number of the segment's groups that the table does not have. */
  private missingFrom({ records }: GroupTable, stride: number): number {
    const { context: { heap: { i32 } }, groups, segmentTable, shape } = this, own = offsetsStride(shape);
    let missing = 0;
    for (let group = 0; group < groups; group++) {
      const at = (segmentTable + group * own) / 4, header = (records + group * stride) / 4;
      if ((i32[at] | i32[at + 1]) !== 0 && (i32[header] | i32[header + 1]) === 0) missing++;
    }
    return missing;
  }

  private isJoined(offsets: readonly ChunkOffsets[]): boolean {
    const [argument] = this.shape.arguments;
    if (argument?.needs.sum !== true || isProduct(argument)) return false;
    const { hasNulls, greatest } = offsets[argument.columns[0]!]!;
    return !hasNulls && greatest < JOINED_OFFSET_MAX;
  }

  close(): void {
    this.reader.close();
    this.valueReader.close();
    this.space.release();
  }
}

/** Which vectors of some rows have offsets in all columns. */
class OffsetVectors {
  readonly missingMax: number;
  missing = 0;
  private readonly first: number;
  private readonly end: number;
  /** 1 for each vector without offsets; undefined while all have them. */
  private isMissing?: Uint8Array;

  constructor(private readonly rows: RowRange) {
    this.first = Math.floor(rows.from / SUMMARY_ROWS);
    this.end = Math.ceil(rows.to / SUMMARY_ROWS);
    this.missingMax = Math.floor((this.end - this.first) * MISSING_SHARE_MAX);
  }

  get present(): number {
    return this.end - this.first - this.missing;
  }

  /** The rows that are left without the vectors that have no range. */
  without(ranges: Float64Array): readonly RowRange[] {
    const { first, end } = this;
    for (let vector = first; vector < end; vector++) {
      if (!Number.isNaN(ranges[2 * vector])) continue;
      const isMissing = this.isMissing ??= new Uint8Array(end - first);
      if (isMissing[vector - first] === 1) continue;
      isMissing[vector - first] = 1;
      this.missing++;
    }
    return this.runs(this.rows).filter(({ isMissing }) => !isMissing);
  }

  /** Some of the rows, in order. */
  runs({ from, to }: RowRange): (RowRange & { isMissing: boolean })[] {
    const flags = this.isMissing, runs: { from: number; to: number; isMissing: boolean }[] = [];
    if (flags === undefined) return [{ from, to, isMissing: false }];
    for (let row = from, end: number; row < to; row = end) {
      const vector = Math.floor(row / SUMMARY_ROWS), isMissing = flags[vector - this.first] === 1, last = runs.at(-1);
      end = Math.min(to, (vector + 1) * SUMMARY_ROWS);
      if (last?.isMissing === isMissing) last.to = end;
      else runs.push({ from: row, to: end, isMissing });
    }
    return runs;
  }
}

function nameOf(functionId: string): string {
  return functionId.slice(0, functionId.indexOf("("));
}
