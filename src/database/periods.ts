/** The periods of a materialized view with PERIOD. */
import { TimeBuckets } from "../engine/mod.ts";
import { letterOf, microsIn } from "../sql/mod.ts";
import type { RefreshPeriod } from "../sql/plan.ts";

export class Periods {
  private readonly buckets: TimeBuckets;
  private readonly delayMicros: bigint;

  constructor({ length: { count, unit }, delay, timeZone = "" }: RefreshPeriod) {
    const sampling = { count, unit: letterOf(unit), align: "calendar", timeZone, offset: 0n } as const;
    this.buckets = new TimeBuckets(sampling, "TIMESTAMP", 0n);
    this.delayMicros = delay === undefined ? 0n : microsIn(delay);
  }

  /** The end of the last period that is complete. It may decrease when clocks are turned back. */
  completeTo(nowMicros: bigint): bigint {
    return this.buckets.of(nowMicros - this.delayMicros).start;
  }

  /** Before this time, no other period becomes complete. */
  next(nowMicros: bigint): bigint {
    return this.buckets.of(nowMicros - this.delayMicros).end + this.delayMicros;
  }
}
