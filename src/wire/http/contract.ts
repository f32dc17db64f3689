/** What the HTTP server is given, and what a route gets and gives. */
import { VERSION } from "../../version.ts";
import type { Config } from "../../config/mod.ts";
import type { Client, Database, Identity } from "../../api.ts";
import type { RefusedStatement } from "../../log/mod.ts";
import type { Metrics } from "../../metrics/mod.ts";
import type { HttpRequest, Limits, Reply } from "../http1/mod.ts";
import type { OriginRules } from "./origin.ts";
import type { Certificate } from "../tls/mod.ts";
import type { ConsoleFiles } from "./console-files.ts";
import type { Parameters } from "./parameters.ts";

export interface HttpConfig {
  /** Basic authentication is on when both are set. */
  user: string;
  password: string;
  /** Requests of a kind beyond it are answered 429 at once; -1: no limit of their own. */
  kindLimits: Readonly<Record<HttpWire, number>>;
  /** Cuts the rows of /exec and /exp. */
  maxResponseRows: number;
  readOnly: boolean;
  /** Names by which browsers may address the server, and origins whose pages may use it. */
  origins: OriginRules;
  /** Compress replies for clients that accept it. */
  compresses: boolean;
  /** Of connections. */
  limits: Limits;
  /** Of a line-protocol request, also after it was inflated. */
  maxBodySizeBytes: number;
  /** Of a line-protocol request: how many times larger than the gzip it may be. */
  inflateRatioMax: number;
  /** Of a POST to /exec. */
  statementSizeMax: number;
  /** What /ping calls itself. */
  pingVersion: string;
  /** The product's. */
  version: string;
  maxNameLength: number;
  /** Its name, if it has one. */
  instanceName: string;
  /** Where writes are taken, for clients: "http", "tcp", "pgwire". */
  acceptingWrites: string[];
  /** Is /write served? */
  lineEnabled: boolean;
  logLineErrors: boolean;
  /** The Keep-Alive header. */
  keepAlive: string;
  /** Without it every reply is the connection's last. */
  keepsConnections: boolean;
  sessionTimeoutMs: number;
  /** Longest time of a Parquet export; 0: that of other queries. */
  exportTimeoutMs: number;
  /** Other paths for a route, by its name. */
  paths: Partial<Record<string, readonly string[]>>;
  redirects: readonly { from: string; to: string }[];
  /** What stands before the paths of the console's files, without a slash at its end. */
  consolePrefix: string;
}

export const DEFAULT_HTTP_CONFIG: HttpConfig = {
  user: "",
  password: "",
  kindLimits: { exec: -1, exp: -1, line_http: -1 },
  maxResponseRows: Number.MAX_SAFE_INTEGER,
  readOnly: false,
  origins: { hostNames: [], corsOrigins: [] },
  compresses: false,
  limits: {
    connectionsMax: 256,
    queueTimeoutMs: 5000,
    idleTimeoutMs: 300_000,
    spareIdleMs: 5000,
    headTimeoutMs: 30_000,
    headSizeMax: 65_536,
    bodyTimeoutMs: 30_000,
    bodyRateMin: 1024,
  },
  maxBodySizeBytes: 1 << 30,
  inflateRatioMax: 200,
  statementSizeMax: 16 << 20,
  pingVersion: "v2.7.4",
  version: VERSION,
  maxNameLength: 127,
  instanceName: "",
  acceptingWrites: ["http", "tcp", "pgwire"],
  lineEnabled: true,
  logLineErrors: true,
  keepAlive: "timeout=5, max=10000",
  keepsConnections: true,
  sessionTimeoutMs: 1_800_000,
  exportTimeoutMs: 0,
  paths: {},
  redirects: [],
  consolePrefix: "",
};

/** The settings as this room wants them. */
export function httpConfigOf(config: Config): HttpConfig {
  const get = config.get.bind(config);
  const lineEnabled = get("line.http.enabled");
  return {
    user: get("http.user"),
    password: get("http.password"),
    // Reloadable ones are read at their use.
    limits: {
      get connectionsMax() {
        return get("http.net.connection.limit");
      },
      get queueTimeoutMs() {
        return get("http.net.connection.queue.timeout");
      },
      get idleTimeoutMs() {
        return get("http.net.connection.timeout");
      },
      spareIdleMs: get("http.keep-alive.timeout") * 1000,
      get headTimeoutMs() {
        return get("http.request.header.timeout");
      },
      get headSizeMax() {
        return get("http.request.header.buffer.size");
      },
      get bodyTimeoutMs() {
        return get("http.request.body.timeout");
      },
      get bodyRateMin() {
        return get("http.request.body.rate.min");
      },
    },
    kindLimits: {
      get exec() {
        return get("http.json.query.connection.limit");
      },
      get exp() {
        return get("http.export.connection.limit");
      },
      get line_http() {
        return get("http.ilp.connection.limit");
      },
    },
    maxResponseRows: get("http.security.max.response.rows"),
    readOnly: get("http.security.readonly") || get("readonly"),
    origins: {
      get hostNames() {
        return [...get("http.host.names"), get("http.net.bind.to").hostname];
      },
      get corsOrigins() {
        return get("http.cors.origins");
      },
    },
    compresses: get("http.allow.deflate.before.send"),
    get maxBodySizeBytes() {
      return get("line.http.max.recv.buffer.size");
    },
    inflateRatioMax: get("line.http.inflate.ratio.max"),
    get statementSizeMax() {
      return get("http.request.body.size.max");
    },
    pingVersion: get("line.http.ping.version"),
    version: VERSION,
    maxNameLength: get("cairo.max.file.name.length"),
    instanceName: get("instance.name"),
    acceptingWrites: [
      ...lineEnabled ? ["http"] : [],
      ...get("line.tcp.enabled") ? ["tcp"] : [],
      ...get("pg.enabled") ? ["pgwire"] : [],
    ],
    lineEnabled,
    logLineErrors: get("line.log.message.on.error"),
    keepAlive: `timeout=${get("http.keep-alive.timeout")}, max=${get("http.keep-alive.max")}`,
    keepsConnections: get("http.server.keep.alive"),
    sessionTimeoutMs: get("http.session.timeout"),
    exportTimeoutMs: get("http.export.timeout"),
    paths: pathsOf(config),
    redirects: redirectsOf(config),
    consolePrefix: consolePrefix(config),
  };
}

/** The keys of the paths, by the route's name. */
const PATH_KEYS = {
  exec: "http.context.execute",
  exp: "http.context.export",
  settings: "http.context.settings",
  warnings: "http.context.warnings",
  chk: "http.context.table.status",
  write: "http.context.ilp",
  ping: "http.context.ilp.ping",
} as const;
/** The prefix of the console does not hold for clients that write lines. */
const WITHOUT_PREFIX = new Set(["write", "ping"]);

/** Under the console's prefix, but for those that are set themselves. */
function pathsOf(config: Config): Record<string, readonly string[]> {
  const prefix = consolePrefix(config);
  const paths: Record<string, readonly string[]> = { page: [`${prefix}/index.html`, `${prefix}/`] };
  for (const [route, key] of Object.entries(PATH_KEYS)) {
    const isPrefixed = prefix !== "" && !WITHOUT_PREFIX.has(route) && config.source(key) === "default";
    paths[route] = config.get(key).map((path) => isPrefixed ? prefix + path : path);
  }
  return paths;
}

function consolePrefix(config: Config): string {
  return config.get("http.context.web.console").replace(/\/+$/, "");
}

const REDIRECT_KEYS = ["http.redirect.1", "http.redirect.2", "http.redirect.3", "http.redirect.4"] as const;

function redirectsOf(config: Config): { from: string; to: string }[] {
  const prefix = consolePrefix(config);
  return REDIRECT_KEYS.slice(0, config.get("http.redirect.count")).flatMap((key) => {
    const redirect = config.get(key);
    if (redirect === null) return [];
    return [config.source(key) === "default" ? { from: prefix + redirect.from, to: prefix + redirect.to } : redirect];
  });
}

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
  config: HttpConfig;
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

export interface Route {
  name: string;
  /** Where it is served unless the settings say otherwise. */
  paths: string[];
  /** Whose statistics its requests go into; none for those that tell of the server. */
  wire?: HttpWire;
  methods: Record<string, Handler>;
  /** Served without credentials, also where others need them. */
  open: boolean;
  /** Its replies carry a content security policy of their own. */
  ownSecurity?: boolean;
}
