/** Chooses how ORDER BY finds its rows. */
import type { SortKey, SortNode } from "../../sql/plan.ts";
import { typeOf } from "../../types/mod.ts";
import { formOf } from "../compiler/expression.ts";
import { stagingOf } from "./calls.ts";
import { type PlanFacts, scanDictionaries, sourceOf } from "./facts.ts";
import { isVolatile } from "./functions.ts";
import type { PhysicalPlan, PhysicalSort, SkipWay, SortWay } from "./plan.ts";
import {
  batchesOf,
  type Below,
  expectedRows,
  fusedWith,
  isByMorsels,
  isRepeatable,
  over,
  rowIdColumn,
} from "./reading.ts";
import { sortedRuns } from "./spill.ts";
import {
  BEST_LIMIT_MAX,
  FIRST_CUT_ROWS,
  HELP_ROWS_MIN,
  ROW_FORMAT_COLUMNS_MAX,
  TOP_LIMIT_MAX,
  TOP_ROWS_MIN,
} from "./thresholds.ts";

export function chooseSort(id: number, node: SortNode, input: PhysicalPlan, facts: PlanFacts): PhysicalSort {
  const apart = (way: SortWay): PhysicalSort => {
    const { fused, inputs } = batchesOf(input);
    return { operator: "sort", id, node, way, fused, inputs };
  };
  const { keys, limit } = node;
  const columns = node.columns.length, inRowFormat = columns > 1 && columns <= ROW_FORMAT_COLUMNS_MAX;
  const spill = sortedRuns(facts);
  const all: SortWay = { kind: "all", limit, inRowFormat, spill };
  if (limit === undefined) return apart(all);
  const skip = skipWay(keys[0]!);
  const below = fusedWith(input, id);
  const way = top(keys, limit, below, facts);
  if (way !== undefined) return { operator: "sort", id, node, way, fused: below.fused, inputs: below.inputs };
  const rows = input.operator === "pipeline" ? input.rowsAtMost ?? 0 : 0;
  if (rows > 0 && rows <= rowsBeforeFirstCut(limit)) return apart(all);
  if (!isWorthHelp(keys, limit, below, facts)) return apart({ kind: "best", limit, skip, spill });
  const best: SortWay = { kind: "best by morsels", limit, skip, reading: below.reading, spill };
  return { operator: "sort", id, node, way: best, fused: below.fused, inputs: below.inputs };
}

/** Number of rows collected before they are first reduced to the best. */
export function rowsBeforeFirstCut(limit: number): number {
  return 2 * limit + FIRST_CUT_ROWS;
}

/** Undefined if the sort must read all columns of all rows. */
function top(keys: readonly SortKey[], limit: number, { reading }: Below, facts: PlanFacts): SortWay | undefined {
  const { base } = reading;
  if (base.kind !== "scan" || base.node.reverse || rowIdColumn(reading) !== undefined) return undefined;
  const { node } = base, source = sourceOf(node, facts), { rowCount } = source;
  if (limit > TOP_LIMIT_MAX || rowCount < Math.max(TOP_ROWS_MIN, 4 * limit) || !isRepeatable(reading, facts)) {
    return undefined;
  }
  const ofScan = keys.map((key) => ({ ...key, expression: over(reading, key.expression) }));
  const exprs = ofScan.map((key) => key.expression);
  if (!hasBound(exprs[0]!.type) || !ofScan.every(isNatural)) return undefined;
  if (exprs.some((expr) => formOf(expr.type) === undefined)) return undefined;
  const types = node.columns.map((column) => column.type), dictionaries = scanDictionaries(node, source);
  const staged = stagingOf(exprs, reading.predicates, types, {
    functions: facts.functions,
    dictionaries,
    expectedRows: rowCount,
  });
  if (staged) return undefined;
  const helpFromRows = facts.thresholds?.helpFromRows ?? HELP_ROWS_MIN;
  return { kind: "top", limit, skip: skipWay(keys[0]!), reading, keys: ofScan, helpFromRows, spill: sortedRuns(facts) };
}

/** Nulls that are not in the order of values would need a second comparison. */
function skipWay({ expression: { type }, nulls }: SortKey): SkipWay {
  if (nulls !== undefined) return "none";
  const form = formOf(type), { order } = typeOf(type);
  const isNumber = (order === "signed" && (form === "i32" || form === "i64")) || (order === "float" && form === "f64");
  return isNumber ? "kernel" : "row by row";
}

/** True if a kernel can compare values of the type by one instruction. */
function hasBound(type: string): boolean {
  const form = formOf(type), { order } = typeOf(type);
  return form !== undefined && (order === "signed" || order === "float" || form === "u16");
}

/** True if the order of nulls follows from the order of values. */
function isNatural({ expression, descending, nulls }: SortKey): boolean {
  return nulls === undefined ||
    nulls === ((typeOf(expression.type).order === "float") === descending ? "first" : "last");
}

function isWorthHelp(keys: readonly SortKey[], limit: number, { reading, inputs }: Below, facts: PlanFacts): boolean {
  const { base, predicates, exprs } = reading;
  if (limit > BEST_LIMIT_MAX || !isByMorsels(reading, inputs)) return false;
  if (base.kind === "scan" && (base.node.reverse || base.node.rowId)) return false;
  if (expectedRows(reading, inputs, facts) < HELP_ROWS_MIN) return false;
  return ![...predicates, ...exprs, ...keys.map((key) => key.expression)].some((expr) => isVolatile(expr, facts));
}
