/**
 * Conditions on the values of single columns, as ranges of the integers of packed chunks. A range is found by evaluating the condition itself,
 * with its tolerance, at integers of the chunk's scale, so exactly the rows that pass are within. A condition on symbols is evaluated for all codes of the
 * dictionary.
 */
import type { Expr, ScanNode } from "../../sql/plan.ts";
import type { ChunkOffsets, Dictionary, IntegerRange, RowCondition } from "../../storage/contract.ts";
import { formOf } from "../compiler/expression.ts";
import { Workspace } from "../columns.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { maskKernel } from "../compiler/mask.ts";
import type { Bound } from "../bounds.ts";
import type { QueryContext } from "../contract.ts";
import { type CompileOptions, conjuncts, fuse, isFusable } from "../expressions.ts";
import { scanDictionaries, sourceOf } from "../physical/facts.ts";
import { conditionOf, type SingleCondition } from "../physical/single-conditions.ts";

/** Integers of packed floats are below. */
const DECIMAL_END = 2 ** 46;
/** Conditions are not evaluated for more codes. */
const CODES_MAX = 65_536;

type Form = Pick<ChunkOffsets, "scale" | "power">;

export class RowConditions {
  /** Undefined if one of the conditions is of another kind. `hasSymbols`: some may be on symbols. */
  static of(
    predicates: readonly Expr[],
    node: ScanNode,
    context: QueryContext,
    space: Workspace,
    hasSymbols: boolean,
  ): RowConditions | undefined {
    const parts = predicates.flatMap((predicate) => conjuncts(predicate, context)), list: Condition[] = [];
    const types = node.columns.map(({ type }) => type), dictionaries = scanDictionaries(node, sourceOf(node, context));
    for (const part of parts) {
      const found = conditionOf(part, node, context);
      if (found === undefined || (found.kind === "symbols" && !hasSymbols)) return undefined;
      // All codes are tested, so functions may be called once for each.
      const codes = found.kind === "symbols" ? dictionaries[found.column]?.count ?? 0 : 0;
      const options = { operator: "scan", expectedRows: codes };
      if (codes > CODES_MAX || !isFusable([], [part], types, dictionaries, context, options)) return undefined;
      const condition = new Condition(part, found, { types, dictionaries }, context, space, options);
      if (!condition.isRange) return undefined;
      list.push(condition);
    }
    return list.length === 0 ? undefined : new RowConditions(list);
  }

  private constructor(readonly list: readonly Condition[]) {}

  /** The offsets that pass a condition. Undefined if none do. */
  rangeOf(k: number, offsets: ChunkOffsets): IntegerRange | undefined {
    const range = this.list[k]!.integersOf(offsets);
    if (range === undefined) return undefined;
    const low = Math.max(0, range.low - offsets.least), high = Math.min(offsets.greatest, range.high - offsets.least);
    return low <= high ? { low, high } : undefined;
  }
}

class Condition implements RowCondition {
  readonly column: number;
  /** The values that pass are between two of them. */
  readonly isRange: boolean;
  private readonly kernel: BoundKernel;
  private readonly heap: QueryContext["heap"];
  /** Addresses of a value, and of bits. */
  private readonly value: number;
  private readonly bits: number;
  /** Greatest integers of the column. */
  private readonly last: number;
  /** The value that an integer stands for. */
  private readonly valueOf: (integer: number, form: Form) => number;
  private readonly store: (value: number) => void;
  private readonly bound?: Bound;
  private readonly codes?: IntegerRange;
  private readonly ranges = new Map<string, IntegerRange | undefined>();
  /** The last form, mostly that of the next segment, too, and its range. */
  private lastForm?: Form;
  private lastRange?: IntegerRange;
  private readonly columns: { address: number }[];

  constructor(
    part: Expr,
    condition: SingleCondition,
    { types, dictionaries }: { types: readonly string[]; dictionaries: readonly (Dictionary | undefined)[] },
    context: QueryContext,
    private readonly space: Workspace,
    options: CompileOptions,
  ) {
    const { heap } = context;
    this.column = condition.kind === "bounds" ? condition.bound.column : condition.column;
    this.heap = heap;
    this.value = space.allocate(16);
    this.bits = this.value + 8;
    const { compiler, predicate } = fuse([part], types, dictionaries, context, space, options);
    const { run, cells } = maskKernel(heap.memory, compiler.inputs, predicate!);
    this.kernel = new BoundKernel(run, cells, compiler.inputs, context, space, cells.count);
    this.columns = types.map(() => ({ address: 0 }));
    const form = formOf(types[this.column]!), { value } = this;
    this.last = form === "i32" ? 2 ** 31 - 1 : form === "i64" ? Number.MAX_SAFE_INTEGER : DECIMAL_END - 1;
    this.valueOf = form === "f32"
      ? (integer, form) => Math.fround(scaled(integer, form))
      : form === "f64"
      ? scaled
      : (integer) => integer;
    this.store = (number) => {
      if (form === "f64") heap.f64[value / 8] = number;
      else if (form === "f32") heap.f32[value / 4] = number;
      else if (form === "i64") heap.i64[value / 8] = BigInt(number);
      else heap.i32[value / 4] = number;
    };
    if (condition.kind === "bounds") {
      this.bound = condition.bound;
      this.isRange = true;
      return;
    }
    const passing = this.passingCodes(dictionaries[this.column]?.count ?? 0);
    this.isRange = passing !== undefined;
    this.codes = passing === "none" ? undefined : passing;
  }

  /** Undefined if they are no range, or NULL passes. */
  private passingCodes(count: number): IntegerRange | "none" | undefined {
    const { heap, space } = this, codes = space.allocate(4 * (count + 1)), bits = space.allocate(count / 8 + 16);
    for (let code = -1; code < count; code++) heap.i32[codes / 4 + 1 + code] = code;
    this.test(codes, count + 1, bits);
    let low = -1, high = -1, passed = 0;
    for (let code = -1; code < count; code++) {
      if ((heap.u8[bits + (code + 1 >> 3)]! >> (code + 1 & 7) & 1) === 0) continue;
      if (passed++ === 0) low = code;
      high = code;
    }
    space.free(codes);
    space.free(bits);
    if (passed === 0) return "none";
    return low >= 0 && high - low + 1 === passed ? { low, high } : undefined;
  }

  test(values: number, count: number, mask: number): void {
    const { kernel, columns } = this;
    for (const column of columns) column.address = values;
    kernel.setColumns(columns);
    kernel.setI32(kernel.cells.mask!, mask);
    kernel.run(0, count);
  }

  integersOf(form: Form): IntegerRange | undefined {
    if (this.bound === undefined) return this.codes;
    const { lastForm } = this;
    if (lastForm?.scale === form.scale && lastForm.power === form.power) return this.lastRange;
    const name = `${form.scale} ${form.power}`;
    if (!this.ranges.has(name)) this.ranges.set(name, this.rangeWithin(this.bound, form));
    this.lastForm = form;
    return this.lastRange = this.ranges.get(name);
  }

  private rangeWithin({ low, high }: Bound, form: Form): IntegerRange | undefined {
    const { last } = this;
    const passes = (integer: number) => {
      this.store(this.valueOf(integer, form));
      this.test(this.value, 1, this.bits);
      return (this.heap.u8[this.bits]! & 1) === 1;
    };
    let candidates: number[];
    if (low === undefined) candidates = [-last];
    else if (high === undefined) candidates = [last];
    else {
      // If any value passes, one of those next to the middle does. Floats of 4 bytes may be far from their integers' decimals.
      const middle = (Number(low) + Number(high)) / 2;
      const isBelow = (integer: number) => this.valueOf(integer, form) <= middle;
      const below = isBelow(-last) ? lastPassing(isBelow, -last, last) : -last;
      candidates = [below, Math.min(last, below + 1)];
    }
    const inside = candidates.find(passes);
    if (inside === undefined) return undefined;
    return { low: lastPassing(passes, inside, -last), high: lastPassing(passes, inside, last) };
  }
}

function scaled(integer: number, { scale, power }: Form): number {
  return scale === "product" ? integer * power : integer / power;
}

/** The passing integer that is next to `end`. All between `inside`, which passes, and it do. */
function lastPassing(passes: (integer: number) => boolean, inside: number, end: number): number {
  if (passes(end)) return end;
  let known = inside, beyond = end;
  while (Math.abs(beyond - known) > 1) {
    const middle = Math.round((known + beyond) / 2);
    if (passes(middle)) known = middle;
    else beyond = middle;
  }
  return known;
}
