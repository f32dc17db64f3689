/**
 * EXPLAIN: prints a plan as indented lines. Scans show how many partitions and segments remain after pruning; pipelines show
 * which nodes run as one fused kernel.
 */
import type { Catalogue, ScanSource } from "../storage/contract.ts";
import { formatValue } from "../types/format/mod.ts";
import { typeOf, type Value } from "../types/mod.ts";
import { walk } from "./binder/plans.ts";
import { createRegistry } from "./functions/mod.ts";
import type {
  AggregateCall,
  BoundStatement,
  Expr,
  Interval,
  OtherBound,
  Plan,
  ScanReading,
  SortKey,
  WindowFrame,
} from "./plan.ts";
import { type PhysicalPlan, physicalPlan, type PlanStatistics } from "../engine/mod.ts";
import { inputsOf, mapNodeExpressions } from "./planner/nodes.ts";

export interface ExplainDetails {
  /** By scan id. */
  sources?: readonly ScanSource[];
  /** Provides the size of a table without pruning. */
  catalogue?: Catalogue;
  /** Replaces both: the text for each scan, by its id. */
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
  const lines: string[] = [];
  let pipelines = 0;
  const visit = (physical: PhysicalPlan, depth: number, above: number | undefined): void => {
    const { node } = physical;
    const indent = "  ".repeat(depth);
    const [head, ...more] = describe(physical);
    const marks: string[] = node.node === "scan" ? scanMarks(node, details) : [];
    const pipeline = isStage(node) ? above ?? ++pipelines : undefined;
    if (pipeline !== undefined) {
      const batch = batchCalls(node);
      marks.push(`pipeline ${pipeline}: ${batch.length === 0 ? "fused" : `between kernels ${batch.join(", ")}`}`);
    }
    if (details.statistics !== undefined) marks.push(...statisticsMarks(physical, details.statistics));
    lines.push(`${indent}${head}${marks.length === 0 ? "" : ` [${marks.join("; ")}]`}`);
    for (const line of more) lines.push(`${indent}    ${line}`);
    for (const input of physical.inputs) {
      visit(input, depth + 1, pipeline !== undefined && continues(input.node) ? pipeline : undefined);
    }
  };
  visit(physicalPlan(plan, { functions: registry }), 0, undefined);
  return lines;
}

/** The measurements of a node as text. */
function statisticsMarks({ id, node, inputs }: PhysicalPlan, { nodes, scans }: PlanStatistics): string[] {
  const { batches, rows, bytes, nanos, memoryPeakBytes } = nodes[id];
  const marks: string[] = [];
  // Some operators find their result without reading the whole scan.
  if (node.node === "scan" && scans[node.id].rows > 0) {
    marks.push(`read ${scans[node.id].rows} rows, ${sizeText(scans[node.id].bytes)}`);
  }
  if (batches === 0 && nanos === 0) marks.push("done by the operator above");
  else {
    const own = Math.max(0, nanos - inputs.reduce((sum, input) => sum + timeOf(nodes, input), 0));
    marks.push(`gave ${rows} rows, ${sizeText(bytes)}`, `time ${timeText(nanos)}, own ${timeText(own)}`);
  }
  if (memoryPeakBytes > 0) marks.push(`peak memory ${sizeText(memoryPeakBytes)}`);
  return marks;
}

/** Time of a node including its inputs. If another operator did its work, the time of its inputs. */
function timeOf(nodes: PlanStatistics["nodes"], { id, inputs }: PhysicalPlan): number {
  if (nodes[id].nanos > 0) return nodes[id].nanos;
  return inputs.reduce((sum, input) => sum + timeOf(nodes, input), 0);
}

export function timeText(nanos: number): string {
  return `${(nanos / 1e6).toFixed(3)} ms`;
}

export function sizeText(bytes: number): string {
  const unit = bytes < 10_240 ? 0 : bytes < 10 * 2 ** 20 ? 1 : bytes < 10 * 2 ** 30 ? 2 : 3;
  return `${Math.round(bytes / 1024 ** unit)} ${["B", "KiB", "MiB", "GiB"][unit]}`;
}

/** How much of its table a scan reads. */
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

/** True for nodes that share a kernel with their input. */
function isStage(plan: Plan): boolean {
  return plan.node === "aggregate" || continues(plan);
}

function continues(plan: Plan): boolean {
  return plan.node === "scan" || plan.node === "filter" || plan.node === "project";
}

const registry = createRegistry();

/** Functions of the node without a kernel form. They run on whole batches, between two kernels. */
function batchCalls(plan: Plan): string[] {
  const names = new Set<string>();
  const look = (e: Expr): Expr => {
    walk(e, (inner) => {
      if (inner.kind !== "call") return;
      const { entry } = registry.resolve(inner.function);
      if (entry.emit === undefined) names.add(entry.name);
    });
    return e;
  };
  mapNodeExpressions(plan, look);
  if (plan.node === "aggregate") {
    for (const call of plan.aggregates) {
      const { entry } = registry.resolve(call.function);
      if (entry.aggregate?.kind !== "fused") names.add(entry.name);
    }
  }
  return [...names];
}

/** Statements that change tables begin with what they do. */
function explainStatement(bound: BoundStatement, details: ExplainDetails): string[] {
  const statement = bound as OtherBound;
  const over = (head: string, plan: Plan): string[] => [head, ...explainPlan(plan, details).map((line) => `  ${line}`)];
  switch (statement.kind) {
    case "query":
      return explainPlan(statement.plan, details);
    case "explain":
      return explainStatement(statement.statement, details);
    case "insert":
      return over("Insert", statement.plan);
    case "update":
      return over("Update", statement.plan);
    case "delete":
      return over("Delete", statement.plan);
    case "createTable":
      return statement.plan === undefined
        ? [`Create table ${statement.table.name}`]
        : over(`Create table ${statement.table.name}`, statement.plan);
    default:
      return [statement.kind];
  }
}

function describe(physical: PhysicalPlan): string[] {
  const plan = physical.node;
  const names = plan.columns.map((column) => column.name);
  const inputs = inputNames(plan);
  const text = (e: Expr): string => exprText(e, inputs);
  switch (plan.node) {
    case "scan": {
      const lines = [
        `Scan ${plan.tableName}${plan.reverse ? ", newest first" : ""}: ${names.join(", ") || "no columns"}`,
      ];
      if (plan.intervals !== undefined) lines.push(`time: ${intervalsText(plan.intervals, timeType(plan))}`);
      if (plan.predicate !== undefined) lines.push(`where ${exprText(plan.predicate, names)}`);
      return lines;
    }
    case "parquet":
      return [`Parquet ${plan.path.split(/[\\/]/).at(-1)}: ${names.join(", ")}`];
    case "values":
      return [`Rows: ${plan.rows.length}`];
    case "metadata":
      return [`Metadata ${plan.source}(${plan.args.map(String).join(", ")})`];
    case "sequence":
      return [`Sequence of ${plan.count} from ${plan.start} by ${plan.step}`];
    case "filter":
      return [`Filter ${text(plan.predicate)}`];
    case "project":
      return [`Project ${plan.expressions.map((e, i) => named(text(e), names[i])).join(", ")}`];
    case "aggregate":
      return [`Aggregate ${aggregatesText(plan.aggregates, text)}`, ...keysLine("by", plan.keys, text)];
    case "sample": {
      const { count, unit, align, timeZone } = plan.sampling;
      const fills = plan.fills.length === 0 ? "" : `, fill(${plan.fills.map((fill) => fill.kind).join(", ")})`;
      return [
        `Sample by ${count}${unit}, align to ${align}${timeZone === "" ? "" : ` in ${timeZone}`}${fills}: ${
          aggregatesText(plan.aggregates, text)
        }`,
        ...keysLine("by", plan.keys, text),
      ];
    }
    case "latest":
      return [`Latest on ${text(plan.time)}`, ...keysLine("by", plan.keys, text)];
    case "sort":
      return [`Sort ${sortText(plan.keys, text)}${plan.limit === undefined ? "" : `, first ${plan.limit}`}`];
    case "limit":
      return [`Limit ${plan.low === undefined ? "" : `${text(plan.low)}, `}${text(plan.high)}${wayText(physical)}`];
    case "distinct":
      return ["Distinct"];
    case "join":
    case "timeJoin": {
      const leftNames = plan.left.columns.map((column) => column.name);
      const rightNames = plan.right.columns.map((column) => column.name);
      const keys = plan.leftKeys.map((key, i) =>
        `${exprText(key, leftNames)} = ${exprText(plan.rightKeys[i], rightNames)}`
      );
      const lines = [
        `${
          plan.type === "asof" || plan.type === "lt" || plan.type === "splice"
            ? plan.type.toUpperCase()
            : capital(plan.type)
        } join${keys.length === 0 ? "" : ` on ${keys.join(" and ")}`}`,
      ];
      if (plan.node === "join" && plan.residual !== undefined) {
        lines.push(`where ${exprText(plan.residual, [...leftNames, ...rightNames])}`);
      }
      if (plan.node === "timeJoin" && plan.tolerance !== undefined) lines.push(`tolerance ${plan.tolerance}`);
      return lines;
    }
    case "window":
      return [
        `Window${wayText(physical)}`,
        ...plan.calls.map((call) => {
          const parts = [
            ...(call.partitionBy.length === 0 ? [] : [`partition by ${call.partitionBy.map(text).join(", ")}`]),
            ...(call.orderBy.length === 0 ? [] : [`order by ${sortText(call.orderBy, text)}`]),
            frameText(call.frame),
          ];
          return `${callText(call.function, call.args.map(text))} over (${parts.join(" ")})`;
        }),
      ];
    case "set":
      return [capital(plan.operator)];
    case "unnest":
      return [`Unnest ${plan.arrays.map(text).join(", ")}`];
    case "recursion":
      return [`Recursion${plan.distinct ? ", distinct" : ""}`];
    case "working":
      return ["Rows of the round before"];
  }
}

function wayText(physical: PhysicalPlan): string {
  if (physical.operator === "window") return physical.way === "streaming" ? ", streaming" : ", over kept rows";
  if (physical.operator !== "limit") return "";
  const { way } = physical;
  switch (way.kind) {
    case "first":
      return "";
    case "last":
      return `, keeps ${way.count} rows`;
    case "last of reversed":
      return ", read from the end";
    case "without ends":
      return `, keeps ${way.without} rows`;
  }
}

function inputNames(plan: Plan): string[] {
  return inputsOf(plan).flatMap((input) => input.columns.map((column) => column.name));
}

function capital(text: string): string {
  return text[0].toUpperCase() + text.slice(1);
}

function named(text: string, name: string): string {
  return text === name ? text : `${text} as ${name}`;
}

function keysLine(word: string, keys: Expr[], text: (e: Expr) => string): string[] {
  return keys.length === 0 ? [] : [`${word} ${keys.map(text).join(", ")}`];
}

function aggregatesText(calls: AggregateCall[], text: (e: Expr) => string): string {
  return calls.map((call) => callText(call.function, call.args.map(text))).join(", ") || "keys only";
}

function callText(id: string, args: string[]): string {
  return `${id.slice(0, id.indexOf("("))}(${args.join(", ")})`;
}

function sortText(keys: SortKey[], text: (e: Expr) => string): string {
  return keys.map((key) => `${text(key.expression)}${key.descending ? " desc" : ""}`).join(", ");
}

function frameText(frame: WindowFrame): string {
  const bound = (offset: bigint | undefined, open: string): string =>
    offset === undefined
      ? open
      : offset === 0n
      ? "current row"
      : offset < 0n
      ? `${-offset} preceding`
      : `${offset} following`;
  return `${frame.unit} between ${bound(frame.start, "unbounded preceding")} and ${
    bound(frame.end, "unbounded following")
  }`;
}

function timeType(plan: Plan): string {
  return plan.timestamp < 0 ? "TIMESTAMP" : plan.columns[plan.timestamp].type;
}

/** More intervals than this are only counted. */
const INTERVALS_SHOWN = 4;

function intervalsText(intervals: readonly Interval[], type: string): string {
  const edge = 9223372036854775000n;
  const shown = intervals.slice(0, INTERVALS_SHOWN).map(([low, high]) =>
    `${low < -edge ? "" : valueText(low, type)} … ${high > edge ? "" : valueText(high, type)}`.trim()
  );
  if (intervals.length > INTERVALS_SHOWN) shown.push(`and ${intervals.length - INTERVALS_SHOWN} more`);
  return shown.join("; ") || "none";
}

function valueText(value: Value, type: string): string {
  if (value === null) return "null";
  if (typeOf(type).layout === "text" || type === "CHAR" || type === "SYMBOL") return `'${value}'`;
  return formatValue(value, type) ?? "null";
}

const INFIX = new Set([
  "+",
  "-",
  "*",
  "/",
  "%",
  "=",
  "!=",
  "<",
  "<=",
  ">",
  ">=",
  "and",
  "or",
  "&",
  "|",
  "^",
  "like",
  "ilike",
  "~",
]);

export function exprText(e: Expr, names: readonly string[]): string {
  const text = (inner: Expr): string => exprText(inner, names);
  switch (e.kind) {
    case "column":
      return names[e.index] ?? `#${e.index}`;
    case "constant":
      return valueText(e.value, e.type);
    case "parameter":
      return `$${e.index + 1}`;
    case "placeholder":
      throw new Error("a finished plan has no placeholders");
    case "in":
      return `${text(e.operand)} in (${e.values.map((value) => valueText(value, e.operand.type)).join(", ")})`;
    case "case":
      return `case ${e.branches.map((b) => `when ${text(b.when)} then ${text(b.then)} `).join("")}else ${
        text(e.otherwise)
      } end`;
    case "call": {
      const name = e.function.slice(0, e.function.indexOf("("));
      const args = e.args.map(text);
      if (INFIX.has(name) && args.length === 2) return `(${args[0]} ${name} ${args[1]})`;
      if (name.startsWith("cast_")) return `${args[0]}::${typeOf(e.type).name}`;
      if (name === "between") return `(${args[0]} between ${args[1]} and ${args[2]})`;
      if (name === "is_null") return `(${args[0]} is null)`;
      return `${name}(${args.join(", ")})`;
    }
  }
}
