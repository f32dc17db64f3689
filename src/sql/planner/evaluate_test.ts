/**
 * Compares the evaluation of constants in planning with the same call over rows, for each function of the catalogue.
 */
import assert from "node:assert/strict";
import { lit, over, randomFrom, RowsInput, rowsOf, testContext } from "../../engine/testing.ts";
import { layoutOf, type Value } from "../../types/mod.ts";
import { createRegistry, type FunctionEntry, functionId, FUNCTIONS } from "../functions/mod.ts";
import { CONSTANT_TEXTS, signatures, VALUES } from "../functions/testing-values.ts";
import type { Expr } from "../plan.ts";
import { evaluate } from "./evaluate.ts";
import { SEED } from "../../testing.ts";

const ROWS = 40;
const functions = createRegistry();
const nowMicros = 1_709_208_000_999_123n;

/** True if plans can contain calls of the entry whose value only depends on the arguments (and on the clock). */
function isScalar(entry: FunctionEntry): boolean {
  return entry.volatility !== "volatile" && (entry.emit !== undefined || entry.batch !== undefined);
}

function shown(values: readonly (Value | undefined)[]): string {
  return values.map((value) => (typeof value === "bigint" ? `${value}n` : JSON.stringify(value))).join(", ");
}

/** The values of an expression over rows. Undefined for rows where it fails. */
function overRows(expression: Expr, types: readonly string[], rows: readonly Value[][]): (Value | undefined)[] {
  const context = testContext(1 << 25, { functions, nowMicros });
  const columns = types.map((type, k) => ({ name: `c${k}`, type }));
  const node = {
    node: "project",
    expressions: [expression],
    columns: [{ name: "r", type: expression.type }],
  };
  const run = (some: readonly Value[][]) =>
    rowsOf(over(node, new RowsInput(columns, some, context, 33)), context).map((row) => row[0]);
  try {
    return run(rows);
  } catch {
    return rows.map((row) => {
      try {
        return run([row])[0];
      } catch {
        return undefined;
      }
    });
  }
}

/** Types with parameters for casts. The binder adds them to the call. */
const TARGETS: Record<string, string> = {
  cast_DECIMAL: "DECIMAL(30,4)",
  cast_GEOHASH: "GEOHASH(4c)",
  cast_ARRAY: "DOUBLE[]",
};

for (const entry of FUNCTIONS.filter(isScalar)) {
  Deno.test(`${entry.name}(${entry.args.map(({ type }) => type).join()}) of constants equals its value over rows`, () => {
    const random = randomFrom(SEED + entry.name.length * 7919);
    const pick = <T>(list: readonly T[]): T => list[random() % list.length];
    let compared = 0;
    for (const types of signatures(entry)) {
      const argument = (k: number) => entry.args[Math.min(k, entry.args.length - 1)];
      // Arguments that must be constant are the same in all rows.
      const fixed = types.map((type, k) =>
        !argument(k).constant
          ? undefined
          : lit(pick(layoutOf(type) === "text" && random() % 4 > 0 ? CONSTANT_TEXTS : VALUES[type]), type)
      );
      const constants = fixed.map((expr) => (expr?.kind === "constant" ? expr.value : undefined));
      if (entry.check?.(constants, types) !== undefined) continue;
      const type = TARGETS[entry.name] ??
        (typeof entry.returns === "string" ? entry.returns : entry.returns(types, constants));
      const call = (args: Expr[]): Expr => ({
        kind: "call",
        function: functionId(entry.name, types),
        args,
        type,
        at: 0,
      });
      const rows = Array.from({ length: ROWS }, () => types.map((tag, k) => fixed[k] ? null : pick(VALUES[tag])));
      const expected = overRows(
        call(types.map((tag, index) => fixed[index] ?? { kind: "column", index, type: tag })),
        types,
        rows,
      );
      rows.forEach((row, i) => {
        const constant = call(row.map((value, k) => fixed[k] ?? lit(value, types[k])));
        const folded = evaluate(constant, { nowMicros, user: "test" });
        const place = () =>
          `${constant.kind === "call" && constant.function} of ${shown(row)} with ${shown(constants)}`;
        if (folded === undefined) {
          // Codes of symbols need a dictionary, which constants do not have. Long texts are not evaluated while
          // planning.
          const needsCode = layoutOf(type) === "symbol" ||
            types.some((tag, k) => layoutOf(tag) === "symbol" && argument(k).type !== "text" && row[k] !== null);
          if (needsCode || String(expected[i]).length > 16_384) return;
          assert.equal(
            overRows(constant, [], [[]])[0],
            undefined,
            `${place()} can be worked out, but fails as a constant`,
          );
          return;
        }
        compared++;
        assert.deepEqual(
          folded.value,
          expected[i],
          `${place()}: ${shown([folded.value])} as a constant, ${shown([expected[i]])} over rows`,
        );
      });
    }
    const isFree = entry.args.every(({ constant, type }) => !constant && type !== "SYMBOL");
    if (isFree) assert.ok(compared > 0, "some were worked out");
  });
}

Deno.test("IN and CASE of constants equal their values over rows", () => {
  for (const [type, values] of Object.entries(VALUES)) {
    if (layoutOf(type) === "symbol" || type === "NULL" || type === "SYMBOL_TEXT") continue;
    for (const count of [1, 3, 12]) {
      const random = randomFrom(SEED + count);
      const list = Array.from({ length: count }, () => values[random() % values.length]);
      const within = (operand: Expr): Expr => ({ kind: "in", operand, values: list, type: "BOOLEAN" });
      const chosen = (operand: Expr): Expr => ({
        kind: "case",
        branches: [{ when: within(operand), then: operand }],
        otherwise: lit(null, type),
        type,
      });
      for (const expression of [within, chosen]) {
        const expected = overRows(expression({ kind: "column", index: 0, type }), [type], values.map((v) => [v]));
        values.forEach((value, i) => {
          assert.deepEqual(
            evaluate(expression(lit(value, type)))?.value,
            expected[i],
            `${type}: ${shown([value])} in ${shown(list)}`,
          );
        });
      }
    }
  }
});
