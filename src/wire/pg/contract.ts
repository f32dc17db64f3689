/** What the PG server is given. */
import type { Database } from "../../api.ts";
import type { RefusedStatement } from "../../log/mod.ts";
import type { Metrics } from "../../metrics/mod.ts";
import type { Certificate } from "../tls/mod.ts";

export interface PgLog {
  info(message: string): void;
  error(message: string): void;
  debug?(message: () => string): void;
  /** Told of statements that clients got wrong. */
  refused?(statement: RefusedStatement): void;
  /** Told of clients that are not let in. */
  turnedAway?(address: Deno.Addr, reason: string): void;
}

/** What this room counts. */
export type PgMetrics = Pick<Metrics, "wires" | "queryErrors" | "unhandledErrors">;

export interface PgOptions {
  hostname: string;
  /** 0 takes any free one. */
  port: number;
  database: Database;
  user: string;
  password: string;
  /** A second user, who may only read. */
  readonlyUser?: string;
  readonlyPassword?: string;
  readonlyEnabled?: boolean;
  /** How clients show that they know the password; by default SCRAM-SHA-256. */
  authMethod?: "scram-sha-256" | "password";
  scramIterations?: number;
  /** Nobody may change anything over this wire. */
  readOnly?: boolean;
  /** Undefined: requests for encryption are declined. */
  certificate?: Pick<Certificate, "secure">;
  /** Clients without TLS are refused. */
  requiresTls?: boolean;
  /** Logged-in clients; one more is refused. */
  connectionLimit?: number;
  /** A client that says nothing for so long is sent away; 0: never. */
  idleTimeoutMs?: number;
  /** A client that has not logged in after so long is sent away; 0: never. */
  logInTimeoutMs?: number;
  messageSizeMax?: number;
  /** Bytes of a client that are read at once. */
  receiveSizeBytes?: number;
  /** Answers gather up to this size before they are sent. */
  sendSizeBytes?: number;
  namedStatementLimit?: number;
  /** How long `close` waits for running queries before it cancels them. */
  closeGraceMs?: number;
  log: PgLog;
  metrics?: PgMetrics;
}

export const DEFAULT_LIMITS = {
  connectionLimit: 64,
  idleTimeoutMs: 300_000,
  logInTimeoutMs: 10_000,
  messageSizeMax: 64 << 20,
  receiveSizeBytes: 65_536,
  sendSizeBytes: 65_536,
  namedStatementLimit: 10_000,
  closeGraceMs: 2_500,
  scramIterations: 4_096,
};
