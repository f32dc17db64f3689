/** Counts the requests of each kind in flight. Requests above a kind's limit are refused. */
import type { Config, Setting } from "../../config/mod.ts";
import { type Reply, textReply } from "../http1/mod.ts";
import type { HttpWire } from "./contract.ts";

export class InFlight {
  readonly counts: Record<HttpWire, number> = { exec: 0, exp: 0, imp: 0, line_http: 0 };

  constructor(private readonly config: Config) {}

  /** Returns a refusal if there are too many requests. Otherwise the request counts until `leave`. */
  enter(kind: HttpWire, inFlightMax: Setting<number> | undefined): Reply | undefined {
    const count = this.counts[kind], limit = inFlightMax === undefined ? -1 : this.config.get(inFlightMax);
    if (limit >= 0 && count >= limit) {
      const reason = `too many requests: ${count} are in flight, the maximum of ${inFlightMax!.key}`;
      return textReply(429, reason, [["Retry-After", "1"]]);
    }
    this.counts[kind]++;
  }

  leave(kind: HttpWire): void {
    this.counts[kind]--;
  }
}
