/** Describes the measurements of operators for EXPLAIN ANALYZE. */
import type { Measured } from "../api.ts";
import { assert } from "../assert.ts";
import type { Calls, PhysicalPlan, PlanStatistics } from "../engine/mod.ts";
import type { Plan, ScanNode } from "./plan.ts";

/** Measurements of an operator. */
export function operatorMarks(
  physical: PhysicalPlan,
  calls: Calls | undefined,
  { nodes }: PlanStatistics,
): string[] {
  const { rows, pairs, bytes, nanos, memoryPeakBytes, spilledBytes, spilledParts, workers } = nodes[physical.id]!;
  const marks = choiceMarks(physical, calls, { nodes });
  if (rows === undefined) {
    marks.push(`gave ${pairs ?? 0} pairs`, "read by the operator above");
  } else {
    const own = ownTimeOf(physical, nodes);
    marks.push(`gave ${rows} rows, ${sizeText(bytes)}`, `time ${timeText(nanos)}, own ${timeText(own)}`);
  }
  if (memoryPeakBytes > 0) marks.push(`peak memory ${sizeText(memoryPeakBytes)}`);
  if (workers > 1) marks.push(`${workers} workers`);
  if (spilledBytes > 0) marks.push(`spilled ${sizeText(spilledBytes)} of ${spilledParts} partitions`);
  return marks;
}

/** Choices that were made while the statement ran. */
export function choiceMarks(
  physical: PhysicalPlan,
  calls: Calls | undefined,
  { nodes }: Pick<PlanStatistics, "nodes">,
): string[] {
  // Functions without alternatives are shown with the plan.
  const choices = nodes[physical.id]!.chosen.filter((choice) =>
    !choice.startsWith("functions ") || (calls?.measured.length ?? 0) > 0
  );
  return choices.length === 0 ? [] : [`chose ${choices.join(", ")}`];
}

/** The measurements of an operator as data. */
export function operatorMeasured(physical: PhysicalPlan, { nodes }: PlanStatistics): Measured {
  const { rows, pairs, bytes, nanos, memoryPeakBytes } = nodes[physical.id]!;
  if (rows === undefined) return { rows: pairs ?? 0, memoryPeakBytes };
  return { rows, bytes, nanos, ownNanos: ownTimeOf(physical, nodes), memoryPeakBytes };
}

function ownTimeOf(physical: PhysicalPlan, nodes: PlanStatistics["nodes"]): number {
  return Math.max(0, nodes[physical.id]!.nanos - physical.inputs.reduce((sum, input) => sum + timeOf(nodes, input), 0));
}

/** Measurements of the `k`-th node that an operator has fused. */
export function fusedMarks(physical: PhysicalPlan, k: number, statistics: PlanStatistics): string[] {
  return [`gave ${rowsOfFused(physical, k, statistics)} rows`, "done by the operator above"];
}

/** The rows of a fused node: those that have passed the conditions, unless the conditions are of a node above. */
export function rowsOfFused(
  { id, operator, fused, inputs }: PhysicalPlan,
  k: number,
  { nodes }: PlanStatistics,
): number {
  const own = nodes[id]!, isScan = fused.at(-1)?.node.node === "scan";
  // The first input is the one that is read with the fused nodes, unless a scan ends them.
  const input = isScan ? undefined : inputs[0], isJoined = input?.operator === "join";
  const read = input === undefined ? own.taken : isJoined ? nodes[input.id]!.pairs : nodes[input.id]!.rows;
  // Not counted: nothing was read.
  if (read === undefined) return 0;
  const isAfterConditions = fused.slice(k).some(({ node }) => hasConditions(node)) ||
    isJoined && input.over.predicates.length > 0;
  if (!isAfterConditions) return read;
  const passed = operator === "pipeline" ? own.rows : own.passed;
  assert(passed !== undefined, "operators count the rows that pass their conditions");
  return passed;
}

function hasConditions(plan: Plan): boolean {
  return plan.node === "filter" || plan.node === "scan" && plan.predicate !== undefined;
}

/** Marks for a scan. Some operators find their result without reading the whole scan. */
export function readMarks({ id }: ScanNode, { scans }: PlanStatistics): string[] {
  const { rows, bytes, lookups, skipped, summarised, offsets, selections, selected, framesFound, framesRead, vectors } =
    scans[id]!;
  return [
    ...(rows > 0 ? [`read ${rows} rows, ${sizeText(bytes)}`] : []),
    ...(lookups > 0 ? [`index of ${lookups} segments, ${skipped} of them skipped`] : []),
    ...(summarised > 0 ? [`summaries of ${summarised} vectors`] : []),
    ...(offsets > 0 ? [`packed codes of ${offsets} vectors added up`] : []),
    ...(selections > 0 ? [`${selected} rows selected by packed codes of ${selections} segments`] : []),
    ...(Object.values(vectors).some((count) => count > 0) ? [vectorsText(vectors)] : []),
    ...(framesFound + framesRead > 0 ? [`frames: ${framesFound} in the pool, ${framesRead} read from files`] : []),
  ];
}

function vectorsText(vectors: PlanStatistics["scans"][number]["vectors"]): string {
  const { skipped, whole, tested, withExceptions, withoutCodes } = vectors;
  return `vectors: ${skipped} skipped, ${whole} taken whole, ${tested} tested packed, ${withExceptions} with exceptions, ` +
    `${withoutCodes} without codes`;
}

/** The measurements of a scan as data. */
export function scanMeasured({ id }: ScanNode, { scans }: PlanStatistics): Measured {
  return { rowsRead: scans[id]!.rows, bytesRead: scans[id]!.bytes };
}

/** Time of the operator including its inputs. If another operator did its work: the time of the inputs. */
function timeOf(nodes: PlanStatistics["nodes"], { id, inputs }: PhysicalPlan): number {
  if (nodes[id]!.nanos > 0) return nodes[id]!.nanos;
  return inputs.reduce((sum, input) => sum + timeOf(nodes, input), 0);
}

export function timeText(nanos: number): string {
  return `${(nanos / 1e6).toFixed(3)} ms`;
}

export function sizeText(bytes: number): string {
  const unit = bytes < 10_240 ? 0 : bytes < 10 * 2 ** 20 ? 1 : bytes < 10 * 2 ** 30 ? 2 : 3;
  return `${Math.round(bytes / 1024 ** unit)} ${["B", "KiB", "MiB", "GiB"][unit]}`;
}
