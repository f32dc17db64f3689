import type { FunctionContext } from "./entry.ts";

/** Steps of some nanoseconds each: about a tenth of a millisecond in all. */
const STEPS = 65_536;

/** Has a function that runs over texts of any length poll often enough, however few rows it has. */
export class Pace {
  private left = STEPS;

  constructor(private readonly context: Pick<FunctionContext, "poll">) {}

  spend(steps: number): void {
    this.left -= steps;
    if (this.left > 0) return;
    this.left = STEPS;
    this.context.poll();
  }
}
