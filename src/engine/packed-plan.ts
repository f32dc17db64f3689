/**
 * The form in which threads exchange plans: long ones as bytes. A long statement's plan has tens of thousands of objects, which the
 * threads between the planner and the executing worker need not deserialize. Only this file tells the two forms apart.
 */
import { deserialize, serialize } from "node:v8";
import { type Column, inputsOf, type Plan, type ScanReading } from "../sql/plan.ts";

/** Shorter plans are posted as objects: any thread clones them in less than a millisecond. */
const PACKED_BYTES_MIN = 32 << 10;

/** A whole plan as bytes, and what the threads in between need of it. */
interface PackedPlan {
  bytes: Uint8Array<ArrayBuffer>;
  scans: ScanReading[];
  /**
   * True if parameter values, the clock or metadata rows are missing, so that the plan must be completed for each
   * execution.
   */
  isOpen: boolean;
  /** Number of nodes in the plan. */
  nodes: number;
  /** Columns of the plan's root. */
  columns: Column[];
  timestamp: number;
}

/** A plan as posted between threads. */
export type PostedPlan = Plan | PackedPlan;

/** The plan, packed if it is long. Adds buffers that can be moved to another thread to `transfer`. */
export function packPlan(plan: Plan, isOpen: boolean, transfer: Transferable[] = []): PostedPlan {
  const bytes = new Uint8Array(serialize(plan));
  if (bytes.length < PACKED_BYTES_MIN) return plan;
  transfer.push(bytes.buffer);
  const { columns, timestamp } = plan;
  return { bytes, scans: scansOf(plan), isOpen, nodes: countNodes(plan), columns, timestamp };
}

export function unpackPlan(plan: PostedPlan): Plan {
  return isPacked(plan) ? deserialize(plan.bytes) : plan;
}

/** The plan's tree. Undefined if it is packed: then only the planner's thread and workers look into it. */
export function treeOf(plan: PostedPlan): Plan | undefined {
  return isPacked(plan) ? undefined : plan;
}

/** True if the planner's thread has to complete the plan for an execution. */
export function isOpen(plan: PostedPlan): boolean {
  return isPacked(plan) && plan.isOpen;
}

export function serializedPlan(plan: PostedPlan): Uint8Array {
  return isPacked(plan) ? plan.bytes : serialize(plan);
}

export function scansOf(plan: PostedPlan): ScanReading[] {
  if (isPacked(plan)) return plan.scans;
  if (plan.node !== "scan") return inputsOf(plan).flatMap(scansOf);
  const { id, tableId, columnIds, intervals } = plan;
  return [{ id, tableId, columnIds, intervals }];
}

export function countNodes(plan: PostedPlan): number {
  if (isPacked(plan)) return plan.nodes;
  return 1 + inputsOf(plan).reduce((sum, input) => sum + countNodes(input), 0);
}

function isPacked(plan: PostedPlan): plan is PackedPlan {
  return "bytes" in plan;
}
