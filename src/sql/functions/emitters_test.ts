/**
 * Every emitter through the compiler (lanes where it finds them) against the same tree walked row by row, over values that hurt:
 * nulls, ends of ranges, zeros, infinities, at every place of a lane.
 */
import assert from "node:assert/strict";
import { createProject } from "../../engine/operators/filter-project.ts";
import { randomFrom, RowsInput, rowsOf, testContext } from "../../engine/testing.ts";
import { typeOf, type Value } from "../../types/mod.ts";
import type { Expr, ProjectNode } from "../plan.ts";
import { evaluate } from "../planner/evaluate.ts";
import { createRegistry, type FunctionEntry, functionId, FUNCTIONS } from "./mod.ts";

const CLASS_TYPES: Record<string, string[]> = {
  any: ["LONG", "STRING"],
  same: ["INT", "LONG", "DOUBLE", "STRING"],
  text: ["STRING", "SYMBOL"],
  number: ["INT", "DOUBLE"],
  integer: ["INT", "LONG"],
  time: ["DATE", "TIMESTAMP", "TIMESTAMP_NS"],
};

const TIMES = [0n, -1n, 1n, 1709208000999123n, -62135596800000000n, 86399999999n, 253402300799999999n, null];
const VALUES: Record<string, Value[]> = {
  BOOLEAN: [true, false],
  BYTE: [0, 1, -1, 127, -128],
  SHORT: [0, 1, -1, 32767, -32768],
  CHAR: ["a", "Z", "7", "ž", null],
  INT: [0, 1, -1, 2147483647, -2147483647, 12345, null],
  LONG: [0n, 1n, -1n, 9223372036854775807n, -9223372036854775807n, 4294967296n, 1234567890123n, null],
  FLOAT: [0, 1.5, -1.5, Math.fround(0.1), Math.fround(3e38), null],
  DOUBLE: [0, -0, 1.5, -2.5, 0.1, 1e-11, 1e300, -1e300, 9007199254740993, 2147483648.5, null],
  DATE: [0n, -1n, 1709208000999n, -62135596800000n, null],
  TIMESTAMP: TIMES,
  TIMESTAMP_NS: [0n, -1n, 1709208000999123456n, 86399999999999n, -1000000001n, null],
  IPv4: [1, 0x0a000005, 0xffffffff, null],
  STRING: ["", "a", "abc", "ABC", "žluť", "a longer text than eight bytes", null],
  VARCHAR: ["", "a", "b", "10", null],
  SYMBOL: ["a", "abc", "", null],
  SYMBOL_TEXT: ["a", null],
  NULL: [null],
};

/** Argument types of an entry: one for each member of a class, all arguments alike. */
function signatures(entry: FunctionEntry): string[][] {
  const specs = entry.args.flatMap((arg) => (arg.optional ? [] : arg.variadic ? [arg, arg] : [arg]));
  const choices = Math.max(1, ...specs.map((arg) => CLASS_TYPES[arg.type]?.length ?? 1));
  return Array.from(
    { length: choices },
    (_, k) => specs.map((arg) => CLASS_TYPES[arg.type]?.[k % CLASS_TYPES[arg.type].length] ?? arg.type),
  );
}

const registry = createRegistry();

function same(a: Value, b: Value): boolean {
  if (typeof a === "number" && !Number.isFinite(a)) a = null; // infinities are null
  if (typeof b === "number" && !Number.isFinite(b)) b = null;
  return a === b || (typeof a === "number" && typeof b === "number" && a === b);
}

for (const entry of FUNCTIONS) {
  if (entry.emit === undefined || entry.volatility !== "immutable" || entry.args.length === 0) continue;
  for (const types of signatures(entry)) {
    if (types.some((type) => VALUES[type] === undefined || typeOf(type).layout === "i128")) continue;
    const id = functionId(entry.name, types);
    const type = typeof entry.returns === "string" ? entry.returns : entry.returns(types);
    Deno.test(`${id} in a kernel equals the tree walked`, () => {
      const random = randomFrom(id.length * 7919);
      const rows = Array.from({ length: 67 }, () => types.map((tag) => VALUES[tag][random() % VALUES[tag].length]));
      const context = testContext(1 << 25, { functions: registry });
      const columns = types.map((tag, k) => ({ name: `c${k}`, type: tag }));
      const call = (args: Expr[], of = id): Expr => ({ kind: "call", function: of, args, type, at: 0 });
      // A constant symbol has no dictionary: the walk takes texts.
      const walkedTypes = types.map((tag) => (tag === "SYMBOL" ? "STRING" : tag));
      const walkedId = functionId(entry.name, walkedTypes);
      const args = types.map((tag, index): Expr => ({ kind: "column", index, type: tag }));
      const node: ProjectNode = {
        node: "project",
        input: { node: "values", rows: [], columns, timestamp: -1, order: "none" },
        expressions: [call(args)],
        columns: [{ name: "r", type }],
        timestamp: -1,
        order: "none",
      };
      const results = rowsOf(createProject(node, new RowsInput(columns, rows, context, 33), context), context);
      rows.forEach((row, i) => {
        const expected = evaluate(
          call(row.map((value, k): Expr => ({ kind: "constant", value, type: walkedTypes[k] })), walkedId),
        );
        assert.ok(
          expected !== undefined,
          `${JSON.stringify(row, (_, v) => (typeof v === "bigint" ? `${v}n` : v))} can be worked out`,
        );
        assert.ok(
          same(results[i][0], expected.value),
          `row ${i}: ${row.map(String)} gives ${results[i][0]}, not ${expected.value}`,
        );
      });
    });
  }
}
