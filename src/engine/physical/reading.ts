/**
 * Filters and projections over a scan, a join or another operator are combined to predicates and expressions over its columns, so that
 * one kernel executes them. Aggregates, sorts and joins include these in their own kernels.
 */
import { assert } from "../../assert.ts";
import {
  childrenOf,
  type Column,
  type Expr,
  type FilterNode,
  type ProjectNode,
  type ScanNode,
} from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { mapColumns } from "../compiler/expression.ts";
import { type PlanFacts, scanDictionaries, sourceOf } from "./facts.ts";
import type { FusedNode, PhysicalPipeline, PhysicalPlan, Reading, ReadingBase } from "./plan.ts";
import { AHEAD_LIMITS, FUSED_SIZE_MAX, HELP_ROWS_MIN } from "./thresholds.ts";
import { isVolatile } from "./functions.ts";

/**
 * The part of a plan that an operator above takes over: a reading, the nodes that it executes, and the operators that
 * it reads from.
 */
export interface Below {
  reading: Reading;
  fused: FusedNode[];
  inputs: PhysicalPlan[];
}

export function chooseScan(id: number, node: ScanNode, facts: PlanFacts): PhysicalPipeline {
  const reading: Reading = {
    base: { kind: "scan", node },
    reader: id,
    baseColumns: node.columns,
    predicates: node.predicate === undefined ? [] : [node.predicate],
    exprs: identity(node.columns),
    columns: node.columns,
  };
  return pipeline(id, node, { reading, fused: [], inputs: [] }, facts);
}

export function chooseFilter(id: number, node: FilterNode, input: PhysicalPlan, facts: PlanFacts): PhysicalPipeline {
  return extended(id, node, input, node.predicate, undefined, facts);
}

export function chooseProject(id: number, node: ProjectNode, input: PhysicalPlan, facts: PlanFacts): PhysicalPipeline {
  return extended(id, node, input, undefined, node.expressions, facts);
}

function extended(
  id: number,
  node: FilterNode | ProjectNode,
  input: PhysicalPlan,
  predicate: Expr | undefined,
  exprs: readonly Expr[] | undefined,
  facts: PlanFacts,
): PhysicalPipeline {
  const below = fusedWith(input, id), reading = then(below.reading, predicate, exprs, node.columns, facts);
  if (reading !== undefined) return pipeline(id, node, { ...below, reading }, facts);
  const apart = batchesOf(input), ofBatches = then(apart.reading, predicate, exprs, node.columns, facts);
  assert(ofBatches !== undefined, "a column can always be read");
  return pipeline(id, node, { ...apart, reading: ofBatches }, facts);
}

function pipeline(id: number, node: PhysicalPipeline["node"], below: Below, facts: PlanFacts): PhysicalPipeline {
  const { reading } = below;
  return {
    operator: "pipeline",
    id,
    node,
    ...below,
    rowsAtMost: rowsAtMost(reading, facts),
    ahead: isWorthHelp(reading, facts) ? facts.thresholds?.ahead ?? AHEAD_LIMITS : undefined,
  };
}

/** True if the rows of a scan take a while, and may be computed in any order. */
function isWorthHelp(reading: Reading, facts: PlanFacts): boolean {
  const { base, predicates, exprs } = reading, rowsMin = facts.thresholds?.helpFromRows ?? HELP_ROWS_MIN;
  if (base.kind !== "scan" || base.node.rowId || sourceOf(base.node, facts).rowCount < rowsMin) return false;
  return isRepeatable(reading, facts) && !predicates.some((expr) => isVolatile(expr, facts)) &&
    (predicates.length > 0 || exprs.some(({ kind }) => kind === "call" || kind === "case"));
}

/** The input's rows, which operator `id` reads in one pass if possible. */
export function fusedWith(input: PhysicalPlan, id: number): Below {
  if (input.operator === "pipeline") {
    const { reading, fused, inputs } = input;
    return { reading: { ...reading, reader: id }, fused: [{ id: input.id, node: input.node }, ...fused], inputs };
  }
  if (input.operator !== "join") return batchesOf(input);
  const reading = { base: { kind: "join" }, baseColumns: input.columns, ...input.over } as const;
  return { reading: { ...reading, columns: input.node.columns, reader: id }, fused: [], inputs: [input] };
}

/** The input's rows as it outputs them. */
export function batchesOf(input: PhysicalPlan): Below {
  return { reading: readingOf(input.node.columns), fused: [], inputs: [input] };
}

/** Batches of these columns. */
export function readingOf(columns: readonly Column[]): Reading {
  return { base: { kind: "input" }, baseColumns: columns, predicates: [], exprs: identity(columns), columns };
}

/** Adds a filter or a projection to a reading; undefined if they cannot be combined. */
function then(
  reading: Reading,
  predicate: Expr | undefined,
  exprs: readonly Expr[] | undefined,
  columns: readonly Column[],
  facts: PlanFacts,
): Reading | undefined {
  if (!isRepeatable(reading, facts)) return undefined;
  // An operator tests the conditions of one node only, so that the rows of each node are known. Other filters have been merged by
  // the planner, unless they are volatile or very long.
  if (predicate !== undefined && reading.predicates.length > 0) return undefined;
  const predicates = predicate === undefined ? reading.predicates : [over(reading, predicate)];
  const results = exprs?.map((expr) => over(reading, expr)) ?? reading.exprs;
  const computes = reading.exprs.some((expr) => expr.kind !== "column" && expr.kind !== "constant");
  if (
    computes &&
    [...predicates, ...results].reduce((sum, expr) => sum + sizeOf(expr), 0) > FUSED_SIZE_MAX + results.length
  ) return undefined;
  return { ...reading, predicates, exprs: results, columns };
}

/** Rewrites an expression over the reading's columns to the base's columns. */
export function over({ exprs }: Reading, expr: Expr): Expr {
  return mapColumns(expr, (index) => exprs[index]!);
}

/** True if expressions over the columns may be computed from the base; not if they are volatile. */
export function isRepeatable({ exprs }: Reading, facts: PlanFacts): boolean {
  return !exprs.some((expr) => isVolatile(expr, facts));
}

/** The column of row ids, which is not stored in chunks. */
export function rowIdColumn({ base }: Reading): number | undefined {
  return base.kind === "scan" && base.node.rowId ? base.node.columns.length - 1 : undefined;
}

/** True if its base can be read by morsels, on any thread. */
export function isByMorsels({ base }: Reading, inputs: readonly PhysicalPlan[]): boolean {
  if (base.kind === "scan") return true;
  return joinOf(base, inputs)?.byMorsels === true;
}

/** True if it is so and its base is a scan, or a join whose left sides lead down to one. */
export function isByMorselsOfScan(reading: Reading, inputs: readonly PhysicalPlan[]): boolean {
  const join = joinOf(reading.base, inputs);
  if (join?.way === "splice") return false;
  return join === undefined ? isByMorsels(reading, inputs) : isByMorselsOfScan(join.left, join.inputs);
}

function joinOf(base: ReadingBase, [first]: readonly PhysicalPlan[]) {
  return base.kind === "join" && first?.operator === "join" ? first : undefined;
}

/** Approximate number of rows of the base; 0 if unknown. */
export function expectedRows({ base }: Reading, inputs: readonly PhysicalPlan[], facts: PlanFacts): number {
  if (base.kind === "scan") return sourceOf(base.node, facts).rowCount;
  return joinOf(base, inputs)?.expectedLeftRows ?? 0;
}

/** The expression that reads a column. */
export function columnAt(index: number, type: string): Expr {
  return { kind: "column", index, type };
}

/** Dictionaries of the base's columns, if known before its rows. */
export function dictionariesOf({ base }: Reading, facts: PlanFacts): (Dictionary | undefined)[] | undefined {
  return base.kind === "scan" ? scanDictionaries(base.node, sourceOf(base.node, facts)) : undefined;
}

function rowsAtMost({ base, predicates }: Reading, facts: PlanFacts): number | undefined {
  if (base.kind !== "scan" || predicates.length > 0 || base.node.intervals !== undefined) return undefined;
  return sourceOf(base.node, facts).rowCount;
}

export function identity(columns: readonly Column[]): Expr[] {
  return columns.map(({ type }, index) => columnAt(index, type));
}

export function typesOf(columns: readonly { type: string }[]): string[] {
  return columns.map((column) => column.type);
}

/** Columns between operators, whose names nothing reads. */
export function unnamedColumns(types: readonly string[]): Column[] {
  return types.map((type, c) => ({ name: `c${c}`, type }));
}

function sizeOf(expr: Expr): number {
  return childrenOf(expr).reduce((sum, child) => sum + sizeOf(child), 1);
}
