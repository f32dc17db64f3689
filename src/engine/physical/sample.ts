/** Chooses how SAMPLE BY finds the buckets of rows. */
import type { AggregateNode, Expr, SampleNode } from "../../sql/plan.ts";
import { TimeBuckets } from "../time-buckets.ts";
import { type PlanFacts, sourceOf } from "./facts.ts";
import { hasVolatile, isFused, isVolatile } from "./functions.ts";
import { exprsOf, groupingOf, segmentsOf, specOf } from "./grouping.ts";
import type { ComputedBuckets, PhysicalPlan, PhysicalSample, Reading, RunsWay } from "./plan.ts";
import { batchesOf, type Below, fusedWith, isByMorsels, isRepeatable, over, readingOf } from "./reading.ts";

export function chooseSample(id: number, node: SampleNode, input: PhysicalPlan, facts: PlanFacts): PhysicalSample {
  const below = fusedWith(input, id), runs = byRuns(node, below, facts);
  if (runs !== undefined) return { operator: "sample", id, node, way: runs, fused: below.fused, inputs: [] };
  const computed = byExpression(node, below, facts);
  if (computed !== undefined) {
    return { operator: "sample", id, node, way: computed, fused: below.fused, inputs: below.inputs };
  }
  const bucket = { name: "bucket", type: node.time.type }, columns = [...input.node.columns, bucket];
  const groups: AggregateNode = {
    node: "aggregate",
    input: { node: "values", rows: [], columns, timestamp: -1, order: "none" },
    keys: [{ kind: "column", index: columns.length - 1, type: bucket.type }, ...node.keys],
    aggregates: node.aggregates,
    columns: node.columns,
    timestamp: -1,
    order: "none",
  };
  const ofBuckets = { reading: readingOf(columns), fused: [], inputs: [] };
  const grouping = groupingOf(groups, ofBuckets, facts, !hasVolatile(node, facts));
  return { operator: "sample", id, node, way: { kind: "buckets", groups: grouping }, ...batchesOf(input) };
}

/** Undefined if rows are not read by morsels, or their buckets do not follow from their times by one step. */
function byExpression(node: SampleNode, below: Below, facts: PlanFacts): ComputedBuckets | undefined {
  const { reading, inputs } = below, { sampling, time: { type } } = node;
  if (!isByMorsels(reading, inputs) || !isRepeatable(reading, facts)) return undefined;
  if (sampling.align !== "calendar" || sampling.from !== undefined || sampling.to !== undefined) return undefined;
  const fixed = new TimeBuckets(sampling, type, 0n).fixed;
  if (fixed === undefined) return undefined;
  const args: Expr[] = [
    node.time,
    { kind: "constant", value: fixed.stride, type: "LONG" },
    { kind: "constant", value: fixed.origin, type },
  ];
  const bucket: Expr = { kind: "call", function: `timestamp_floor_step(${type},LONG,${type})`, args, type, at: 0 };
  const groups: AggregateNode = { ...node, node: "aggregate", keys: [bucket, ...node.keys] };
  const grouping = groupingOf(groups, below, facts);
  if (grouping.way.kind === "batches") return undefined;
  return { kind: "computed", groups: grouping, isInOrder: ascends(node, reading, facts) };
}

/** True if the rows are those of a scan in the order of the times that are sampled. */
function ascends(node: SampleNode, reading: Reading, facts: PlanFacts): boolean {
  const { base } = reading, time = over(reading, node.time);
  if (base.kind !== "scan" || time.kind !== "column") return false;
  const { order, reverse, timestamp } = base.node;
  return order === "asc" && !reverse && sourceOf(base.node, facts).sorted && time.index === timestamp;
}

/** Undefined if the bucket must be computed for each row. */
function byRuns(node: SampleNode, below: Below, facts: PlanFacts): RunsWay | undefined {
  const { reading } = below, { base } = reading;
  if (base.kind !== "scan" || !ascends(node, reading, facts) || !isRepeatable(reading, facts)) return undefined;
  const scan = base.node, source = sourceOf(scan, facts);
  const { sampling, aggregates } = node;
  if (sampling.align !== "calendar" || !aggregates.every((call) => isFused(call, facts))) return undefined;
  const spec = specOf({ ...node, node: "aggregate" }, below, facts);
  // Volatile functions must see all rows, in order. Keys with many values would make many records for each bucket.
  if (spec.staged !== false || spec.table === "hash" || exprsOf(spec).some((expr) => isVolatile(expr, facts))) {
    return undefined;
  }
  const first = source.segments.at(0), last = source.segments.at(-1), timeType = node.time.type;
  const doBucketsAscend = first === undefined || last === undefined ||
    new TimeBuckets(sampling, timeType, 0n).ascendBetween(first.timestampMin, last.timestampMax);
  if (!doBucketsAscend) return undefined;
  const bySegments = { ...spec, segments: segmentsOf(spec, below, facts) };
  return { kind: "runs", node: scan, reader: reading.reader, spec: bySegments, sampling, timeType };
}
