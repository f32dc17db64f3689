/** Counts of requests to the provider. */
import { Histogram, LATENCY_BOUNDS } from "../../metrics/mod.ts";

export class ProviderStatistics {
  readonly requests = { answered: 0, failed: 0 };
  readonly seconds = new Histogram(LATENCY_BOUNDS);

  request(seconds: number, isAnswered: boolean): void {
    this.requests[isAnswered ? "answered" : "failed"]++;
    this.seconds.observe(seconds);
  }
}
