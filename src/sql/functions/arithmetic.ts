/**
 * Arithmetic and bit operators. Integers wrap around, division by zero is null, and floating-point nulls (NaN)
 * propagate by themselves.
 */
import { f32, f64, i32, i64, ifElse, type IrNode, select } from "../../engine/compiler/ir.ts";
import type { BatchFunction, FunctionEntry } from "./entry.ts";
import { finiteOrNull, MIN32, MIN64, ZERO32, ZERO64 } from "./nodes.ts";

type Emit = FunctionEntry["emit"];

function operator(
  name: string,
  types: string[],
  returns: string,
  nulls: FunctionEntry["nulls"],
  summary: string,
  more: { emit?: Emit; batch?: BatchFunction; examples?: FunctionEntry["examples"] },
): FunctionEntry {
  return {
    name,
    args: types.map((type, i) => ({ name: i === 0 ? "a" : "b", type })),
    returns,
    nulls,
    volatility: "immutable",
    summary,
    examples: more.examples ?? [],
    emit: more.emit,
    batch: more.batch,
  };
}

/** Avoids both traps, because the null test may be a select that evaluates both branches. */
function divide(a: IrNode, b: IrNode): IrNode {
  return a.type === "i32"
    ? ifElse(i32.eqz(b), MIN32, ifElse(i32.eq(b, i32.const(-1)), i32.sub(ZERO32, a), i32.divS(a, b)))
    : ifElse(i64.eqz(b), MIN64, ifElse(i64.eq(b, i64.const(-1n)), i64.sub(ZERO64, a), i64.divS(a, b)));
}

function remainder(a: IrNode, b: IrNode): IrNode {
  return a.type === "i32" ? ifElse(i32.eqz(b), MIN32, i32.remS(a, b)) : ifElse(i64.eqz(b), MIN64, i64.remS(a, b));
}

const remainderBatch: BatchFunction = ([a, b], out, rowCount) => {
  const x = a.values, y = b.values, values = out.values;
  for (let row = 0; row < rowCount; row++) values[row] = x[row] % y[row];
};

const ARITHMETIC: {
  name: string;
  summary: string;
  integer: "add" | "sub" | "mul" | undefined;
  example: string;
  gives: number;
}[] = [
  { name: "+", summary: "Sum.", integer: "add", example: "7 + 3", gives: 10 },
  { name: "-", summary: "Difference.", integer: "sub", example: "7 - 3", gives: 4 },
  { name: "*", summary: "Product.", integer: "mul", example: "7 * 3", gives: 21 },
  {
    name: "/",
    summary: "The quotient. Integer results are truncated towards zero. Division by zero gives null.",
    integer: undefined,
    example: "-7 / 2",
    gives: -3,
  },
];

const entries: FunctionEntry[] = [];

for (const { name, summary, integer, example, gives } of ARITHMETIC) {
  const examples = [{ sql: example, gives }];
  entries.push(
    operator(name, ["INT", "INT"], "INT", "propagate", summary, {
      examples,
      emit: ([a, b]) => (integer ? i32[integer](a, b) : divide(a, b)),
    }),
    operator(name, ["LONG", "LONG"], "LONG", "propagate", summary, {
      emit: ([a, b]) => (integer ? i64[integer](a, b) : divide(a, b)),
    }),
    // The dialect has no FLOAT difference: it uses DOUBLE.
    ...name === "-" ? [] : [operator(name, ["FLOAT", "FLOAT"], "FLOAT", "custom", summary, {
      emit: ([a, b]) => (integer ? f32[integer](a, b) : finiteOrNull(f32.div(a, b))),
    })],
    operator(name, ["DOUBLE", "DOUBLE"], "DOUBLE", "custom", summary, {
      emit: ([a, b]) => (integer ? f64[integer](a, b) : finiteOrNull(f64.div(a, b))),
    }),
  );
}

const REMAINDER = "The remainder, with the sign of the dividend. Division by zero gives null.";
entries.push(
  operator("%", ["INT", "INT"], "INT", "propagate", REMAINDER, {
    emit: ([a, b]) => remainder(a, b),
    examples: [{ sql: "-7 % 3", gives: -1 }],
  }),
  operator("%", ["LONG", "LONG"], "LONG", "propagate", REMAINDER, { emit: ([a, b]) => remainder(a, b) }),
  operator("%", ["FLOAT", "FLOAT"], "FLOAT", "custom", REMAINDER, { batch: remainderBatch }),
  operator("%", ["DOUBLE", "DOUBLE"], "DOUBLE", "custom", REMAINDER, {
    batch: remainderBatch,
    examples: [{ sql: "7.5 % 2", gives: 1.5 }],
  }),
);

for (const time of ["TIMESTAMP", "TIMESTAMP_NS"]) {
  const unit = time === "TIMESTAMP" ? "microseconds" : "nanoseconds";
  entries.push(
    operator("+", [time, "LONG"], time, "propagate", `A time ${unit} later.`, { emit: ([a, b]) => i64.add(a, b) }),
    operator("+", ["LONG", time], "LONG", "propagate", `The sum as a number of ${unit}.`, {
      emit: ([a, b]) => i64.add(a, b),
    }),
    operator("-", [time, "LONG"], time, "propagate", `A time ${unit} earlier.`, { emit: ([a, b]) => i64.sub(a, b) }),
    operator("-", [time, time], "LONG", "propagate", `The difference between two times, in ${unit}.`, {
      emit: ([a, b]) => i64.sub(a, b),
    }),
  );
}

/** 0.0.0.0 is null, and so is a result out of range. */
function address(sum: IrNode): IrNode {
  return select(i64.eqz(i64.shrU(sum, i64.const(32n))), i32.wrap(sum), ZERO32);
}
entries.push(
  operator("+", ["IPv4", "LONG"], "IPv4", "propagate", "The address advanced by a number of addresses.", {
    emit: ([a, b]) => address(i64.add(i64.extendU(a), b)),
  }),
  operator("+", ["LONG", "IPv4"], "IPv4", "propagate", "The address advanced by a number of addresses.", {
    emit: ([a, b]) => address(i64.add(a, i64.extendU(b))),
  }),
  operator("-", ["IPv4", "LONG"], "IPv4", "propagate", "The address moved back by a number of addresses.", {
    emit: ([a, b]) => address(i64.sub(i64.extendU(a), b)),
  }),
  operator("-", ["IPv4", "IPv4"], "LONG", "propagate", "The number of addresses between two addresses.", {
    emit: ([a, b]) => i64.sub(i64.extendU(a), i64.extendU(b)),
  }),
);

const BITS: { name: string; op: "and" | "or" | "xor"; summary: string; example: string; gives: number }[] = [
  { name: "&", op: "and", summary: "Bitwise AND.", example: "12 & 10", gives: 8 },
  { name: "|", op: "or", summary: "Bitwise OR.", example: "12 | 3", gives: 15 },
  { name: "^", op: "xor", summary: "Bitwise exclusive OR.", example: "12 ^ 10", gives: 6 },
];
for (const { name, op, summary, example, gives } of BITS) {
  entries.push(
    operator(name, ["INT", "INT"], "INT", "propagate", summary, {
      emit: ([a, b]) => i32[op](a, b),
      examples: [{ sql: example, gives }],
    }),
    operator(name, ["LONG", "LONG"], "LONG", "propagate", summary, { emit: ([a, b]) => i64[op](a, b) }),
    operator(name, ["IPv4", "IPv4"], "IPv4", "propagate", summary, { emit: ([a, b]) => i32[op](a, b) }),
  );
}
entries.push(
  operator("~", ["INT"], "INT", "propagate", "Bitwise complement.", {
    emit: ([a]) => i32.xor(a, i32.const(-1)),
    examples: [{ sql: "~5", gives: -6 }],
  }),
  operator("~", ["LONG"], "LONG", "propagate", "Bitwise complement.", { emit: ([a]) => i64.xor(a, i64.const(-1n)) }),
  operator("~", ["IPv4"], "IPv4", "propagate", "Bitwise complement.", { emit: ([a]) => i32.xor(a, i32.const(-1)) }),
);

// The nulls of INT and LONG are their own negatives.
const NEGATIVE = "The negative, of the same type.";
entries.push(
  operator("neg", ["BYTE"], "BYTE", "custom", NEGATIVE, { emit: ([a]) => i32.extend8(i32.sub(ZERO32, a)) }),
  operator("neg", ["SHORT"], "SHORT", "custom", NEGATIVE, { emit: ([a]) => i32.extend16(i32.sub(ZERO32, a)) }),
  operator("neg", ["INT"], "INT", "custom", NEGATIVE, {
    emit: ([a]) => i32.sub(ZERO32, a),
    examples: [{ sql: "-(2 + 3)", gives: -5 }],
  }),
  operator("neg", ["LONG"], "LONG", "custom", NEGATIVE, { emit: ([a]) => i64.sub(ZERO64, a) }),
  operator("neg", ["FLOAT"], "FLOAT", "custom", NEGATIVE, { emit: ([a]) => f32.neg(a) }),
  operator("neg", ["DOUBLE"], "DOUBLE", "custom", NEGATIVE, { emit: ([a]) => f64.neg(a) }),
);

export const arithmeticFunctions = entries;
