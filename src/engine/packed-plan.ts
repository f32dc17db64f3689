/** Plans on their way between threads: see `PackedNode`. */
import { deserialize, serialize } from "node:v8";
import type { Plan, ScanReading } from "../sql/plan.ts";

/** Shorter ones stay as they are: any thread reads them in less than a millisecond. */
const PACKED_BYTES_MIN = 32 << 10;

/** The plan, packed if it is long. `scans` are what it reads. */
export function packPlan(plan: Plan, scans: ScanReading[], isOpen: boolean): Plan {
  const bytes = new Uint8Array(serialize(plan));
  if (bytes.length < PACKED_BYTES_MIN) return plan;
  const { columns, timestamp, order } = plan;
  return { node: "packed", bytes, scans, isOpen, columns, timestamp, order };
}

export function unpackPlan(plan: Plan): Plan {
  return plan.node === "packed" ? deserialize(plan.bytes) : plan;
}
