/** What the HTTP server is given, and what a route gets and gives. */
import type { Database, Identity } from "../../door.ts";
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
};

export interface HttpLog {
  info(message: string): void;
  error(message: string): void;
}

interface Counter {
  inc(count?: number): void;
}

export interface HttpMetrics {
  jsonQueries: Counter;
  jsonQueriesCompleted: Counter;
  queryErrors: Counter;
  unhandledErrors: Counter;
}

export interface HttpOptions {
  hostname: string;
  /** 0 takes any free one. */
  port: number;
  database: Database;
  config: HttpConfig;
  log: HttpLog;
  metrics?: Partial<HttpMetrics>;
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

export type Handler = (call: Call) => Response | Promise<Response>;

export interface Route {
  paths: string[];
  methods: Record<string, Handler>;
  /** Served without credentials, also where others need them. */
  open: boolean;
}
