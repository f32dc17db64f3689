/** What the PG server is given. */
import type { Database } from "../../api.ts";
import type { RefusedStatement } from "../../log/mod.ts";
import type { Metrics } from "../../metrics/mod.ts";
import { defaultsOf, type Values } from "../../config/mod.ts";
import type { Certificate } from "../tls/mod.ts";
import { pgSettings } from "./settings.ts";

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

type Settings = Values<Omit<typeof pgSettings, "enabled" | "address">>;

/** The settings, by default as they are declared; user and password are always given. */
export interface PgOptions extends Partial<Omit<Settings, "user" | "password">>, Pick<Settings, "user" | "password"> {
  hostname: string;
  /** 0 takes any free one. */
  port: number;
  database: Database;
  /** Undefined: requests for encryption are declined. */
  certificate?: Pick<Certificate, "secure">;
  /** How long `close` waits for running queries before it cancels them. */
  closeGraceMs?: number;
  log: PgLog;
  metrics?: PgMetrics;
}

export const DEFAULT_LIMITS = { ...defaultsOf(pgSettings), closeGraceMs: 2_500 };
