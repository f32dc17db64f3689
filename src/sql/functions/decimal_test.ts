/**
 * Compares operators, casts and aggregates of DECIMALs of all sizes with BigInts, at extremes. Kernels, and rows at which they stop, give the
 * same values and errors as exact arithmetic.
 */
import assert from "node:assert/strict";
import { over, RowsInput, rowsOf, testContext } from "../../engine/testing.ts";
import { randomOf, SEED } from "../../testing.ts";
import { NULL_I64, typeOf, type Value } from "../../types/mod.ts";
import { decimalOf, decimalTag } from "../../types/wide.ts";
import type { Expr, Plan } from "../plan.ts";
import type { BatchAggregateState, BatchColumn, BatchOut, FunctionContext } from "./entry.ts";
import { createRegistry, functionId } from "./mod.ts";

const registry = createRegistry();
const random = randomOf(SEED);
const power = (exponent: number): bigint => 10n ** BigInt(exponent);
const magnitude = (x: bigint): bigint => x < 0n ? -x : x;

const PRECISIONS = [1, 4, 9, 10, 17, 18, 18, 18, 19, 20, 37, 38, 38, 39, 60, 76];

function randomType(): string {
  const precision = PRECISIONS[random(PRECISIONS.length)]!;
  return decimalTag(precision, random(3) === 0 ? 0 : random(Math.min(precision, 20) + 1));
}

function randomValue(type: string): bigint | null {
  const { precision } = decimalOf(type)!, sign = random(2) === 0 ? 1n : -1n;
  switch (random(8)) {
    case 0:
      return null;
    case 1:
      return sign * (power(precision) - 1n);
    case 2:
      return sign * power(precision - 1);
    case 3:
      return BigInt(random(3)) - 1n;
    case 4: {
      // Next to bounds of halves and words.
      const near = (1n << BigInt([31, 32, 63, 64, 96, 127, 128][random(7)]!)) + BigInt(random(3)) - 1n;
      return sign * (near % power(precision));
    }
    default: {
      let value = 0n;
      for (let k = 1 + random(precision); k > 0; k--) value = value * 10n + BigInt(random(10));
      return sign * value;
    }
  }
}

const context = testContext(1 << 26, { functions: registry });

function valuesOf(name: string, types: string[], type: string, rows: Value[][]): Value[] {
  const columns = types.map((tag, k) => ({ name: `c${k}`, type: tag }));
  const args = types.map((tag, index): Expr => ({ kind: "column", index, type: tag }));
  const node: Plan = {
    node: "project",
    input: { node: "values", rows: [], columns, timestamp: -1, order: "none" },
    expressions: [{ kind: "call", function: functionId(name, types), args, type, at: 7 }],
    columns: [{ name: "r", type }],
    timestamp: -1,
    order: "none",
  };
  return rowsOf(over(node, new RowsInput(columns, rows, context, 33)), context).map(([value]) => value!);
}

/** Each row alone if it is an error, all others together. */
function check(
  name: string,
  types: string[],
  type: string,
  rows: Value[][],
  expected: (row: Value[]) => Value | "error",
): void {
  const results = rows.map(expected), good = rows.filter((_, k) => results[k] !== "error");
  const title = `${name}(${types}) ${type}`;
  const got = valuesOf(name, types, type, good);
  results.filter((result) => result !== "error").forEach((result, k) => {
    assert.deepEqual(got[k], result, `${title} of ${good[k]} gives ${got[k]}, not ${result}`);
  });
  for (const row of rows.filter((_, k) => results[k] === "error")) {
    assert.throws(
      () => valuesOf(name, types, type, [...good.slice(0, 5), row]),
      (error: { position?: number; message: string }) => error.position === 7 && /fit|zero/.test(error.message),
      `${title} of ${row}`,
    );
  }
}

const rowsOfTypes = (types: string[]): Value[][] => Array.from({ length: 60 }, () => types.map(randomValue));

/** Rounds halves to the even digit. */
function quotient(a: bigint, b: bigint): bigint {
  const whole = magnitude(a) / magnitude(b), twice = 2n * (magnitude(a) % magnitude(b));
  const rounded = twice > magnitude(b) || (twice === magnitude(b) && whole % 2n === 1n) ? whole + 1n : whole;
  return (a < 0n) !== (b < 0n) ? -rounded : rounded;
}

const OPERATORS: Record<string, (a: bigint, b: bigint, right: number, x: bigint, y: bigint) => bigint | "error"> = {
  "+": (_, __, ___, x, y) => x + y,
  "-": (_, __, ___, x, y) => x - y,
  "*": (a, b) => a * b,
  "/": (a, b, right) => b === 0n ? "error" : quotient(a * power(2 * right), b),
  "%": (_, __, ___, x, y) => y === 0n ? "error" : x % y,
};

for (const [name, of] of Object.entries(OPERATORS)) {
  Deno.test(`${name} of DECIMALs is exact`, () => {
    for (let round = 0; round < 60; round++) {
      const types = [randomType(), randomType()], [left, right] = types.map((type) => decimalOf(type)!.scale);
      const { entry } = registry.resolve(functionId(name, types));
      const type = (entry.returns as (types: string[]) => string)(types), limit = power(decimalOf(type)!.precision);
      const scale = Math.max(left!, right!);
      check(name, types, type, rowsOfTypes(types), ([a, b]) => {
        if (a === null || b === null) return null;
        const [x, y] = [BigInt(a!) * power(scale - left!), BigInt(b!) * power(scale - right!)];
        const result = of(BigInt(a!), BigInt(b!), right!, x, y);
        return result === "error" || magnitude(result) >= limit ? "error" : result;
      });
    }
  });
}

const COMPARISONS: Record<string, [holds: (sign: number) => boolean, oneNull: boolean, twoNulls: boolean]> = {
  "=": [(sign) => sign === 0, false, true],
  "!=": [(sign) => sign !== 0, true, false],
  "<": [(sign) => sign < 0, false, false],
  "<=": [(sign) => sign <= 0, false, true],
  ">": [(sign) => sign > 0, false, false],
  ">=": [(sign) => sign >= 0, false, true],
};

for (const [name, [holds, oneNull, twoNulls]] of Object.entries(COMPARISONS)) {
  Deno.test(`${name} of DECIMALs of any scales is exact`, () => {
    for (let round = 0; round < 60; round++) {
      const types = [randomType(), randomType()], [left, right] = types.map((type) => decimalOf(type)!.scale);
      const rows = rowsOfTypes(types);
      // Equal values, and those next to them.
      for (const row of rows.slice(0, 30)) {
        if (row[1] === null) continue;
        const same = right! >= left!
          ? BigInt(row[1]!) / power(right! - left!)
          : BigInt(row[1]!) * power(left! - right!);
        if (magnitude(same) < power(decimalOf(types[0]!)!.precision) - 1n) row[0] = same + BigInt(random(3)) - 1n;
      }
      check(name, types, "BOOLEAN", rows, ([a, b]) => {
        if (a === null || b === null) return a === b ? twoNulls : oneNull;
        const x = BigInt(a!) * power(right!), y = BigInt(b!) * power(left!);
        return holds(x < y ? -1 : x > y ? 1 : 0);
      });
    }
  });
}

Deno.test("abs(), neg() and sign() of DECIMALs", () => {
  const all: [string, (x: bigint) => bigint][] = [
    ["abs", magnitude],
    ["neg", (x) => -x],
    ["sign", (x) => x > 0n ? 1n : x < 0n ? -1n : 0n],
  ];
  for (let round = 0; round < 20; round++) {
    for (const [name, of] of all) {
      const type = randomType();
      check(name, [type], name === "sign" ? decimalTag(1, 0) : type, rowsOfTypes([type]), ([x]) => {
        return x === null ? null : of(BigInt(x!));
      });
    }
  }
});

const INTEGERS: [type: string, bits: number][] = [["BYTE", 8], ["SHORT", 16], ["INT", 32], ["LONG", 64]];

Deno.test("Casts of integers to DECIMAL, and back, refuse what does not fit", () => {
  for (let round = 0; round < 60; round++) {
    for (const [integer, bits] of INTEGERS) {
      const type = randomType(), { precision, scale } = decimalOf(type)!, { nullable, nullValue } = typeOf(integer);
      const end = 1n << BigInt(bits - 1);
      const rows = Array.from({ length: 30 }, (): Value[] => {
        const exact = BigInt.asIntN(bits, randomValue(decimalTag([2, 4, 9, 18, 19][random(5)]!, 0)) ?? 0n);
        const value = random(6) === 0 ? end - 1n : random(6) === 0 ? -end : exact;
        if (nullable && value === BigInt(nullValue)) return [null];
        return [bits === 64 ? value : Number(value)];
      });
      check("cast_DECIMAL", [integer], type, rows, ([x]) => {
        if (x === null) return null;
        const value = BigInt(x!) * power(scale);
        return magnitude(value) < power(precision) ? value : "error";
      });
      check(`decimal_${integer}`, [type], integer, rowsOfTypes([type]), ([x]) => {
        if (x === null) return typeOf(integer).missing;
        const value = BigInt(x!) / power(scale);
        if (BigInt.asIntN(bits, value) !== value) return "error";
        if (nullable && value === BigInt(nullValue)) return null;
        return bits === 64 ? value : Number(value);
      });
    }
  }
});

Deno.test("Casts between DECIMALs refuse lost digits", () => {
  for (let round = 0; round < 200; round++) {
    const from = randomType(), to = randomType(), shift = decimalOf(to)!.scale - decimalOf(from)!.scale;
    const rows = rowsOfTypes([from]);
    if (shift < 0) {
      for (const row of rows.slice(0, 30)) {
        if (row[0] !== null) row[0] = BigInt(row[0]!) / power(-shift) * power(-shift);
      }
    }
    check("cast_DECIMAL", [from], to, rows, ([x]) => {
      if (x === null) return null;
      if (shift < 0 && BigInt(x!) % power(-shift) !== 0n) return "error";
      const value = shift < 0 ? BigInt(x!) / power(-shift) : BigInt(x!) * power(shift);
      return magnitude(value) < power(decimalOf(to)!.precision) ? value : "error";
    });
  }
});

Deno.test("A DECIMAL as DOUBLE is the nearest number", () => {
  for (let round = 0; round < 60; round++) {
    const type = randomType(), { scale } = decimalOf(type)!;
    check("decimal_DOUBLE", [type], "DOUBLE", rowsOfTypes([type]), ([x]) => {
      if (x === null) return null;
      const digits = magnitude(BigInt(x!)).toString().padStart(scale + 1, "0");
      const number = Number(`${digits.slice(0, digits.length - scale)}.${digits.slice(digits.length - scale)}`);
      return BigInt(x!) < 0n ? -number : number;
    });
  }
});

type Reference = (values: bigint[]) => bigint | null;
const total = (values: bigint[]): bigint => values.reduce((sum, value) => sum + value, 0n);
const AGGREGATES: [name: string, of: Reference][] = [
  ["sum", total],
  ["avg", (values) => quotient(total(values), BigInt(values.length))],
  ["min", (values) => values.reduce((best, value) => value < best ? value : best)],
  ["max", (values) => values.reduce((best, value) => value > best ? value : best)],
];

/** The columns of a batch of these values. */
function batchOf(type: string, values: (bigint | null)[]): BatchColumn {
  const words = typeOf(type).width / 8;
  const elements = values.flatMap((value) =>
    Array.from({ length: words }, (_, k) => value === null ? NULL_I64 : BigInt.asIntN(64, value >> BigInt(64 * k)))
  );
  return {
    type,
    address: 0,
    values: BigInt64Array.from(elements),
    isConstant: false,
    isNull: (row) => values[row] === null,
    bytes: () => undefined,
    text: () => undefined,
  };
}

/** The results of `groupCount` groups. */
function resultsOf(state: BatchAggregateState, type: string, groupCount: number): (bigint | null | "error")[] {
  const words = typeOf(type).width / 8, values = new BigInt64Array(words * groupCount);
  const nulls = new Set<number>();
  const out: BatchOut = {
    type,
    address: 0,
    values,
    setText: () => {},
    setView: () => {},
    makeText: () => new Uint8Array(),
    placeText: () => 0,
    reserve: () => 0,
    giveBack: () => {},
    setNull: (row) => nulls.add(row),
  };
  try {
    state.finish(out, groupCount);
  } catch (error) {
    assert.match((error as Error).message, /does not fit/);
    return ["error"];
  }
  return Array.from({ length: groupCount }, (_, group) => {
    if (nulls.has(group)) return null;
    let value = 0n;
    for (let k = words - 1; k >= 0; k--) value = value << 64n | BigInt.asUintN(64, values[words * group + k]!);
    return BigInt.asIntN(64 * words, value);
  });
}

/** A state of the aggregate, and its result type. */
function stateOf(name: string, argument: string): { state: () => BatchAggregateState; type: string } {
  const { entry } = registry.resolve(functionId(name, [argument])), { aggregate, returns } = entry;
  assert.ok(aggregate?.kind === "batch" && typeof returns === "function");
  const call = { at: 7 } as FunctionContext;
  return { state: () => aggregate.create([argument], [], call), type: returns([argument]) };
}

Deno.test("sum(), avg(), min() and max() of DECIMALs are exact, with and without groups, and of merged states", () => {
  for (let round = 0; round < 150; round++) {
    const argument = randomType(), groupCount = round % 2 === 0 ? 1 : 5;
    for (const [name, of] of AGGREGATES) {
      const { state, type } = stateOf(name, argument), limit = power(decimalOf(type)!.precision);
      const members: bigint[][] = Array.from({ length: groupCount }, () => []);
      const states = [state(), state()];
      for (const [k, each] of states.entries()) {
        // Groups of the later state are those of the earlier one in the opposite order.
        const groupOf = (group: number) => k === 0 ? group : groupCount - 1 - group;
        for (let batch = 0; batch < 3; batch++) {
          const values = rowsOfTypes([argument]).map(([value]) => value as bigint | null);
          const groups = Int32Array.from(values, () => random(groupCount));
          values.forEach((value, row) => value !== null && members[groupOf(groups[row]!)]!.push(value));
          each.update(groupCount === 1 ? undefined : groups, [batchOf(argument, values)], values.length);
        }
      }
      states[0]!.merge(states[1]!, Int32Array.from({ length: groupCount }, (_, group) => groupCount - 1 - group));
      const expected = members.map((values) => values.length === 0 ? null : of(values));
      const isError = expected.some((value) => value !== null && magnitude(value) >= limit);
      assert.deepEqual(resultsOf(states[0]!, type, groupCount), isError ? ["error"] : expected, `${name}(${argument})`);
    }
  }
});

Deno.test("sum() of DECIMALs carries after any number of rows", () => {
  const rows = 1 << 16, batches = 80;
  for (const argument of ["DECIMAL(18,0)", "DECIMAL(38,0)"]) {
    for (const sign of [1n, -1n]) {
      const value = sign * (power(decimalOf(argument)!.precision - (argument === "DECIMAL(38,0)" ? 1 : 0)) - 1n);
      const column = batchOf(argument, Array(rows).fill(value));
      for (const groups of [undefined, new Int32Array(rows).fill(1)]) {
        const { state, type } = stateOf("sum", argument), sum = state();
        for (let k = 0; k < batches; k++) sum.update(groups, [column], rows);
        const group = groups === undefined ? 0 : 1;
        assert.equal(resultsOf(sum, type, 2)[group], value * BigInt(rows * batches));
      }
    }
  }
});
