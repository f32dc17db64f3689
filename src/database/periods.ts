/** Times at which materialized views are refreshed: the multiples of a unit, and the periods of a view with PERIOD. */
import { TimeBuckets } from "../engine/mod.ts";
import { letterOf, microsIn } from "../sql/mod.ts";
import type { RefreshPeriod, RefreshRule, UnitCount } from "../sql/plan.ts";

/** Multiples of a unit in a zone (UTC by default), from the epoch on or from `from`. `type`: of the times. */
export function multiplesOf(
  { count, unit }: UnitCount,
  { timeZone = "", from, type = "TIMESTAMP" }: { timeZone?: string; from?: bigint; type?: string },
): TimeBuckets {
  const sampling = { count, unit: letterOf(unit), align: "calendar", timeZone, offset: 0n, from } as const;
  return new TimeBuckets(sampling, type, 0n);
}

type RefreshTimer = Extract<RefreshRule, { kind: "timer" }>;

/** The next time of a timer: its start, or a multiple of its unit after it. */
export function nextTick({ every, startMicros, timeZone }: RefreshTimer, nowMicros: bigint): bigint {
  const from = BigInt(startMicros), ticks = multiplesOf(every, { timeZone, from }), start = ticks.shownAt(from);
  return nowMicros < start ? start : ticks.of(nowMicros).end;
}

export class Periods {
  private readonly buckets: TimeBuckets;
  private readonly delayMicros: bigint;

  constructor({ length, delay, timeZone }: RefreshPeriod) {
    this.buckets = multiplesOf(length, { timeZone });
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
