/** How many requests are in flight, in all and by what they are for, and who is one too many. */
import type { HttpConfig, HttpWire } from "./contract.ts";
import { textReply } from "./reply.ts";

const NAMES: Record<HttpWire, string> = { exec: "http.json.query", exp: "http.export", line_http: "http.ilp" };

export class InFlight {
  readonly counts: Record<HttpWire, number> = { exec: 0, exp: 0, line_http: 0 };
  private all = 0;

  constructor(private readonly config: Pick<HttpConfig, "maxRequestsInFlight" | "kindLimits">) {}

  /** The refusal, where there are too many; otherwise the request counts until `leave`. */
  enter(kind: HttpWire | undefined): Response | undefined {
    const { maxRequestsInFlight, kindLimits } = this.config;
    if (this.all >= maxRequestsInFlight) {
      return textReply(503, `there are ${this.all} requests, the most that http.net.connection.limit allows`);
    }
    if (kind !== undefined) {
      const count = this.counts[kind], limit = kindLimits[kind];
      if (limit >= 0 && count >= limit) {
        return textReply(429, `there are ${count} requests, the most that ${NAMES[kind]}.connection.limit allows`);
      }
      this.counts[kind]++;
    }
    this.all++;
  }

  leave(kind: HttpWire | undefined): void {
    this.all--;
    if (kind !== undefined) this.counts[kind]--;
  }
}
