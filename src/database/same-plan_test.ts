import assert from "node:assert/strict";
import { col, fn, lit, over, scanOf } from "../engine/testing.ts";
import type { Expr, Plan, ScanNode } from "../sql/plan.ts";
import { constantsReplaced } from "./same-plan.ts";
import type { Value } from "../types/mod.ts";

const scan = scanOf([{ name: "ts", type: "TIMESTAMP" }, { name: "x", type: "DOUBLE" }], {
  intervals: [[1n, 5n]],
  timestamp: 0,
  order: "asc",
});

function filtered(bound: number, more: Partial<ScanNode> = {}): Plan {
  const { columns } = scan;
  return over({ node: "filter", columns, predicate: fn("<", "BOOLEAN", col(1, "DOUBLE"), lit(bound, "DOUBLE")) }, {
    ...scan,
    ...more,
  });
}

/** Whether the plans are the same, resemble each other, or differ in more. */
function compared(a: Plan, b: Plan): "same" | "other constants" | "different" {
  const replaced = constantsReplaced(a, b);
  return replaced === undefined ? "different" : replaced.areOthers ? "other constants" : "same";
}

Deno.test("constantsReplaced() compares all of a plan but the bounds of its intervals", () => {
  const cases: [plan: Plan, result: ReturnType<typeof compared>][] = [
    [filtered(7), "same"],
    [filtered(7, { intervals: [[2n, 3n], [7n, 9n]] }), "same"],
    [filtered(7, { predicate: undefined }), "same"],
    [filtered(8), "other constants"],
    [filtered(7, { intervals: undefined }), "different"],
    [filtered(7, { reverse: true }), "different"],
    [filtered(7, { columnIds: [0] }), "different"],
    [filtered(7, { tableId: 2 }), "different"],
    [filtered(7, { predicate: lit(true, "BOOLEAN") }), "different"],
    [{ ...scan }, "different"],
  ];
  for (const [plan, result] of cases) {
    assert.equal(compared(filtered(7), plan), result);
    assert.equal(compared(plan, filtered(7)), result);
  }
  assert.equal(compared(filtered(0), filtered(-0)), "other constants");
  assert.equal(compared(filtered(NaN), filtered(NaN)), "same");
});

Deno.test("constantsReplaced() lists constants and values of IN of conditions, limits and results, which stay null or not null", () => {
  const where = (predicate: Expr): Plan => ({ ...scan, predicate });
  const among = (values: Value[]): Expr => ({ kind: "in", operand: col(1, "DOUBLE"), values, type: "BOOLEAN" });
  const five = lit(5, "DOUBLE"), six = lit(6, "DOUBLE");
  const above = (bound: Expr) => where(fn(">", "BOOLEAN", col(1, "DOUBLE"), bound));
  assert.deepEqual([...constantsReplaced(above(five), above(six))!.objects], [[five, six]]);
  const few = [1, 2], others = [3, 4];
  assert.deepEqual([...constantsReplaced(where(among(few)), where(among(others)))!.objects], [[few, others]]);
  assert.equal(compared(where(among(few)), where(among([1, 2, 3]))), "different");
  assert.equal(compared(where(among(few)), where(among([1, null]))), "different");
  assert.equal(compared(above(five), above(lit(null, "DOUBLE"))), "different");
  assert.equal(compared(above(five), above(lit(5, "FLOAT"))), "different");
  const project = (value: number): Plan =>
    over({ node: "project", columns: [{ name: "c", type: "DOUBLE" }], expressions: [lit(value, "DOUBLE")] }, scan);
  assert.equal(compared(project(1), project(2)), "other constants", "of the result");
  const limited = (count: bigint, input: Plan) =>
    over({ node: "limit", columns: input.columns, high: lit(count, "LONG") }, input);
  assert.equal(compared(limited(1n, project(1)), limited(2n, project(2))), "other constants");
  // Sorts may have the expressions, too.
  const sorted = (input: Plan) => over({ node: "sort", columns: input.columns, keys: [] }, input);
  assert.equal(compared(sorted(project(1)), sorted(project(2))), "different");
});
