import assert from "node:assert/strict";
import { createRegistry } from "../../sql/functions/mod.ts";
import type { LimitNode, Plan, ScanNode, WindowNode } from "../../sql/plan.ts";
import { col, fn, lit } from "../testing.ts";
import { physicalPlan } from "./mod.ts";
import type { LimitWay, PhysicalPlan } from "./plan.ts";

const context = { functions: createRegistry() };
const columns = [{ name: "ts", type: "TIMESTAMP" }, { name: "x", type: "LONG" }];
const base = { columns, timestamp: 0, order: "asc" as const };
const scan: ScanNode = {
  node: "scan",
  id: 0,
  tableId: 1,
  tableName: "t",
  columnIds: [0, 1],
  reverse: false,
  rowId: false,
  ...base,
};
const limit = (input: Plan, high: bigint, low?: bigint): LimitNode => ({
  node: "limit",
  input,
  high: lit(high, "LONG"),
  low: low === undefined ? undefined : lit(low, "LONG"),
  ...base,
});
const sorted: Plan = { node: "sort", input: scan, keys: [{ expression: col(1, "LONG"), descending: false }], ...base };

const LIMITS: [title: string, node: LimitNode, way: LimitWay][] = [
  ["first rows", limit(scan, 5n), { kind: "first", from: 0, to: 5 }],
  ["bounds the wrong way round", limit(scan, 2n, 5n), { kind: "first", from: 2, to: 5 }],
  ["the last rows of a table", limit(scan, -5n), { kind: "last of reversed", count: 5 }],
  ["the last rows of a sort", limit(sorted, -5n), { kind: "last", count: 5, without: 0 }],
  ["last rows without the very last", limit(scan, -2n, -5n), { kind: "last", count: 5, without: 2 }],
  ["all but rows of both ends", limit(scan, -2n, 3n), { kind: "without ends", skip: 3, without: 2 }],
];
for (const [title, node, way] of LIMITS) {
  Deno.test(`physicalPlan() of LIMIT: ${title}`, () => {
    const made = physicalPlan(node, context);
    assert.ok(made.operator === "limit");
    assert.deepEqual(made.way, way);
    const [{ node: input }] = made.inputs;
    assert.equal(input.node === "scan" && input.reverse, way.kind === "last of reversed");
  });
}

Deno.test("physicalPlan() does not read backwards what depends on the rows before", () => {
  const generated: Plan = {
    node: "project",
    input: scan,
    expressions: [col(0, "TIMESTAMP"), fn("rnd_long", "LONG")],
    ...base,
  };
  const made = physicalPlan(limit(generated, -5n), context);
  assert.ok(made.operator === "limit" && made.way.kind === "last");
});

Deno.test("physicalPlan() streams windows whose calls need no more than the rows before", () => {
  const wayOf = (call: object) => {
    const call_ = { args: [], partitionBy: [], orderBy: [], ignoreNulls: false, type: "LONG", at: 0, ...call };
    const made = physicalPlan(
      { node: "window", input: scan, calls: [call_], ...base } as unknown as WindowNode,
      context,
    );
    assert.ok(made.operator === "window");
    return made.way;
  };
  const frame = { unit: "rows", end: 0n, excludeCurrentRow: false };
  const by = (index: number) => [{ expression: col(index, columns[index].type), descending: false }];
  assert.equal(wayOf({ function: "row_number()", frame }), "streaming");
  assert.equal(wayOf({ function: "row_number()", frame, orderBy: by(0) }), "streaming");
  assert.equal(wayOf({ function: "row_number()", frame, orderBy: by(1) }), "general");
  assert.equal(wayOf({ function: "rank()", frame, orderBy: by(0) }), "general");
});

Deno.test("physicalPlan() numbers nodes from the root, left before right", () => {
  const ids = ({ id, inputs }: PhysicalPlan): unknown[] => [id, ...inputs.map(ids)];
  const union: Plan = { node: "set", operator: "union all", left: sorted, right: limit(scan, 1n), ...base };
  assert.deepEqual(ids(physicalPlan(union, context)), [0, [1, [2]], [3, [4]]]);
});
