/** One statement in the statistics of its wire: begun once, ended once. */
import type { QueryMetrics } from "./contract.ts";

export type QueryEnd = "queriesCompleted" | "queriesCancelled" | "queriesFailed";

export class QueryCount {
  private hasEnded = false;

  /** Undefined metrics: nothing is counted. */
  constructor(readonly metrics: QueryMetrics | undefined, private readonly startedMs: number) {
    metrics?.queriesStarted.inc();
  }

  /** A reply may break off more than once, as by an error and by the client that goes away: the first end counts. */
  end(how: QueryEnd): void {
    if (this.hasEnded || this.metrics === undefined) return;
    this.hasEnded = true;
    this.metrics[how].inc();
    this.metrics.querySeconds.observe((performance.now() - this.startedMs) / 1000);
  }
}
