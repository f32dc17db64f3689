/** Counts of requests to the provider, by the metric's key. */
import { Histogram, LATENCY_BOUNDS } from "../../metrics/mod.ts";

export class ProviderStatistics {
  readonly providerRequests = { answered: 0, failed: 0 };
  readonly providerSeconds = new Histogram(LATENCY_BOUNDS);

  request(seconds: number, isAnswered: boolean): void {
    this.providerRequests[isAnswered ? "answered" : "failed"]++;
    this.providerSeconds.observe(seconds);
  }
}
