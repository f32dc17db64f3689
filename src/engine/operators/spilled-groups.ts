/**
 * GROUP BY and DISTINCT whose groups exceed the memory, over any rows and keys: the keys and arguments of all rows are divided on disk by
 * the hashes of the keys, and each partition is grouped by itself. Its rows are in their order in the input, so the groups get the same
 * values. The rows carry their numbers; the least number of a group determines its position in the output.
 */
import type { AggregateCall, AggregateNode, Column, Expr } from "../../sql/plan.ts";
import type { Operator, QueryContext } from "../contract.ts";
import { columnAt } from "../physical/reading.ts";
import { dividedInput, runParts } from "./hash-parts.ts";
import { orApart } from "./or-apart.ts";

const OPERATOR = "GROUP BY";
const FIRST_ROW = "min(LONG)";

/** Groups that are not in memory. */
export interface ApartGroups {
  node: AggregateNode;
  /** Opens the rows to group: columns of the expressions, which are those of `columnsFor`. `firstNumber`: see `dividedInput`. */
  open(): { rows: Operator; firstNumber?: () => number };
  /** Groups rows of these columns by `node`. */
  group(node: AggregateNode, input: Operator): Operator;
}

/** The columns of a grouping over columns: keys, then arguments that are not constant. */
export function columnsFor(keys: readonly Expr[], calls: readonly { args: readonly Expr[] }[]): Expr[] {
  return [...keys, ...calls.flatMap(({ args }) => args.filter(({ kind }) => kind !== "constant"))];
}

/** The same grouping over the columns of `columnsFor`, and with the least row number, which is the column after these. */
function overColumns(node: AggregateNode): AggregateNode {
  let next = node.keys.length;
  const keys = node.keys.map(({ type }, k) => columnAt(k, type));
  const aggregates = node.aggregates.map((call): AggregateCall => ({
    ...call,
    args: call.args.map((arg) => arg.kind === "constant" ? arg : columnAt(next++, arg.type)),
  }));
  const number: Column = { name: "row number", type: "LONG" };
  const first: AggregateCall = {
    function: FIRST_ROW,
    args: [columnAt(next, "LONG")],
    distinct: false,
    type: "LONG",
    at: 0,
  };
  return { ...node, keys, aggregates: [...aggregates, first], columns: [...node.columns, number] };
}

/** Groups in memory, and if that is short, apart. */
export function spillingGroups(inMemory: Operator, apart: ApartGroups, context: QueryContext): Operator {
  return orApart(inMemory, () => {
    const { node } = apart,
      grouped = overColumns(node),
      keys = grouped.keys.map((_, k) => k),
      number = node.columns.length;
    const { rows, firstNumber } = apart.open();
    return runParts({
      inputs: [dividedInput(rows, keys, context, OPERATOR, firstNumber)],
      keys: [keys],
      make: ([input]) => apart.group(grouped, input),
      order: [{ column: number, descending: false }],
      columnCount: number,
      operator: OPERATOR,
    }, context);
  }, context);
}
