/**
 * Detects that an endpoint of the provider is down. It then probes the endpoint regularly, and after a minute logs an
 * alert.
 */
import type { Logger } from "../../log/mod.ts";

const ALERT_MS = 60_000;
const PROBE_MS = 10_000;

export class Outage {
  /** performance.now() of the first failure since the last success. */
  private since: number | undefined;
  private isReported = false;
  private timer: ReturnType<typeof setInterval> | undefined;

  /** `what`: the endpoint. `probe`: sends it a request, whose result is reported by `answered` or `failed`. */
  constructor(
    private readonly what: string,
    private readonly probe: () => unknown,
    private readonly log: Pick<Logger, "critical" | "advisory">,
    private readonly nowMs: () => number,
    private readonly probeMs = PROBE_MS,
  ) {}

  answered(): void {
    if (this.isReported) {
      this.log.advisory(`the identity provider (${this.what}) is available again after ${this.seconds()} s`);
    }
    this.close();
  }

  failed(reason: string): void {
    this.since ??= this.nowMs();
    if (this.timer === undefined) {
      this.timer = setInterval(() => this.probe(), this.probeMs);
      Deno.unrefTimer(this.timer as unknown as number);
    }
    if (this.isReported || this.nowMs() - this.since < ALERT_MS) return;
    this.isReported = true;
    this.log.critical(`the identity provider (${this.what}) has been down for ${this.seconds()} s: ${reason}`);
  }

  close(): void {
    clearInterval(this.timer);
    this.timer = this.since = undefined;
    this.isReported = false;
  }

  private seconds(): number {
    return Math.round((this.nowMs() - this.since!) / 1000);
  }
}
