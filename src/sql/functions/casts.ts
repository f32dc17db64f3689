/**
 * Casts: "cast_<TYPE>" with one argument. Values that do not fit become null (or false, 0): integers drop high bits, fractions are
 * truncated, unparsable text is null. "nearest_<TYPE>" of times is used by comparisons and other functions: its result is the
 * limit of a finer type that cannot represent the time, so that the order stays. "assign_<TYPE>" is used by INSERT and UPDATE, where such values are errors at position 0.
 */
import { bind, f32, f64, i32, i64, ifElse, type IrNode, select } from "../../engine/compiler/ir.ts";
import { TIME_NANOS } from "../../types/calendar.ts";
import { LONG_MAX } from "../../types/mod.ts";
import type { FunctionEntry } from "./entry.ts";
import { finite, finiteOrNull, MIN32, MIN64, NAN32, NAN64, ZERO32 } from "./nodes.ts";
import { textCasts } from "./text-casts.ts";

function cast(
  to: string,
  from: string,
  emit: (a: IrNode) => IrNode,
  examples: FunctionEntry["examples"] = [],
): FunctionEntry {
  return {
    name: `cast_${to}`,
    args: [{ name: "value", type: from }],
    returns: to,
    nulls: "custom",
    volatility: "immutable",
    summary: `The value as ${to}.`,
    examples,
    emit: ([a]) => emit(a),
  };
}

const isMin32 = (a: IrNode) => i32.eq(a, MIN32);
const isMin64 = (a: IrNode) => i64.eq(a, MIN64);
const LETTER_T = i32.const(84), LETTER_F = i32.const(70);
const truth = (a: IrNode) => i32.ne(a, ZERO32);
const long = (a: IrNode) => select(isMin32(a), MIN64, i64.extendS(a));

/** The test makes saturated out-of-range values null. */
const doubleToInt = (a: IrNode) =>
  select(i32.and(f64.gt(a, f64.const(-2147483649)), f64.lt(a, f64.const(2147483648))), i32.truncSatF64(a), MIN32);
/** Values out of range are 0, the missing value of these types. */
const doubleToSmall = (a: IrNode, max: number) =>
  select(i32.and(f64.ge(a, f64.const(-max - 1)), f64.le(a, f64.const(max))), i32.truncSatF64(a), ZERO32);
const doubleToLong = (a: IrNode) =>
  select(
    i32.and(f64.ge(a, f64.const(-9223372036854775808)), f64.lt(a, f64.const(9223372036854775808))),
    i64.truncSatF64(a),
    MIN64,
  );

const entries: FunctionEntry[] = [];

// Small integers and BOOLEAN have no null, so only their width changes.
for (const from of ["BOOLEAN", "BYTE", "SHORT"]) {
  for (const to of ["BYTE", "SHORT", "INT"]) {
    if (from === to) continue;
    entries.push(cast(to, from, (a) => (to === "BYTE" ? i32.extend8(a) : a)));
  }
  for (const to of ["LONG", "DATE", "TIMESTAMP", "TIMESTAMP_NS"]) entries.push(cast(to, from, (a) => i64.extendS(a)));
  entries.push(cast("FLOAT", from, (a) => f32.convertI32(a)), cast("DOUBLE", from, (a) => f64.convertI32(a)));
  if (from !== "BOOLEAN") entries.push(cast("IPv4", from, (a) => a));
  if (from === "BOOLEAN") {
    entries.push(cast("CHAR", from, (a) => select(a, LETTER_T, LETTER_F), [{ sql: "true::char", gives: "T" }]));
  } else {
    entries.push(
      cast("BOOLEAN", from, truth),
      cast("CHAR", from, (a) => i32.and(a, i32.const(0xffff))),
    );
  }
}

// The low bits of the nulls of INT and LONG are 0, which is right for types without null.
entries.push(
  cast("BYTE", "INT", (a) => i32.extend8(a), [{ sql: "cast(300 as byte)", gives: 44 }]),
  cast("SHORT", "INT", (a) => i32.extend16(a)),
  cast("CHAR", "INT", (a) => i32.and(a, i32.const(0xffff)), [{ sql: "cast(65 as char)", gives: "A" }]),
  cast("LONG", "INT", long),
  cast("FLOAT", "INT", (a) => select(isMin32(a), NAN32, f32.convertI32(a))),
  cast("DOUBLE", "INT", (a) => select(isMin32(a), NAN64, f64.convertI32(a))),
  cast("BOOLEAN", "INT", (a) => i32.and(truth(a), i32.ne(a, MIN32))),
  cast("DATE", "INT", long),
  cast("TIMESTAMP", "INT", long),
  cast("TIMESTAMP_NS", "INT", long),
  cast("IPv4", "INT", (a) => select(isMin32(a), ZERO32, a)),
);
for (const from of ["LONG", "DATE", "TIMESTAMP", "TIMESTAMP_NS"]) {
  entries.push(
    cast("BYTE", from, (a) => i32.extend8(i32.wrap(a))),
    cast("SHORT", from, (a) => i32.extend16(i32.wrap(a))),
    cast("CHAR", from, (a) => i32.and(i32.wrap(a), i32.const(0xffff))),
    cast("INT", from, (a) => select(isMin64(a), MIN32, i32.wrap(a))),
    cast("FLOAT", from, (a) => select(isMin64(a), NAN32, f32.convertI64(a))),
    cast("DOUBLE", from, (a) => select(isMin64(a), NAN64, f64.convertI64(a))),
    cast("BOOLEAN", from, (a) => i32.and(i64.ne(a, i64.const(0n)), i64.ne(a, MIN64))),
  );
  if (from !== "LONG") entries.push(cast("LONG", from, (a) => a), cast(from, "LONG", (a) => a));
}

/** A time in a finer unit, or what stands for those before and after its range. */
const refined = (time: IrNode, factor: bigint, early: IrNode, late: IrNode) =>
  bind(time, (a) => {
    const last = LONG_MAX / factor;
    const rest = select(i64.gtS(a, i64.const(last)), late, i64.mul(a, i64.const(factor)));
    return select(i64.ltS(a, i64.const(-last)), select(isMin64(a), MIN64, early), rest);
  });

for (const from in TIME_NANOS) {
  for (const to in TIME_NANOS) {
    if (from === to) continue;
    const up = TIME_NANOS[from] > TIME_NANOS[to];
    const factor = up ? TIME_NANOS[from] / TIME_NANOS[to] : TIME_NANOS[to] / TIME_NANOS[from];
    entries.push(
      cast(
        to,
        from,
        (a) => (up ? refined(a, factor, MIN64, MIN64) : ifElse(isMin64(a), MIN64, i64.divS(a, i64.const(factor)))),
      ),
    );
    if (!up) continue;
    const nearest = cast(to, from, (a) => refined(a, factor, i64.const(-LONG_MAX), i64.const(LONG_MAX)));
    entries.push({ ...nearest, name: `nearest_${to}`, summary: `The nearest ${to} to the time.` });
  }
}

for (const from of ["FLOAT", "DOUBLE"]) {
  const wide = (a: IrNode) => (from === "FLOAT" ? f64.promote(a) : a);
  entries.push(
    cast("BYTE", from, (a) => doubleToSmall(wide(a), 127)),
    cast("SHORT", from, (a) => doubleToSmall(wide(a), 32767)),
    cast("CHAR", from, (a) => i32.and(i32.truncSatF64(wide(a)), i32.const(0xffff))),
    cast(
      "INT",
      from,
      (a) => doubleToInt(wide(a)),
      from === "DOUBLE" ? [{ sql: "cast(-2.9 as int)", gives: -2 }, { sql: "cast(1e30 as int)", gives: null }] : [],
    ),
    cast("LONG", from, (a) => doubleToLong(wide(a))),
    cast(
      "BOOLEAN",
      from,
      (a) => i32.and(finite(a), from === "FLOAT" ? f32.ne(a, f32.const(0)) : f64.ne(a, f64.const(0))),
    ),
    cast("DATE", from, (a) => doubleToLong(wide(a))),
    cast("TIMESTAMP", from, (a) => doubleToLong(wide(a))),
    cast("TIMESTAMP_NS", from, (a) => doubleToLong(wide(a))),
  );
}
entries.push(
  cast("DOUBLE", "FLOAT", (a) => f64.promote(a)),
  cast("FLOAT", "DOUBLE", (a) => finiteOrNull(f32.demote(a))),
  cast("INT", "IPv4", (a) => select(i32.eqz(a), MIN32, a)),
  cast("LONG", "IPv4", (a) => select(i32.eqz(a), MIN64, i64.extendU(a))),
);

export const castFunctions: FunctionEntry[] = [...entries, ...textCasts];
