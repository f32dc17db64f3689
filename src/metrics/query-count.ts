/** Counts one statement in the metrics of its wire: it starts once and ends once. */
import type { QueryMetrics } from "./contract.ts";

export type QueryEnd = "queriesCompleted" | "queriesCancelled" | "queriesFailed";

export class QueryCount {
  private hasEnded = false;

  /** Without metrics, nothing is counted. */
  constructor(readonly metrics: QueryMetrics | undefined, readonly startedMs: number) {
    metrics?.queriesStarted.inc();
  }

  /** Only the first end counts: a reply may end more than once, for example by an error and by the client leaving. */
  end(how: QueryEnd, nowMs = performance.now()): void {
    if (this.hasEnded || this.metrics === undefined) return;
    this.hasEnded = true;
    this.metrics[how].inc();
    this.metrics.querySeconds.observe((nowMs - this.startedMs) / 1000);
  }
}
