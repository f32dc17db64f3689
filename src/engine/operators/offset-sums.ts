/**
 * Aggregates without keys of plain columns and products of two, also under conditions that compare plain columns with constants: sums, extremes and
 * counts of the offsets of packed chunks, four rows at a time. Segments of which a column has no offsets are left to the reader of values. The way depends on how chunks are
 * stored alone, not on what is in memory.
 */
import { assert } from "../../assert.ts";
import type { ScanNode } from "../../sql/plan.ts";
import { type ChunkOffsets, type IntegerRange, type RowRange, SUMMARY_ROWS } from "../../storage/contract.ts";
import { Workspace } from "../columns.ts";
import type { AggregateShape } from "../compiler/aggregate.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { offsetSumsKernel } from "../compiler/offset-sums.ts";
import {
  areNarrow,
  factorsOf,
  hasNulls,
  mergeInputs,
  mergeOffsetsKernel,
  type OffsetsShape,
  offsetsStride,
  rowsOfExactSums,
  setMergeInputs,
} from "../compiler/offsets.ts";
import { MORSEL_ROWS, type QueryContext } from "../contract.ts";
import type { GroupSpec } from "../physical/plan.ts";
import type { GroupTable } from "./group-table.ts";
import type { Morsel } from "./morsel.ts";
import { RowConditions } from "./row-conditions.ts";
import { KernelVariants } from "./kernel-variants.ts";
import { argumentsOf, valuesOf } from "./offset-groups.ts";
import { ScanReader } from "./scan.ts";

const OPERATOR = "GROUP BY";
/** Vectors are left out if they are at least this share of those that are left. */
const SKIPPED_SHARE_MIN = 1 / 4;

/** A kernel, and its cells for the least integers of factors and the ends of conditions. */
interface SumsKernel {
  kernel: BoundKernel;
  leasts: readonly number[];
  below: readonly (number | undefined)[];
  above: readonly (number | undefined)[];
}

export class OffsetSums {
  private readonly reader: ScanReader;
  /** Its columns are those of conditions and arguments. */
  private readonly shape: OffsetsShape;
  /** The same columns, and the memory for their offsets. */
  private readonly columns: { column: number; address: number }[];
  /** For each condition, its place among the columns. */
  private readonly conditionPlaces: number[];
  /** The places of factors of products. */
  private readonly factors: readonly number[];
  private readonly record: number;
  private readonly merge: BoundKernel;
  private readonly kernels: KernelVariants<SumsKernel>;
  /** The ranges of a segment's offsets that pass each condition. */
  private readonly passing: (IntegerRange | undefined)[] = [];

  /** `aggregates`: of the grouper. Undefined if a condition is of another kind. */
  static of(
    spec: GroupSpec,
    aggregates: readonly AggregateShape[],
    node: ScanNode,
    context: QueryContext,
  ): OffsetSums | undefined {
    if (spec.segments !== "codes") return undefined;
    const space = Workspace.of(context, OPERATOR), hasConditions = spec.predicates.length > 0;
    const conditions = hasConditions ? RowConditions.of(spec.predicates, node, context, space, true) : undefined;
    if (!hasConditions || conditions !== undefined) {
      return new OffsetSums(spec, aggregates, node, conditions, context, space);
    }
    space.release();
    return undefined;
  }

  private constructor(
    spec: GroupSpec,
    aggregates: readonly AggregateShape[],
    private readonly node: ScanNode,
    private readonly conditions: RowConditions | undefined,
    private readonly context: QueryContext,
    private readonly space: Workspace,
  ) {
    const ofConditions = conditions?.list.map(({ column }) => column) ?? [];
    // Conditions first: of the others, only vectors are read that they leave.
    const list = [...new Set(ofConditions)], found = argumentsOf(spec.calls, aggregates, context.functions, list);
    this.columns = list.map((column) => ({ column, address: space.allocate(4 * MORSEL_ROWS) }));
    this.conditionPlaces = ofConditions.map((column) => list.indexOf(column));
    this.factors = factorsOf(found.arguments);
    const shape = this.shape = {
      columns: list.map((column, input) => ({ input, values: valuesOf(node.columns[column]!.type) })),
      ...found,
      aggregates,
      headerWords: 0 as const,
    };
    this.reader = new ScanReader(node, new Set(list), context);
    this.record = space.allocate(offsetsStride(shape));
    const merge = mergeOffsetsKernel(context.heap.memory, shape);
    this.merge = new BoundKernel(merge, mergeInputs(shape), context, space);
    this.merge.setI32(merge.cells.segment, this.record);
    this.kernels = new KernelVariants(() => this.newKernel());
  }

  /** Adds rows of a segment that pass to the table. False if their values have to be read. */
  consume(table: GroupTable, { segment, start, end }: Morsel): boolean {
    const { reader, context, columns, conditionPlaces, conditions, passing, node } = this, offsets: ChunkOffsets[] = [];
    const left = new LeftVectors(start, end), { analysis } = context;
    let vectorCount = 0;
    for (const [place, { column, address }] of columns.entries()) {
      const found = context.pool.readOffsets(reader.source, segment, column, left, address, (form, ranges) => {
        for (let k = 0; k < conditionPlaces.length; k++) {
          if (conditionPlaces[k] === place) left.test(ranges, form, passing[k] = conditions!.rangeOf(k, form));
        }
        vectorCount += left.count;
        return left.runs;
      });
      reader.countFrames();
      if (found === undefined) return false;
      offsets.push(found);
    }
    if (!areNarrow(this.factors, offsets)) return false;
    const rowsAtOnce = rowsOfExactSums(this.shape, offsets);
    if (rowsAtOnce < SUMMARY_ROWS) return false;
    reader.count(end - start);
    analysis?.countOffsets(node.id, vectorCount);
    analysis?.countVectors(node.id, left.outcomes);
    if (left.runs.length > 0) this.add(table, offsets, left.runs, rowsAtOnce);
    return true;
  }

  private add(
    table: GroupTable,
    offsets: readonly ChunkOffsets[],
    runs: readonly RowRange[],
    rowsAtOnce: number,
  ): void {
    const { factors, merge, shape } = this, { kernel, leasts, below, above } = this.kernelFor(offsets);
    for (let k = 0; k < factors.length; k++) kernel.setI32(leasts[k]!, offsets[factors[k]!]!.least);
    for (let k = 0; k < below.length; k++) {
      const { low, high } = this.rangeOf(k), belowCell = below[k], aboveCell = above[k];
      if (belowCell !== undefined) kernel.setI32(belowCell, low - 1);
      if (aboveCell !== undefined) kernel.setI32(aboveCell, high + 1);
    }
    setMergeInputs(merge, shape, offsets, false);
    merge.setI32(merge.cells.table, table.records);
    for (const { from, to } of runs) {
      for (let row = from, end: number; row < to; row = end) {
        end = Math.min(to, row + rowsAtOnce);
        kernel.run(row, end);
        merge.run(0, 1);
      }
    }
  }

  private rangeOf(condition: number): IntegerRange {
    const range = this.passing[condition];
    assert(range !== undefined, "no vector is left if no value passes");
    return range;
  }

  private kernelFor(offsets: readonly ChunkOffsets[]): SumsKernel {
    const { kernels, shape, conditionPlaces } = this;
    kernels.begin();
    for (const argument of shape.arguments) kernels.next(hasNulls(argument, offsets));
    for (let k = 0; k < conditionPlaces.length; k++) {
      const { low, high } = this.rangeOf(k), form = offsets[conditionPlaces[k]!]!;
      kernels.next(low > 0 || form.hasNulls);
      kernels.next(high < form.greatest);
    }
    return kernels.get();
  }

  private newKernel(): SumsKernel {
    const { kernels, columns, shape, conditionPlaces, context, space } = this, { flags } = kernels;
    const own = shape.arguments.map((argument, k) => ({ ...argument, hasNulls: flags[k]! }));
    const tested = conditionPlaces.map((column, k) => {
      const [hasLow, hasHigh] = flags.slice(own.length + 2 * k);
      return { column, hasLow: hasLow!, hasHigh: hasHigh! };
    });
    const sums = { columnCount: columns.length, conditions: tested, arguments: own };
    const kernel = new BoundKernel(offsetSumsKernel(context.heap.memory, sums), [], context, space), { cells } = kernel;
    columns.forEach(({ address }, k) => kernel.setI32(cells[`column${k}`], address));
    kernel.setI32(cells.segment, this.record);
    return {
      kernel,
      leasts: this.factors.map((place) => cells[`least${place}`]!),
      below: tested.map((_, k) => cells[`below${k}`]),
      above: tested.map((_, k) => cells[`above${k}`]),
    };
  }

  close(): void {
    this.reader.close();
    this.space.release();
  }
}

/** The vectors of a segment that conditions leave by the ranges of their offsets. */
class LeftVectors implements RowRange {
  runs: readonly RowRange[];
  count: number;
  readonly outcomes = { skipped: 0, whole: 0, tested: 0, withExceptions: 0, withoutCodes: 0 };

  /** Rows `from` … `to`-1. */
  constructor(readonly from: number, readonly to: number) {
    this.runs = [{ from, to }];
    this.count = Math.ceil(to / SUMMARY_ROWS) - Math.floor(from / SUMMARY_ROWS);
  }

  /** `passing`: offsets of `form`; undefined if none pass. */
  test(ranges: Float64Array, { least, hasNulls }: ChunkOffsets, passing: IntegerRange | undefined): void {
    const { outcomes, from, to, runs } = this;
    // Without a passing value no vector is left.
    const low = passing === undefined ? Infinity : least + passing.low;
    const high = passing === undefined ? -Infinity : least + passing.high;
    const left: { from: number; to: number }[] = [];
    let count = 0, whole = 0;
    for (const run of runs) {
      for (let vector = Math.floor(run.from / SUMMARY_ROWS); vector * SUMMARY_ROWS < run.to; vector++) {
        const least = ranges[2 * vector]!, greatest = ranges[2 * vector + 1]!;
        if (least > high || greatest < low) continue;
        count++;
        if (!hasNulls && least >= low && greatest <= high) whole++;
        const first = Math.max(from, vector * SUMMARY_ROWS), end = Math.min(to, (vector + 1) * SUMMARY_ROWS);
        if (left.at(-1)?.to === first) left.at(-1)!.to = end;
        else left.push({ from: first, to: end });
      }
    }
    outcomes.skipped += this.count - count;
    outcomes.whole += whole;
    outcomes.tested += count - whole;
    // A few vectors more take less time than many runs.
    if (count > 0 && this.count - count < this.count * SKIPPED_SHARE_MIN) return;
    this.runs = left;
    this.count = count;
  }
}
