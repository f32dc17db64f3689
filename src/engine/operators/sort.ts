/** ORDER BY: keeps the input, sorts row numbers, gives the rows out in that order. With a limit, only the best rows are kept. */
import type { SortNode } from "../../sql/plan.ts";
import { OutputColumns, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { sortedRows } from "../order.ts";
import { Payload } from "../row-sort.ts";
import { BestRows, bestRowsByMorsels, rowsBeforeFirstCut } from "./best-rows.ts";
import { keepAll, rowsAtMost, typesOf } from "./input.ts";
import { Pipeline } from "./pipeline.ts";
import { createTopRows } from "./top-rows.ts";

export function createSort(plan: SortNode, input: Operator, context: QueryContext): Operator {
  const top = plan.limit !== undefined && input instanceof Pipeline
    ? createTopRows(plan.keys, plan.limit, input, context)
    : undefined;
  if (top === undefined) return new Sort(plan, input, context);
  return new Sort(
    plan,
    new Pipeline({ kind: "operator", input: top.rows }, [], top.exprs, input.columns, context),
    context,
  );
}

class Sort implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private sorted?: { rows: Vector[]; order: Int32Array; rowCount: number; payload?: Payload };
  private output?: OutputColumns;
  private position = 0;

  constructor(
    private readonly plan: SortNode,
    private readonly input: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = input.columns;
    this.space = Workspace.of(context, "sort");
  }

  next(): Batch | undefined {
    if (this.plan.limit === 0) return undefined;
    this.sorted ??= this.plan.limit === undefined ? this.sortAll() : this.sortBest(this.plan.limit);
    const { rows, order, payload } = this.sorted;
    const rowCount = Math.min(MORSEL_ROWS, this.sorted.rowCount - this.position);
    if (rowCount <= 0) return undefined;
    this.context.poll();
    this.output ??= new OutputColumns(typesOf(this.columns), this.space, rowCount);
    const indices = order.subarray(this.position, this.position + rowCount);
    if (payload?.isPlaced) payload.take(indices, rowCount, this.output.vectors);
    else for (let c = 0; c < this.columns.length; c++) this.output.gather(c, rows[c], indices, rowCount, false);
    this.position += rowCount;
    return { rowCount, columns: this.output.vectors };
  }

  private sortAll() {
    const kept = keepAll(this.input, this.plan.keys.map((key) => key.expression), this.space, this.context);
    const payload = new Payload(kept.columns, this.space);
    const order = this.orderOf(kept.computed, kept.rowCount, payload);
    return { rows: kept.columns, order, rowCount: kept.rowCount, payload };
  }

  private sortBest(limit: number) {
    const { space, context, plan, input } = this;
    if (rowsAtMost(input) > 0 && rowsAtMost(input) <= rowsBeforeFirstCut(limit)) {
      const all = this.sortAll();
      return { ...all, rowCount: Math.min(limit, all.rowCount) };
    }
    const parts = input instanceof Pipeline ? bestRowsByMorsels(input, plan.keys, limit, space, context) : undefined;
    const best = parts ??
      new BestRows(typesOf(this.columns), plan.keys, limit, space, context, false, context.parallel);
    try {
      if (parts === undefined) {
        for (let batch = input.next(); batch !== undefined; batch = input.next()) {
          context.poll();
          best.take(batch);
        }
      }
      return { rows: best.store.vectors, order: best.order(), rowCount: Math.min(limit, best.store.rowCount) };
    } finally {
      best.close();
    }
  }

  private orderOf(keys: readonly Vector[], rowCount: number, payload?: Payload): Int32Array {
    const { space, context } = this, poll = () => context.poll();
    return sortedRows(keys, this.plan.keys, rowCount, space, poll, context.parallel, payload);
  }

  close(): void {
    this.space.release();
    this.input.close();
  }
}
