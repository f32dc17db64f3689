/**
 * DECIMAL: arithmetic, comparison, rounding, casts, sums. Values are scaled bigints; the scale is part of the type. The binder
 * first converts integer operands to decimals.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { formatValue } from "../../types/format/mod.ts";
import { layoutOf, LONG_MAX, NULL_I32, NULL_I64, typeOf, type Value } from "../../types/mod.ts";
import { DECIMAL_PRECISION_MAX, decimalOf, decimalTag, type DecimalType, formatDecimal } from "../../types/wide.ts";
import { bind, i32, i64, type IrNode, select } from "../../engine/compiler/ir.ts";
import { batchEntry } from "./batch-entry.ts";
import { type Order, signed64 } from "./comparison.ts";
import {
  type Change,
  conversionKernel,
  type IntegerForm,
  narrowKernel,
  type Scaled,
  wideKernel,
  type WideOperation,
  type Words,
} from "./decimal-kernels.ts";
import type {
  BatchAggregateState,
  BatchColumn,
  BatchFunction,
  BatchOut,
  FunctionContext,
  FunctionEntry,
} from "./entry.ts";
import { shown } from "./sizes.ts";
import { wideValue } from "./wide.ts";

/** Words of 64 bits of a value. */
function wordsOf(type: string): number {
  return typeOf(type).width / 8;
}

type Reader = (row: number) => bigint | undefined;

/** Undefined for NULL. */
function readerOf(column: BatchColumn): Reader {
  const { values } = column;
  return wordsOf(column.type) === 1
    ? (row) => values[row] === NULL_I64 ? undefined : values[row]
    : (row) => column.isNull(row) ? undefined : wideValue(column, row);
}

/** @throws if the value has more digits than the type. */
export function write(out: BatchOut, row: number, value: bigint | undefined, at: number): void {
  writerOf(out, at)(row, value);
}

/** `write` for the rows of one column. */
function writerOf(out: BatchOut, at: number): (row: number, value: bigint | undefined) => void {
  const { precision, scale } = decimalOf(out.type)!, { values } = out;
  const words = wordsOf(out.type), limit = power(precision);
  return (row, value) => {
    if (value === undefined) return out.setNull(row);
    if (value >= limit || value <= -limit) {
      throw new SqlError(`${formatDecimal(value, scale)} does not fit ${out.type}`, at, SQLSTATE.outOfRange);
    }
    if (words === 1) values[row] = value;
    else {
      for (let word = 0; word < words; word++) {
        values[words * row + word] = BigInt.asIntN(64, value >> BigInt(64 * word));
      }
    }
  };
}

const POWERS = Array.from({ length: 2 * DECIMAL_PRECISION_MAX + 1 }, (_, exponent) => 10n ** BigInt(exponent));
const power = (exponent: number): bigint => POWERS[exponent] ?? 10n ** BigInt(exponent);

/** Digits that fit a word, and two. */
const WORD_DIGITS = 18;
const TWO_WORDS_DIGITS = 38;

/**
 * Runs a kernel, which returns the row at which it stops, and `slow` for such rows.
 */
function withSlowRows(rowCount: number, kernel: (from: number) => number, slow: (row: number) => void): void {
  for (let row = kernel(0); row < rowCount; row = kernel(row + 1)) slow(row);
}

const limited = (precision: number, scale: number): string =>
  decimalTag(Math.min(DECIMAL_PRECISION_MAX, precision), Math.min(DECIMAL_PRECISION_MAX, scale));

type Rounding = (quotient: bigint, remainder: bigint, divisor: bigint) => bigint;
const away = (value: bigint, remainder: bigint): bigint => value + (remainder < 0n ? -1n : 1n);
const magnitude = (value: bigint): bigint => (value < 0n ? -value : value);
const halfUp: Rounding = (quotient, remainder, divisor) =>
  2n * magnitude(remainder) >= divisor ? away(quotient, remainder) : quotient;
const halfEven: Rounding = (quotient, remainder, divisor) => {
  const twice = 2n * magnitude(remainder);
  return twice > divisor || (twice === divisor && quotient % 2n !== 0n) ? away(quotient, remainder) : quotient;
};
const outwards: Rounding = (quotient, remainder) => (remainder === 0n ? quotient : away(quotient, remainder));
const inwards: Rounding = (quotient) => quotient;
const upwards: Rounding = (quotient, remainder) => (remainder > 0n ? quotient + 1n : quotient);
const downwards: Rounding = (quotient, remainder) => (remainder < 0n ? quotient - 1n : quotient);

/** `value / divisor`, rounded. The divisor is positive. */
function divided(value: bigint, divisor: bigint, rounding: Rounding): bigint {
  return rounding(value / divisor, value % divisor, divisor);
}

/** Converts from one scale to another. */
function rescaled(value: bigint, from: number, to: number, rounding: Rounding): bigint {
  return to >= from ? value * power(to - from) : divided(value, power(from - to), rounding);
}

const DECIMAL = (name: string) => ({ name, type: "decimal" });

type Operation = (a: bigint, b: bigint, left: DecimalType, right: DecimalType, at: number) => bigint;
const aligned = (operation: (a: bigint, b: bigint, at: number) => bigint): Operation => (a, b, left, right, at) => {
  const scale = Math.max(left.scale, right.scale);
  return operation(a * power(scale - left.scale), b * power(scale - right.scale), at);
};

function notZero(divisor: bigint, at: number): bigint {
  if (divisor === 0n) throw new SqlError("a DECIMAL is divided by zero", at, SQLSTATE.divisionByZero);
  return divisor;
}

/** Processes all rows of a batch. Returns false if it cannot, for these types. */
type Shortcut = (a: BatchColumn, b: BatchColumn, out: BatchOut, rowCount: number, context: FunctionContext) => boolean;

/** `narrow`: by a kernel that stops at rows of great values. */
function binary(operation: Operation, shortcut?: Shortcut, narrow?: "/" | "%"): BatchFunction {
  return ([a, b], out, rowCount, context) => {
    if (shortcut?.(a, b, out, rowCount, context)) return;
    const left = decimalOf(a.type)!, right = decimalOf(b.type)!, { at } = context;
    const x = readerOf(a), y = readerOf(b), write = writerOf(out, at);
    const slow = (row: number) => {
      const u = x(row), v = y(row);
      write(row, u === undefined || v === undefined ? undefined : operation(u, v, left, right, at));
      if ((row & 1023) === 1023) context.poll();
    };
    const kernel = narrow && narrowCall(narrow, a, b, out, rowCount, context);
    withSlowRows(rowCount, kernel ?? ((from) => from), slow);
  };
}

/** Calls the kernel of "/" or "%" from a row on. Undefined if it does not take the types. */
function narrowCall(
  operation: "/" | "%",
  a: BatchColumn,
  b: BatchColumn,
  out: BatchOut,
  rowCount: number,
  { heap }: FunctionContext,
): ((from: number) => number) | undefined {
  const left = decimalOf(a.type)!, right = decimalOf(b.type)!, scale = Math.max(left.scale, right.scale);
  const [more, moreB] = operation === "/" ? [2 * right.scale, 0] : [scale - left.scale, scale - right.scale];
  const words = wordsOf(out.type);
  if (more > WORD_DIGITS || moreB > WORD_DIGITS || wordsOf(a.type) > 1 || wordsOf(b.type) > 1) return undefined;
  const kernel = narrowKernel(heap.memory, operation, words as Words | 4);
  const powers = [power(more), power(moreB)] as const;
  return (from) =>
    kernel(
      a.address,
      b.address,
      out.address,
      from,
      rowCount,
      powers[0],
      LONG_MAX / powers[0],
      powers[1],
      LONG_MAX / powers[1],
    );
}

/** A kernel over two words, after both operands have the same scale if they are `aligned`. */
function byWideKernel(operation: WideOperation, isAligned: boolean): Shortcut {
  return (a, b, out, rowCount, { heap }) => {
    const left = decimalOf(a.type)!, right = decimalOf(b.type)!, words = [wordsOf(a.type), wordsOf(b.type)];
    const whole = Math.max(left.precision - left.scale, right.precision - right.scale);
    const digits = isAligned ? whole + Math.max(left.scale, right.scale) : Math.max(left.precision, right.precision);
    const isComparison = out.type === "BOOLEAN", resultDigits = isComparison ? digits : decimalOf(out.type)!.precision;
    if (digits > TWO_WORDS_DIGITS || resultDigits > (isAligned ? TWO_WORDS_DIGITS : DECIMAL_PRECISION_MAX)) {
      return false;
    }
    const shift = isAligned ? left.scale - right.scale : 0;
    const scaled: Scaled = shift < 0 ? "a" : shift > 0 ? "b" : undefined;
    const kernel = wideKernel(heap.memory, operation, words[0] as Words, words[1] as Words, scaled);
    const by = power(Math.abs(shift));
    kernel(a.address, b.address, out.address, 0, rowCount, BigInt.asIntN(64, by), by >> 64n);
    return true;
  };
}

/** The type for both operands: the maximum of integer digits and of fraction digits, plus `more` digits. */
function holding([a, b]: string[], more: number): string {
  const left = decimalOf(a) ?? { precision: 1, scale: 0 }, right = decimalOf(b) ?? left;
  const scale = Math.max(left.scale, right.scale);
  return limited(Math.max(left.precision - left.scale, right.precision - right.scale) + scale + more, scale);
}

/** The sum of the scales, with the maximum precision. */
const product = ([a, b]: string[]): string =>
  limited(DECIMAL_PRECISION_MAX, (decimalOf(a)?.scale ?? 0) + (decimalOf(b)?.scale ?? 0));

/** Kernels' code for values of one word. NULL is less than each value. */
const NONE = i64.const(NULL_I64);
const isNone = (x: IrNode): IrNode => i64.eq(x, NONE);

/** A value with more decimals. NULL stays NULL. */
function emitScaled(x: IrNode, digits: number): IrNode {
  return digits <= 0 ? x : select(isNone(x), NONE, i64.mul(x, i64.const(power(digits))));
}

/** The result has more digits than the operands with its scale. */
function emitSum(operation: (a: IrNode, b: IrNode) => IrNode): FunctionEntry["emit"] {
  return ([a, b], types) => {
    const [left, right] = types.map((type) => decimalOf(type)!), scale = Math.max(left.scale, right.scale);
    const scaled = (x: IrNode, from: number) => from === scale ? x : i64.mul(x, i64.const(power(scale - from)));
    const result = operation(scaled(a, left.scale), scaled(b, right.scale));
    return select(i32.or(isNone(a), isNone(b)), NONE, result);
  };
}

/** Values of different scales are compared exactly, also where one with as many decimals as the other would not fit 64 bits. */
function emitComparison(compare: (order: Order) => Order["eq"]): FunctionEntry["emit"] {
  return ([a, b], types) => {
    const [left, right] = types.map((type) => decimalOf(type)!), shift = right.scale - left.scale;
    const [fewer, more] = shift > 0 ? [a, b] : [b, a], digits = Math.abs(shift);
    const precision = (shift > 0 ? left : right).precision + digits;
    if (precision <= WORD_DIGITS) return compare(signed64)(emitScaled(a, shift), emitScaled(b, -shift));
    // The value with fewer decimals is compared with the whole part of the other, and then 0 with what remains.
    const divisor = i64.const(power(digits));
    return bind(i64.divS(more, divisor), (quotient) =>
      bind(i64.sub(more, i64.mul(quotient, divisor)), (rest) => {
        const zero = i64.const(0n), isSame = i64.eq(fewer, quotient);
        const none = i32.or(isNone(a), isNone(b)), bothNone = i32.and(isNone(a), isNone(b));
        const order = (isLess: IrNode, restHolds: IrNode, ofNulls: IrNode): IrNode =>
          select(none, ofNulls, i32.or(isLess, i32.and(isSame, restHolds)));
        const isFewerLess = i64.ltS(fewer, quotient), isFewerGreater = i64.gtS(fewer, quotient);
        const never = i32.const(0);
        const relation = (x: IrNode, strict: boolean): IrNode =>
          x === fewer
            ? order(isFewerLess, strict ? i64.gtS(rest, zero) : i64.geS(rest, zero), strict ? never : bothNone)
            : order(isFewerGreater, strict ? i64.ltS(rest, zero) : i64.leS(rest, zero), strict ? never : bothNone);
        return compare({
          eq: () => order(never, i64.eqz(rest), bothNone),
          lt: (x) => relation(x, true),
          le: (x) => relation(x, false),
        })(a, b);
      }));
  };
}

interface Operator {
  name: string;
  summary: string;
  returns: (types: string[]) => string;
  operation: Operation;
  shortcut?: Shortcut;
  narrow?: "/" | "%";
  emit?: FunctionEntry["emit"];
}

const OPERATORS: Operator[] = [
  {
    name: "+",
    summary: "Sum.",
    returns: (types) => holding(types, 1),
    operation: aligned((a, b) => a + b),
    shortcut: byWideKernel("+", true),
    emit: emitSum(i64.add),
  },
  {
    name: "-",
    summary: "Difference.",
    returns: (types) => holding(types, 1),
    operation: aligned((a, b) => a - b),
    shortcut: byWideKernel("-", true),
    emit: emitSum(i64.sub),
  },
  {
    name: "*",
    summary: "Product.",
    returns: product,
    operation: (a, b) => a * b,
    shortcut: byWideKernel("*", false),
  },
  {
    name: "/",
    summary:
      "The quotient, rounded to the sum of both operands' decimals, halves to the even digit. Division by zero is an error.",
    returns: product,
    operation: (a, b, _, right, at) => {
      const divisor = notZero(b, at), scaled = a * power(2 * right.scale);
      return divisor < 0n ? divided(-scaled, -divisor, halfEven) : divided(scaled, divisor, halfEven);
    },
    narrow: "/",
  },
  {
    name: "%",
    summary: "The remainder, with the sign of the dividend. Division by zero is an error.",
    returns: (types) => holding(types, 0),
    operation: aligned((a, b, at) => a % notZero(b, at)),
    narrow: "%",
  },
];

const operators: FunctionEntry[] = OPERATORS.map(({ name, summary, returns, operation, shortcut, narrow, emit }) => {
  const batch = binary(operation, shortcut, narrow), way = emit === undefined ? { batch } : { emit, wide: batch };
  return batchEntry(name, [DECIMAL("a"), DECIMAL("b")], returns, summary, undefined, [], { fallible: 1, ...way });
});

/** `as`: the comparison of a kernel over columns, with its operands in the other order or with the opposite result. `of`: that of fused kernels. */
interface Comparison {
  name: string;
  summary: string;
  holds: (sign: number) => boolean;
  ofNulls: boolean;
  as: "=" | "<" | "<=";
  swapped?: boolean;
  opposite?: boolean;
  of: (order: Order) => Order["eq"];
}

const COMPARISONS: Comparison[] = [
  {
    name: "=",
    summary: "True if both are equal. Null equals null.",
    ofNulls: true,
    as: "=",
    of: ({ eq }) => eq,
    holds: (sign) => sign === 0,
  },
  {
    name: "!=",
    summary: "True if both differ.",
    ofNulls: false,
    as: "=",
    opposite: true,
    of: ({ eq }) => (a, b) => i32.eqz(eq(a, b)),
    holds: (sign) => sign !== 0,
  },
  {
    name: "<",
    summary: "True if the first is less than the second.",
    ofNulls: false,
    as: "<",
    of: ({ lt }) => lt,
    holds: (sign) => sign < 0,
  },
  {
    name: "<=",
    summary: "True if the first is less than or equal to the second.",
    ofNulls: true,
    as: "<=",
    of: ({ le }) => le,
    holds: (sign) => sign <= 0,
  },
  {
    name: ">",
    summary: "True if the first is greater than the second.",
    ofNulls: false,
    as: "<",
    swapped: true,
    of: ({ lt }) => (a, b) => lt(b, a),
    holds: (sign) => sign > 0,
  },
  {
    name: ">=",
    summary: "True if the first is greater than or equal to the second.",
    ofNulls: true,
    as: "<=",
    swapped: true,
    of: ({ le }) => (a, b) => le(b, a),
    holds: (sign) => sign >= 0,
  },
];

function comparison({ name, summary, holds, ofNulls, as, swapped, opposite, of }: Comparison): FunctionEntry {
  const kernel = byWideKernel(as, true);
  const wide: BatchFunction = ([a, b], out, rowCount, context) => {
    const [first, second] = swapped ? [b, a] : [a, b];
    if (kernel(first, second, out, rowCount, context)) {
      if (opposite) { for (let row = 0; row < rowCount; row++) out.values[row] ^= 1; }
      return;
    }
    const left = decimalOf(a.type)!.scale, right = decimalOf(b.type)!.scale;
    const powers = [power(Math.max(0, right - left)), power(Math.max(0, left - right))] as const;
    const x = readerOf(a), y = readerOf(b);
    for (let row = 0; row < rowCount; row++) {
      const u = x(row), v = y(row);
      let isTrue: boolean;
      if (u === undefined || v === undefined) isTrue = u === v ? ofNulls : name === "!=";
      else {
        const p = u * powers[0], q = v * powers[1];
        isTrue = holds(p < q ? -1 : p > q ? 1 : 0);
      }
      out.values[row] = isTrue ? 1 : 0;
      if ((row & 1023) === 1023) context.poll();
    }
  };
  return batchEntry(name, [DECIMAL("a"), DECIMAL("b")], "BOOLEAN", summary, undefined, [], {
    emit: emitComparison(of),
    wide,
  });
}

const comparisons: FunctionEntry[] = COMPARISONS.map(comparison);

/** DECIMAL to DECIMAL, with an optional constant number of digits. */
function unary(
  name: string,
  summary: string,
  returns: (type: DecimalType, digits: number) => string,
  operation: (value: bigint, type: DecimalType, digits: number) => bigint,
  withDigits = false,
  emit?: FunctionEntry["emit"],
): FunctionEntry {
  const batch: BatchFunction = ([column, digits], out, rowCount, context) => {
    const type = decimalOf(column.type)!, read = readerOf(column), write = writerOf(out, context.at);
    for (let row = 0; row < rowCount; row++) {
      const value = digits?.isNull(row) ? undefined : read(row);
      write(row, value === undefined ? undefined : operation(value, type, digits?.values[row] ?? 0));
    }
  };
  return batchEntry(
    name,
    [DECIMAL("value"), ...(withDigits ? [{ name: "decimals", type: "INT", constant: true }] : [])],
    (types: string[], constants: readonly (Value | undefined)[] = []) =>
      constants[1] === null
        ? decimalTag(1, 0)
        : returns(decimalOf(types[0]) ?? { precision: 1, scale: 0 }, Number(constants[1] ?? 0)),
    summary,
    undefined,
    [],
    emit === undefined ? { batch } : { emit, wide: batch },
  );
}

/** Rounds to a number of decimals, none by default. The type stays the same if it has no more decimals. */
function rounding(name: string, summary: string, rule: Rounding, carry = 1): FunctionEntry[] {
  const returns = ({ precision, scale }: DecimalType, digits: number): string =>
    digits >= scale
      ? limited(precision, scale)
      : limited(precision - scale + Math.max(0, digits) + carry || 1, Math.max(0, digits));
  const operation = (value: bigint, { precision, scale }: DecimalType, given: number): bigint => {
    if (given >= scale) return value;
    // Left of the first digit all numbers of digits give the same result.
    const digits = Math.max(given, -precision - 1);
    return digits >= 0
      ? rescaled(value, scale, digits, rule)
      : divided(value, power(scale - digits), rule) * power(-digits);
  };
  return [true, false].map((withDigits) => unary(name, summary, returns, operation, withDigits));
}

const roundings: FunctionEntry[] = [
  ...rounding("round", "The value rounded to a number of decimals, halves away from zero.", halfUp),
  ...rounding("round_half_even", "The value rounded to a number of decimals, halves to the even digit.", halfEven),
  ...rounding("round_up", "The value rounded away from zero to a number of decimals.", outwards),
  ...rounding("round_down", "The value rounded towards zero to a number of decimals.", inwards, 0),
  ...["ceil", "ceiling"].flatMap((name) => rounding(name, "The value rounded up to a number of decimals.", upwards)),
  ...rounding("floor", "The value rounded down to a number of decimals.", downwards),
  unary(
    "abs",
    "The absolute value.",
    ({ precision, scale }) => decimalTag(precision, scale),
    magnitude,
    false,
    ([x]) =>
      // NULL stays NULL, whose negative it is.
      select(i64.ltS(x, i64.const(0n)), i64.sub(i64.const(0n), x), x),
  ),
  unary(
    "neg",
    "The negative, of the same type.",
    ({ precision, scale }) => decimalTag(precision, scale),
    (value) => -value,
    false,
    ([x]) => i64.sub(i64.const(0n), x),
  ),
  unary(
    "sign",
    "-1, 0 or 1.",
    () => decimalTag(1, 0),
    (value) => (value < 0n ? -1n : value > 0n ? 1n : 0n),
    false,
    ([x]) => {
      const sign = i64.sub(i64.extendU(i64.gtS(x, i64.const(0n))), i64.extendU(i64.ltS(x, i64.const(0n))));
      return select(isNone(x), NONE, sign);
    },
  ),
];

/**
 * Parses a number, optionally with an exponent, to a scaled value. Undefined if it has too many digits, or if decimals would be lost and are
 * not to be `cut`.
 */
export function scaledText(text: string, { precision, scale }: DecimalType, cut = false): bigint | undefined {
  const match = /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,4}))?$/.exec(text.trim());
  if (!match || (match[2] === "" && match[3] === "")) return undefined;
  const digits = match[2] + match[3], exponent = Number(match[4] ?? 0) - match[3].length + scale;
  if (exponent > 200) return undefined;
  const lost = exponent < 0 ? digits.slice(exponent) : "";
  if (!cut && /[1-9]/.test(lost)) return undefined;
  const kept = (exponent < 0 ? digits.slice(0, exponent) : digits + "0".repeat(exponent)).replace(/^0+/, "");
  if (kept.length > precision) return undefined;
  const value = BigInt(kept || "0");
  return match[1] === "-" ? -value : value;
}

function unfit(text: string, type: string, context: FunctionContext): SqlError {
  return new SqlError(`${shown(text)} does not fit ${type}`, context.at, SQLSTATE.outOfRange);
}

/**
 * Calls the kernel of a cast from a row on, or does nothing if there is none for these types. `limit`: of the value or the quotient, below which
 * the result fits.
 */
function conversionCall(
  column: BatchColumn,
  out: BatchOut,
  change: Change,
  digits: number,
  limit: bigint,
  rowCount: number,
  { heap }: FunctionContext,
): (from: number) => number {
  const from = layoutOf(column.type), to = layoutOf(out.type);
  const takes = to !== "i256" && (to !== "i128" || change === "multiplied");
  if (from === "i128" || from === "i256" || !takes || digits > WORD_DIGITS) return (row) => row;
  const kernel = conversionKernel(heap.memory, from as IntegerForm, to as IntegerForm | "i128", change);
  const below = limit < LONG_MAX ? limit : LONG_MAX;
  return (row) => kernel(column.address, out.address, row, rowCount, power(digits), below);
}

/** The cast's type determines the result type, so `INT` is only a stand-in here. */
const castFrom = (type: string, summary: string, batch: BatchFunction): FunctionEntry =>
  batchEntry("cast_DECIMAL", [{ name: "value", type }], "INT", summary, batch, [], { fallible: 0 });

const casts: FunctionEntry[] = [
  ...["BYTE", "SHORT", "INT", "LONG", "DATE", "TIMESTAMP", "TIMESTAMP_NS"].map((type) =>
    castFrom(type, "The value as DECIMAL.", ([column], out, rowCount, context) => {
      const { precision, scale } = decimalOf(out.type)!, write = writerOf(out, context.at);
      const none = typeOf(type).nullable ? typeOf(type).nullValue : undefined;
      const kernel = conversionCall(column, out, "multiplied", scale, power(precision - scale), rowCount, context);
      withSlowRows(rowCount, kernel, (row) => {
        const value = column.values[row];
        write(row, value === none ? undefined : BigInt(value) * power(scale));
      });
    })
  ),
  ...["FLOAT", "DOUBLE"].map((type) =>
    castFrom(type, "The value as DECIMAL, without further decimals.", ([column], out, rowCount, context) => {
      const to = decimalOf(out.type)!, write = writerOf(out, context.at);
      for (let row = 0; row < rowCount; row++) {
        const number = column.values[row] as number;
        const text = Number.isNaN(number) ? undefined : formatValue(number, type)!;
        const scaled = text === undefined ? undefined : scaledText(text, to, true);
        if (scaled === undefined && text !== undefined) throw unfit(text, out.type, context);
        write(row, scaled);
      }
    })
  ),
  ...["text", "CHAR"].map((type) =>
    castFrom(type, "The text parsed as a DECIMAL.", ([column], out, rowCount, context) => {
      const to = decimalOf(out.type)!, write = writerOf(out, context.at);
      for (let row = 0; row < rowCount; row++) {
        const code = type === "CHAR" ? column.values[row] as number : 0;
        const text = type !== "CHAR" ? column.text(row) : code === 0 ? undefined : String.fromCharCode(code);
        const scaled = text === undefined ? undefined : scaledText(text, to);
        if (scaled === undefined && text !== undefined) throw unfit(`'${text}'`, out.type, context);
        write(row, scaled);
      }
    })
  ),
  castFrom("decimal", "The value with another precision and scale.", ([column], out, rowCount, context) => {
    const from = decimalOf(column.type)!, to = decimalOf(out.type)!, shift = to.scale - from.scale;
    const read = readerOf(column), write = writerOf(out, context.at);
    const kernel = shift >= 0
      ? conversionCall(column, out, "multiplied", shift, power(Math.max(0, to.precision - shift)), rowCount, context)
      : conversionCall(column, out, "exact", -shift, power(to.precision), rowCount, context);
    withSlowRows(rowCount, kernel, (row) => {
      const value = read(row);
      const scaled = value === undefined ? undefined : scaledText(formatDecimal(value, from.scale), to);
      if (scaled === undefined && value !== undefined) {
        throw unfit(
          formatDecimal(value, from.scale),
          out.type,
          context,
        );
      }
      write(row, scaled);
    });
  }),
  ...[["BYTE", 8], ["SHORT", 16], ["INT", 32], ["LONG", 64]].map(([type, bits]) =>
    batchEntry(
      `decimal_${type}`,
      [DECIMAL("value")],
      type as string,
      "The value without its decimals.",
      ([column], out, rowCount, context) => {
        const { scale } = decimalOf(column.type)!, read = readerOf(column);
        const kernel = conversionCall(column, out, "divided", scale, 1n << BigInt(Number(bits) - 1), rowCount, context);
        withSlowRows(rowCount, kernel, (row) => {
          const value = read(row);
          if (value === undefined) return out.setNull(row);
          const cut = value / power(scale);
          if (BigInt.asIntN(bits as number, cut) !== cut) {
            throw unfit(formatDecimal(value, scale), type as string, context);
          }
          out.values[row] = type === "LONG" ? cut : Number(cut);
        });
      },
      [],
      { fallible: 0 },
    )
  ),
  ...["FLOAT", "DOUBLE"].map((type) =>
    batchEntry(`decimal_${type}`, [DECIMAL("value")], type, "The nearest number.", ([column], out, rowCount) => {
      const { scale } = decimalOf(column.type)!, read = readerOf(column);
      // The quotient of two exact numbers is the nearest one.
      const divisor = scale <= EXACT_POWER_MAX ? 10 ** scale : undefined;
      for (let row = 0; row < rowCount; row++) {
        const value = read(row), number = Number(value);
        if (value === undefined) out.values[row] = NaN;
        else if (divisor !== undefined && Math.abs(number) <= Number.MAX_SAFE_INTEGER) {
          out.values[row] = number / divisor;
        } else out.values[row] = Number(formatDecimal(value, scale));
      }
    })
  ),
];

/** Greater powers of ten are no DOUBLEs. */
const EXACT_POWER_MAX = 22;

/** Types that "decimal_<TYPE>" casts a DECIMAL to. */
export const DECIMAL_TARGETS: ReadonlySet<string> = new Set(["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"]);

/** Sums are of parts of 32 bits of the values, and exact up to this many rows. */
const EXACT_ROWS = 1 << 20;
const PART = 2 ** 32;

class DecimalState implements BatchAggregateState {
  private readonly isExtreme: boolean;
  /** Parts of 32 bits of a value, the lowest first, and of a total. */
  private readonly parts: number;
  private readonly totalParts: number;
  private groups = 0;
  /** Values that are not null, for each group. */
  private counts = new Float64Array();
  /** For each group its sum or extreme. The last part has the sign. A sum has a part more, and each may be greater than 32 bits. */
  private totals = new Float64Array();
  /** Rows since all parts of sums had 32 bits. */
  private rows = 0;

  constructor(
    private readonly kind: "sum" | "avg" | "min" | "max",
    type: string,
    private readonly scale: number,
    private readonly at: number,
  ) {
    this.isExtreme = kind === "min" || kind === "max";
    this.parts = 2 * wordsOf(type);
    this.totalParts = this.isExtreme ? this.parts : this.parts + 1;
  }

  private need(groups: number): void {
    if (groups <= this.groups) return;
    this.groups = Math.max(groups, 2 * this.groups);
    const { counts, totals } = this;
    this.counts = new Float64Array(this.groups);
    this.counts.set(counts);
    this.totals = new Float64Array(this.groups * this.totalParts);
    this.totals.set(totals);
  }

  /** Sets whole parts of 32 bits, except for the last one, which has the sign. */
  private carry(): void {
    const { totals, totalParts, groups } = this;
    this.rows = 0;
    if (this.isExtreme) return;
    for (let group = 0; group < groups; group++) {
      for (let k = group * totalParts; k < (group + 1) * totalParts - 1; k++) {
        const carry = Math.floor(totals[k] / PART);
        totals[k] -= carry * PART;
        totals[k + 1] += carry;
      }
    }
  }

  update(groups: Int32Array | undefined, [column]: BatchColumn[], rowCount: number): void {
    const { parts } = this;
    const { buffer, byteOffset } = column.values as BigInt64Array;
    const low = new Uint32Array(buffer, byteOffset, rowCount * parts);
    const high = new Int32Array(buffer, byteOffset, rowCount * parts);
    for (let from = 0, to; from < rowCount; from = to) {
      to = Math.min(rowCount, from + EXACT_ROWS);
      if (this.rows + to - from > EXACT_ROWS) this.carry();
      this.rows += to - from;
      if (groups === undefined) {
        if (this.isExtreme) this.chooseAmong(column, low, high, from, to);
        else this.addAll(column, low, high, from, to);
      } else this.updateGroups(groups, column, low, high, from, to);
    }
  }

  private updateGroups(
    groups: Int32Array,
    column: BatchColumn,
    low: Uint32Array,
    high: Int32Array,
    from: number,
    to: number,
  ): void {
    let greatest = 0;
    for (let row = from; row < to; row++) if (groups[row] > greatest) greatest = groups[row];
    this.need(greatest + 1);
    const { parts, totalParts, totals, counts, isExtreme } = this, last = parts - 1;
    for (let row = from, at = from * parts; row < to; row++, at += parts) {
      const top = high[at + last];
      if (top === NULL_I32 && column.isNull(row)) continue;
      const group = groups[row];
      if (isExtreme) this.choose(group, low, at, top);
      else {
        const total = group * totalParts;
        for (let k = 0; k < last; k++) totals[total + k] += low[at + k];
        totals[total + last] += top;
      }
      counts[group]++;
    }
  }

  /** The rows from … to-1 are of group 0. */
  private chooseAmong(column: BatchColumn, low: Uint32Array, high: Int32Array, from: number, to: number): void {
    const { parts } = this, last = parts - 1, sign = this.kind === "max" ? 1 : -1;
    let best = -1, bestTop = 0, bestNext = 0, count = 0;
    for (let row = from, at = from * parts; row < to; row++, at += parts) {
      const top = high[at + last];
      if (top === NULL_I32 && column.isNull(row)) continue;
      count++;
      const next = low[at + last - 1];
      let difference = best < 0 ? sign : top !== bestTop ? top - bestTop : next - bestNext;
      for (let k = last - 2; difference === 0 && k >= 0; k--) difference = low[at + k] - low[best + k];
      if (sign * difference <= 0) continue;
      best = at;
      bestTop = top;
      bestNext = next;
    }
    if (count === 0) return;
    this.need(1);
    this.choose(0, low, best, bestTop);
    this.counts[0] += count;
  }

  /** The rows from … to-1 are of group 0. Parts are summed one after the other, those of NULLs included, which are subtracted. */
  private addAll(column: BatchColumn, low: Uint32Array, high: Int32Array, from: number, to: number): void {
    const { parts } = this, last = parts - 1, end = to * parts;
    let nulls = 0, tops = 0;
    for (let row = from, at = from * parts + last; row < to; row++, at += parts) {
      const top = high[at];
      if (top === NULL_I32 && column.isNull(row)) nulls++;
      tops += top;
    }
    if (nulls === to - from) return;
    this.need(1);
    const { totals } = this;
    for (let k = 0; k < last; k++) {
      let sum = 0;
      for (let at = from * parts + k; at < end; at += parts) sum += low[at];
      totals[k] += sum - nulls * (k % 2 === 0 ? 0 : -NULL_I32);
    }
    totals[last] += tops - nulls * NULL_I32;
    this.counts[0] += to - from - nulls;
  }

  /** Takes the value at `at`, with the last part `top`, if it is better. */
  private choose(group: number, low: ArrayLike<number>, at: number, top: number): void {
    const { totals, parts } = this, total = group * parts, last = parts - 1;
    if (this.counts[group] > 0) {
      let difference = top - totals[total + last];
      for (let k = last - 1; difference === 0 && k >= 0; k--) difference = low[at + k] - totals[total + k];
      if (this.kind === "min" ? difference >= 0 : difference <= 0) return;
    }
    for (let k = 0; k < last; k++) totals[total + k] = low[at + k];
    totals[total + last] = top;
  }

  merge(later: DecimalState, mapping: Int32Array): void {
    this.carry();
    later.carry();
    const { totalParts } = this;
    for (let from = 0; from < later.groups; from++) {
      if (later.counts[from] === 0) continue;
      const group = mapping[from], at = from * totalParts;
      this.need(group + 1);
      if (this.isExtreme) this.choose(group, later.totals, at, later.totals[at + totalParts - 1]);
      else for (let k = 0; k < totalParts; k++) this.totals[group * totalParts + k] += later.totals[at + k];
      this.counts[group] += later.counts[from];
    }
    // Parts are now below 33 bits.
    this.rows = 2;
  }

  private valueOf(group: number): bigint {
    const { totals, totalParts } = this;
    let value = 0n;
    for (let k = totalParts - 1; k >= 0; k--) value = value * BigInt(PART) + BigInt(totals[group * totalParts + k]);
    return value;
  }

  finish(out: BatchOut, groupCount: number): void {
    const { scale } = decimalOf(out.type)!, write = writerOf(out, this.at);
    for (let group = 0; group < groupCount; group++) {
      const count = group < this.groups ? this.counts[group] : 0;
      if (count === 0) {
        out.setNull(group);
        continue;
      }
      const total = this.valueOf(group);
      if (this.kind !== "avg") write(group, total);
      else {
        // Round from the exact quotient, so that halves of the last digit are recognized.
        const digits = scale - this.scale;
        const value = digits >= 0 ? total * power(digits) : total;
        const divisor = digits >= 0 ? BigInt(count) : BigInt(count) * power(-digits);
        write(group, divided(value, divisor, halfEven));
      }
    }
  }

  sizeBytes(): number {
    return this.counts.byteLength + this.totals.byteLength;
  }
}

/** Precision of sums: 18 digits for up to 4, 38 for up to 18, otherwise the maximum. */
const sumType = ([type]: string[]): string => {
  const { precision, scale } = decimalOf(type) ?? { precision: 1, scale: 0 };
  return decimalTag(precision <= 4 ? 18 : precision <= 18 ? 38 : DECIMAL_PRECISION_MAX, scale);
};

const SUMMARIES = {
  sum: "The sum of the values that are not null.",
  avg: "The mean of the values that are not null.",
  min: "The smallest value that is not null.",
  max: "The greatest value that is not null.",
};

const aggregates: FunctionEntry[] = (["sum", "avg", "min", "max"] as const).map((kind) =>
  batchEntry(
    kind,
    [DECIMAL("value")],
    kind === "sum" ? sumType : ([type]) => type,
    SUMMARIES[kind],
    undefined,
    [],
    {
      aggregate: {
        kind: "batch",
        create: ([type], _, context) => new DecimalState(kind, type, decimalOf(type)!.scale, context.at),
      },
    },
  )
);
aggregates.push(
  batchEntry(
    "avg",
    [DECIMAL("value"), { name: "scale", type: "INT", constant: true }],
    ([type]: string[], constants: readonly (Value | undefined)[] = []) => {
      const { precision, scale } = decimalOf(type) ?? { precision: 1, scale: 0 };
      const wanted = Number(constants[1] ?? scale);
      return limited(precision - scale + wanted, wanted);
    },
    "The mean of the values that are not null, with this number of decimals.",
    undefined,
    [],
    {
      aggregate: {
        kind: "batch",
        create: ([type], _, context) => new DecimalState("avg", type, decimalOf(type)!.scale, context.at),
      },
    },
  ),
);

export const decimalFunctions: FunctionEntry[] = [...operators, ...comparisons, ...roundings, ...casts, ...aggregates];
