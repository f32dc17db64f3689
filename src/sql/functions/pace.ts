import type { FunctionContext } from "./entry.ts";

/** Steps of some nanoseconds each: about a tenth of a millisecond in total. */
const STEPS = 65_536;

/** Makes a function over texts of any length poll often enough, even with few rows. */
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
