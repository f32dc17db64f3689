/** Options of the PostgreSQL server. */
import type { Database } from "../../api.ts";
import type { RefusedStatement } from "../../log/mod.ts";
import type { Metrics } from "../../metrics/mod.ts";
import { defaultsOf, type Values } from "../../config/mod.ts";
import type { Sockets } from "../byte-connection.ts";
import type { LargeStatements } from "../large-statements.ts";
import type { Certificate } from "../tls/mod.ts";
import { pgSettings } from "./settings.ts";

export interface PgLog {
  info(message: string): void;
  error(message: string): void;
  debug?(message: () => string): void;
  /** Called for invalid statements. */
  refused?(statement: RefusedStatement): void;
  /** Called for clients that are refused. */
  clientRefused?(address: Deno.Addr, reason: string): void;
}

/** The metrics of this layer. */
export type PgMetrics = Pick<Metrics, "wires" | "queryErrors" | "unhandledErrors">;

type Settings = Values<Omit<typeof pgSettings, "enabled" | "address">>;

/** The settings, with their declared defaults; user and password are required. */
export interface PgOptions extends Partial<Omit<Settings, "user" | "password">>, Pick<Settings, "user" | "password"> {
  hostname: string;
  /** 0 selects any free port. */
  port: number;
  database: Database;
  /** Undefined if requests for encryption are declined. */
  certificate?: Pick<Certificate, "secure">;
  /** How long `close` waits for running queries before it cancels them. */
  closeGraceMs?: number;
  log: PgLog;
  sockets?: Sockets;
  largeStatements?: LargeStatements;
  metrics?: PgMetrics;
}

const { statementMemoryBytes: _, ...fixed } = pgSettings;
/** Without limits that depend on the machine. */
export const DEFAULT_LIMITS = { ...defaultsOf(fixed), statementMemoryBytes: Infinity, closeGraceMs: 2_500 };
