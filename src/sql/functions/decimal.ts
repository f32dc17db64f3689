/**
 * DECIMAL: arithmetic, comparison, rounding, casts, sums. Values are scaled bigints; the scale is part of the type. The binder
 * first converts integer operands to decimals.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { formatValue } from "../../types/format/mod.ts";
import { layoutOf, typeOf, type Value } from "../../types/mod.ts";
import { DECIMAL_PRECISION_MAX, decimalOf, decimalTag, type DecimalType, formatDecimal } from "../../types/wide.ts";
import { batchEntry } from "./batch-entry.ts";
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

const WORDS: Record<string, number> = { i64: 1, i128: 2, i256: 4 };

function read(column: BatchColumn, row: number): bigint | undefined {
  return column.isNull(row) ? undefined : wideValue(column, row);
}

/** @throws if the value has more digits than the type. */
export function write(out: BatchOut, row: number, value: bigint | undefined, at: number): void {
  if (value === undefined) return out.setNull(row);
  const { precision, scale } = decimalOf(out.type)!;
  if ((value < 0n ? -value : value) >= 10n ** BigInt(precision)) {
    throw new SqlError(`${formatDecimal(value, scale)} does not fit ${out.type}`, at, SQLSTATE.outOfRange);
  }
  const words = WORDS[layoutOf(out.type)] ?? 1;
  for (let word = 0; word < words; word++) {
    const part = BigInt.asIntN(64, value >> BigInt(64 * word));
    out.values[words * row + word] = words === 1 && layoutOf(out.type) !== "i64" ? Number(part) : part;
  }
}

const power = (exponent: number): bigint => 10n ** BigInt(exponent);

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

function binary(operation: Operation): BatchFunction {
  return ([a, b], out, rowCount, context) => {
    const left = decimalOf(a.type)!, right = decimalOf(b.type)!;
    for (let row = 0; row < rowCount; row++) {
      const x = read(a, row), y = read(b, row);
      write(
        out,
        row,
        x === undefined || y === undefined ? undefined : operation(x, y, left, right, context.at),
        context.at,
      );
      if ((row & 1023) === 1023) context.poll();
    }
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

const operators: FunctionEntry[] = ([
  ["+", "Sum.", (types) => holding(types, 1), aligned((a, b) => a + b)],
  ["-", "Difference.", (types) => holding(types, 1), aligned((a, b) => a - b)],
  ["*", "Product.", product, (a, b) => a * b],
  [
    "/",
    "The quotient, rounded to the sum of both operands' decimals, halves to the even digit. Division by zero is an error.",
    product,
    (a, b, _, right, at) => {
      const divisor = notZero(b, at), scaled = a * power(2 * right.scale);
      return divisor < 0n ? divided(-scaled, -divisor, halfEven) : divided(scaled, divisor, halfEven);
    },
  ],
  [
    "%",
    "The remainder, with the sign of the dividend. Division by zero is an error.",
    (types) => holding(types, 0),
    aligned((a, b, at) => a % notZero(b, at)),
  ],
] as [string, string, (types: string[]) => string, Operation][]).map(([name, summary, returns, operation]) =>
  batchEntry(name, [DECIMAL("a"), DECIMAL("b")], returns, summary, binary(operation), [], { fallible: 1 })
);

const ORDERS: [name: string, summary: string, holds: (sign: number) => boolean, ofNulls: boolean][] = [
  ["<", "True if the first is less than the second.", (sign) => sign < 0, false],
  ["<=", "True if the first is less than or equal to the second.", (sign) => sign <= 0, true],
  [">", "True if the first is greater than the second.", (sign) => sign > 0, false],
  [">=", "True if the first is greater than or equal to the second.", (sign) => sign >= 0, true],
];

/** -1, 0 or 1 for two DECIMALs of any scales; undefined if one is null. */
function compareDecimals(a: BatchColumn, b: BatchColumn, row: number): number | undefined {
  const x = read(a, row), y = read(b, row);
  if (x === undefined || y === undefined) return undefined;
  const { scale } = decimalOf(a.type)!, other = decimalOf(b.type)!.scale;
  const left = x * power(Math.max(0, other - scale)), right = y * power(Math.max(0, scale - other));
  return left < right ? -1 : left > right ? 1 : 0;
}

const comparisons: FunctionEntry[] = ORDERS.map(([name, summary, holds, ofNulls]) =>
  batchEntry(
    name,
    [DECIMAL("a"), DECIMAL("b")],
    "BOOLEAN",
    summary,
    ([a, b], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const sign = compareDecimals(a, b, row);
        const holdsHere = sign === undefined ? ofNulls && a.isNull(row) && b.isNull(row) : holds(sign);
        out.values[row] = holdsHere ? 1 : 0;
      }
    },
  )
);

/** DECIMAL to DECIMAL, with an optional constant number of digits. */
function unary(
  name: string,
  summary: string,
  returns: (type: DecimalType, digits: number) => string,
  operation: (value: bigint, type: DecimalType, digits: number) => bigint,
  withDigits = false,
): FunctionEntry {
  return batchEntry(
    name,
    [DECIMAL("value"), ...(withDigits ? [{ name: "decimals", type: "INT", constant: true }] : [])],
    (types: string[], constants: readonly (Value | undefined)[] = []) =>
      constants[1] === null
        ? decimalTag(1, 0)
        : returns(decimalOf(types[0]) ?? { precision: 1, scale: 0 }, Number(constants[1] ?? 0)),
    summary,
    ([column, digits], out, rowCount, context) => {
      const type = decimalOf(column.type)!;
      for (let row = 0; row < rowCount; row++) {
        const value = digits?.isNull(row) ? undefined : read(column, row);
        write(out, row, value === undefined ? undefined : operation(value, type, digits?.values[row] ?? 0), context.at);
      }
    },
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
  unary("abs", "The absolute value.", ({ precision, scale }) => decimalTag(precision, scale), magnitude),
  unary(
    "neg",
    "The negative, of the same type.",
    ({ precision, scale }) => decimalTag(precision, scale),
    (value) => -value,
  ),
  unary("sign", "-1, 0 or 1.", () => decimalTag(1, 0), (value) => (value < 0n ? -1n : value > 0n ? 1n : 0n)),
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

/** The cast's type determines the result type, so `INT` is only a stand-in here. */
const castFrom = (type: string, summary: string, batch: BatchFunction): FunctionEntry =>
  batchEntry("cast_DECIMAL", [{ name: "value", type }], "INT", summary, batch, [], { fallible: 0 });

const casts: FunctionEntry[] = [
  ...["BYTE", "SHORT", "INT", "LONG", "DATE", "TIMESTAMP", "TIMESTAMP_NS"].map((type) =>
    castFrom(type, "The value as DECIMAL.", ([column], out, rowCount, context) => {
      const { scale } = decimalOf(out.type)!;
      const none = typeOf(type).nullable ? typeOf(type).nullValue : undefined;
      for (let row = 0; row < rowCount; row++) {
        const value = column.values[row];
        write(out, row, value === none ? undefined : BigInt(value) * power(scale), context.at);
      }
    })
  ),
  ...["FLOAT", "DOUBLE"].map((type) =>
    castFrom(type, "The value as DECIMAL, without further decimals.", ([column], out, rowCount, context) => {
      const to = decimalOf(out.type)!;
      for (let row = 0; row < rowCount; row++) {
        const number = column.values[row] as number;
        const text = Number.isNaN(number) ? undefined : formatValue(number, type)!;
        const scaled = text === undefined ? undefined : scaledText(text, to, true);
        if (scaled === undefined && text !== undefined) throw unfit(text, out.type, context);
        write(out, row, scaled, context.at);
      }
    })
  ),
  ...["text", "CHAR"].map((type) =>
    castFrom(type, "The text parsed as a DECIMAL.", ([column], out, rowCount, context) => {
      for (let row = 0; row < rowCount; row++) {
        const code = type === "CHAR" ? column.values[row] as number : 0;
        const text = type !== "CHAR" ? column.text(row) : code === 0 ? undefined : String.fromCharCode(code);
        const scaled = text === undefined ? undefined : scaledText(text, decimalOf(out.type)!);
        if (scaled === undefined && text !== undefined) throw unfit(`'${text}'`, out.type, context);
        write(out, row, scaled, context.at);
      }
    })
  ),
  castFrom("decimal", "The value with another precision and scale.", ([column], out, rowCount, context) => {
    const from = decimalOf(column.type)!, to = decimalOf(out.type)!;
    for (let row = 0; row < rowCount; row++) {
      const value = read(column, row);
      const scaled = value === undefined ? undefined : scaledText(formatDecimal(value, from.scale), to);
      if (scaled === undefined && value !== undefined) {
        throw unfit(
          formatDecimal(value, from.scale),
          out.type,
          context,
        );
      }
      write(out, row, scaled, context.at);
    }
  }),
  ...[["BYTE", 8], ["SHORT", 16], ["INT", 32], ["LONG", 64]].map(([type, bits]) =>
    batchEntry(
      `decimal_${type}`,
      [DECIMAL("value")],
      type as string,
      "The value without its decimals.",
      ([column], out, rowCount, context) => {
        const { scale } = decimalOf(column.type)!;
        for (let row = 0; row < rowCount; row++) {
          const value = read(column, row);
          if (value === undefined) {
            out.setNull(row);
            continue;
          }
          const cut = value / power(scale);
          if (BigInt.asIntN(bits as number, cut) !== cut) {
            throw unfit(formatDecimal(value, scale), type as string, context);
          }
          out.values[row] = type === "LONG" ? cut : Number(cut);
        }
      },
      [],
      { fallible: 0 },
    )
  ),
  ...["FLOAT", "DOUBLE"].map((type) =>
    batchEntry(`decimal_${type}`, [DECIMAL("value")], type, "The nearest number.", ([column], out, rowCount) => {
      const { scale } = decimalOf(column.type)!;
      for (let row = 0; row < rowCount; row++) {
        const value = read(column, row);
        out.values[row] = value === undefined ? NaN : Number(formatDecimal(value, scale));
      }
    })
  ),
];

/** Types that "decimal_<TYPE>" casts a DECIMAL to. */
export const DECIMAL_TARGETS: ReadonlySet<string> = new Set(["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"]);

interface Total {
  count: bigint;
  value: bigint;
}

class DecimalState implements BatchAggregateState {
  private readonly totals: (Total | undefined)[] = [];

  constructor(
    private readonly kind: "sum" | "avg" | "min" | "max",
    private readonly scale: number,
    private readonly at: number,
  ) {}

  private add(group: number, value: bigint, count: bigint): void {
    const now = this.totals[group];
    if (now === undefined) {
      this.totals[group] = { count, value };
      return;
    }
    now.count += count;
    if (this.kind === "min" || this.kind === "max") {
      if (this.kind === "min" ? value < now.value : value > now.value) now.value = value;
    } else now.value += value;
  }

  update(groups: Int32Array | undefined, [column]: BatchColumn[], rowCount: number): void {
    for (let row = 0; row < rowCount; row++) {
      const value = read(column, row);
      if (value !== undefined) this.add(groups === undefined ? 0 : groups[row], value, 1n);
    }
  }

  merge(later: DecimalState, mapping: Int32Array): void {
    later.totals.forEach((total, group) => {
      if (total !== undefined) this.add(mapping[group], total.value, total.count);
    });
  }

  finish(out: BatchOut, groupCount: number): void {
    const { scale } = decimalOf(out.type)!;
    for (let group = 0; group < groupCount; group++) {
      const total = this.totals[group];
      if (total === undefined) out.setNull(group);
      else if (this.kind !== "avg") write(out, group, total.value, this.at);
      else {
        // Round from the exact quotient, so that halves of the last digit are recognized.
        const digits = scale - this.scale;
        const value = digits >= 0 ? total.value * power(digits) : total.value;
        const divisor = digits >= 0 ? total.count : total.count * power(-digits);
        write(out, group, divided(value, divisor, halfEven), this.at);
      }
    }
  }

  sizeBytes(): number {
    return this.totals.length * 96;
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
        create: ([type], _, context) => new DecimalState(kind, decimalOf(type)!.scale, context.at),
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
        create: ([type], _, context) => new DecimalState("avg", decimalOf(type)!.scale, context.at),
      },
    },
  ),
);

export const decimalFunctions: FunctionEntry[] = [...operators, ...comparisons, ...roundings, ...casts, ...aggregates];
