/**
 * Mathematics. Functions with wasm instructions are emitted; transcendental functions use the JavaScript runtime over
 * whole columns.
 */
import { NULL_I32, NULL_I64 } from "../../types/mod.ts";
import { bind, f32, f64, i32, i64, type IrNode, select } from "../../engine/compiler/ir.ts";
import type { BatchFunction, FunctionEntry } from "./entry.ts";
import { finiteOrNull, ZERO32, ZERO64 } from "./nodes.ts";

type Example = [sql: string, gives: unknown];

function entry(
  name: string,
  /** Each `TYPE` or `TYPE name`. */
  args: string[],
  returns: string,
  summary: string,
  how: Partial<FunctionEntry>,
  examples: Example[] = [],
): FunctionEntry {
  return {
    name,
    args: args.map((arg) => {
      const [type, name = "value"] = arg.split(" ");
      return { name, type };
    }),
    returns,
    nulls: "custom",
    volatility: "immutable",
    summary,
    examples: examples.map(([sql, gives]) => ({ sql, gives })),
    ...how,
  };
}

/** Maps DOUBLE columns. Null (NaN) and non-finite results give null. */
function mapped(f: (x: number) => number): BatchFunction {
  return ([column], out, rowCount) => {
    const x = column.values, values = out.values;
    for (let row = 0; row < rowCount; row++) {
      const value = f(x[row]);
      values[row] = value - value === 0 ? value : NaN;
    }
  };
}

function mappedPair(f: (x: number, y: number) => number): BatchFunction {
  return ([a, b], out, rowCount) => {
    const x = a.values, y = b.values, values = out.values;
    for (let row = 0; row < rowCount; row++) {
      const value = x[row] === x[row] && y[row] === y[row] ? f(x[row], y[row]) : NaN;
      values[row] = value - value === 0 ? value : NaN;
    }
  };
}

/** Rounds to digits like the dialect: multiplies by a power of ten, rounds, and divides. */
function toDigits(round: (scaled: number) => number, toWhole = round): (value: number, places: number) => number {
  return (value, places) => {
    if (places === NULL_I32 || !Number.isFinite(value)) return NaN;
    if (places > 17) return value;
    if (places === 0) return Math.abs(value) > 9e15 ? value : toWhole(value);
    if (places >= 0) {
      const power = 10 ** places;
      return Math.abs(value) * power > 9e15 ? value : round(value * power) * (1 / power);
    }
    const power = 10 ** -places;
    return Number.isFinite(power) ? round(value / power) * power : 0;
  };
}
function digitsRounded(rounded: (value: number, places: number) => number): BatchFunction {
  return ([a, b], out, rowCount) => {
    const x = a.values, digits = b.values, values = out.values;
    for (let row = 0; row < rowCount; row++) values[row] = rounded(x[row], digits[row]);
  };
}
const awayFromZero = (x: number) => Math.sign(x) * Math.floor(Math.abs(x) + 0.5);
const halfEven = (x: number) => {
  const floor = Math.floor(x);
  const rest = x - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
};
const wholeRounded = toDigits(awayFromZero, Math.round);
const POWERS = Float64Array.from({ length: 18 }, (_, places) => 10 ** places);
/**
 * Halves away from zero, or up to whole numbers. NaN if `places` is the null of INT. Two more digits of the decimal number decide: 1.104885 is
 * stored as a little less, but is rounded to 1.10489.
 */
export function roundedTo(value: number, places: number): number {
  if (!(places > 0 && places <= 17)) return wholeRounded(value, places);
  const power = POWERS[places], digits = Math.trunc((Math.abs(value) + 1e-15) * (power * 100));
  if (!(digits < 2 ** 63)) return value;
  if (digits > Number.MAX_SAFE_INTEGER) {
    return Math.sign(value) * (Number(BigInt(digits) / 100n) + (digits % 100 >= 50 ? 1 : 0)) * (1 / power);
  }
  const whole = Math.floor(digits / 100);
  return Math.sign(value) * (digits - whole * 100 >= 50 ? whole + 1 : whole) * (1 / power);
}
const outwards = (x: number) => (x < 0 ? Math.floor(x) : Math.ceil(x));

const absolute = (
  x: IrNode,
) => (x.type === "i32"
  ? bind(x, (a) => select(i32.ltS(a, ZERO32), i32.sub(ZERO32, a), a))
  : bind(x, (a) => select(i64.ltS(a, ZERO64), i64.sub(ZERO64, a), a)));
const sign32 = (x: IrNode) => bind(x, (a) => i32.sub(i32.gtS(a, ZERO32), i32.ltS(a, ZERO32)));

/** Rounds halves up. Values without a fraction, or too large for one, stay unchanged. */
const rounded = (x: IrNode) =>
  bind(x, (a) => select(f64.lt(f64.abs(a), f64.const(4503599627370496)), f64.floor(f64.add(a, f64.const(0.5))), a));

const UNARY: [name: string, f: (x: number) => number, summary: string, examples: Example[]][] = [
  ["exp", Math.exp, "e to the power of the value.", [["exp(0)", 1]]],
  ["ln", Math.log, "The natural logarithm; null for zero and negative values.", [["ln(1)", 0], ["ln(0)", null]]],
  ["log", Math.log10, "The logarithm to base 10; null for zero and negative values.", [["log(1000)", 3]]],
  ["log10", Math.log10, "The logarithm to base 10; null for zero and negative values.", [["log10(100)", 2]]],
  ["sin", Math.sin, "The sine of an angle in radians.", [["sin(0)", 0]]],
  ["cos", Math.cos, "The cosine of an angle in radians.", [["cos(0)", 1]]],
  ["tan", Math.tan, "The tangent of an angle in radians.", [["tan(0)", 0]]],
  ["cot", (x) => 1 / Math.tan(x), "The cotangent of an angle in radians.", []],
  ["asin", Math.asin, "The arcsine, in radians. Null outside -1 … 1.", [["asin(2)", null]]],
  ["acos", Math.acos, "The arccosine, in radians. Null outside -1 … 1.", [["acos(1)", 0]]],
  ["atan", Math.atan, "The arctangent, in radians.", [["atan(0)", 0]]],
  ["sinh", Math.sinh, "The hyperbolic sine.", []],
  ["cosh", Math.cosh, "The hyperbolic cosine.", []],
  ["tanh", Math.tanh, "The hyperbolic tangent.", []],
  ["cbrt", Math.cbrt, "The cube root.", [["cbrt(27)", 3]]],
  ["degrees", (x) => x * (180 / Math.PI), "The angle in degrees of an angle in radians.", [["degrees(pi())", 180]]],
  ["radians", (x) => x / 180 * Math.PI, "The angle in radians of an angle in degrees.", []],
];

const entries: FunctionEntry[] = UNARY.map(([name, f, summary, examples]) =>
  entry(name, ["DOUBLE"], "DOUBLE", summary, { batch: mapped(f) }, examples)
);

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

entries.push(
  entry("pi", [], "DOUBLE", "The number π.", { emit: () => f64.const(Math.PI) }, [["pi()", 3.141592653589793]]),
  entry("atan2", ["DOUBLE y", "DOUBLE x"], "DOUBLE", "The angle of the point (x, y) in radians.", {
    batch: mappedPair(Math.atan2),
  }, [["atan2(0, 1)", 0]]),
  ...["power", "pow"].map((name) =>
    entry(name, ["DOUBLE base", "DOUBLE exponent"], "DOUBLE", "The base to the power of the exponent.", {
      batch: mappedPair(Math.pow),
    }, [[
      `${name}(2, 10)`,
      1024,
    ]])
  ),
  entry("sqrt", ["DOUBLE"], "DOUBLE", "The square root. Null for negative values.", { emit: ([a]) => f64.sqrt(a) }, [[
    "sqrt(16)",
    4,
  ], ["sqrt(-1)", null]]),
  // The nulls of INT and LONG are their own negatives.
  entry("abs", ["SHORT"], "SHORT", "The absolute value.", { emit: ([a]) => i32.extend16(absolute(a)) }),
  entry("abs", ["INT"], "INT", "The absolute value.", { emit: ([a]) => absolute(a) }, [["abs(-5)", 5]]),
  entry("abs", ["LONG"], "LONG", "The absolute value.", { emit: ([a]) => absolute(a) }),
  entry("abs", ["DOUBLE"], "DOUBLE", "The absolute value.", { emit: ([a]) => f64.abs(a) }),
  entry("sign", ["BYTE"], "BYTE", "The sign: -1, 0 or 1.", { emit: ([a]) => sign32(a) }),
  entry("sign", ["SHORT"], "SHORT", "The sign: -1, 0 or 1.", { emit: ([a]) => sign32(a) }),
  entry("sign", ["INT"], "INT", "The sign: -1, 0 or 1.", { nulls: "propagate", emit: ([a]) => sign32(a) }, [[
    "sign(-7)",
    -1,
  ]]),
  entry("sign", ["LONG"], "LONG", "The sign: -1, 0 or 1.", {
    nulls: "propagate",
    emit: ([x]) => bind(x, (a) => i64.sub(i64.extendS(i64.gtS(a, ZERO64)), i64.extendS(i64.ltS(a, ZERO64)))),
  }),
  entry("sign", ["FLOAT"], "FLOAT", "The sign: -1, 0 or 1.", {
    emit: ([x]) =>
      bind(
        x,
        (a) => select(f32.ne(a, a), a, f32.convertI32(i32.sub(f32.gt(a, f32.const(0)), f32.lt(a, f32.const(0))))),
      ),
  }),
  entry("sign", ["DOUBLE"], "DOUBLE", "The sign: -1, 0 or 1.", {
    emit: ([x]) =>
      bind(
        x,
        (a) => select(f64.ne(a, a), a, f64.convertI32(i32.sub(f64.gt(a, f64.const(0)), f64.lt(a, f64.const(0))))),
      ),
  }),
  ...["ceil", "ceiling"].flatMap((name) => [
    entry(name, ["FLOAT"], "FLOAT", "The value rounded up to a whole number.", { emit: ([a]) => f32.ceil(a) }),
    entry(name, ["DOUBLE"], "DOUBLE", "The value rounded up to a whole number.", { emit: ([a]) => f64.ceil(a) }, [[
      `${name}(2.0000001)`,
      3,
    ]]),
  ]),
  entry("floor", ["FLOAT"], "FLOAT", "The value rounded down to a whole number.", { emit: ([a]) => f32.floor(a) }),
  entry("floor", ["DOUBLE"], "DOUBLE", "The value rounded down to a whole number.", { emit: ([a]) => f64.floor(a) }, [[
    "floor(-2.5)",
    -3,
  ]]),
  entry("round", ["DOUBLE"], "DOUBLE", "The nearest whole number, halves up.", { emit: ([a]) => rounded(a) }, [[
    "round(2.5)",
    3,
  ], ["round(-2.5)", -2]]),
  entry(
    "round",
    ["DOUBLE", "INT decimals"],
    "DOUBLE",
    "The value rounded to a number of decimals. Halves are rounded away from zero, or up when rounding to whole numbers.",
    {
      batch: digitsRounded(roundedTo),
    },
    [["round(-2.567, 2)", -2.57], ["round(1234.5678, -2)", 1200]],
  ),
  entry(
    "round_half_even",
    ["DOUBLE", "INT decimals"],
    "DOUBLE",
    "The value rounded to a number of decimals, halves to the even digit.",
    {
      batch: digitsRounded(toDigits(halfEven)),
    },
    [["round_half_even(2.5, 0)", 2]],
  ),
  entry("round_up", ["DOUBLE", "INT decimals"], "DOUBLE", "The value rounded away from zero to a number of decimals.", {
    batch: digitsRounded(toDigits(outwards)),
  }, [["round_up(1.21, 1)", 1.3]]),
  entry("round_down", ["DOUBLE", "INT decimals"], "DOUBLE", "The value rounded towards zero to a number of decimals.", {
    batch: digitsRounded(toDigits(Math.trunc)),
  }, [["round_down(1299, -2)", 1200]]),
  entry(
    "mod",
    ["INT dividend", "INT divisor"],
    "INT",
    "The remainder, with the sign of the dividend. Division by zero gives null.",
    {
      batch: ([a, b], out, rowCount) => {
        for (let row = 0; row < rowCount; row++) {
          const x = a.values[row], y = b.values[row];
          out.values[row] = x === NULL_I32 || y === NULL_I32 || y === 0 ? NULL_I32 : x % y;
        }
      },
    },
    [["mod(7, 3)", 1]],
  ),
  entry(
    "mod",
    ["LONG dividend", "LONG divisor"],
    "LONG",
    "The remainder, with the sign of the dividend. Division by zero gives null.",
    {
      batch: ([a, b], out, rowCount) => {
        const none = NULL_I64;
        for (let row = 0; row < rowCount; row++) {
          const x = a.values[row], y = b.values[row];
          out.values[row] = x === none || y === none || y === 0n ? none : x % y;
        }
      },
    },
  ),
  entry(
    "mod",
    ["DOUBLE dividend", "DOUBLE divisor"],
    "DOUBLE",
    "The remainder, with the sign of the dividend. Division by zero gives null.",
    {
      batch: mappedPair((x, y) => x % y),
    },
  ),
  entry("size_pretty", ["LONG"], "STRING", "A number of bytes with one decimal and a unit from B to EiB.", {
    batch: ([column], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const value = column.values[row];
        if (value === NULL_I64) {
          out.setNull(row);
          continue;
        }
        let size = Number(value), unit = 0;
        while (Math.abs(size) >= 1024 && unit < SIZES.length - 1) {
          size /= 1024;
          unit++;
        }
        out.setText(row, `${size.toFixed(1)} ${SIZES[unit]}`);
      }
    },
  }, [["size_pretty(1536)", "1.5 KiB"]]),
  entry("mid", ["DOUBLE bid", "DOUBLE ask"], "DOUBLE", "The mean of a bid and an ask.", {
    emit: ([bid, ask]) => f64.div(f64.add(bid, ask), f64.const(2)),
  }, [["mid(1, 2)", 1.5]]),
  entry("spread", ["DOUBLE bid", "DOUBLE ask"], "DOUBLE", "The ask minus the bid.", {
    emit: ([bid, ask]) => finiteOrNull(f64.sub(ask, bid)),
  }, [["spread(1.5, 2.0)", 0.5]]),
  entry(
    "spread_bps",
    ["DOUBLE bid", "DOUBLE ask"],
    "DOUBLE",
    "The spread of a bid and an ask in basis points of the mid.",
    {
      emit: ([bid, ask]) =>
        finiteOrNull(f64.mul(f64.div(f64.sub(ask, bid), f64.div(f64.add(bid, ask), f64.const(2))), f64.const(10000))),
    },
    [["spread_bps(1.0, 1.0)", 0]],
  ),
  entry(
    "wmid",
    ["DOUBLE bidSize", "DOUBLE bid", "DOUBLE ask", "DOUBLE askSize"],
    "DOUBLE",
    "The mid price with each side weighted by the size of the other side.",
    {
      emit: ([bidSize, bid, ask, askSize]) =>
        finiteOrNull(f64.div(f64.add(f64.mul(bid, askSize), f64.mul(ask, bidSize)), f64.add(bidSize, askSize))),
    },
    [["wmid(100, 5, 6, 100)", 5.5]],
  ),
  {
    ...entry(
      "l2price",
      [],
      "DOUBLE",
      "The mean price of a target size taken from a book of sizes and prices. Null if the book is too small.",
      {
        batch: (args, out, rowCount) => {
          for (let row = 0; row < rowCount; row++) {
            const target = args[0].values[row];
            let left = target, cost = 0, known = target === target;
            for (let i = 1; i < args.length; i += 2) {
              const size = args[i].values[row], price = args[i + 1].values[row];
              if (size !== size || price !== price) known = false;
              const taken = Math.min(left, size);
              cost += taken * price;
              left -= taken;
              if (left <= 0) break;
            }
            out.values[row] = !known || left > 0 ? NaN : target === 0 ? args[2].values[row] : cost / target;
          }
        },
        check: (
          _,
          types,
        ) => (types.length % 2 === 0
          ? { argument: types.length - 1, message: "l2price: sizes and prices must come in pairs" }
          : undefined),
      },
      [["l2price(5, 10, 3)", 3]],
    ),
    args: [{ name: "target", type: "DOUBLE" }, { name: "size", type: "DOUBLE" }, {
      name: "price",
      type: "DOUBLE",
      variadic: true,
    }],
  },
);

export const numericFunctions = entries;
