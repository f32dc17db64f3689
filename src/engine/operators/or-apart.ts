/** An operator that keeps its input in memory, and goes on without it when the memory is short. */
import type { Column } from "../../sql/plan.ts";
import type { Batch, Operator, QueryContext } from "../contract.ts";
import { isOutOfMemory } from "../memory.ts";
import { assertingContract } from "./contract.ts";
import { divisionBytes } from "./hash-parts.ts";
import { leavesRoom } from "./input.ts";
import { advance } from "./scan.ts";

/**
 * If `inMemory` runs out of memory, or leaves too little to the operators above, `apart` begins again. `canRestart`: `apart` gives the same rows in
 * the same order, so those that have been output are left out. Otherwise the memory must suffice once rows are output.
 */
export function orApart(
  inMemory: Operator,
  apart: () => Apart,
  context: QueryContext,
  canRestart = false,
): Operator {
  return new OrApart(assertingContract(inMemory), apart, context, canRestart);
}

type Apart = Pick<Operator, "next" | "close">;

class OrApart implements Operator {
  readonly columns: readonly Column[];
  private running?: Apart;
  private hasStarted = false;
  /** By which the query's memory has grown in calls of `inMemory`. */
  private heldBytes = 0;
  /** Number of rows that are output. */
  private rowCount = 0;

  constructor(
    private inMemory: Operator | undefined,
    private readonly apart: () => Apart,
    private readonly context: QueryContext,
    private readonly canRestart: boolean,
  ) {
    this.columns = inMemory!.columns;
  }

  next(): Batch | undefined {
    const { inMemory, context, context: { memory } } = this;
    if (inMemory === undefined) return this.running?.next();
    if (this.hasStarted && !this.canRestart) return inMemory.next();
    // Marked at each call: between calls, operators above take blocks too.
    const blocks = memory.mark();
    try {
      const before = memory.usedBytes, batch = inMemory.next(), grownBytes = memory.usedBytes - before;
      this.heldBytes += grownBytes;
      // Dividing the input would take as much memory as an operator with few rows holds.
      if (grownBytes <= 0 || this.heldBytes < divisionBytes(context) || leavesRoom(context)) {
        this.hasStarted = true;
        this.rowCount += batch?.rowCount ?? 0;
        return batch;
      }
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
    }
    this.inMemory = undefined;
    inMemory.close();
    // Threads that helped have left blocks.
    memory.freeSince(blocks);
    this.running = this.apart();
    return this.afterOutput(this.running);
  }

  private afterOutput(apart: Apart): Batch | undefined {
    for (let left = this.rowCount;;) {
      const batch = apart.next();
      if (batch === undefined || left === 0) return batch;
      if (batch.rowCount > left) return { rowCount: batch.rowCount - left, columns: advance(batch.columns, left) };
      left -= batch.rowCount;
    }
  }

  rewind(): boolean {
    this.rowCount = this.heldBytes = 0;
    this.hasStarted = false;
    return this.inMemory?.rewind?.() === true;
  }

  rebind(): boolean {
    // `apart` would read the former intervals.
    return false;
  }

  close(): void {
    this.inMemory?.close();
    this.running?.close();
  }
}
