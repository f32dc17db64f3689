import assert from "node:assert/strict";
import { col, fn, lit, over, scanOf } from "../engine/testing.ts";
import type { Plan, ScanNode } from "../sql/plan.ts";
import { isSameBesideIntervals } from "./same-plan.ts";

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

Deno.test("isSameBesideIntervals() compares all of a plan but the bounds of its intervals", () => {
  const cases: [plan: Plan, isSame: boolean][] = [
    [filtered(7), true],
    [filtered(7, { intervals: [[2n, 3n], [7n, 9n]] }), true],
    [filtered(7, { predicate: undefined }), true],
    [filtered(8), false],
    [filtered(7, { intervals: undefined }), false],
    [filtered(7, { reverse: true }), false],
    [filtered(7, { columnIds: [0] }), false],
    [filtered(7, { tableId: 2 }), false],
    [filtered(7, { predicate: lit(true, "BOOLEAN") }), false],
    [{ ...scan }, false],
  ];
  for (const [plan, isSame] of cases) {
    assert.equal(isSameBesideIntervals(filtered(7), plan), isSame);
    assert.equal(isSameBesideIntervals(plan, filtered(7)), isSame);
  }
  assert.ok(!isSameBesideIntervals(filtered(0), filtered(-0)));
  assert.ok(isSameBesideIntervals(filtered(NaN), filtered(NaN)));
});
