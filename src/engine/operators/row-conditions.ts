/**
 * Conditions on the values of single columns, as ranges of the integers of packed chunks. The condition itself is evaluated: for floats, with its
 * tolerance, at integers of the chunk's scale; for integers at NULL, the constants and an integer between each two of them; for symbols at all codes of the
 * dictionary. So exactly the rows that pass are within.
 */
import type { Expr, ScanNode } from "../../sql/plan.ts";
import {
  type ChunkOffsets,
  type Dictionary,
  type IntegerRange,
  PASSING_RANGES_MAX,
  type PassingIntegers,
  type RowCondition,
} from "../../storage/contract.ts";
import { typeOf } from "../../types/mod.ts";
import { formOf } from "../compiler/expression.ts";
import { Workspace } from "../columns.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { maskKernel } from "../compiler/mask.ts";
import { type Bound, hasIntegers } from "../bounds.ts";
import type { QueryContext } from "../contract.ts";
import { type CompileOptions, conjuncts, fuse, isFusable } from "../expressions.ts";
import { scanDictionaries, sourceOf } from "../physical/facts.ts";
import { conditionOf, type SingleCondition } from "../physical/single-conditions.ts";

/** Integers of packed floats are below. */
const DECIMAL_END = 2 ** 46;
/** Conditions are not evaluated for more codes. */
const CODES_MAX = 65_536;

type Form = Pick<ChunkOffsets, "scale" | "power">;
interface Piece {
  low: bigint;
  high: bigint;
}

export class RowConditions {
  /** Undefined if one of the conditions is of another kind. `areBounds`: each has to pass the values between two. */
  static of(
    predicates: readonly Expr[],
    node: ScanNode,
    context: QueryContext,
    space: Workspace,
    areBounds: boolean,
  ): RowConditions | undefined {
    const parts = predicates.flatMap((predicate) => conjuncts(predicate, context)), list: Condition[] = [];
    const types = node.columns.map(({ type }) => type), dictionaries = scanDictionaries(node, sourceOf(node, context));
    for (const part of parts) {
      const found = conditionOf(part, node, context);
      if (found === undefined || (areBounds && found.kind !== "bounds")) return undefined;
      // All codes are tested, so functions may be called once for each.
      const codes = found.kind === "symbols" ? dictionaries[found.column]?.count ?? 0 : 0;
      const options = { operator: "scan", expectedRows: codes };
      if (codes > CODES_MAX || !isFusable([], [part], types, dictionaries, context, options)) return undefined;
      const condition = new Condition(part, found, { types, dictionaries }, context, space, options);
      if (!condition.hasFewRanges) return undefined;
      list.push(condition);
    }
    return list.length === 0 ? undefined : new RowConditions(list);
  }

  private constructor(readonly list: readonly Condition[]) {}

  /** The offsets that pass a condition of which `areBounds` holds. Undefined if none do. */
  rangeOf(k: number, offsets: ChunkOffsets): IntegerRange | undefined {
    const range = this.list[k]!.rangeOf(offsets);
    if (range === undefined) return undefined;
    const low = Math.max(0, Number(range.low) - offsets.least);
    const high = Math.min(offsets.greatest, Number(range.high) - offsets.least);
    return low <= high ? { low, high } : undefined;
  }
}

class Condition implements RowCondition {
  readonly column: number;
  readonly integerBytes?: number;
  share = 1;
  private readonly kernel: BoundKernel;
  private readonly heap: QueryContext["heap"];
  /** Addresses of a value, and of bits. */
  private readonly value: number;
  private readonly bits: number;
  /** The float that an integer stands for. */
  private readonly valueOf: (integer: number, form: Form) => number;
  private readonly store: (value: number) => void;
  /** Of floats. */
  private readonly bound?: Bound;
  /** Of integers. */
  private readonly passing?: PassingIntegers;
  /** The integers that pass, if the condition has bounds. */
  private readonly range?: Piece;
  /** Of floats, by form. */
  private readonly known = new Map<string, PassingIntegers>();
  /** The last form, mostly that of the next segment, too, and what passes. */
  private lastForm?: Form;
  private lastPassing?: PassingIntegers;
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
    this.kernel = new BoundKernel(
      maskKernel(heap.memory, compiler.inputs, predicate!),
      compiler.inputs,
      context,
      space,
    );
    this.columns = types.map(() => ({ address: 0 }));
    const type = types[this.column]!, { value } = this, isSingle = formOf(type) === "f32";
    this.valueOf = isSingle ? (integer, form) => Math.fround(scaled(integer, form)) : scaled;
    this.store = (number) => {
      if (isSingle) heap.f32[value / 4] = number;
      else heap.f64[value / 8] = number;
    };
    if (condition.kind === "bounds" && !hasIntegers(type)) {
      this.bound = condition.bound;
      return;
    }
    this.integerBytes = typeOf(type).width;
    if (condition.kind === "symbols") {
      this.passing = this.passingCodes(dictionaries[this.column]?.count ?? 0);
      return;
    }
    const values = condition.kind === "pieces" ? condition.values : valuesAt(condition.bound);
    const pieces = piecesBetween(values, type), missing = missingOf(type), passes = this.testPieces(pieces);
    const areOthers = passes[pieces.findIndex(({ low }) => low === missing)]!;
    this.passing = withFewRanges(
      merged(pieces.filter(({ low }, k) => low !== missing && passes[k] !== areOthers)),
      areOthers,
    );
    if (condition.kind === "bounds") [this.range] = merged(pieces.filter((_, k) => passes[k]));
  }

  get hasFewRanges(): boolean {
    return this.bound !== undefined || this.passing !== undefined;
  }

  /** Whether the integers of each piece pass. */
  private testPieces(pieces: readonly Piece[]): boolean[] {
    const { space, heap, integerBytes } = this, { length } = pieces;
    const values = space.allocate(8 * length), bits = space.allocate(length / 8 + 16);
    const views = { 1: heap.i8, 2: heap.i16, 4: heap.i32, 8: undefined } as const;
    const view = views[integerBytes as keyof typeof views];
    pieces.forEach(({ low }, k) => {
      if (view === undefined) heap.i64[values / 8 + k] = low;
      else view[values / integerBytes! + k] = Number(low);
    });
    this.test(values, length, bits);
    const passes = pieces.map((_, k) => this.isSet(bits, k));
    space.free(values);
    space.free(bits);
    return passes;
  }

  private isSet(bits: number, k: number): boolean {
    return (this.heap.u8[bits + (k >> 3)]! >> (k & 7) & 1) === 1;
  }

  private passingCodes(count: number): PassingIntegers | undefined {
    const { heap, space } = this, codes = space.allocate(4 * (count + 1)), bits = space.allocate(count / 8 + 16);
    for (let code = -1; code < count; code++) heap.i32[codes / 4 + 1 + code] = code;
    this.test(codes, count + 1, bits);
    const areOthers = this.isSet(bits, 0), ranges: Piece[] = [];
    for (let code = 0; code < count && ranges.length <= PASSING_RANGES_MAX; code++) {
      if (this.isSet(bits, code + 1) === areOthers) continue;
      const low = code;
      while (code + 1 < count && this.isSet(bits, code + 2) !== areOthers) code++;
      ranges.push({ low: BigInt(low), high: BigInt(code) });
    }
    space.free(codes);
    space.free(bits);
    return withFewRanges(ranges, areOthers);
  }

  test(values: number, count: number, mask: number): void {
    const { kernel, columns } = this;
    for (const column of columns) column.address = values;
    kernel.setColumns(columns);
    kernel.setI32(kernel.cells.mask!, mask);
    kernel.run(0, count);
  }

  passingOf(form: Form): PassingIntegers {
    if (this.passing !== undefined) return this.passing;
    const { lastForm, bound } = this;
    if (lastForm?.scale === form.scale && lastForm.power === form.power) return this.lastPassing!;
    const name = `${form.scale} ${form.power}`;
    let passing = this.known.get(name);
    if (passing === undefined) {
      const range = this.rangeWithin(bound!, form);
      const ranges = range === undefined ? [] : [{ low: BigInt(range.low), high: BigInt(range.high) }];
      this.known.set(name, passing = { ranges, areOthers: false });
    }
    this.lastForm = form;
    return this.lastPassing = passing;
  }

  /** The integers that pass a condition with bounds. */
  rangeOf(form: Form): Piece | undefined {
    return this.passing === undefined ? this.passingOf(form).ranges[0] : this.range;
  }

  private rangeWithin({ low, high }: Bound, form: Form): IntegerRange | undefined {
    const last = DECIMAL_END - 1;
    const passes = (integer: number) => {
      this.store(this.valueOf(integer, form));
      this.test(this.value, 1, this.bits);
      return this.isSet(this.bits, 0);
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

/** The integers of a bound, whose outcome may differ from that of their neighbours. */
function valuesAt({ low, high }: Bound): bigint[] {
  return [low, high].filter((bound) => bound !== undefined).map((bound) => BigInt(bound));
}

/** NULL, or what chunks of a type without NULL have in its place. */
function missingOf(type: string): bigint {
  const { nullable, width } = typeOf(type);
  return nullable ? -(2n ** BigInt(8 * width - 1)) : 0n;
}

/** All integers of a type, in ascending pieces: each of the values and NULL alone. */
function piecesBetween(values: readonly bigint[], type: string): Piece[] {
  const end = 2n ** BigInt(8 * typeOf(type).width - 1);
  const [least, last] = type === "BOOLEAN" ? [0n, 1n] : [-end, end - 1n];
  const points = [...new Set([missingOf(type), ...values])].filter((value) => value >= least && value <= last);
  const pieces: Piece[] = [];
  let next = least;
  for (const point of points.toSorted((a, b) => a < b ? -1 : 1)) {
    if (next < point) pieces.push({ low: next, high: point - 1n });
    pieces.push({ low: point, high: point });
    next = point + 1n;
  }
  if (next <= last) pieces.push({ low: next, high: last });
  return pieces;
}

function merged(pieces: readonly Piece[]): Piece[] {
  const list: Piece[] = [];
  for (const { low, high } of pieces) {
    const before = list.at(-1);
    if (before !== undefined && before.high + 1n === low) before.high = high;
    else list.push({ low, high });
  }
  return list;
}

function withFewRanges(ranges: readonly Piece[], areOthers: boolean): PassingIntegers | undefined {
  return ranges.length <= PASSING_RANGES_MAX ? { ranges, areOthers } : undefined;
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
