/**
 * The physical pass: chooses the operators of a plan, from the plan alone. Operators do what they are told, and EXPLAIN prints the
 * same choices.
 */
import type { Plan } from "../../sql/plan.ts";
import type { QueryContext } from "../contract.ts";
import { windowWay } from "../operators/window-streaming.ts";
import { limitOver } from "./limit.ts";
import type { PhysicalPlan } from "./plan.ts";

export type { LimitWay, PhysicalPlan, WindowWay } from "./plan.ts";

export function physicalPlan(plan: Plan, context: Pick<QueryContext, "functions">): PhysicalPlan {
  let nodes = 0;
  const choose = (node: Plan): PhysicalPlan => {
    const id = nodes++;
    switch (node.node) {
      case "limit": {
        const { way, input } = limitOver(node, context);
        return { id, operator: "limit", node, way, inputs: [choose(input)] };
      }
      case "window":
        return { id, operator: "window", node, way: windowWay(node), inputs: [choose(node.input)] };
      case "join":
      case "timeJoin":
      case "set":
      case "recursion": {
        const left = choose(node.left), right = choose(node.right);
        return { id, operator: "of node", node, inputs: [left, right] };
      }
      default:
        return { id, operator: "of node", node, inputs: "input" in node ? [choose(node.input)] : [] };
    }
  };
  return choose(plan);
}
