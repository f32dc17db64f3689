/**
 * Limits by what connections are used for. A connection counts from its first request of a kind until it closes, as its client
 * is about to send more of them.
 */
import type { HttpConfig, HttpWire } from "./contract.ts";
import { textReply } from "./reply.ts";
import type { Reply, ServedConnection } from "./server/mod.ts";

const NAMES: Record<HttpWire, string> = { exec: "http.json.query", exp: "http.export", line_http: "http.ilp" };

export class KindLimits {
  private readonly connections: Record<HttpWire, Set<ServedConnection>> = {
    exec: new Set(),
    exp: new Set(),
    line_http: new Set(),
  };

  constructor(private readonly config: Pick<HttpConfig, "kindLimits">) {}

  /** The refusal, where there are too many. */
  enter(connection: ServedConnection, kind: HttpWire): Reply | undefined {
    const same = this.connections[kind], limit = this.config.kindLimits[kind];
    if (same.has(connection)) return undefined;
    if (limit < 0 || same.size < limit) {
      same.add(connection);
      return undefined;
    }
    const reply = textReply(
      429,
      `there are ${same.size} connections, the most that ${NAMES[kind]}.connection.limit allows`,
    );
    return { ...reply, isLast: true };
  }

  leave(connection: ServedConnection): void {
    for (const same of Object.values(this.connections)) same.delete(connection);
  }
}
