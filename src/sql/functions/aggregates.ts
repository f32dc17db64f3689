/** Aggregates whose state is a few numbers, so that they run inside kernels. */
import { NULL_I64 } from "../../types/mod.ts";
import { f32, f64, i32, i64, type IrNode, select, type WasmType } from "../../engine/compiler/ir.ts";
import type { FunctionEntry, FusedAggregate } from "./entry.ts";
import {
  MIN32,
  MIN64,
  NAN64,
  notNull,
  nullOf,
  ONE64,
  TIMES,
  toF64,
  toI64,
  wasmTypeOf,
  whenNotNull,
  withExamples,
  ZERO32,
  ZERO64,
} from "./nodes.ts";

type Slot = { type: WasmType; initial: number | bigint };
const I64_ZERO: Slot = { type: "i64", initial: 0n };
const F64_ZERO: Slot = { type: "f64", initial: 0 };

const ZEROF64 = f64.const(0);

/** For summaries of rows. */
function withValues(valueCount: IrNode, then: IrNode, otherwise: IrNode): IrNode {
  return select(i64.eqz(valueCount), otherwise, then);
}

function aggregate(
  name: string,
  type: string | undefined,
  returns: string,
  summary: string,
  fused: Omit<FusedAggregate, "kind">,
  example: [sql: string, gives: unknown] | false = false,
): FunctionEntry {
  return {
    name,
    args: type === undefined ? [] : [{ name: "value", type }],
    returns,
    nulls: "custom",
    volatility: "immutable",
    summary,
    examples: example ? [{ sql: example[0], gives: example[1] }] : [],
    aggregate: { kind: "fused", ...fused },
  };
}

const entries: FunctionEntry[] = [];

const count: Omit<FusedAggregate, "kind"> = {
  state: () => [I64_ZERO],
  update: ([n]) => [i64.add(n, ONE64)],
  merge: ([a], [b]) => [i64.add(a, b)],
  finish: ([n]) => n,
};
entries.push(
  aggregate("count", undefined, "LONG", "The number of rows.", {
    ...count,
    summarised: ({ rowCount }) => [rowCount],
  }, ["SELECT count() FROM long_sequence(3)", 3]),
);

/** Without BOOLEAN, which the dialect refuses to count. */
const COUNTED = [
  "BYTE",
  "SHORT",
  "CHAR",
  "INT",
  "LONG",
  "FLOAT",
  "DOUBLE",
  ...TIMES,
  "SYMBOL",
  "SYMBOL_TEXT",
  "STRING",
  "VARCHAR",
  "NULL",
  "IPv4",
];
for (const type of COUNTED) {
  entries.push(aggregate("count", type, "LONG", "The number of rows in which the value is not null.", {
    ...count,
    update: ([n], [x]) => [whenNotNull(x, type, i64.add(n, ONE64), n)],
    summarised: ({ valueCount }) => [valueCount],
  }));
}

/** Integer sums: the count tells whether there was any value. */
for (const type of ["BYTE", "SHORT", "INT", "LONG"]) {
  entries.push(aggregate("sum", type, "LONG", "The sum of the values that are not null. It wraps around on overflow.", {
    state: () => [I64_ZERO, I64_ZERO],
    update: (
      [sum, n],
      [x],
    ) => [whenNotNull(x, type, i64.add(sum, toI64(x)), sum), whenNotNull(x, type, i64.add(n, ONE64), n)],
    merge: ([sum, n], [sum2, n2]) => [i64.add(sum, sum2), i64.add(n, n2)],
    finish: ([sum, n]) => select(i64.eqz(n), MIN64, sum),
    summarised: ({ sum, valueCount }) => [withValues(valueCount, sum, ZERO64), valueCount],
  }, type === "LONG" && ["SELECT sum(x) FROM long_sequence(3)", 6]));
}
for (const type of ["FLOAT", "DOUBLE"]) {
  entries.push(aggregate("sum", type, type, "The sum of the values that are not null.", {
    state: () => [F64_ZERO, I64_ZERO],
    update: (
      [sum, n],
      [x],
    ) => [select(notNull(x, type)!, f64.add(sum, toF64(x)), sum), select(notNull(x, type)!, i64.add(n, ONE64), n)],
    merge: ([sum, n], [sum2, n2]) => [f64.add(sum, sum2), i64.add(n, n2)],
    finish: ([sum, n]) => {
      const result = select(i64.eqz(n), NAN64, sum);
      return type === "FLOAT" ? f32.demote(result) : result;
    },
    summarised: ({ sum, valueCount }) => [withValues(valueCount, sum, ZEROF64), valueCount],
  }));
}

/** Their sums cannot wrap around in a summary. */
const AVERAGED_BY_SUMS = ["BYTE", "SHORT", "INT", "FLOAT", "DOUBLE"];
for (const type of ["BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"]) {
  entries.push(
    aggregate(
      "avg",
      type,
      "DOUBLE",
      type === "BOOLEAN"
        ? "The fraction of rows in which the value is true."
        : "The mean of the values that are not null.",
      {
        state: () => [F64_ZERO, I64_ZERO],
        update: (
          [sum, n],
          [x],
        ) => [whenNotNull(x, type, f64.add(sum, toF64(x)), sum), whenNotNull(x, type, i64.add(n, ONE64), n)],
        merge: ([sum, n], [sum2, n2]) => [f64.add(sum, sum2), i64.add(n, n2)],
        finish: ([sum, n]) => select(i64.eqz(n), NAN64, f64.div(sum, f64.convertI64(n))),
        summarised: AVERAGED_BY_SUMS.includes(type)
          ? ({ sum, valueCount }) => [withValues(valueCount, toF64(sum), ZEROF64), valueCount]
          : undefined,
      },
      type === "LONG" && ["SELECT avg(x) FROM long_sequence(4)", 2.5],
    ),
  );
}

/** MIN64 is the null and so means "no value yet". As it is the smallest value, a maximum needs no test for it. */
const longMax: Omit<FusedAggregate, "kind"> = {
  state: () => [{ type: "i64", initial: NULL_I64 }],
  update: ([s], [x]) => [select(i64.gtS(x, s), x, s)],
  merge: ([a], [b]) => [select(i64.gtS(b, a), b, a)],
  finish: ([s]) => s,
  summarised: ({ max, valueCount }) => [withValues(valueCount, max, MIN64)],
};
const smaller = (x: IrNode, s: IrNode) =>
  select(i32.and(i64.ne(x, MIN64), i32.or(i64.ltS(x, s), i64.eq(s, MIN64))), x, s);
const longMin: Omit<FusedAggregate, "kind"> = {
  state: () => [{ type: "i64", initial: NULL_I64 }],
  update: ([s], [x]) => [smaller(x, s)],
  merge: ([a], [b]) => [smaller(b, a)],
  finish: ([s]) => s,
  summarised: ({ min, valueCount }) => [withValues(valueCount, min, MIN64)],
};
const MIN = "The smallest value that is not null.", MAX = "The greatest value that is not null.";
for (const type of ["LONG", ...TIMES]) {
  entries.push(
    aggregate("min", type, type, MIN, longMin, type === "LONG" && ["SELECT min(x) FROM long_sequence(3)", 1]),
    aggregate("max", type, type, MAX, longMax, type === "LONG" && ["SELECT max(x) FROM long_sequence(3)", 3]),
  );
}

/**
 * Types of at most 32 bits are kept in 64, where an out-of-range bound means "no value yet". CHAR and IPv4 are
 * zero-extended and have null 0.
 */
for (const type of ["BYTE", "SHORT", "INT", "CHAR", "IPv4"]) {
  const unsigned = type === "CHAR" || type === "IPv4";
  const widen = (x: IrNode) => (unsigned ? i64.extendU(x) : i64.extendS(x));
  const returns = unsigned ? type : "INT";
  for (
    const [name, limit, better, summary] of [["min", 1n << 40n, i64.ltS, MIN], [
      "max",
      -(1n << 40n),
      i64.gtS,
      MAX,
    ]] as const
  ) {
    entries.push(aggregate(name, type, returns, summary, {
      state: () => [{ type: "i64", initial: limit }],
      update: ([s], [x]) => [whenNotNull(x, type, select(better(widen(x), s), widen(x), s), s)],
      merge: ([a], [b]) => [select(better(b, a), b, a)],
      finish: ([s]) => select(i64.eq(s, i64.const(limit)), unsigned ? ZERO32 : MIN32, i32.wrap(s)),
      summarised: unsigned ? undefined : (rows) => [withValues(rows.valueCount, rows[name], i64.const(limit))],
    }));
  }
}
for (const type of ["BOOLEAN", "FLOAT", "DOUBLE"]) {
  for (
    const [name, limit, better, summary] of [["min", Infinity, f64.min, MIN], ["max", -Infinity, f64.max, MAX]] as const
  ) {
    entries.push(aggregate(name, type, type === "FLOAT" ? "FLOAT" : "DOUBLE", summary, {
      state: () => [{ type: "f64", initial: limit }],
      update: ([s], [x]) => [whenNotNull(x, type, better(s, toF64(x)), s)],
      merge: ([a], [b]) => [better(a, b)],
      finish: ([s]) => {
        const result = select(f64.eq(s, f64.const(limit)), NAN64, s);
        return type === "FLOAT" ? f32.demote(result) : result;
      },
      summarised: type === "BOOLEAN"
        ? undefined
        : (rows) => [withValues(rows.valueCount, rows[name], f64.const(limit))],
    }));
  }
}

/**
 * Every type whose values fit in one word of a kernel; SYMBOL as its code. (Texts are in pool frames that are released:
 * see batch-aggregates.ts.)
 */
const KEPT = ["BOOLEAN", "BYTE", "SHORT", "CHAR", "INT", "LONG", "FLOAT", "DOUBLE", ...TIMES, "SYMBOL", "IPv4"];
for (const type of KEPT) {
  const wasm = wasmTypeOf(type)!;
  const none = nullOf(type);
  const state = (): Slot[] => [{ type: wasm, initial: none.value as number | bigint }, I64_ZERO];
  const finish = ([value]: IrNode[]) => value;
  const either = (seen: IrNode, whenSeen: IrNode, otherwise: IrNode) => select(i64.eqz(seen), otherwise, whenSeen);
  const first = {
    ordered: true,
    state,
    finish,
    merge: ([a, seen]: IrNode[], [b, seen2]: IrNode[]) => [either(seen, a, b), i64.or(seen, seen2)],
  };
  const last = {
    ordered: true,
    state,
    finish,
    merge: ([a, seen]: IrNode[], [b, seen2]: IrNode[]) => [either(seen2, b, a), i64.or(seen, seen2)],
  };
  entries.push(
    aggregate("first", type, type, "The value of the first row, even if it is null.", {
      ...first,
      update: ([s, seen], [x]) => [either(seen, s, x), ONE64],
    }),
    aggregate("last", type, type, "The value of the last row, even if it is null.", {
      ...last,
      update: (_, [x]) => [x, ONE64],
    }),
  );
  // Types without a null return INT, which has one, for groups without rows.
  if (type === "BYTE" || type === "SHORT") continue;
  entries.push(
    aggregate("first_not_null", type, type, "The first value that is not null.", {
      ...first,
      update: ([s, seen], [x]) => [
        whenNotNull(x, type, either(seen, s, x), s),
        whenNotNull(x, type, ONE64, seen),
      ],
    }),
    aggregate("last_not_null", type, type, "The last value that is not null.", {
      ...last,
      update: ([s, seen], [x]) => [whenNotNull(x, type, x, s), whenNotNull(x, type, ONE64, seen)],
    }),
  );
}

entries.push(
  aggregate("bool_and", "BOOLEAN", "BOOLEAN", "True if the value is true in every row. False without rows.", {
    state: () => [I64_ZERO, I64_ZERO],
    update: ([wrong, n], [x]) => [i64.or(wrong, i64.extendU(i32.eqz(x))), i64.add(n, ONE64)],
    merge: ([a, n], [b, m]) => [i64.or(a, b), i64.add(n, m)],
    finish: ([wrong, n]) => i32.and(i64.eqz(wrong), i64.ne(n, ZERO64)),
  }),
  aggregate("bool_or", "BOOLEAN", "BOOLEAN", "True if the value is true in at least one row.", {
    state: () => [I64_ZERO],
    update: ([s], [x]) => [i64.or(s, i64.extendU(x))],
    merge: ([a], [b]) => [i64.or(a, b)],
    finish: ([s]) => i64.ne(s, ZERO64),
  }),
);

for (const [name, op, initial] of [["bit_and", "and", -1n], ["bit_or", "or", 0n], ["bit_xor", "xor", 0n]] as const) {
  for (const type of ["BYTE", "SHORT", "INT", "LONG"]) {
    entries.push(
      aggregate(
        name,
        type,
        type,
        `Bitwise ${op === "xor" ? "exclusive OR" : op.toUpperCase()} of the values that are not null.`,
        {
          state: () => [{ type: "i64", initial }, I64_ZERO],
          update: (
            [s, n],
            [x],
          ) => [whenNotNull(x, type, i64[op](s, toI64(x)), s), whenNotNull(x, type, i64.add(n, ONE64), n)],
          merge: ([a, n], [b, m]) => [i64[op](a, b), i64.add(n, m)],
          finish: (
            [s, n],
          ) => (type === "LONG" ? select(i64.eqz(n), MIN64, s) : select(i64.eqz(n), nullOf(type), i32.wrap(s))),
        },
      ),
    );
  }
}

export const aggregateFunctions = withExamples(entries, {
  first: [["SELECT first(x) FROM long_sequence(3)", 1]],
  last: [["SELECT last(x) FROM long_sequence(3)", 3]],
  first_not_null: [["SELECT first_not_null(nullif(x, 1)) FROM long_sequence(3)", 2]],
  last_not_null: [["SELECT last_not_null(nullif(x, 3)) FROM long_sequence(3)", 2]],
  bool_and: [["SELECT bool_and(x > 1) FROM long_sequence(3)", false]],
  bool_or: [["SELECT bool_or(x > 2) FROM long_sequence(3)", true]],
  bit_and: [["SELECT bit_and(x | 4) FROM long_sequence(3)", 4]],
  bit_or: [["SELECT bit_or(x) FROM long_sequence(2)", 3]],
  bit_xor: [["SELECT bit_xor(x) FROM long_sequence(3)", 0]],
});
