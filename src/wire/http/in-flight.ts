/** Counts the requests of each kind in flight. Requests above a kind's limit are refused. */
import type { HttpConfig, HttpWire } from "./contract.ts";
import { type Reply, textReply } from "../http1/mod.ts";

const NAMES: Record<HttpWire, string> = { exec: "http.json.query", exp: "http.export", line_http: "http.ilp" };

export class InFlight {
  readonly counts: Record<HttpWire, number> = { exec: 0, exp: 0, line_http: 0 };

  constructor(private readonly limits: HttpConfig["kindLimits"]) {}

  /** Returns a refusal if there are too many requests. Otherwise the request counts until `leave`. */
  enter(kind: HttpWire): Reply | undefined {
    const count = this.counts[kind], limit = this.limits[kind];
    if (limit >= 0 && count >= limit) {
      const reason = `there are ${count} requests, the most that ${NAMES[kind]}.connection.limit allows`;
      return textReply(429, reason, [["Retry-After", "1"]]);
    }
    this.counts[kind]++;
  }

  leave(kind: HttpWire): void {
    this.counts[kind]--;
  }
}
