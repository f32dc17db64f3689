/** What the PG server is given. */
import type { Database } from "../../door.ts";

export interface PgLog {
  info(message: string): void;
  error(message: string): void;
}

interface Counter {
  inc(count?: number): void;
}

/** Named as in `src/metrics/catalogue.ts`. */
export interface PgMetrics {
  pgQueries: Counter;
  pgQueriesCompleted: Counter;
  pgQueriesCancelled: Counter;
  pgQuerySeconds: Counter;
  pgErrors: Counter;
  authenticationsSucceeded: Counter;
  authenticationsFailed: Counter;
  queryErrors: Counter;
  unhandledErrors: Counter;
  bytesOut: Counter;
  rowsOut: Counter;
}

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
  /** Nobody may change anything over this wire. */
  readOnly?: boolean;
  /** Logged-in clients; one more is refused. */
  connectionLimit?: number;
  /** A client that says nothing for so long is sent away; 0: never. */
  idleTimeoutMs?: number;
  messageSizeMax?: number;
  namedStatementLimit?: number;
  /** How long `close` waits for running queries before it cancels them. */
  closeGraceMs?: number;
  log: PgLog;
  metrics?: Partial<PgMetrics>;
}

export const DEFAULT_LIMITS = {
  connectionLimit: 64,
  idleTimeoutMs: 300_000,
  messageSizeMax: 64 << 20,
  namedStatementLimit: 10_000,
  closeGraceMs: 2_500,
};
