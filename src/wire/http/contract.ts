/** What the HTTP server is given, and what a route gets and gives. */
import type { Config, Group, Setting } from "../../config/mod.ts";
import type { Client, Database, Identity } from "../../api.ts";
import type { RefusedStatement } from "../../log/mod.ts";
import type { Metrics } from "../../metrics/mod.ts";
import type { HttpRequest, Reply } from "../http1/mod.ts";
import type { Certificate } from "../tls/mod.ts";
import type { ConsoleFiles } from "./console-files.ts";
import type { Parameters } from "./parameters.ts";

export interface HttpLog {
  info(message: string): void;
  error(message: string): void;
  debug?(message: () => string): void;
  /** Told of statements that clients got wrong. */
  refused?(statement: RefusedStatement): void;
  /** Told of clients that are not let in. */
  turnedAway?(address: Deno.Addr, reason: string): void;
}

/** What this room counts. */
export type HttpMetrics = Pick<Metrics, "wires" | "queryErrors" | "unhandledErrors">;

export interface HttpOptions {
  hostname: string;
  /** 0 takes any free one. */
  port: number;
  database: Database;
  config: Config;
  log: HttpLog;
  metrics?: HttpMetrics;
  /** Undefined: without TLS. */
  certificate?: Pick<Certificate, "secure">;
  console: ConsoleFiles;
}

/** One request on its way through a route. */
export interface Call {
  request: HttpRequest;
  path: string;
  parameters: Parameters;
  identity: Identity;
  client: Client;
  database: Database;
  options: HttpOptions;
  /** performance.now() when the request came in. */
  startedMs: number;
  /** Time that knowing who asks took. */
  authenticationNs: number;
}

export type HttpWire = "exec" | "exp" | "line_http";

export type Handler = (call: Call) => Reply | Promise<Reply>;

/** A file of `routes/`, with all that is said about it anywhere. `routes/mod.ts` lists them. */
export interface Route {
  name: string;
  /** What it does, for the manual. */
  summary: string;
  /** How it is called, for the manual, where that is more than its methods and paths. */
  usage?: string;
  /** Where it is served. */
  paths: Setting<readonly string[]> | readonly string[];
  /** The console's prefix does not apply: clients of the line protocol know no prefix. */
  hasNoPrefix?: boolean;
  /** All that it declares. */
  settings: Group;
  /** Undefined: always. */
  isServed?(config: Config): boolean;
  /** Whose statistics its requests go into; none for those that tell of the server. */
  wire?: HttpWire;
  /** Requests in flight; one more is answered 429. -1: no limit of their own. */
  inFlightMax?: Setting<number>;
  methods: Record<string, Handler>;
  /** Served without credentials, also where others need them. */
  open: boolean | "unless access control is on";
  /** Its replies carry a content security policy of their own. */
  ownSecurity?: boolean;
}
