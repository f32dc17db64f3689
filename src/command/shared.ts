/** The parts that every listener uses. */
import type { Config } from "../config/mod.ts";
import type { Metrics } from "../metrics/mod.ts";
import type { Sockets } from "../wire/byte-connection.ts";
import type { LargeStatements } from "../wire/large-statements.ts";
import type { Certificates } from "../wire/tls/mod.ts";

export interface Shared {
  config: Config;
  metrics: Metrics;
  certificates: Certificates | undefined;
  sockets: Sockets | undefined;
  largeStatements: LargeStatements;
  /** Number of connections by name of the wire; for HTTP also of requests in flight. */
  connections: Map<string, () => number>;
}
