/** Chooses how distinct values are counted. */
import type { AggregateCall, AggregateNode, Column, Expr, ScanNode } from "../../sql/plan.ts";
import type { ScanSource } from "../../storage/contract.ts";
import { layoutOf } from "../../types/mod.ts";
import { type PlanFacts, scanDictionaries, sourceOf } from "./facts.ts";
import { isDistinctCount, isInKernel, isVolatile } from "./functions.ts";
import { stagingOf } from "./calls.ts";
import type { Grouping, GroupWay } from "./plan.ts";
import { type Below, identity, over, readingOf, typesOf, unnamedColumns } from "./reading.ts";
import { BITS_MAX, DISTINCT_ROWS_MIN } from "./thresholds.ts";

/** Chooses a grouping with aggregates that all have a kernel form. */
type KernelWay = (node: AggregateNode, below: Below, facts: PlanFacts) => GroupWay;

/** Counts the distinct values of one expression, without keys. */
export function countDistinct(node: AggregateNode, below: Below, facts: PlanFacts, group: KernelWay): GroupWay {
  const value = node.aggregates[0]!.args[0]!;
  const bits = byBits(value, below, facts);
  if (bits !== undefined) return bits;
  const columns = [{ name: "value", type: value.type }];
  const groups: AggregateNode = { ...node, keys: [value], aggregates: [], columns };
  return { kind: "values", groups: { node: groups, way: group(groups, below, facts) } };
}

function byBits(arg: Expr, { reading }: Below, facts: PlanFacts): GroupWay | undefined {
  const { base, predicates, reader } = reading, value = over(reading, arg);
  if (base.kind !== "scan" || predicates.some((predicate) => isVolatile(predicate, facts))) return undefined;
  const { node } = base, source = sourceOf(node, facts);
  const range = rangeOf(value, node, source);
  if (range === undefined) return undefined;
  const staged = stagingOf([value], predicates, typesOf(node.columns), {
    functions: facts.functions,
    dictionaries: scanDictionaries(node, source),
    expectedRows: source.rowCount,
  });
  if (staged) return undefined;
  const [low, high] = range, bytes = Math.ceil(Number(high - low + 1n) / 32) * 4;
  return { kind: "bits", node, reader, predicates, value, low, bytes };
}

/** The least and greatest value of a scan's integer column, by the segments' statistics. */
function rangeOf(value: Expr, node: ScanNode, source: ScanSource): [low: bigint, high: bigint] | undefined {
  if (value.kind !== "column" || value.index >= node.columnIds.length) return undefined;
  const layout = layoutOf(value.type);
  if (layout === "symbol") return [0n, BigInt(Math.max(1, source.dictionaries[value.index]?.count ?? 0))];
  if ((layout !== "i64" && layout !== "i32") || value.type === "IPv4") return undefined;
  let low: bigint | undefined, high: bigint | undefined;
  for (const { chunks, rowCount } of source.segments) {
    const stats = chunks[value.index]?.stats;
    if (stats === undefined || stats.nullCount === rowCount) continue; // all null
    if (stats.min === undefined || stats.max === undefined) return undefined;
    const min = BigInt(stats.min), max = BigInt(stats.max);
    if (low === undefined || min < low) low = min;
    if (high === undefined || max > high) high = max;
  }
  if (low === undefined || high === undefined) return [0n, 0n];
  return high - low < BITS_MAX ? [low, high] : undefined;
}

/** Types whose values a kernel groups and counts, without nulls. */
const COUNTED = new Set(
  "BYTE SHORT CHAR INT LONG FLOAT DOUBLE DATE TIMESTAMP TIMESTAMP_NS SYMBOL STRING VARCHAR IPv4".split(" "),
);

/**
 * Several distinct counts, or a distinct count with other aggregates: each part reads the rows again. Groups are in the
 * order of their first rows in every part, so the parts' columns can be combined. Undefined if this is impossible or
 * does not pay off.
 */
export function sideBySide(
  node: AggregateNode,
  below: Below,
  facts: PlanFacts,
  group: KernelWay,
): GroupWay | undefined {
  const { base, predicates } = below.reading, { keys, aggregates } = node;
  const isCount = aggregates.map((call) => isDistinctCount(call, facts) && COUNTED.has(call.args[0]!.type));
  if (!isCount.includes(true) || base.kind !== "scan") return undefined;
  const rowsMin = facts.thresholds?.distinctRowsMin ?? DISTINCT_ROWS_MIN;
  if (sourceOf(base.node, facts).rowCount < rowsMin) return undefined;
  const others = aggregates.filter((_, k) => !isCount[k]);
  const exprs = [...predicates, ...keys, ...aggregates.flatMap((call) => call.args)];
  if (!others.every((call) => isInKernel(call, keys, facts)) || exprs.some((expr) => isVolatile(expr, facts))) {
    return undefined;
  }
  /** Only the first part counts rows. */
  const belowOf = (part: number) => part === 0 ? below : { ...below, reading: { ...below.reading, reader: undefined } };
  return inParts(node, isCount, belowOf, facts, group, (rest) => group(rest, below, facts));
}

/**
 * The same over the batches of the node's input, which has to give the same rows each time: for groups whose distinct values exceed the
 * memory. The pairs of a group and a value are on disk then. Undefined if there are no distinct counts.
 */
export function countsApart(
  node: AggregateNode,
  facts: PlanFacts,
  group: KernelWay,
  others: (node: AggregateNode) => GroupWay,
): GroupWay | undefined {
  const isCount = node.aggregates.map((call) => isDistinctCount(call, facts) && COUNTED.has(call.args[0]!.type));
  if (!isCount.includes(true)) return undefined;
  const below: Below = { reading: readingOf(node.input.columns), fused: [], inputs: [] };
  return inParts(node, isCount, () => below, facts, group, others);
}

/** A part for each distinct count, and one for the others. */
function inParts(
  node: AggregateNode,
  isCount: readonly boolean[],
  belowOf: (part: number) => Below,
  facts: PlanFacts,
  group: KernelWay,
  groupOthers: (node: AggregateNode) => GroupWay,
): GroupWay {
  const { keys, aggregates } = node, others = aggregates.filter((_, k) => !isCount[k]), parts: Grouping[] = [];
  const columns = keys.map((_, k) => ({ part: 0, column: k }));
  if (others.length > 0) {
    const rest = { ...node, aggregates: others, columns: columnsOf(keys, others) };
    parts.push({ node: rest, way: groupOthers(rest) });
  }
  let next = keys.length;
  aggregates.forEach((call, k) => {
    if (!isCount[k]) return columns.push({ part: 0, column: next++ });
    const alone = { ...node, aggregates: [call], columns: columnsOf(keys, [call]) }, below = belowOf(parts.length);
    const way = keys.length === 0 ? countDistinct(alone, below, facts, group) : byPairs(alone, below, facts, group);
    columns.push({ part: parts.push({ node: alone, way }) - 1, column: keys.length });
  });
  return { kind: "side by side", parts, columns };
}

/** Groups rows by the keys and the value, and then these groups by the keys. */
function byPairs(node: AggregateNode, below: Below, facts: PlanFacts, group: KernelWay): GroupWay {
  const { keys } = node, call = node.aggregates[0]!, value = call.args[0]!;
  const both = [...keys, value], columns = columnsOf(both, []);
  const pairs: AggregateNode = { ...node, keys: both, aggregates: [], columns };
  const [count, ...rest] = identity(columns).reverse();
  const counts: AggregateNode = {
    ...node,
    keys: rest.reverse(),
    aggregates: [{ function: `count(${value.type})`, args: [count!], distinct: false, type: "LONG", at: call.at }],
  };
  return {
    kind: "pairs",
    pairs: { node: pairs, way: group(pairs, below, facts) },
    counts: { node: counts, way: group(counts, { reading: readingOf(columns), fused: [], inputs: [] }, facts) },
  };
}

function columnsOf(keys: readonly Expr[], calls: readonly AggregateCall[]): Column[] {
  return unnamedColumns(typesOf([...keys, ...calls]));
}
