/**
 * The physical pass: chooses the operators of a plan from the plan and properties of its tables. Operators follow these choices, and
 * EXPLAIN prints them.
 */
import type { Plan } from "../../sql/plan.ts";
import type { PlanFacts } from "./facts.ts";
import { chooseAggregate } from "./grouping.ts";
import { chooseJoin, chooseTimeJoin } from "./join.ts";
import { latestWay, newestFirst } from "./latest.ts";
import { limitOver } from "./limit.ts";
import type { PhysicalHorizonJoin, PhysicalLatest, PhysicalPlan, PhysicalWindowJoin } from "./plan.ts";
import { batchesOf, chooseFilter, chooseProject, chooseScan, fusedWith } from "./reading.ts";
import { chooseSample } from "./sample.ts";
import { chooseSet } from "./set.ts";
import { chooseSort } from "./sort.ts";
import { windowWay } from "./window.ts";

export type { PlanFacts } from "./facts.ts";
export { nodeCalls } from "./node-calls.ts";
export type { Calls } from "./calls.ts";
export { hasKernel } from "./functions.ts";
export type { Grouping, GroupSpec, PhysicalPlan, SpillWay } from "./plan.ts";

export function physicalPlan(plan: Plan, facts: PlanFacts): PhysicalPlan {
  let nodes = 0;
  const choose = (node: Plan): PhysicalPlan => {
    const id = nodes++;
    switch (node.node) {
      case "scan":
        return chooseScan(id, node, facts);
      case "filter":
        return chooseFilter(id, node, choose(node.input), facts);
      case "project":
        return chooseProject(id, node, choose(node.input), facts);
      case "aggregate":
      case "distinct":
        return chooseAggregate(id, node, choose(node.input), facts);
      case "sample":
        return chooseSample(id, node, choose(node.input), facts);
      case "sort":
        return chooseSort(id, node, choose(node.input), facts);
      case "latest": {
        const way = latestWay(id, node, facts), { input } = node;
        const below = choose(way.kind === "newest first" && input.node === "scan" ? newestFirst(input) : input);
        const { fused, inputs } = way.kind === "by symbol" || way.kind === "groups"
          ? fusedWith(below, id)
          : batchesOf(below);
        return { operator: "latest", id, node, way, fused, inputs } satisfies PhysicalLatest;
      }
      case "limit": {
        const { way, input } = limitOver(node, facts), below = choose(input);
        const inputs = [below.operator === "pipeline" ? { ...below, inSteps: true } : below];
        return { operator: "limit", id, node, way, fused: [], inputs };
      }
      case "window":
        return { operator: "window", id, node, way: windowWay(node, facts), fused: [], inputs: [choose(node.input)] };
      case "join": {
        const left = choose(node.left), right = choose(node.right);
        return chooseJoin(id, node, left, right, facts);
      }
      case "timeJoin": {
        const left = choose(node.left), right = choose(node.right);
        return chooseTimeJoin(id, node, left, right, facts);
      }
      case "windowJoin": {
        const inputs = [choose(node.left), choose(node.right)];
        return { operator: "window join", id, node, fused: [], inputs } satisfies PhysicalWindowJoin;
      }
      case "horizonJoin": {
        const inputs = [choose(node.left), choose(node.right)];
        return { operator: "horizon join", id, node, fused: [], inputs } satisfies PhysicalHorizonJoin;
      }
      case "set": {
        const left = choose(node.left), right = choose(node.right);
        return { ...chooseSet(id, node, facts), inputs: [left, right] };
      }
      case "unnest":
        return { operator: "unnest", id, node, fused: [], inputs: [choose(node.input)] };
      case "recursion": {
        const left = choose(node.left), right = choose(node.right);
        return { operator: "recursion", id, node, fused: [], inputs: [left, right] };
      }
      case "working":
      case "parquet":
      case "spooled":
      case "files":
      case "values":
      case "sequence":
      case "metadata":
        return { operator: "source", id, node, fused: [], inputs: [] };
    }
  };
  return choose(plan);
}
