/**
 * ORDER BY: keeps the input, sorts row numbers, and outputs the rows in that order. With a limit, keeps only the best
 * rows.
 */
import type { Column, SortKey, SortNode } from "../../sql/plan.ts";
import { OutputColumns, Workspace } from "../columns.ts";
import { type Batch, type Changes, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { sortedRows } from "../order.ts";
import type { SortWay } from "../physical/plan.ts";
import { isOutOfMemory } from "../memory.ts";
import { typesOf } from "../physical/reading.ts";
import { Payload } from "../row-sort.ts";
import type { OpenBase, PipelineBase } from "./base-plan.ts";
import { closeBase, planOf, reboundBase, rewindBase } from "./base.ts";
import { BestRows, gatherBestRows } from "./best-rows.ts";
import { keepAll, type KeptRows, leavesRoom } from "./input.ts";
import type { MergedRows } from "./merged-rows.ts";
import { orApart } from "./or-apart.ts";
import { Pipeline } from "./pipeline.ts";
import { SortedRuns } from "./sorted-runs.ts";
import { createTopRows } from "./top-rows.ts";

export function createSort(
  { keys }: SortNode,
  way: SortWay,
  open: OpenBase,
  input: () => Operator,
  context: QueryContext,
): Operator {
  switch (way.kind) {
    case "all":
      return new Sort(keys, { ...way, input: input() }, context);
    case "best":
      return new Sort(keys, { ...way, input: input() }, context);
    case "best by morsels":
      return new Sort(keys, { ...way, base: open(way.reading) }, context);
    case "top": {
      const { limit, skip, reading, spill } = way, rows = createTopRows(way, context);
      const columns = { ...reading, base: { kind: "input" }, predicates: [] } as const;
      const found = new Pipeline({ kind: "operator", input: rows }, columns, context);
      const inMemory = new Sort(keys, { kind: "best", limit, skip, input: found }, context);
      if (spill === undefined) return inMemory;
      const inOrder = () => new Pipeline(open(reading), reading, context);
      return orApart(
        inMemory,
        () => new Sort(keys, { kind: "best", limit, skip, spill, input: inOrder() }, context),
        context,
      );
    }
  }
}

/** The input of the sort. */
type Rows =
  | Extract<SortWay, { kind: "all" }> & { input: Operator }
  | Extract<SortWay, { kind: "best" }> & { input: Operator }
  | Extract<SortWay, { kind: "best by morsels" }> & { base: PipelineBase };

interface SortedInMemory {
  rows: readonly Vector[];
  order: Int32Array;
  rowCount: number;
  payload?: Payload;
}

class Sort implements Operator {
  readonly columns: readonly Column[];
  private readonly space: Workspace;
  private sorted?: SortedInMemory | MergedRows;
  private sortSpace?: Workspace;
  private output?: OutputColumns;
  private position = 0;
  private best?: BestRows;
  /** Over the base of "best by morsels", which it closes. */
  private inOrder?: Pipeline;

  constructor(
    private readonly keys: readonly SortKey[],
    private rows: Rows,
    private readonly context: QueryContext,
  ) {
    this.columns = rows.kind === "best by morsels" ? rows.reading.columns : rows.input.columns;
    this.space = Workspace.of(context, "sort");
  }

  next(): Batch | undefined {
    if (this.rows.limit === 0) return undefined;
    this.sorted ??= this.rows.kind === "all" ? this.sortAll(this.rows) : this.sortBest(this.rows);
    if ("next" in this.sorted) return this.nextMerged(this.sorted);
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

  private nextMerged(merged: MergedRows): Batch | undefined {
    const { limit = Infinity } = this.rows, batch = this.position < limit ? merged.next() : undefined;
    if (batch === undefined) return undefined;
    const rowCount = Math.min(batch.rowCount, limit - this.position);
    this.position += rowCount;
    return { rowCount, columns: batch.columns };
  }

  private sortAll(rows: Rows & { kind: "all" }): SortedInMemory | MergedRows {
    const { input, spill } = rows;
    const { keys, space, context } = this;
    const runs = spill === "sorted runs" ? new SortedRuns(this.columns, keys, context, "sort") : undefined;
    const kept = keepAll(input, keys.map((key) => key.expression), space, context, runs);
    const sorted = runs?.isEmpty === false ? undefined : this.sortKept(kept, rows, runs !== undefined);
    if (sorted !== undefined) return sorted;
    runs!.take(kept.store);
    kept.store.release();
    return runs!.merged();
  }

  /** Undefined if there is not enough memory and the rows can be written to disk. */
  private sortKept(
    kept: KeptRows,
    { limit = Infinity, inRowFormat }: Rows & { kind: "all" },
    canSpill: boolean,
  ): SortedInMemory | undefined {
    const { context } = this, space = this.sortSpace = Workspace.of(context, "sort");
    const payload = inRowFormat ? new Payload(kept.columns, space) : undefined, poll = () => context.poll();
    try {
      const order = sortedRows(kept.computed, this.keys, kept.rowCount, space, poll, context.parallel, payload);
      if (canSpill && !leavesRoom(context)) {
        space.release();
        return undefined;
      }
      context.chose?.(payload?.isPlaced ? "rows in row format" : "rows by number");
      return { rows: kept.columns, order, rowCount: Math.min(limit, kept.rowCount), payload };
    } catch (error) {
      if (!canSpill || !isOutOfMemory(error)) throw error;
      space.release();
      return undefined;
    }
  }

  private sortBest(rows: Exclude<Rows, { kind: "all" }>): SortedInMemory | MergedRows {
    const { limit } = rows;
    const best = rows.kind === "best by morsels" ? this.bestOfMorsels(rows) : this.bestInOrder(rows, rows.input);
    const merged = best.merged();
    if (merged !== undefined) return merged;
    const order = best.order(), { store } = best;
    if (order === undefined) return best.merged()!;
    return { rows: store.vectors, order, rowCount: Math.min(limit, store.rowCount) };
  }

  private bestOfMorsels(rows: Rows & { kind: "best by morsels" }): BestRows {
    const { space, context } = this, { base, reading } = rows, { memory } = context;
    // A join has no plan if it has no rows, or if its build side is on disk. One thread reads the rows in order, and may keep the kernels.
    const plan = context.parallel === undefined ? undefined : planOf(base), blocks = memory.mark();
    if (plan !== undefined) {
      try {
        const best = this.best = this.newBest(rows, { hasOrdinals: true, spills: false });
        gatherBestRows(best, plan, reading, context);
        return best;
      } catch (error) {
        if (rows.spill === undefined || !isOutOfMemory(error)) throw error;
      }
      this.best?.close();
      this.best = undefined;
      space.release();
      // Threads that helped have left blocks.
      memory.freeSince(blocks);
    }
    return this.bestInOrder(rows, this.inOrder ??= new Pipeline(base, reading, context));
  }

  private bestInOrder(rows: Exclude<Rows, { kind: "all" }>, input: Operator): BestRows {
    const best = this.best = this.newBest(rows, { hasOrdinals: false, spills: rows.spill !== undefined });
    for (let batch = input.next(); batch !== undefined; batch = input.next()) {
      this.context.poll();
      best.take(batch);
    }
    return best;
  }

  private newBest(
    { limit, skip }: Exclude<Rows, { kind: "all" }>,
    how: { hasOrdinals: boolean; spills: boolean },
  ): BestRows {
    const { keys, space, context } = this;
    return new BestRows(typesOf(this.columns), { keys, limit, skip }, space, context, how, context.parallel);
  }

  /** Keeps the input only: its kernels take longer to make than those of the keys, and the rows take much memory. */
  rewind(): boolean {
    // The next run may read rows on disk first, or on other threads.
    if (this.sorted !== undefined && "next" in this.sorted) return false;
    this.best?.close();
    this.sortSpace?.release();
    this.space.release();
    this.best =
      this.sorted =
      this.sortSpace =
      this.output =
        undefined;
    this.position = 0;
    const { rows, inOrder } = this;
    if (inOrder !== undefined) return inOrder.rewind();
    return rows.kind === "best by morsels" ? rewindBase(rows.base) : rows.input.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    const { rows, inOrder } = this;
    if (inOrder !== undefined) return inOrder.rebind(changes);
    if (rows.kind !== "best by morsels") return rows.input.rebind?.(changes) === true;
    const base = reboundBase(rows.base, changes, this.context);
    if (base === undefined) return false;
    const predicates = changes.take(rows.reading.predicates);
    this.rows = { ...rows, base, reading: { ...rows.reading, predicates } };
    return true;
  }

  close(): void {
    this.best?.close();
    if (this.sorted !== undefined && "next" in this.sorted) this.sorted.close();
    this.sortSpace?.release();
    this.space.release();
    if (this.inOrder !== undefined) this.inOrder.close();
    else if (this.rows.kind === "best by morsels") closeBase(this.rows.base);
    else this.rows.input.close();
  }
}
