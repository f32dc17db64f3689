/** Plans as posted between threads: long ones as bytes. */
import { deserialize, serialize } from "node:v8";
import type { Plan, ScanReading } from "../sql/plan.ts";
import { countNodes } from "./analysis.ts";
import { isPacked, type PostedPlan } from "./contract.ts";

/** Shorter plans are posted as objects: any thread clones them in less than a millisecond. */
const PACKED_BYTES_MIN = 32 << 10;

/** The plan, packed if it is long. */
export function packPlan(plan: Plan, scans: ScanReading[], isOpen: boolean): PostedPlan {
  const bytes = new Uint8Array(serialize(plan));
  if (bytes.length < PACKED_BYTES_MIN) return plan;
  const { columns, timestamp } = plan;
  return { bytes, scans, isOpen, nodes: countNodes(plan), columns, timestamp };
}

export function unpackPlan(plan: PostedPlan): Plan {
  return isPacked(plan) ? deserialize(plan.bytes) : plan;
}
