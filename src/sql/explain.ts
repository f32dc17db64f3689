/**
 * EXPLAIN: the physical plan as indented lines. Scans show how many partitions and segments remain after pruning.
 * Operators show how they work, and which nodes they run in one pass over the rows.
 */
import type { Catalogue, ScanSource } from "../storage/contract.ts";
import { nodeCalls, type PhysicalPlan, physicalPlan, type PlanStatistics } from "../engine/mod.ts";
import { explainLines, type ExplainNode } from "./explain-lines.ts";
import { describe } from "./explain-node.ts";
import {
  choiceMarks,
  fusedMarks,
  operatorMarks,
  operatorMeasured,
  readMarks,
  rowsOfFused,
  scanMeasured,
} from "./explain-statistics.ts";
import { wayMarks } from "./explain-ways.ts";
import { registry } from "./functions/mod.ts";
import type { BoundStatement, Plan, ScanReading } from "./plan.ts";
import { kindOf } from "./statements/mod.ts";

export interface ExplainDetails {
  /** Sources of all scans of the plan, by their ids. */
  sources?: readonly ScanSource[];
  /** Provides the size of a table without pruning. */
  catalogue?: Catalogue;
  /** Descriptions of each scan by its id, in place of the catalogue. */
  marks?: readonly string[][];
  /** True if operators may write to disk. */
  spills?: boolean;
  /** For EXPLAIN ANALYZE: measurements of the nodes, in plan order. */
  statistics?: PlanStatistics;
}

/** The lines of EXPLAIN. `scanned`: details of the scans, or only their sources. */
export function explain(
  subject: Plan | BoundStatement,
  scanned: ExplainDetails | readonly ScanSource[] = {},
): string[] {
  const details: ExplainDetails = Array.isArray(scanned) ? { sources: scanned } : scanned as ExplainDetails;
  return explainLines(explainNodes(subject, details));
}

export function explainNodes(subject: Plan | BoundStatement, details: ExplainDetails = {}): ExplainNode[] {
  return "node" in subject ? explainPlan(subject, details) : explainStatement(subject, details);
}

function explainPlan(plan: Plan, details: ExplainDetails): ExplainNode[] {
  const { sources = [], spills, statistics } = details, facts = { functions: registry, sources, spills };
  const nodes: ExplainNode[] = [];
  let pipelines = 0;
  const show = (node: Plan, more: Pick<ExplainNode, "depth" | "marks" | "notes" | "isFused" | "measured">) => {
    const [text = "", ...details] = describe(node);
    nodes.push({ text, details, ...more });
  };
  const ofScan = (node: Plan) => {
    if (node.node !== "scan") return { notes: [], marks: [], measured: {} };
    const notes = scanMarks(node, details);
    if (statistics === undefined) return { notes, marks: notes, measured: {} };
    return { notes, marks: [...notes, ...readMarks(node, statistics)], measured: scanMeasured(node, statistics) };
  };
  const visit = (physical: PhysicalPlan, depth: number): void => {
    const { node, fused, inputs } = physical;
    const pipeline = fused.length > 0 || physical.operator === "pipeline" ? ++pipelines : undefined;
    const calls = nodeCalls(physical, facts);
    const scan = ofScan(node), ways = wayMarks(physical, calls, pipeline);
    const notes = [...scan.notes, ...ways], marks = [...scan.marks, ...ways];
    if (statistics === undefined) show(node, { depth, notes, marks, isFused: false });
    else {
      show(node, {
        depth,
        notes: [...notes, ...choiceMarks(physical, calls, statistics)],
        marks: [...marks, ...operatorMarks(physical, calls, statistics)],
        isFused: false,
        measured: { ...scan.measured, ...operatorMeasured(physical, statistics) },
      });
    }
    fused.forEach((part, k) => {
      const scan = ofScan(part.node), way = `in pipeline ${pipeline}`;
      show(part.node, {
        depth: depth + 1 + k,
        notes: [...scan.notes, way],
        marks: [...scan.marks, way, ...statistics === undefined ? [] : fusedMarks(physical, k, statistics)],
        isFused: true,
        measured: statistics && { ...scan.measured, rows: rowsOfFused(physical, k, statistics) },
      });
    });
    const right = physical.operator === "join" ? inputs.at(-1) : undefined;
    for (const input of inputs) visit(input, depth + 1 + (input === right ? 0 : fused.length));
  };
  visit(physicalPlan(plan, facts), 0);
  return nodes;
}

/** The part of its table that a scan reads. */
export function scanMarks(
  { id, tableId, intervals }: Omit<ScanReading, "columnIds">,
  { sources, catalogue, marks: known }: ExplainDetails,
): string[] {
  if (known !== undefined) return known[id]!;
  const source = sources?.[id];
  if (source === undefined) return [];
  const marks: string[] = [];
  const snapshot = catalogue?.tableById(tableId);
  let segments = `${source.segments.length}`;
  if (snapshot !== undefined) {
    const all = snapshot.partitions();
    const kept = intervals === undefined
      ? all
      : all.filter((part) => intervals.some(([low, high]) => part.timestampMin <= high && part.timestampMax >= low));
    marks.push(`partitions ${kept.length} of ${all.length}`);
    segments += ` of ${snapshot.source([]).segments.length}`;
  }
  marks.push(`segments ${segments}`, `rows ${source.rowCount}`);
  return marks;
}

/** For statements that change tables, the first line is the change. */
function explainStatement(bound: BoundStatement, details: ExplainDetails): ExplainNode[] {
  const head = kindOf(bound).explain?.(bound);
  const nodes = bound.plan === undefined ? [] : explainPlan(bound.plan, details);
  if (head === undefined && nodes.length > 0) return nodes;
  const change = { depth: 0, text: head ?? bound.kind, details: [], notes: [], marks: [], isFused: false };
  return [change, ...nodes.map((node) => ({ ...node, depth: node.depth + 1 }))];
}
