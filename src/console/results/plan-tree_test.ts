import assert from "node:assert/strict";
import type { PlanNode } from "../server/plan.ts";
import { linesOf } from "./plan-tree.tsx";

const node = (text: string, ownNanos: number | undefined, ...inputs: PlanNode[]): PlanNode => ({
  text,
  details: [],
  notes: [],
  isFused: ownNanos === undefined,
  measured: { ownNanos },
  inputs,
});

Deno.test("the plan's nodes are listed with their share of the time, and one is the costliest", () => {
  const root = node("sort", 10, node("join", 60, node("filter", undefined, node("scan a", 30)), node("scan b", 0)));
  const lines = linesOf(root).map(({ node: { text }, depth, share, isCostliest }) => [text, depth, share, isCostliest]);
  assert.deepEqual(lines, [
    ["sort", 0, 0.1, false],
    ["join", 1, 0.6, true],
    ["filter", 2, undefined, false],
    ["scan a", 3, 0.3, false],
    ["scan b", 2, 0, false],
  ]);
});

Deno.test("a plan that was not executed has no times", () => {
  const [line] = linesOf({ ...node("sort", undefined), measured: undefined });
  assert.deepEqual([line?.share, line?.isCostliest], [undefined, false]);
});
