/** What the HTTP server is given, and what a route gets and gives. */
import type { Config } from "../../config/mod.ts";
import type { Database, Identity } from "../../door.ts";
import type { Metrics } from "../../metrics/mod.ts";
import type { Parameters } from "./parameters.ts";

export interface HttpConfig {
  /** Basic authentication is on when both are set. */
  user: string;
  password: string;
  /** Requests beyond it are answered 503 at once. */
  maxRequestsInFlight: number;
  /** Cuts the rows of /exec and /exp. */
  maxResponseRows: number;
  readOnly: boolean;
  /** Compress replies for clients that accept gzip. */
  gzip: boolean;
  /** Of a line-protocol request, also after it was inflated. */
  maxBodySizeBytes: number;
  /** What /ping calls itself. */
  pingVersion: string;
  /** The product's. */
  version: string;
  maxNameLength: number;
  /** Where writes are taken, for clients: "http", "tcp", "pgwire". */
  acceptingWrites: string[];
  /** Is /write served? */
  lineEnabled: boolean;
  logLineErrors: boolean;
  /** The Keep-Alive header. */
  keepAlive: string;
  /** Without it every reply is the connection's last. */
  keepsConnections: boolean;
  /** Other paths for a route, by its name. */
  paths: Partial<Record<string, readonly string[]>>;
}

export const DEFAULT_HTTP_CONFIG: HttpConfig = {
  user: "",
  password: "",
  maxRequestsInFlight: 256,
  maxResponseRows: Number.MAX_SAFE_INTEGER,
  readOnly: false,
  gzip: false,
  maxBodySizeBytes: 1 << 30,
  pingVersion: "v2.7.4",
  version: "0.1.0",
  maxNameLength: 127,
  acceptingWrites: ["http", "pgwire"],
  lineEnabled: true,
  logLineErrors: true,
  keepAlive: "timeout=5, max=10000",
  keepsConnections: true,
  paths: {},
};

/** The settings as this room wants them. */
export function httpConfigOf(config: Config, version: string): HttpConfig {
  const get = config.get.bind(config);
  const lineEnabled = get("line.http.enabled");
  return {
    user: get("http.user"),
    password: get("http.password"),
    // Reloadable ones are read at their use.
    get maxRequestsInFlight() {
      return get("http.net.connection.limit");
    },
    maxResponseRows: get("http.security.max.response.rows"),
    readOnly: get("http.security.readonly") || get("readonly"),
    gzip: get("http.allow.deflate.before.send"),
    get maxBodySizeBytes() {
      return get("line.http.max.recv.buffer.size");
    },
    pingVersion: get("line.http.ping.version"),
    version,
    maxNameLength: get("cairo.max.file.name.length"),
    acceptingWrites: [...lineEnabled ? ["http"] : [], ...get("pg.enabled") ? ["pgwire"] : []],
    lineEnabled,
    logLineErrors: get("line.log.message.on.error"),
    keepAlive: `timeout=${get("http.keep-alive.timeout")}, max=${get("http.keep-alive.max")}`,
    keepsConnections: get("http.server.keep.alive"),
    paths: {
      exec: get("http.context.execute"),
      exp: get("http.context.export"),
      write: get("http.context.ilp"),
      ping: get("http.context.ilp.ping"),
      settings: get("http.context.settings"),
      warnings: get("http.context.warnings"),
      chk: get("http.context.table.status"),
    },
  };
}

export interface HttpLog {
  info(message: string): void;
  error(message: string): void;
}

/** What this room counts. */
export type HttpMetrics = Pick<Metrics, "wires" | "queryErrors" | "unhandledErrors">;

export interface HttpOptions {
  hostname: string;
  /** 0 takes any free one. */
  port: number;
  database: Database;
  config: HttpConfig;
  log: HttpLog;
  metrics?: HttpMetrics;
  /** The document at `/`. */
  consolePage: string | Uint8Array;
}

/** One request on its way through a route. */
export interface Call {
  request: Request;
  path: string;
  parameters: Parameters;
  identity: Identity;
  database: Database;
  options: HttpOptions;
  /** performance.now() when the request came in. */
  startedMs: number;
  /** Time that knowing who asks took. */
  authenticationNs: number;
}

export type HttpWire = "exec" | "exp" | "line_http";

export type Handler = (call: Call) => Response | Promise<Response>;

export interface Route {
  name: string;
  /** Where it is served unless the settings say otherwise. */
  paths: string[];
  /** Whose figures its requests go into; none for those that tell of the server. */
  wire?: HttpWire;
  methods: Record<string, Handler>;
  /** Served without credentials, also where others need them. */
  open: boolean;
}
