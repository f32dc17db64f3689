/**
 * Comparison and logic, two-valued: null equals null, `<` and `>` with a null are false, `<=` and `>=` are true for two nulls.
 * DOUBLEs that differ by at most 1e-10 are equal.
 */
import { f64, i32, i64, type IrNode, isNull, select, text } from "../../engine/compiler/ir.ts";
import type { BatchColumn, BatchFunction, FunctionEntry } from "./entry.ts";
import { DOUBLE_TOLERANCE, MIN32, MIN64, notNull, ONE32, ZERO32, ZERO64 } from "./nodes.ts";
import { WIDE_BYTES, wideKernels } from "./wide-kernels.ts";

type Compare = (a: IrNode, b: IrNode) => IrNode;
export interface Order {
  eq: Compare;
  lt: Compare;
  le: Compare;
  /** The smaller and the greater of two; null is the smallest (for DOUBLE: null if either is null). */
  min?: Compare;
  max?: Compare;
}

const not = (a: IrNode): IrNode => i32.eqz(a);

/** Signed integers with the smallest value as null: a null on the left of `<` must not count as smaller. */
const signed32: Order = {
  eq: i32.eq,
  lt: (a, b) => i32.and(i32.ltS(a, b), i32.ne(a, MIN32)),
  le: (a, b) => i32.and(i32.leS(a, b), i32.or(i32.ne(a, MIN32), i32.eq(b, MIN32))),
  min: (a, b) => select(i32.ltS(a, b), a, b),
  max: (a, b) => select(i32.ltS(a, b), b, a),
};
export const signed64: Order = {
  eq: i64.eq,
  lt: (a, b) => i32.and(i64.ltS(a, b), i64.ne(a, MIN64)),
  le: (a, b) => i32.and(i64.leS(a, b), i32.or(i64.ne(a, MIN64), i64.eq(b, MIN64))),
  min: (a, b) => select(i64.ltS(a, b), a, b),
  max: (a, b) => select(i64.ltS(a, b), b, a),
};
/** IPv4 has null 0. */
const unsigned32: Order = {
  eq: i32.eq,
  lt: (a, b) => i32.and(i32.ltU(a, b), i32.ne(a, ZERO32)),
  le: (a, b) => i32.and(i32.leU(a, b), i32.or(i32.ne(a, ZERO32), i32.eq(b, ZERO32))),
  min: (a, b) => select(i32.ltU(a, b), a, b),
  max: (a, b) => select(i32.ltU(a, b), b, a),
};
/** CHAR: `<=` is false even for two nulls. */
const characters: Order = { ...unsigned32, le: (a, b) => i32.and(i32.leU(a, b), i32.ne(a, ZERO32)) };
const TOLERANCE = f64.const(DOUBLE_TOLERANCE);
const bothNull: Compare = (a, b) => i32.and(f64.ne(a, a), f64.ne(b, b));
const doubles: Order = {
  eq: (a, b) => i32.or(f64.le(f64.abs(f64.sub(a, b)), TOLERANCE), bothNull(a, b)),
  lt: (a, b) => f64.gt(f64.sub(b, a), TOLERANCE),
  le: (a, b) => i32.or(f64.le(f64.sub(a, b), TOLERANCE), bothNull(a, b)),
  min: f64.min,
  max: f64.max,
};
const texts: Order = {
  eq: text.eq,
  lt: (a, b) => i32.and(i32.ltS(text.compare(a, b), ZERO32), i64.geS(a, ZERO64)),
  le: (a, b) => i32.and(i32.leS(text.compare(a, b), ZERO32), i32.or(i64.geS(a, ZERO64), text.isNull(b))),
};

const ORDERS: [type: string, order: Order][] = [
  ["INT", signed32],
  ["LONG", signed64],
  ["DOUBLE", doubles],
  ["TIMESTAMP", signed64],
  ["TIMESTAMP_NS", signed64],
  ["DATE", signed64],
  ["text", texts],
  ["CHAR", characters],
  ["IPv4", unsigned32],
];

const OPERATORS: {
  name: string;
  summary: string;
  example: string;
  of: (order: Order) => Compare;
  /** Of UUIDs. */
  wide: BatchFunction;
}[] = [
  {
    name: "=",
    summary: "True if both are equal. Null equals null.",
    example: "1 = 1",
    of: (o) => o.eq,
    wide: equalBatch(true),
  },
  {
    name: "!=",
    summary: "True if both differ. Null differs from every value except null.",
    example: "1 != 2",
    of: (o) => (a, b) => not(o.eq(a, b)),
    wide: equalBatch(false),
  },
  {
    name: "<",
    summary: "True if the first is less than the second.",
    example: "1 < 2",
    of: (o) => o.lt,
    wide: wideBatch((sign, nulls) => sign < 0 && nulls === 0),
  },
  {
    name: "<=",
    summary: "True if the first is less than or equal to the second.",
    example: "2 <= 2",
    of: (o) => o.le,
    wide: wideBatch((sign, nulls) => sign <= 0 && nulls !== 1),
  },
  {
    name: ">",
    summary: "True if the first is greater than the second.",
    example: "3 > 2",
    of: (o) => (a, b) => o.lt(b, a),
    wide: wideBatch((sign, nulls) => sign > 0 && nulls === 0),
  },
  {
    name: ">=",
    summary: "True if the first is greater than or equal to the second.",
    example: "2 >= 2",
    of: (o) => (a, b) => o.le(b, a),
    wide: wideBatch((sign, nulls) => sign >= 0 && nulls !== 1),
  },
];

/** Compares 128 bits, unsigned. Only meaningful if neither is null. */
function compareWide(a: BatchColumn, b: BatchColumn, row: number): number {
  const x = a.values, y = b.values;
  if (x[2 * row + 1] !== y[2 * row + 1]) {
    return BigInt.asUintN(64, x[2 * row + 1]) < BigInt.asUintN(64, y[2 * row + 1]) ? -1 : 1;
  }
  if (x[2 * row] === y[2 * row]) return 0;
  return BigInt.asUintN(64, x[2 * row]) < BigInt.asUintN(64, y[2 * row]) ? -1 : 1;
}

function wideBatch(holds: (sign: number, nulls: number) => boolean): BatchFunction {
  return ([a, b], out, rowCount) => {
    for (let row = 0; row < rowCount; row++) {
      const nulls = (a.isNull(row) ? 1 : 0) + (b.isNull(row) ? 1 : 0);
      out.values[row] = holds(compareWide(a, b, row), nulls) ? 1 : 0;
    }
  };
}

/** Null equals null. */
function equalBatch(isEqual: boolean): BatchFunction {
  return ([a, b], out, rowCount, { heap }) => {
    const [stepA, stepB] = [a, b].map(({ isConstant }) => isConstant ? 0 : WIDE_BYTES);
    wideKernels(heap.memory).equal(a.address, stepA, b.address, stepB, rowCount, out.address, Number(isEqual));
  };
}

function entry(name: string, types: string[], summary: string, more: Partial<FunctionEntry>): FunctionEntry {
  return {
    name,
    args: types.map((type, i) => ({ name: "abc"[i], type })),
    returns: "BOOLEAN",
    nulls: "custom",
    volatility: "immutable",
    summary,
    examples: [],
    ...more,
  };
}

const entries: FunctionEntry[] = [];
for (const { name, summary, example, of, wide } of OPERATORS) {
  for (const [type, order] of ORDERS) {
    const compare = of(order);
    const examples = type === "INT" ? [{ sql: example, gives: true }] : [];
    entries.push(entry(name, [type, type], summary, { emit: ([a, b]) => compare(a, b), examples }));
  }
  entries.push(entry(name, ["UUID", "UUID"], summary, { batch: wide }));
}
for (const [name, op] of [["=", i32.eq], ["!=", i32.ne]] as const) {
  entries.push(
    entry(name, ["BOOLEAN", "BOOLEAN"], name === "=" ? "True if they are equal." : "True if they differ.", {
      emit: ([a, b]) => op(a, b),
    }),
  );
  entries.push(
    entry(
      name,
      ["INTERVAL", "INTERVAL"],
      name === "=" ? "True if they have the same start and end." : "True if their starts or ends differ.",
      { batch: equalBatch(name === "=") },
    ),
  );
}

// Reversed bounds are swapped. Nulls are between nothing, not even nulls: two comparisons with nulls would be true.
for (const [type, order] of ORDERS) {
  const { le, min, max } = order;
  if (type === "CHAR" || min === undefined || max === undefined) continue;
  entries.push(
    entry(
      "between",
      [type, type, type],
      "True if the value is from `low` to `high`, inclusive. The bounds may be in either order.",
      {
        args: [{ name: "a", type }, { name: "low", type }, { name: "high", type }],
        emit: ([a, low, high]) => i32.and(i32.and(le(min(low, high), a), le(a, max(low, high))), notNull(a, type)!),
        examples: type === "INT" ? [{ sql: "5 BETWEEN 10 AND 1", gives: true }] : [],
      },
    ),
  );
}

entries.push(
  entry("and", ["BOOLEAN", "BOOLEAN"], "True if both conditions are true.", {
    emit: ([a, b]) => i32.and(a, b),
    examples: [{ sql: "true AND false", gives: false }],
  }),
  entry("or", ["BOOLEAN", "BOOLEAN"], "True if at least one condition is true.", {
    emit: ([a, b]) => i32.or(a, b),
    examples: [{ sql: "true OR false", gives: true }],
  }),
  entry("not", ["BOOLEAN"], "True if the condition is false.", {
    emit: ([a]) => i32.xor(a, ONE32),
    examples: [{ sql: "NOT true", gives: false }],
  }),
);

for (
  const type of [
    "BOOLEAN",
    "BYTE",
    "SHORT",
    "CHAR",
    "INT",
    "LONG",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NS",
    "SYMBOL",
    "SYMBOL_TEXT",
    "STRING",
    "VARCHAR",
    "NULL",
    "IPv4",
  ]
) {
  entries.push(
    entry("is_null", [type], "True if the value is null. BOOLEAN, BYTE and SHORT are never null.", {
      emit: ([a]) => {
        const test = notNull(a, type);
        return test === undefined ? ZERO32 : not(test);
      },
    }),
  );
}
for (const type of ["UUID", "INTERVAL"]) {
  entries.push(
    entry("is_null", [type], "True if the value is null.", {
      batch: ([a], out, rowCount) => {
        for (let row = 0; row < rowCount; row++) out.values[row] = a.isNull(row) ? 1 : 0;
      },
    }),
  );
}

/** For wide types and types with parameters. */
entries.push(
  entry("is_null", ["any"], "True if the value is null.", {
    emit: ([a], [type]) => isNull(a, type) ?? ZERO32,
    wide: ([a], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) out.values[row] = a.isNull(row) ? 1 : 0;
    },
  }),
);

export const comparisonFunctions = entries;
