/** A plan whose operators are chosen, as plain data: what operators are made of, and what EXPLAIN prints. */
import type { LimitNode, Plan, WindowNode } from "../../sql/plan.ts";

interface PhysicalBase {
  /** Its own within the plan, from 0 at the root on, depth first and left before right. Statistics are found by it. */
  id: number;
  /** Left before right. They may differ from `node`'s inputs. */
  inputs: PhysicalPlan[];
}

export type LimitWay =
  /** Rows from+1 … to. */
  | { kind: "first"; from: number; to: number }
  /** The last `count` rows but for the last `without` of them; so many are kept. */
  | { kind: "last"; count: number; without: number }
  /** The last `count` rows of an input that comes with its last row first. */
  | { kind: "last of reversed"; count: number }
  /** Without the first `skip` and the last `without` rows; so many as the latter are kept. */
  | { kind: "without ends"; skip: number; without: number };

/** "streaming": rows go out as they come in. "general": all rows are kept. */
export type WindowWay = "streaming" | "general";

export interface PhysicalLimit extends PhysicalBase {
  operator: "limit";
  node: LimitNode;
  way: LimitWay;
}

export interface PhysicalWindow extends PhysicalBase {
  operator: "window";
  node: WindowNode;
  way: WindowWay;
}

/** A kind of node that has one operator, or whose operator still chooses its way itself. */
export interface PhysicalNode extends PhysicalBase {
  operator: "of node";
  node: Exclude<Plan, LimitNode | WindowNode>;
}

export type PhysicalPlan = PhysicalLimit | PhysicalWindow | PhysicalNode;
