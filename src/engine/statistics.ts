/** Answers aggregates over whole segments from the segments' statistics, where that is exact. */
import type { AggregateCall, AggregateNode, Expr, Interval, Plan, ScanNode, ValuesNode } from "../sql/plan.ts";
import type { ColumnChunk, ScanSource, SegmentSource } from "../storage/contract.ts";
import { typeOf, type Value } from "../types/mod.ts";

const NUMBERS = new Set(["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NS"]);
/** Sums of floats depend on the order of addition; those of integers do not. */
const INTEGERS = new Set(["BYTE", "SHORT", "INT", "LONG"]);

/** Replaces such aggregates in a plan by rows. */
export function answerFromStatistics(plan: Plan, sources: readonly ScanSource[]): Plan {
  if (plan.node === "aggregate") {
    const found = scanUnder(plan);
    const answer = found && rowOf(plan, found.scan, found.columns, sources[found.scan.id]);
    if (answer !== undefined) return answer;
  }
  if ("left" in plan) {
    const left = answerFromStatistics(plan.left, sources), right = answerFromStatistics(plan.right, sources);
    return left === plan.left && right === plan.right ? plan : { ...plan, left, right };
  }
  if (!("input" in plan)) return plan;
  const input = answerFromStatistics(plan.input, sources);
  return input === plan.input ? plan : { ...plan, input };
}

/** The scan that an aggregate without keys reads, and its columns by the aggregate's input column. */
function scanUnder({ keys, input }: AggregateNode): { scan: ScanNode; columns: number[] } | undefined {
  if (keys.length > 0) return undefined;
  if (input.node === "scan") return { scan: input, columns: input.columnIds.map((_, i) => i) };
  if (input.node !== "project" || input.input.node !== "scan") return undefined;
  const columns = input.expressions.map((expression: Expr) => expression.kind === "column" ? expression.index : -1);
  return { scan: input.input, columns };
}

function rowOf(node: AggregateNode, scan: ScanNode, columns: number[], source: ScanSource): ValuesNode | undefined {
  if (scan.predicate || scan.rowId) return undefined;
  if (scan.intervals && !Iterator.from(source.segments).every((segment) => isInside(segment, scan.intervals!))) {
    return undefined;
  }
  const row: Value[] = [];
  for (const call of node.aggregates) {
    const value = valueOf(call, columns, source);
    if (value === undefined) return undefined;
    row.push(value);
  }
  return { node: "values", ofStatistics: true, rows: [row], columns: node.columns, timestamp: -1, order: "none" };
}

function isInside({ timestampMin, timestampMax }: SegmentSource, intervals: Interval[]): boolean {
  return intervals.some(([low, high]) => timestampMin >= low && timestampMax <= high);
}

/** undefined: not available from statistics. */
function valueOf(
  { function: id, args, distinct, type }: AggregateCall,
  columns: number[],
  source: ScanSource,
): Value | undefined {
  if (distinct) return undefined;
  const [arg] = args;
  const name = id.slice(0, id.indexOf("("));
  if (name === "count" && args.length === 0) return BigInt(source.rowCount);
  if (args.length !== 1 || arg.kind !== "column" || columns[arg.index] < 0) return undefined;
  const column = columns[arg.index];
  const segments = [...source.segments], chunks = segments.map((segment) => segment.chunks[column]);
  // A column that an INSERT left out is not stored; for types without null its values are zeros.
  if (chunks.includes(undefined) && !typeOf(arg.type).nullable) return undefined;
  if (name === "count" && (NUMBERS.has(arg.type) || arg.type === "SYMBOL")) {
    return BigInt(
      segments.reduce(
        (count, { rowCount }, i) => count + rowCount - (chunks[i]?.stats.nullCount ?? rowCount),
        0,
      ),
    );
  }
  if ((name === "min" || name === "max") && NUMBERS.has(arg.type)) {
    let best: number | bigint | undefined;
    for (const chunk of chunks) {
      const value = name === "min" ? chunk?.stats.min : chunk?.stats.max;
      if (value !== undefined && (best === undefined || (name === "min" ? value < best : value > best))) best = value;
    }
    return best === undefined ? null : typeof best === "bigint" && type === "INT" ? Number(best) : best;
  }
  if (name === "sum" && INTEGERS.has(arg.type) && type === "LONG") {
    const sum = sumOf(chunks);
    return sum === undefined ? null : BigInt.asIntN(64, sum);
  }
  if (name === "avg" && INTEGERS.has(arg.type)) {
    let count = 0, greatest = 0;
    segments.forEach(({ rowCount }, k) => {
      const { nullCount, min = 0, max = 0 } = chunks[k]?.stats ?? { nullCount: rowCount };
      count += rowCount - nullCount;
      greatest = Math.max(greatest, Math.abs(Number(min)), Math.abs(Number(max)));
    });
    if (count === 0) return null;
    // Otherwise the sum of doubles depends on the order.
    return count * greatest <= Number.MAX_SAFE_INTEGER ? Number(sumOf(chunks)) / count : undefined;
  }
  return undefined;
}

/** Undefined without a value. */
function sumOf(chunks: readonly (ColumnChunk | undefined)[]): bigint | undefined {
  let sum: bigint | undefined;
  for (const chunk of chunks) if (chunk?.stats.sum !== undefined) sum = (sum ?? 0n) + BigInt(chunk.stats.sum);
  return sum;
}
