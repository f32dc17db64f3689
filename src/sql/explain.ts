/**
 * EXPLAIN: the physical plan as indented lines. Scans show how many partitions and segments remain after pruning.
 * Operators show how they work, and which nodes they run in one pass over the rows.
 */
import type { Catalogue, ScanSource } from "../storage/contract.ts";
import { nodeCalls, type PhysicalPlan, physicalPlan, type PlanStatistics } from "../engine/mod.ts";
import { describe } from "./explain-node.ts";
import { fusedMarks, operatorMarks, readMarks } from "./explain-statistics.ts";
import { wayMarks } from "./explain-ways.ts";
import { createRegistry } from "./functions/mod.ts";
import type { BoundStatement, Plan, ScanReading } from "./plan.ts";
import { kindOf } from "./statements/mod.ts";

export interface ExplainDetails {
  /** Sources of all scans of the plan, by their ids. */
  sources?: readonly ScanSource[];
  /** Provides the size of a table without pruning. */
  catalogue?: Catalogue;
  /** Instead of the catalogue: descriptions of each scan, by its id. */
  marks?: readonly string[][];
  /** For EXPLAIN ANALYZE: measurements of the nodes, in plan order. */
  statistics?: PlanStatistics;
}

/** `scanned`: details of the scans, or only their sources. */
export function explain(
  subject: Plan | BoundStatement,
  scanned: ExplainDetails | readonly ScanSource[] = {},
): string[] {
  const details: ExplainDetails = Array.isArray(scanned) ? { sources: scanned } : scanned as ExplainDetails;
  return "node" in subject ? explainPlan(subject, details) : explainStatement(subject, details);
}

function explainPlan(plan: Plan, details: ExplainDetails): string[] {
  const { sources = [], statistics } = details, facts = { functions: registry, sources };
  const lines: string[] = [];
  let pipelines = 0;
  const show = (node: Plan, depth: number, marks: readonly string[]) => {
    const indent = "  ".repeat(depth);
    const [head, ...more] = describe(node);
    lines.push(`${indent}${head}${marks.length === 0 ? "" : ` [${marks.join("; ")}]`}`);
    for (const line of more) lines.push(`${indent}    ${line}`);
  };
  const ofScan = (node: Plan) => {
    if (node.node !== "scan") return [];
    return [...scanMarks(node, details), ...(statistics === undefined ? [] : readMarks(node, statistics))];
  };
  const visit = (physical: PhysicalPlan, depth: number): void => {
    const { node, fused, inputs } = physical;
    const pipeline = fused.length > 0 || physical.operator === "pipeline" ? ++pipelines : undefined;
    const calls = nodeCalls(physical, facts);
    const marks = [...ofScan(node), ...wayMarks(physical, calls, pipeline)];
    if (statistics !== undefined) marks.push(...operatorMarks(physical, calls, statistics));
    show(node, depth, marks);
    fused.forEach((part, k) => {
      const rows = statistics === undefined ? [] : fusedMarks(physical, k, statistics);
      show(part.node, depth + 1 + k, [...ofScan(part.node), `in pipeline ${pipeline}`, ...rows]);
    });
    const right = physical.operator === "join" ? inputs.at(-1) : undefined;
    for (const input of inputs) visit(input, depth + 1 + (input === right ? 0 : fused.length));
  };
  visit(physicalPlan(plan, facts), 0);
  return lines;
}

const registry = createRegistry();

/** The part of its table that a scan reads. */
export function scanMarks(
  { id, tableId, intervals }: Omit<ScanReading, "columnIds">,
  { sources, catalogue, marks: known }: ExplainDetails,
): string[] {
  if (known !== undefined) return known[id];
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
  marks.push(`segments ${segments}`, `rows ${source.segments.reduce((sum, segment) => sum + segment.rowCount, 0)}`);
  return marks;
}

/** For statements that change tables, the first line is the change. */
function explainStatement(bound: BoundStatement, details: ExplainDetails): string[] {
  const head = kindOf(bound).explain?.(bound);
  if (bound.plan === undefined) return [head ?? bound.kind];
  const lines = explainPlan(bound.plan, details);
  return head === undefined ? lines : [head, ...lines.map((line) => `  ${line}`)];
}
