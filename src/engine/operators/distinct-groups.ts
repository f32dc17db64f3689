/**
 * Counts of distinct values by keys: rows are grouped by the keys and the value, and those groups by the keys. Other aggregates beside
 * them read the rows again: groups come in the order of their first rows whatever is worked out of them, so the parts' columns lie
 * side by side.
 */
import { assert } from "../../errors.ts";
import type { AggregateCall, AggregateNode, Column, Expr } from "../../sql/plan.ts";
import type { Batch, Operator, QueryContext } from "../contract.ts";
import { isVolatile, type Pipeline } from "./pipeline.ts";

/** With fewer rows, reading them again and more kernels cost more than they save. */
export const DISTINCT_ROWS_MIN = 65_536;

/** Types whose values a kernel groups, and counts less the nulls. */
const COUNTED = new Set(
  "BYTE SHORT CHAR INT LONG FLOAT DOUBLE DATE TIMESTAMP TIMESTAMP_NS SYMBOL STRING VARCHAR IPv4".split(" "),
);

function isDistinctCount({ function: id, args, distinct }: AggregateCall, context: QueryContext): boolean {
  if (args.length !== 1 || !COUNTED.has(args[0].type)) return false;
  const { name } = context.functions.resolve(id).entry;
  return name === "count_distinct" || (name === "count" && distinct);
}

/** Undefined where the aggregates must be worked out together. `group` makes an operator of a node with its aggregates. */
export function groupsWithDistinctCounts(
  node: AggregateNode,
  pipeline: Pipeline,
  context: QueryContext,
  group: (node: AggregateNode, input: Pipeline | Operator) => Operator,
  rowsMin: number,
): Operator | undefined {
  const { base, predicates } = pipeline, { keys, aggregates } = node;
  const isDistinct = aggregates.map((call) => isDistinctCount(call, context));
  if (!isDistinct.includes(true) || base.kind !== "scan" || base.source.rowCount < rowsMin || !pipeline.canBeRead()) {
    return undefined;
  }
  const others = aggregates.filter((_, k) => !isDistinct[k]);
  const areFused = others.every((call) =>
    !call.distinct && context.functions.resolve(call.function).entry.aggregate?.kind === "fused"
  );
  const exprs = [...predicates, ...keys, ...aggregates.flatMap((call) => call.args)];
  if (!areFused || exprs.some((expr) => isVolatile(expr, context))) return undefined;
  const columnsOf = (calls: readonly AggregateCall[]): Column[] =>
    [...keys, ...calls].map(({ type }, k) => ({ name: `c${k}`, type }));
  const parts: Operator[] = [];
  const places: Place[] = keys.map((_, k) => ({ part: 0, column: k }));
  if (others.length > 0) parts.push(group({ ...node, aggregates: others, columns: columnsOf(others) }, pipeline));
  let next = keys.length;
  aggregates.forEach((call, k) => {
    if (!isDistinct[k]) return places.push({ part: 0, column: next++ });
    places.push({ part: parts.length, column: keys.length });
    const columns = columnsOf([call]);
    parts.push(
      keys.length === 0
        ? group({ ...node, aggregates: [call], columns }, pipeline)
        : countsByKeys(node, call, columns, pipeline, group),
    );
  });
  return new SideBySide(node.columns, parts, places, pipeline);
}

function countsByKeys(
  node: AggregateNode,
  call: AggregateCall,
  columns: Column[],
  pipeline: Pipeline,
  group: (node: AggregateNode, input: Pipeline | Operator) => Operator,
): Operator {
  const [value] = call.args;
  const all = [...node.keys, value];
  const pairs = { ...node, keys: all, aggregates: [], columns: all.map(({ type }, k) => ({ name: `k${k}`, type })) };
  const column = ({ type }: Expr, index: number): Expr => ({ kind: "column", index, type });
  const count = {
    function: `count(${value.type})`,
    args: [column(value, node.keys.length)],
    distinct: false,
    type: "LONG",
    at: call.at,
  };
  return group({ ...node, keys: node.keys.map(column), aggregates: [count], columns }, group(pairs, pipeline));
}

interface Place {
  part: number;
  column: number;
}

class SideBySide implements Operator {
  constructor(
    readonly columns: readonly Column[],
    private readonly parts: readonly Operator[],
    private readonly places: readonly Place[],
    private readonly pipeline: Pipeline,
  ) {}

  next(): Batch | undefined {
    const batches = this.parts.map((part) => part.next()), [first] = batches;
    assert(
      batches.every((batch) => batch?.rowCount === first?.rowCount),
      "all parts have the same groups",
    );
    if (first === undefined) return undefined;
    return {
      rowCount: first.rowCount,
      columns: this.places.map(({ part, column }) => batches[part]!.columns[column]),
    };
  }

  close(): void {
    for (const part of this.parts) part.close();
    this.pipeline.close();
  }
}
