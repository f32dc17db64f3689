/**
 * The HTTP interface: finds the route of a request, knows who asks, and turns failures into status codes.
 * A route is one file in `routes/` and one line here.
 */
import { ANONYMOUS, authenticate } from "./auth.ts";
import type { Call, HttpConfig, HttpOptions, HttpWire, Route } from "./contract.ts";
import { KindLimits } from "./kinds.ts";
import { Parameters } from "./parameters.ts";
import { methodNotSupported, notFound, textReply } from "./reply.ts";
import { chk } from "./routes/chk.ts";
import { exec } from "./routes/exec.ts";
import { exp } from "./routes/exp.ts";
import { page } from "./routes/page.ts";
import { ping } from "./routes/ping.ts";
import { redirect } from "./routes/redirect.ts";
import { settings } from "./routes/settings.ts";
import { warnings } from "./routes/warnings.ts";
import { write } from "./routes/write.ts";
import { type HttpRequest, type Reply, serve, type ServedConnection } from "./server/mod.ts";

export {
  DEFAULT_HTTP_CONFIG,
  type HttpConfig,
  httpConfigOf,
  type HttpLog,
  type HttpMetrics,
  type HttpOptions,
} from "./contract.ts";
export { PLAIN_PAGE } from "./plain-page.ts";

const ROUTES: Route[] = [exec, exp, write, ping, settings, warnings, chk, page];

export interface HttpServer {
  port: number;
  /** Requests that are being answered, to their last byte. */
  inFlight(): Record<HttpWire, number>;
  close(): Promise<void>;
}

/** Answers until `close`, which takes no more requests and waits for those that run. */
export async function startHttp(options: HttpOptions): Promise<HttpServer> {
  const { config } = options;
  const routes = routesOf(config);
  const inFlight: Record<HttpWire, number> = { exec: 0, exp: 0, line_http: 0 };
  const kinds = new KindLimits(config);
  const listener = serve({
    config: config.server,
    hostname: options.hostname,
    port: options.port,
    onError(error: unknown) {
      options.log.error(`unhandled error in the HTTP server: ${stackOf(error)}`);
      options.metrics?.unhandledErrors.inc();
    },
    onClose: (connection: ServedConnection) => kinds.leave(connection),
    async handle(request: HttpRequest): Promise<Reply> {
      const { path, query } = splitTarget(request.head.target);
      const route = routes.get(path);
      const wire = route?.wire;
      if (wire !== undefined) {
        inFlight[wire]++;
        request.onDone = () => inFlight[wire]--;
      }
      const refused = wire === undefined ? undefined : kinds.enter(request.connection, wire);
      const reply = refused ?? await answer(request, options, path, query, route);
      if (!config.keepsConnections) reply.isLast = true;
      return reply;
    },
  });
  return { port: listener.port, inFlight: () => inFlight, close: () => listener.close() };
}

function routesOf(config: HttpConfig): Map<string, Route> {
  const served = ROUTES.filter((route) => route !== write || config.lineEnabled);
  const routes = new Map(
    served.flatMap((route) => (config.paths[route.name] ?? route.paths).map((path) => [path, route])),
  );
  for (const { from, to } of config.redirects) routes.set(from, redirect(to));
  return routes;
}

function answer(
  request: HttpRequest,
  options: HttpOptions,
  path: string,
  query: string,
  route: Route | undefined,
): Reply | Promise<Reply> {
  const startedMs = performance.now();
  const method = request.method;
  let identity = ANONYMOUS;
  let authenticationNs = 0;
  if (route !== undefined && !(route.open && method === "GET")) {
    const who = authenticate(request, options.config);
    const metrics = route.wire === undefined ? undefined : options.metrics?.wires[route.wire];
    if (who === undefined) {
      metrics?.authenticationsFailed.inc();
      return textReply(401, "Unauthorized");
    }
    if (who !== ANONYMOUS) metrics?.authenticationsSucceeded.inc();
    identity = who;
    authenticationNs = Math.round((performance.now() - startedMs) * 1e6);
  }
  if ((method === "POST" || method === "PUT") && !hasBodySize(request)) {
    return textReply(400, "Content-length not specified for POST/PUT request");
  }
  if (route === undefined) return method === "GET" ? notFound() : methodNotSupported(method);
  if (!Object.hasOwn(route.methods, method)) return methodNotSupported(method);
  const call: Call = {
    request,
    path,
    parameters: new Parameters(query),
    identity,
    database: options.database,
    options,
    startedMs,
    authenticationNs,
  };
  return route.methods[method](call);
}

function hasBodySize(request: HttpRequest): boolean {
  return request.header("content-length") !== undefined || request.header("transfer-encoding") !== undefined;
}

/** By hand: `new URL` costs more than a whole small query. A proxy's absolute form is taken as well. */
function splitTarget(target: string): { path: string; query: string } {
  const authority = target.startsWith("/") ? -1 : target.indexOf("://");
  const start = authority < 0 ? 0 : Math.max(0, target.indexOf("/", authority + 3));
  const question = target.indexOf("?", start);
  return question < 0
    ? { path: target.slice(start), query: "" }
    : { path: target.slice(start, question), query: target.slice(question + 1) };
}

function stackOf(error: unknown): string {
  return error instanceof Error ? error.stack ?? error.message : String(error);
}
