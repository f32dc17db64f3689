/** An operator that keeps its input in memory, and goes on without it when the memory is short. */
import type { Column } from "../../sql/plan.ts";
import type { Batch, Operator, QueryContext } from "../contract.ts";
import { isOutOfMemory } from "../memory.ts";
import { assertingContract } from "./contract.ts";

/** `inMemory` outputs nothing before it has all that it keeps. If it runs out of memory, `apart` begins again. */
export function orApart(inMemory: Operator, apart: () => Apart, context: QueryContext): Operator {
  return new OrApart(assertingContract(inMemory), apart, context);
}

type Apart = Pick<Operator, "next" | "close">;

class OrApart implements Operator {
  readonly columns: readonly Column[];
  private merged?: Apart;
  private hasStarted = false;

  constructor(
    private inMemory: Operator | undefined,
    private readonly apart: () => Apart,
    private readonly context: QueryContext,
  ) {
    this.columns = inMemory!.columns;
  }

  next(): Batch | undefined {
    const { inMemory, context: { memory } } = this;
    if (inMemory === undefined) return this.merged?.next();
    if (this.hasStarted) return inMemory.next();
    const blocks = memory.mark();
    try {
      const batch = inMemory.next();
      this.hasStarted = true;
      return batch;
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
    }
    this.inMemory = undefined;
    inMemory.close();
    // Threads that helped have left blocks.
    memory.freeSince(blocks);
    this.merged = this.apart();
    return this.merged.next();
  }

  rewind(): boolean {
    return this.inMemory?.rewind?.() === true;
  }

  rebind(): boolean {
    // `apart` would read the former intervals.
    return false;
  }

  close(): void {
    this.inMemory?.close();
    this.merged?.close();
  }
}
