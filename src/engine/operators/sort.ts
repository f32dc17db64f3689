/**
 * ORDER BY: keeps the input, sorts row numbers, gives the rows out in that order. With a limit, only so many rows are kept: whenever
 * enough rows have gathered they are cut down to the best, and from then on rows that are behind the last of those are not taken at all.
 */
import type { SortNode } from "../../sql/plan.ts";
import { ColumnStore, isNullAt, OutputColumns, Workspace } from "../columns.ts";
import { beyondInputs, beyondKernel } from "../compiler/beyond.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { formOf } from "../compiler/expression.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { compareRows, sortedRows } from "../order.ts";
import { Payload } from "../row-sort.ts";
import { Expressions, keepAll, typesOf } from "./input.ts";
import { Pipeline } from "./pipeline.ts";
import { createTopRows } from "./top-rows.ts";

/** With so many rows more than twice the limit, rows are cut down to the best for the first time. */
const FIRST_CUT_ROWS = 4_096;
/** Types whose order is that of their numbers, null apart. */
const NUMBERS = new Set(["INT", "LONG", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NS"]);

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
    const { space, context, plan } = this;
    const types = typesOf(this.columns), keyCount = plan.keys.length;
    const keys = new Expressions(plan.keys.map((key) => key.expression), types, context);
    const store = new ColumnStore([...types, ...keys.types], space);
    const enough = 2 * limit + FIRST_CUT_ROWS;
    const kept = space.words(MORSEL_ROWS);
    let full = false;
    try {
      for (let batch = this.input.next(); batch !== undefined; batch = this.input.next()) {
        context.poll();
        const computed = keys.run(batch), columns = [...batch.columns, ...computed];
        for (let from = 0; from < batch.rowCount;) {
          // After a cut the best rows lie in order, so the last of them is row limit-1.
          const last = store.vectors[types.length];
          if (!full) {
            const rowCount = Math.min(enough - store.rowCount, batch.rowCount - from);
            store.append(columns, rowCount, from);
            from += rowCount;
          } else {
            const n = this.reaching(computed[0], from, batch.rowCount, last, limit - 1, kept) ??
              this.before(computed[0], from, batch.rowCount, last, limit - 1, keyCount === 1, kept);
            store.appendRows(columns, kept, n);
            from = batch.rowCount;
          }
          if (store.rowCount < enough) continue;
          const order = this.orderOf(store.vectors.slice(types.length), store.rowCount);
          store.compact(order, limit);
          space.freeWords(order);
          full = true;
        }
      }
    } finally {
      keys.close();
    }
    const order = this.orderOf(store.vectors.slice(types.length), store.rowCount);
    return { rows: store.vectors, order, rowCount: Math.min(limit, store.rowCount) };
  }

  /** The same for numbers by a kernel, which lets through rows level with row `last` too; undefined for other keys. */
  private reaching(
    key: Vector,
    from: number,
    rowCount: number,
    store: Vector,
    last: number,
    out: Int32Array,
  ): number | undefined {
    const { heap } = this.context, { descending, nulls } = this.plan.keys[0];
    const form = formOf(key.type);
    if (nulls !== undefined || !NUMBERS.has(key.type) || (form !== "i32" && form !== "i64" && form !== "f64")) {
      return undefined;
    }
    if (isNullAt(heap, store.type, store.address, last)) return undefined;
    if (this.kernel === undefined) {
      const { run, cells } = beyondKernel(heap.memory, form, descending);
      this.kernel = new BoundKernel(run, cells, beyondInputs(form, 0), this.context, this.space, cells.count);
    }
    const { kernel } = this;
    kernel.setConstant(
      1,
      form === "f64"
        ? heap.f64[store.address / 8 + last]
        : form === "i64"
        ? heap.i64[store.address / 8 + last]
        : heap.i32[store.address / 4 + last],
    );
    kernel.setI32(kernel.cells.rows, out.byteOffset);
    kernel.setColumns([key]);
    return kernel.run(from, rowCount);
  }
  private kernel?: BoundKernel;

  /** Rows of a batch that the first key does not put behind row `last` (for `strict`, nor level with it). */
  private before(
    key: Vector,
    from: number,
    rowCount: number,
    store: Vector,
    last: number,
    strict: boolean,
    out: Int32Array,
  ): number {
    const { heap } = this.context, { descending, nulls } = this.plan.keys[0];
    let n = 0;
    if (nulls !== undefined) { for (let row = from; row < rowCount; row++) out[n++] = row; }
    else {
      for (let row = from; row < rowCount; row++) {
        const order = compareRows(heap, key, row, store, last);
        if (order === 0 ? !strict : descending ? order > 0 : order < 0) out[n++] = row;
      }
    }
    return n;
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
