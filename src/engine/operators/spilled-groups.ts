/**
 * GROUP BY and DISTINCT whose groups exceed the memory, over any rows and keys: the keys and arguments of all rows are divided on disk by
 * the hashes of the keys, and each partition is grouped by itself. Its rows are in their order in the input, so the groups get the same
 * values. With the rows are their numbers; the least number of a group tells its place in the output.
 */
import type { AggregateCall, AggregateNode, Column, Expr } from "../../sql/plan.ts";
import type { Batch, Operator, QueryContext } from "../contract.ts";
import { isOutOfMemory } from "../memory.ts";
import { typesOf } from "../physical/reading.ts";
import { HashParts, RowNumbers, runParts } from "./hash-parts.ts";
import type { MergedRows } from "./merged-rows.ts";

const OPERATOR = "GROUP BY";
const FIRST_ROW = "min(LONG)";

/** Groups that are not in memory. */
export interface ApartGroups {
  node: AggregateNode;
  /** Opens the rows to group: columns of the expressions, which are those of `columnsFor`. */
  open(): Operator;
  /** Groups rows of these columns by `node`. */
  group(node: AggregateNode, input: Operator): Operator;
}

/** The columns of a grouping over columns: keys, then arguments that are not constant. */
export function columnsFor(keys: readonly Expr[], calls: readonly { args: readonly Expr[] }[]): Expr[] {
  return [...keys, ...calls.flatMap(({ args }) => args.filter(({ kind }) => kind !== "constant"))];
}

/** The same grouping over the columns of `columnsFor`, and with the least row number, which is the column after these. */
function overColumns(node: AggregateNode): AggregateNode {
  const column = (index: number, type: string): Expr => ({ kind: "column", index, type });
  let next = node.keys.length;
  const keys = node.keys.map(({ type }, k) => column(k, type));
  const aggregates = node.aggregates.map((call): AggregateCall => ({
    ...call,
    args: call.args.map((arg) => arg.kind === "constant" ? arg : column(next++, arg.type)),
  }));
  const number: Column = { name: "row number", type: "LONG" };
  const first: AggregateCall = {
    function: FIRST_ROW,
    args: [column(next, "LONG")],
    distinct: false,
    type: "LONG",
    at: 0,
  };
  return { ...node, keys, aggregates: [...aggregates, first], columns: [...node.columns, number] };
}

/** Groups in memory, and if that is short, apart. */
export class SpillingGroups implements Operator {
  readonly columns: readonly Column[];
  private merged?: MergedRows;
  private hasStarted = false;

  constructor(
    /** Outputs nothing before it has all groups. */
    private inMemory: Operator | undefined,
    private readonly apart: ApartGroups,
    private readonly context: QueryContext,
  ) {
    this.columns = apart.node.columns;
  }

  next(): Batch | undefined {
    if (this.merged !== undefined) return this.merged.next();
    if (this.hasStarted) return this.inMemory!.next();
    const { memory } = this.context, blocks = memory.mark();
    try {
      const batch = this.inMemory!.next();
      this.hasStarted = true;
      return batch;
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
    }
    const { inMemory } = this;
    this.inMemory = undefined;
    inMemory!.close();
    memory.freeSince(blocks);
    this.merged = this.groupApart();
    return this.merged.next();
  }

  private groupApart(): MergedRows {
    const { apart, context } = this, { node } = apart, keyCount = node.keys.length;
    const grouped = overColumns(node), keys = grouped.keys.map((_, k) => k), number = node.columns.length;
    return runParts({
      inputs: [this.divide(keyCount)],
      keys: [keys],
      make: ([input]) => apart.group(grouped, input),
      order: [{ column: number, descending: false }],
      columnCount: number,
      operator: OPERATOR,
    }, context);
  }

  private divide(keyCount: number) {
    const { apart, context } = this, input = apart.open(), numbers = new RowNumbers(context, OPERATOR);
    const parts = new HashParts([...typesOf(input.columns), "LONG"], 0, context, OPERATOR);
    try {
      for (let batch = input.next(); batch !== undefined; batch = input.next()) {
        context.poll();
        const columns = [...batch.columns, numbers.take(batch.rowCount)];
        parts.append(columns, batch.columns.slice(0, keyCount), batch.rowCount);
      }
      return parts.finish();
    } finally {
      parts.close();
      numbers.close();
      input.close();
    }
  }

  rewind(): boolean {
    return this.inMemory?.rewind?.() === true;
  }

  close(): void {
    this.inMemory?.close();
    this.merged?.close();
  }
}
