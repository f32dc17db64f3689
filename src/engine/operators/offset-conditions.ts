/**
 * Conditions that compare a column with constants, as ranges of offsets of packed chunks. A range is found by evaluating the condition itself,
 * with its tolerance, at integers of the chunk's scale, so exactly the rows that pass are within.
 */
import type { Expr, ScanNode } from "../../sql/plan.ts";
import type { ChunkOffsets } from "../../storage/contract.ts";
import { formOf } from "../compiler/expression.ts";
import { Workspace } from "../columns.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { projectKernel } from "../compiler/project.ts";
import { type Bound, boundsOf } from "../bounds.ts";
import type { QueryContext } from "../contract.ts";
import { conjuncts, fuse } from "../expressions.ts";
import { scanDictionaries, sourceOf } from "../physical/facts.ts";

/** Integers of offsets are below. */
const INTEGER_END = 2 ** 46;

/** Integers that pass. */
interface IntegerRange {
  low: number;
  high: number;
}

export class OffsetConditions {
  /** The column of each condition. */
  readonly columns: readonly number[];
  private readonly ranges = new Map<string, IntegerRange | undefined>();

  /** Undefined if one of the conditions is of another kind. */
  static of(
    predicates: readonly Expr[],
    node: ScanNode,
    context: QueryContext,
    space: Workspace,
  ): OffsetConditions | undefined {
    const parts = predicates.flatMap((predicate) => conjuncts(predicate, context));
    const bounds = parts.map((part) => boundsOf([part], context));
    const isKnown = bounds.every((list) => list.length === 1 && list[0]!.column < node.columnIds.length);
    return parts.length > 0 && isKnown ? new OffsetConditions(parts, bounds.flat(), node, context, space) : undefined;
  }

  private readonly tests: ((integer: number, offsets: ChunkOffsets) => boolean)[];

  private constructor(
    parts: readonly Expr[],
    private readonly bounds: readonly Bound[],
    node: ScanNode,
    context: QueryContext,
    space: Workspace,
  ) {
    this.columns = bounds.map(({ column }) => column);
    const types = node.columns.map(({ type }) => type), dictionaries = scanDictionaries(node, sourceOf(node, context));
    const { heap } = context, address = space.allocate(16);
    const columns = types.map(() => ({ address }));
    this.tests = parts.map((part, k) => {
      const { compiler, predicate } = fuse([part], types, dictionaries, context, space, { operator: "scan" });
      const { run, cells } = projectKernel(heap.memory, compiler.inputs, predicate, []);
      const kernel = new BoundKernel(run, cells, compiler.inputs, context, space, cells.count);
      kernel.setColumns(columns);
      const form = formOf(types[this.columns[k]!]!);
      return (integer, { scale, power }) => {
        if (form === "f64") heap.f64[address / 8] = scale === "product" ? integer * power : integer / power;
        else if (form === "i64") heap.i64[address / 8] = BigInt(integer);
        else heap.i32[address / 4] = integer;
        return kernel.run(0, 1) === 1;
      };
    });
  }

  /** The offsets that pass the `k`-th condition. Undefined if none do. */
  rangeOf(k: number, offsets: ChunkOffsets, isInt: boolean): IntegerRange | undefined {
    const end = isInt ? 2 ** 31 : INTEGER_END, name = `${k} ${offsets.scale} ${offsets.power}`;
    if (!this.ranges.has(name)) this.ranges.set(name, this.integersOf(k, offsets, end - 1));
    const range = this.ranges.get(name);
    if (range === undefined) return undefined;
    const low = Math.max(0, range.low - offsets.least), high = Math.min(offsets.greatest, range.high - offsets.least);
    return low <= high ? { low, high } : undefined;
  }

  private integersOf(k: number, offsets: ChunkOffsets, last: number): IntegerRange | undefined {
    const { low, high } = this.bounds[k]!, passes = (integer: number) => this.tests[k]!(integer, offsets);
    const { scale, power } = offsets;
    let inside: number;
    if (low === undefined) inside = -last;
    else if (high === undefined) inside = last;
    else {
      const middle = (Number(low) + Number(high)) / 2;
      const integer = Math.round(scale === "product" ? middle / power : middle * power);
      inside = Math.max(-last, Math.min(last, integer));
    }
    if (!passes(inside)) return undefined;
    return { low: this.lastPassing(passes, inside, -last), high: this.lastPassing(passes, inside, last) };
  }

  /** The passing integer that is next to `end`. All between `inside`, which passes, and it do. */
  private lastPassing(passes: (integer: number) => boolean, inside: number, end: number): number {
    if (passes(end)) return end;
    let known = inside, beyond = end;
    while (Math.abs(beyond - known) > 1) {
      const middle = Math.round((known + beyond) / 2);
      if (passes(middle)) known = middle;
      else beyond = middle;
    }
    return known;
  }
}
