/**
 * UNION, EXCEPT and INTERSECT over more rows than the memory holds: both sides are divided on disk by the hashes of their rows. The
 * operator in memory may have output rows already. The partitions give the same rows in the same order, so these are left out.
 */
import type { Column, SetNode } from "../../sql/plan.ts";
import type { Batch, Operator, QueryContext } from "../contract.ts";
import { isOutOfMemory } from "../memory.ts";
import { runParts } from "./hash-parts.ts";
import type { MergedRows } from "./merged-rows.ts";
import { advance } from "./scan.ts";
import type { SpilledRows } from "./spilled-rows.ts";

interface ApartSet {
  /** Divides each input; the rows' numbers are their last column. */
  divide(): SpilledRows[][];
  /** The set operation over such rows, by their other columns. */
  make(inputs: Operator[]): Operator;
}

export class SpillingSet implements Operator {
  readonly columns: readonly Column[];
  private merged?: MergedRows;
  private rowCount = 0;

  constructor(
    private readonly plan: SetNode,
    private readonly canRestart: boolean,
    private inMemory: Operator | undefined,
    private readonly apart: ApartSet,
    private readonly context: QueryContext,
  ) {
    this.columns = plan.columns;
  }

  next(): Batch | undefined {
    const { inMemory, context: { memory } } = this;
    if (inMemory === undefined) return this.merged?.next();
    // Marked at each call: between calls, operators above take blocks too.
    const blocks = memory.mark();
    try {
      const batch = inMemory.next();
      this.rowCount += batch?.rowCount ?? 0;
      return batch;
    } catch (error) {
      // Other rows could follow those that are output.
      if (!isOutOfMemory(error) || (this.rowCount > 0 && !this.canRestart)) throw error;
    }
    this.inMemory = undefined;
    inMemory.close();
    // Threads that helped have left blocks.
    memory.freeSince(blocks);
    return this.runApart();
  }

  private runApart(): Batch | undefined {
    const { apart, context, plan } = this, keys = plan.columns.map((_, c) => c), inputs = apart.divide();
    const merged = this.merged = runParts({
      inputs,
      keys: inputs.map(() => keys),
      make: apart.make,
      order: [{ column: keys.length, descending: false }],
      columnCount: keys.length,
      operator: plan.operator.split(" ")[0],
    }, context);
    for (let left = this.rowCount;;) {
      const batch = merged.next();
      if (batch === undefined || left === 0) return batch;
      if (batch.rowCount > left) return { rowCount: batch.rowCount - left, columns: advance(batch.columns, left) };
      left -= batch.rowCount;
    }
  }

  close(): void {
    this.inMemory?.close();
    this.merged?.close();
  }
}
