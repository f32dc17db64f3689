/**
 * Compares every emitter, compiled (with lanes where possible), with a simple reference implementation over single
 * values: nulls, ends of ranges, zeros, infinities, at every position of a lane.
 */
import assert from "node:assert/strict";
import { over, randomFrom, RowsInput, rowsOf, testContext } from "../../engine/testing.ts";
import { typeOf, type Value } from "../../types/mod.ts";
import type { Expr, ProjectNode } from "../plan.ts";
import { createRegistry, functionId, FUNCTIONS } from "./mod.ts";
import { NOT_COMPARED, REFERENCE } from "./testing-reference.ts";
import { signatures, VALUES } from "./testing-values.ts";
import { SEED } from "../../testing.ts";

const registry = createRegistry();

/** Infinities are null, and so is the value that represents a type's null. */
function plain(value: Value, type: string): Value {
  if (value === null || (typeof value === "number" && !Number.isFinite(value))) return typeOf(type).missing;
  return Object.is(value, -0) ? 0 : value;
}

const shown = (values: readonly Value[]) =>
  values.map((v) => typeof v === "bigint" ? `${v}n` : JSON.stringify(v)).join();

for (const entry of FUNCTIONS) {
  if (entry.emit === undefined || entry.volatility !== "immutable" || entry.args.length === 0) continue;
  for (const types of signatures(entry)) {
    if (types.some((type) => VALUES[type] === undefined || typeOf(type).layout === "i128")) continue;
    if (entry.check?.(types.map(() => undefined), types) !== undefined) continue;
    const id = functionId(entry.name, types);
    const type = typeof entry.returns === "string" ? entry.returns : entry.returns(types);
    Deno.test(`${id} gives the same values in a kernel as the reference`, () => {
      const reference = REFERENCE[entry.name];
      assert.ok(reference !== undefined, "its meaning is written in testing-reference.ts");
      const random = randomFrom(SEED + id.length * 7919);
      const rows = Array.from({ length: 131 }, () => types.map((tag) => VALUES[tag][random() % VALUES[tag].length]));
      const context = testContext(1 << 25, { functions: registry });
      const columns = types.map((tag, k) => ({ name: `c${k}`, type: tag }));
      const args = types.map((tag, index): Expr => ({ kind: "column", index, type: tag }));
      const node: ProjectNode = {
        node: "project",
        input: { node: "values", rows: [], columns, timestamp: -1, order: "none" },
        expressions: [{ kind: "call", function: id, args, type, at: 0 }],
        columns: [{ name: "r", type }],
        timestamp: -1,
        order: "none",
      };
      const results = rowsOf(over(node, new RowsInput(columns, rows, context, 33)), context);
      rows.forEach((row, i) => {
        const expected = reference(row, types, type);
        if (expected === NOT_COMPARED) return;
        assert.deepEqual(
          plain(results[i][0], type),
          plain(expected, type),
          `row ${i}: ${shown(row)} gives ${shown([results[i][0]])}, not ${shown([expected])}`,
        );
      });
    });
  }
}
