/** The types of the HTTP interface: its options, and the arguments and results of routes. */
import type { Config, Group, Setting } from "../../config/mod.ts";
import type { Client, Database, Identity } from "../../api.ts";
import type { RefusedStatement } from "../../log/mod.ts";
import type { Metrics } from "../../metrics/mod.ts";
import type { HttpRequest, Reply } from "../http1/mod.ts";
import type { Sockets } from "../byte-connection.ts";
import type { LargeStatements } from "../large-statements.ts";
import type { Certificate } from "../tls/mod.ts";
import type { ConsoleFiles } from "./console-files.ts";
import type { Parameters } from "./parameters.ts";
import type { Results } from "./results/mod.ts";
import type { Uploads } from "./uploads.ts";

export interface HttpLog {
  info(message: string): void;
  error(message: string): void;
  debug?(message: () => string): void;
  /** Called for statements that are refused because of a client's error. */
  refused?(statement: RefusedStatement): void;
  /** Called for clients that are refused. */
  clientRefused?(address: Deno.Addr, reason: string): void;
}

/** The metrics of this layer. */
export type HttpMetrics = Pick<Metrics, "wires" | "queryErrors" | "unhandledErrors">;

export interface HttpOptions {
  hostname: string;
  /** 0 selects any free port. */
  port: number;
  database: Database;
  config: Config;
  log: HttpLog;
  metrics?: HttpMetrics;
  /** Undefined if TLS is off. */
  certificate?: Pick<Certificate, "secure">;
  console: ConsoleFiles;
  sockets?: Sockets;
  largeStatements?: LargeStatements;
}

/** A request that a route handles. */
export interface Call {
  request: HttpRequest;
  path: string;
  parameters: Parameters;
  identity: Identity;
  client: Client;
  database: Database;
  options: HttpOptions;
  /** Results that are spooled for the console. */
  results: Results;
  /** Files that are to be imported. */
  uploads: Uploads;
  /** performance.now() when the request arrived. */
  startedMs: number;
  /** Time taken by authentication. */
  authenticationNs: number;
}

export type HttpWire = "exec" | "exp" | "imp" | "line_http";

export type Handler = (call: Call) => Reply | Promise<Reply>;

/** A file of `routes/`, including its documentation. `routes/mod.ts` lists them. */
export interface Route {
  name: string;
  /** Description for the manual. */
  summary: string;
  /** How to call it, for the manual, if methods and paths do not suffice. */
  usage?: string;
  /** Paths at which it is served. */
  paths: Setting<readonly string[]> | readonly string[];
  /** The console's prefix does not apply, because clients of the line protocol cannot use one. */
  hasNoPrefix?: boolean;
  /** All settings that the route declares. */
  settings: Group;
  /** Undefined: always served. */
  isServed?(config: Config): boolean;
  /** The wire whose metrics include its requests; none for routes about the server. */
  wire?: HttpWire;
  /** Maximum number of requests in flight; further ones are answered 429. -1: no limit. */
  inFlightMax?: Setting<number>;
  methods: Record<string, Handler>;
  /** Served without credentials, even if other routes require them. */
  open: boolean | "unless access control is on";
  /** Its replies have their own content security policy. */
  ownSecurity?: boolean;
}
