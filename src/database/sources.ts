/** Finds what a plan reads and estimates its work. */
import { type FunctionRegistry, hasKernel, type PostedPlan, scansOf } from "../engine/mod.ts";
import { conjuncts, scanMarks } from "../sql/mod.ts";
import { type AggregateNode, childrenOf, type Expr, isEquality, type LatestNode, type LimitNode } from "../sql/plan.ts";
import type { Plan, ScanNode, ScanReading } from "../sql/plan.ts";
import type { Catalogue, ScanSource } from "../storage/contract.ts";

/** The segments of the current snapshots for every scan, by its id. */
export function resolveSources(plan: PostedPlan, catalogue: Catalogue): ScanSource[] {
  let scans = known.get(plan);
  if (scans === undefined) known.set(plan, scans = scansOf(plan));
  return sourcesOf(scans, catalogue);
}

/** The scans of plans. */
const known = new WeakMap<PostedPlan, ScanReading[]>();

function sourcesOf(scans: ScanReading[], catalogue: Catalogue): ScanSource[] {
  // Of its length: a list that grows allocates 17 elements.
  const sources = new Array<ScanSource>(scans.length);
  for (const { id, tableId, columnIds, intervals } of scans) {
    sources[id] = catalogue.tableById(tableId)!.source(columnIds, intervals);
  }
  return sources;
}

/** The descriptions of the scans for EXPLAIN, and their sources, by id, in a form that can be posted to the planner. */
export function marksOf(
  scans: ScanReading[],
  catalogue: Catalogue,
  sources = sourcesOf(scans, catalogue),
): { marks: string[][]; sources: ScanSource[] } {
  const marks: string[][] = [];
  for (const scan of scans) marks[scan.id] = scanMarks(scan, { sources, catalogue });
  return { marks, sources: sources.map((source) => ({ ...source, segments: [...source.segments] })) };
}

/** A row counts once for each of this many columns. */
const COLUMNS_A_ROW = 16;
/** Work of a row that a kernel reads; one that is sorted, joined, formatted or read by a function of batches counts 1. */
export const KERNEL_ROW = 1 / 16;
/** Likewise, if it is assigned to a group. */
const GROUPED_ROW = 1 / 4;

/** Rounds of a recursion mostly have few rows. If not, the time limit of direct queries moves them to a worker. */
const WORKING_ROWS = 100;

/**
 * LATEST ON reads the newest rows until it has seen each key that conditions allow, and LIMIT until enough rows have passed the
 * conditions. If they have to read more, a worker does it.
 */
const LATEST_ROWS = 65_536;

/**
 * Of rows under conditions this many are expected to pass, if the query is stopped otherwise: values that are looked for are rare, and
 * of other conditions more may pass.
 */
const FOUND_SHARE = 1 / 16, PASSING_SHARE = 1 / 2;

/**
 * The work of a plan in rows, which decides where it runs: how many rows each node reads, and how much a row costs there.
 * `rowsLeft`: of a scan, after the search for its intervals. It may stop at `max`. `isStopped`: the query is stopped if it reads more
 * rows than are expected.
 */
export function workOf(
  plan: Plan,
  sources: readonly ScanSource[],
  functions: FunctionRegistry,
  rowsLeft: (scan: ScanNode) => number,
  max = Infinity,
  isStopped = false,
): number {
  let work = 0;
  const costOf = (exprs: readonly (Expr | undefined)[]) =>
    exprs.every((expr) => expr === undefined || isOfKernels(expr, functions)) ? KERNEL_ROW : 1;
  const under = (count: number, predicate: Expr | undefined) => isStopped ? count * shareOf(predicate) : count;
  /** Adds the node's work and returns an upper bound of its rows, or what is expected of them. */
  const rows = (node: Plan): number => {
    if (work > max) return 0;
    switch (node.node) {
      case "scan": {
        const left = sources[node.id]!.rowCount === 0 ? 0 : rowsLeft(node);
        return under(passed(left, costOf([node.predicate]), node), node.predicate);
      }
      case "filter":
        return under(passed(rows(node.input), costOf([node.predicate]), node), node.predicate);
      case "project":
        return passed(rows(node.input), costOf(node.expressions), node);
      case "parquet":
      case "spooled":
      case "files":
        return passed(Infinity, 1, node);
      case "values":
        return passed(node.rows.length, 1, node);
      case "metadata":
        return passed(100, 1, node);
      case "working":
        return passed(WORKING_ROWS, 1, node);
      case "sequence":
        return passed(node.count, 1, node);
      case "join": {
        const left = rows(node.left), right = rows(node.right);
        return passed(Math.max(left * right, left, right), 1, node);
      }
      case "windowJoin": {
        const left = rows(node.left), right = rows(node.right);
        // A window may have all right rows.
        work += costOf(node.aggregates.flatMap((call) => call.args)) * left * right;
        return passed(left, 1, node);
      }
      case "horizonJoin": {
        const left = rows(node.left), right = rows(node.right);
        return passed(Math.max(left * node.offsets.length, right), 1, node);
      }
      case "timeJoin":
      case "set":
      case "recursion":
        return passed(rows(node.left) + rows(node.right), 1, node);
      case "sample": {
        // A fill may make any number of rows from few.
        const input = rows(node.input);
        return passed(node.fills.length > 0 ? Infinity : input, 1, node);
      }
      case "aggregate": {
        const isWhole = node.keys.length === 0;
        if (isWhole && countsRows(node)) return 1;
        const input = rows(node.input), args = node.aggregates.flatMap((call) => call.args);
        work += input * Math.max(isWhole ? KERNEL_ROW : GROUPED_ROW, costOf([...node.keys, ...args]));
        return isWhole ? 1 : Math.min(input, groupsOf(node, sources));
      }
      case "latest": {
        const { input } = node, keys = input.node === "scan" ? keysOf(node, sources[input.id]!) : Infinity;
        const isWhole = input.node === "scan" && input.predicate === undefined && input.intervals === undefined;
        if (input.node !== "scan" || !(isWhole || (isStopped && keys < Infinity))) return passed(rows(input), 1, node);
        const left = isWhole || sources[input.id]!.rowCount === 0 ? sources[input.id]!.rowCount : rowsLeft(input);
        work += Math.min(LATEST_ROWS, left) * costOf([input.predicate]);
        return Math.min(keys, left);
      }
      case "limit": {
        const count = rowsFromEnd(node), chain = count === undefined ? undefined : chainOf(node.input);
        if (count === undefined || chain === undefined) return passed(rows(node.input), 1, node);
        const { scan, conditions, expressions } = chain;
        const most = conditions.length === 0 ? count : isStopped ? Math.max(count, LATEST_ROWS) : Infinity;
        const read = sources[scan.id]!.rowCount === 0 ? 0 : Math.min(most, rowsLeft(scan));
        work += read * costOf([...conditions, ...expressions]);
        return passed(Math.min(count, read), KERNEL_ROW, node);
      }
      default:
        return passed(rows(node.input), 1, node);
    }
  };
  const passed = (count: number, cost: number, { columns }: Plan): number => {
    work += count * cost * Math.max(1, columns.length / COLUMNS_A_ROW);
    return count;
  };
  // The rows of the result are encoded.
  const result = rows(plan);
  return work + Math.max(1, result) * Math.max(1, plan.columns.length / COLUMNS_A_ROW);
}

function shareOf(predicate: Expr | undefined): number {
  if (predicate === undefined) return 1;
  const isFound = conjuncts(predicate).some((e) => e.kind === "in" || isEquality(e));
  return isFound ? FOUND_SHARE : PASSING_SHARE;
}

/** The number of rows, if they are the first or the last ones. */
function rowsFromEnd({ low, high }: LimitNode): number | undefined {
  const bounds = [low ?? high, high].map((bound) => bound.kind === "constant" ? Number(bound.value) : NaN);
  const isOfEnd = bounds.every((bound) => bound >= 0) || bounds.every((bound) => bound < 0);
  return isOfEnd ? Math.max(...bounds.map(Math.abs)) : undefined;
}

/** The scan below filters and projections, and their expressions. */
function chainOf(plan: Plan): { scan: ScanNode; conditions: Expr[]; expressions: Expr[] } | undefined {
  const conditions: Expr[] = [], expressions: Expr[] = [];
  let node = plan;
  for (; node.node === "filter" || node.node === "project"; node = node.input) {
    if (node.node === "filter") conditions.push(node.predicate);
    else expressions.push(...node.expressions);
  }
  if (node.node !== "scan") return undefined;
  if (node.predicate !== undefined) conditions.push(node.predicate);
  return { scan: node, conditions, expressions };
}

/** The most groups, if the keys are symbols of a table; otherwise Infinity. */
function groupsOf({ keys, input }: AggregateNode, sources: readonly ScanSource[]): number {
  if (keys.length === 0) return 1;
  const chain = chainOf(input);
  if (chain === undefined || chain.expressions.length > 0) return Infinity;
  let groups = 1;
  for (const key of keys) {
    const dictionary = key.kind === "column" ? sources[chain.scan.id]!.dictionaries[key.index] : undefined;
    groups *= dictionary === undefined ? Infinity : dictionary.count + 1;
  }
  return groups;
}

/** The most keys of a LATEST ON, if they are symbols of the table; otherwise Infinity. */
function keysOf({ keys, input }: LatestNode, { dictionaries }: ScanSource): number {
  const [key] = keys;
  if (keys.length !== 1 || key?.kind !== "column") return Infinity;
  const dictionary = dictionaries[key.index];
  if (dictionary === undefined) return Infinity;
  const conditions = input.node === "scan" && input.predicate !== undefined ? conjuncts(input.predicate) : [];
  const isKey = (e: Expr) => e.kind === "column" && e.index === key.index;
  const allowed = conditions.map((e) =>
    e.kind === "in" && isKey(e.operand) ? e.values.length : isEquality(e) && e.args.some(isKey) ? 1 : Infinity
  );
  return Math.min(dictionary.count + 1, ...allowed);
}

function isOfKernels(expr: Expr, functions: FunctionRegistry): boolean {
  if (expr.kind === "call" && !hasKernel(expr, { functions })) return false;
  return childrenOf(expr).every((child) => isOfKernels(child, functions));
}

/** count() over a whole table adds the segments' row counts and reads no row. */
function countsRows({ input, keys }: AggregateNode): boolean {
  return keys.length === 0 && input.node === "scan" && input.columnIds.length === 0 && !input.predicate &&
    !input.intervals;
}
