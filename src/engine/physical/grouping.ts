/** Chooses how rows are grouped: GROUP BY, DISTINCT, and the groups of SAMPLE BY. */
import { assert } from "../../assert.ts";
import type { AggregateNode, DistinctNode, Expr, ScanNode } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { layoutOf } from "../../types/mod.ts";
import { NO_DICTIONARY } from "../columns.ts";
import { strideOf } from "../compiler/aggregate.ts";
import { columnsOf as columnsOfExpr, formOf, isText } from "../compiler/expression.ts";
import type { FunctionRegistry } from "../contract.ts";
import { conjuncts, dictionaryOf } from "../expressions.ts";
import { BOUNDED } from "../bounds.ts";
import { stagingOf } from "./calls.ts";
import { conditionOf } from "./single-conditions.ts";
import { countDistinct, countsApart, sideBySide } from "./distinct-counts.ts";
import type { PlanFacts } from "./facts.ts";
import { hasVolatile, isDistinctCount, isInKernel, isVolatile, keepsText, recordAggregate } from "./functions.ts";
import type {
  GroupCall,
  Grouping,
  GroupReads,
  GroupSpec,
  GroupWay,
  PhysicalAggregate,
  PhysicalPlan,
  TableKind,
} from "./plan.ts";
import {
  batchesOf,
  type Below,
  dictionariesOf,
  expectedRows,
  fusedWith,
  identity,
  isByMorsels,
  isRepeatable,
  over,
  rowIdColumn,
  typesOf,
} from "./reading.ts";
import { hashPartitions } from "./spill.ts";
import { DENSE_BYTES_MAX, DENSE_GROUPS_MAX, MANY_GROUPS, PARTITION_PAIRS_MAX, SAMPLED_ROWS_MIN } from "./thresholds.ts";

export function chooseAggregate(
  id: number,
  node: AggregateNode | DistinctNode,
  input: PhysicalPlan,
  facts: PlanFacts,
): PhysicalAggregate {
  const groups: AggregateNode = node.node === "aggregate"
    ? node
    : { ...node, node: "aggregate", keys: identity(input.node.columns), aggregates: [] };
  const below = readable(input, id, facts), apart = batchesOf(input);
  const grouping = groupingOf(groups, below, facts);
  const { fused, inputs } = grouping.way.kind === "batches" ? apart : below;
  return { operator: "aggregate", id, node, grouping, fused, inputs };
}

/**
 * The input's rows in one pass with their grouping. The rows of a scan are in the order of the table, even if a
 * sub-query sorts them in reverse, because first() and last() depend on the table's order.
 */
function readable(input: PhysicalPlan, id: number, facts: PlanFacts): Below {
  const below = fusedWith(input, id), { reading, fused } = below, { base } = reading;
  if (!isRepeatable(reading, facts)) return batchesOf(input);
  if (base.kind !== "scan" || !base.node.reverse) return below;
  const forwards: ScanNode = { ...base.node, reverse: false, order: "asc" };
  return {
    ...below,
    reading: { ...reading, base: { kind: "scan", node: forwards } },
    fused: fused.map((part) => part.node === base.node ? { ...part, node: forwards } : part),
  };
}

/** `canReadAgain`: the input gives the same rows each time. */
export function groupingOf(
  node: AggregateNode,
  below: Below,
  facts: PlanFacts,
  canReadAgain = !hasVolatile(node, facts),
): Grouping {
  return { node, way: wayOf(node, below, facts, canReadAgain) };
}

function wayOf(node: AggregateNode, below: Below, facts: PlanFacts, canReadAgain: boolean): GroupWay {
  const { keys, aggregates } = node;
  if (keys.length === 0 && aggregates.length === 1 && isDistinctCount(aggregates[0]!, facts)) {
    return countDistinct(node, below, facts, kernelWay);
  }
  const parts = sideBySide(node, below, facts, kernelWay);
  if (parts !== undefined) return parts;
  if (aggregates.every((call) => isInKernel(call, keys, facts))) return kernelWay(node, below, facts);
  const apart = facts.spills && canReadAgain
    ? countsApart(node, facts, kernelWay, (others) => batchesWay(others, facts))
    : undefined;
  return batchesWay(node, facts, apart);
}

function batchesWay({ keys, aggregates }: AggregateNode, facts: PlanFacts, apart?: GroupWay): GroupWay {
  const columns = keys.map(({ type }, index): Expr => ({ kind: "column", index, type }));
  const table = tableOf(columns, [], undefined, facts.functions);
  // Arguments are distinct in their group, so its number is a key.
  const group: Expr[] = keys.length > 0 ? [{ kind: "column", index: 0, type: "INT" }] : [];
  const distinct = aggregates.map((call) =>
    call.distinct ? tableOf([...group, ...call.args], [], undefined, facts.functions) : undefined
  );
  const spill = hashPartitions(apart === undefined ? keys : [...keys, ...aggregates], facts);
  return { kind: "batches", table, distinct, spill, apart };
}

function kernelWay(node: AggregateNode, below: Below, facts: PlanFacts): GroupWay {
  const spec = specOf(node, below, facts);
  const reads = readsOf(spec, below, facts), spill = hashPartitions(node.keys, facts);
  const isOverBatches = reads === "in order",
    segments = reads === "ranges" ? segmentsOf(spec, below, facts) : undefined;
  return {
    kind: "kernel",
    reading: below.reading,
    spec: { ...spec, isOverBatches, segments },
    reads,
    spill,
  };
}

function readsOf(spec: GroupSpec, below: Below, facts: PlanFacts): GroupReads {
  const { predicates, keys, calls } = spec;
  if (!isByMorsels(below.reading, below.inputs)) return "in order";
  const readsNothing = keys.length === 0 && predicates.length === 0 && calls.every((call) => call.args.length === 0);
  if (readsNothing && below.reading.base.kind === "scan") return "count";
  // Volatile functions must see all rows, in order.
  return exprsOf(spec).some((expr) => isVolatile(expr, facts)) ? "one range" : "ranges";
}

/** The types whose sums are exact as integers of one scale. */
const SUMMED_BY_OFFSETS: ReadonlySet<string> = BOUNDED;

/** A float of 4 bytes is rounded from its integer, so integers give the extremes of FLOAT, but no sum. */
const AGGREGATES_OF_FLOATS: ReadonlySet<string> = new Set(["count", "min", "max"]);

/** Of products of doubles, the number and the sum are known. */
const AGGREGATES_OF_PRODUCTS: ReadonlySet<string> = new Set(["count", "sum", "avg"]);

/**
 * For each call, the plain columns that give it by the number, sum and extremes of their integers: a column, or the two factors of a product of
 * doubles. Undefined if it has to see the values.
 */
export function columnsOfOffsets(
  calls: readonly GroupCall[],
  functions: FunctionRegistry,
): (readonly number[] | undefined)[] {
  const list = calls.map((call) => columnsOf(call, functions));
  // Values of a FLOAT that have to be read give all of its aggregates.
  const read = new Set<number>();
  calls.forEach(({ args }, k) => {
    if (list[k] === undefined) { for (const arg of args) columnsOfExpr(arg, read); }
  });
  return list.map((columns, k) => {
    const [arg] = calls[k]!.args;
    return arg?.type === "FLOAT" && columns?.some((column) => read.has(column)) ? undefined : columns;
  });
}

function columnsOf({ function: id, args }: GroupCall, functions: FunctionRegistry): number[] | undefined {
  const [arg] = args, { name, aggregate } = functions.resolve(id).entry;
  if (args.length !== 1 || aggregate?.kind !== "fused" || aggregate.summarised === undefined) return undefined;
  if (arg!.kind === "column") {
    const isGiven = arg!.type === "FLOAT" ? AGGREGATES_OF_FLOATS.has(name) : SUMMED_BY_OFFSETS.has(arg!.type);
    return isGiven ? [arg!.index] : undefined;
  }
  if (arg!.kind !== "call" || functions.resolve(arg!.function).entry.name !== "*") return undefined;
  const factors = arg!.args.map((factor) =>
    factor.kind === "column" && factor.type === "DOUBLE" ? factor.index : undefined
  );
  return AGGREGATES_OF_PRODUCTS.has(name) && isWhole(factors) ? factors : undefined;
}

function isWhole<T>(list: readonly (T | undefined)[]): list is T[] {
  return !list.includes(undefined);
}

/** How whole segments of a scan are grouped, if the table is dense or has one group. */
export function segmentsOf(
  spec: GroupSpec,
  { reading: { base } }: Below,
  { functions }: PlanFacts,
): GroupSpec["segments"] {
  const { predicates, keys, calls, staged, table, rowIdColumn } = spec;
  if (base.kind !== "scan" || rowIdColumn !== undefined || staged === true || calls.length === 0) return undefined;
  const ofOffsets = columnsOfOffsets(calls, functions);
  const parts = predicates.flatMap((predicate) => conjuncts(predicate, { functions }));
  const conditions = parts.map((part) => conditionOf(part, base.node, { functions }));
  const masked = parts.length > 0 && !conditions.includes(undefined) ? "masks" : undefined;
  if (keys.length > 0) {
    if (predicates.length > 0) return masked;
    if (table === "hash") return undefined;
    return ofOffsets.some((columns) => columns !== undefined) ? "codes" : "values";
  }
  const isCompared = conditions.every((condition) => condition?.kind === "bounds");
  // Without keys, a kernel over the values of FLOAT is as fast.
  const areGiven = calls.every(({ args: [arg] }, k) =>
    arg === undefined || (ofOffsets[k] !== undefined && arg.type !== "FLOAT")
  );
  if (!isCompared || !areGiven || ofOffsets.every((columns) => columns === undefined)) return masked;
  // Without keys and conditions, summaries give plain columns.
  return parts.length > 0 || calls.some(({ args: [arg] }) => arg?.kind === "call") ? "codes" : undefined;
}

export function exprsOf({ predicates, keys, calls }: GroupSpec): Expr[] {
  return [...predicates, ...keys, ...calls.flatMap((call) => call.args)];
}

/** The node's keys and calls over the columns of the base. */
export function specOf(node: AggregateNode, { reading, inputs }: Below, facts: PlanFacts): GroupSpec {
  const through = (exprs: readonly Expr[]) => exprs.map((expr) => over(reading, expr));
  const keys = through(node.keys);
  const calls = node.aggregates.map((call) => ({ function: call.function, args: through(call.args), type: call.type }));
  const args = calls.flatMap((call) => call.args);
  const dictionaries = dictionariesOf(reading, facts), rows = expectedRows(reading, inputs, facts);
  // Kernels cannot hold 128-bit states.
  const staged = args.some((arg) => formOf(arg.type) === undefined) ||
    stagingOf([...keys, ...args], reading.predicates, typesOf(reading.baseColumns), {
      functions: facts.functions,
      dictionaries,
      expectedRows: rows,
    });
  return {
    predicates: reading.predicates,
    keys,
    calls,
    rowIdColumn: rowIdColumn(reading),
    expectedRows: rows,
    staged,
    table: tableOf(keys, calls, dictionaries, facts.functions),
    keepsTexts: calls.some((call) => keepsText(call, facts)),
  };
}

/** `dictionaries`: undefined before the rows are available. */
export function tableOf(
  keys: readonly Expr[],
  calls: readonly { function: string }[],
  dictionaries: readonly (Dictionary | undefined)[] | undefined,
  functions: FunctionRegistry,
): TableKind {
  if (keys.length === 0) return "single";
  if (calls.some((call) => keepsText(call, { functions }))) return "hash";
  if (!keys.every(({ type }) => layoutOf(type) === "symbol" || type === "BOOLEAN" || type === "BYTE")) return "hash";
  if (dictionaries === undefined && keys.some(({ type }) => layoutOf(type) === "symbol")) return "measured";
  const groups = keys.reduce((product, key) => product * denseRange(key, dictionaries ?? []).count, 1);
  const states = calls.map((call) => {
    const { entry, types } = functions.resolve(call.function), aggregate = recordAggregate(entry);
    assert(aggregate !== undefined, `${call.function} keeps its state in a record`);
    return { aggregate, types };
  });
  const bytes = groups * strideOf(1, states);
  return groups > DENSE_GROUPS_MAX || bytes > DENSE_BYTES_MAX ? "hash" : "dense";
}

/** The numbers of a key in a dense table: value + bias. */
export function denseRange(
  key: Expr,
  dictionaries: readonly (Dictionary | undefined)[],
): { bias: number; count: number } {
  if (layoutOf(key.type) === "symbol") {
    return { bias: 1, count: (dictionaryOf(key, dictionaries) ?? NO_DICTIONARY).count + 1 };
  }
  return key.type === "BOOLEAN" ? { bias: 0, count: 2 } : { bias: 128, count: 256 };
}

/** The result of grouping the first morsel. */
export interface GroupSample {
  groups: number;
  rows: number;
  /** Rows of the scan. */
  scanned: number;
  /** Of the table. */
  bytes: number;
}

/** Average number of rows for each row of the scan, which a join can multiply. */
export function pairsOf({ rows, scanned }: GroupSample): number {
  return rows / Math.max(1, scanned);
}

/**
 * True if a morsel is grouped first to estimate the number of groups. `table`: the kind determined by the dictionaries.
 */
export function isSampled(table: TableKind, scannedRows: number): boolean {
  return scannedRows >= SAMPLED_ROWS_MIN && table === "hash";
}

/**
 * The choice after a sample. "parts": rows are partitioned by the hashes of their keys, and partitions are grouped
 * separately. "merged": small ranges of rows are grouped, and their groups are partitioned.
 */
export function readsAfter(
  sample: GroupSample,
  { keys, keepsTexts }: GroupSpec,
  isStaged: boolean,
): "parts" | "merged" | "ranges" {
  if (sample.groups < MANY_GROUPS) return "ranges";
  // Texts would have to be written too, and a join that multiplies rows writes many of them for each range.
  const fits = !isStaged && !keepsTexts && !keys.some(({ type }) => isText(type)) &&
    pairsOf(sample) <= PARTITION_PAIRS_MAX;
  return fits ? "parts" : "merged";
}
