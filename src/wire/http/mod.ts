/**
 * The HTTP interface: finds the route of a request, knows who asks, and turns failures into status codes.
 * A route is one file in `routes/` and one line here.
 */
import { shownAddress, shownText } from "../../log/mod.ts";
import { TooManyWait } from "../log-in-delays.ts";
import { ANONYMOUS, Authenticator } from "./auth.ts";
import type { Call, HttpConfig, HttpOptions, HttpWire, Route } from "./contract.ts";
import { InFlight } from "./in-flight.ts";
import { judge, type Verdict } from "./origin.ts";
import { Parameters } from "./parameters.ts";
import { BrokenOff, type HeaderList, methodNotSupported, notFound, textReply } from "./reply.ts";
import { chk } from "./routes/chk.ts";
import { exec } from "./routes/exec.ts";
import { exp } from "./routes/exp.ts";
import { page } from "./routes/page.ts";
import { ping } from "./routes/ping.ts";
import { redirect } from "./routes/redirect.ts";
import { settings } from "./routes/settings.ts";
import { warnings } from "./routes/warnings.ts";
import { write } from "./routes/write.ts";
import { securityHeaders } from "./security-headers.ts";
import { Sessions } from "./sessions.ts";

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
  const inFlight = new InFlight(config);
  const sessions = new Sessions(config.sessionTimeoutMs);
  const authenticator = new Authenticator(config, sessions);
  const security = securityHeaders();
  const pageSecurity = securityHeaders(textOf(options.consolePage));
  const server = Deno.serve({
    hostname: options.hostname,
    port: options.port,
    onListen() {},
    onError(error) {
      if (error instanceof BrokenOff) return new Response(null);
      options.log.error(`unhandled error in the HTTP server: ${stackOf(error)}`);
      options.metrics?.unhandledErrors.inc();
      return withHeaders(textReply(500, "internal server error"), security);
    },
  }, async (request, info) => {
    const { hostname } = info.remoteAddr;
    const { path, query } = splitUrl(request.url);
    const { method } = request;
    const route = routes.get(path);
    const refused = inFlight.enter(route?.wire);
    // A streaming reply is in flight to its end.
    if (refused === undefined) info.completed.catch(() => {}).finally(() => inFlight.leave(route?.wire));
    const asker = { method, header: (name: string) => request.headers.get(name) };
    const verdict = judge(asker, config.origins, false);
    const reply = refused ?? answerOf(verdict) ??
      await answer(request, { hostname, path, query, route, authenticator, sessions, options });
    withHeaders(withHeaders(reply, verdict.headers), route === page ? pageSecurity : security);
    if (!config.keepsConnections) reply.headers.set("connection", "close");
    const { status } = reply;
    if (verdict.refusal !== undefined) {
      options.log.turnedAway?.(info.remoteAddr, `${method} ${path}: ${verdict.refusal}`);
    }
    if (status === 401) options.log.turnedAway?.(info.remoteAddr, `${method} ${path}: who asks is not known`);
    // Only the path: a statement stands in what follows it.
    options.log.debug?.(() => `${status} ${method} ${shownText(path)} [client=${shownAddress(info.remoteAddr)}]`);
    return reply;
  });
  return {
    port: (server.addr as Deno.NetAddr).port,
    inFlight: () => inFlight.counts,
    close() {
      authenticator.close();
      return server.shutdown();
    },
  };
}

/** The answer to a request that goes no further. */
function answerOf({ refusal, isPreflight }: Verdict): Response | undefined {
  if (refusal !== undefined) return textReply(403, refusal);
  if (isPreflight) return new Response(null, { status: 204 });
}

function withHeaders(reply: Response, headers: HeaderList): Response {
  for (const [name, value] of headers) reply.headers.set(name, value);
  return reply;
}

function textOf(page: string | Uint8Array): string {
  return typeof page === "string" ? page : new TextDecoder().decode(page);
}

function routesOf(config: HttpConfig): Map<string, Route> {
  const served = ROUTES.filter((route) => route !== write || config.lineEnabled);
  const routes = new Map(
    served.flatMap((route) => (config.paths[route.name] ?? route.paths).map((path) => [path, route])),
  );
  for (const { from, to } of config.redirects) routes.set(from, redirect(to));
  return routes;
}

/** What is known of a request before anything is answered. */
interface Arrival {
  /** Of the client. */
  hostname: string;
  path: string;
  query: string;
  route: Route | undefined;
  authenticator: Authenticator;
  sessions: Sessions;
  options: HttpOptions;
}

async function answer(
  request: Request,
  { hostname, path, query, route, authenticator, sessions, options }: Arrival,
): Promise<Response> {
  const startedMs = performance.now();
  const method = request.method;
  let identity = ANONYMOUS, token: string | undefined;
  let authenticationNs = 0;
  if (route !== undefined && !(route.open && method === "GET")) {
    const metrics = route.wire === undefined ? undefined : options.metrics?.wires[route.wire];
    const asked = authenticator.authenticate(request.headers, hostname, () => metrics?.authenticationsDelayed.inc());
    const who = asked instanceof Promise ? await asked : asked;
    if (who === undefined || who instanceof TooManyWait) metrics?.authenticationsFailed.inc();
    if (who === undefined) return textReply(401, "Unauthorized");
    if (who instanceof TooManyWait) return tooManyLogIns(who);
    if (who.identity !== ANONYMOUS) metrics?.authenticationsSucceeded.inc();
    identity = who.identity;
    token = who.token;
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
  const reply = await route.methods[method](call);
  const opens = identity !== ANONYMOUS &&
    (token !== undefined || route.wire === "exec" && call.parameters.isTrue("session"));
  return opens ? withCookie(reply, sessions.give(identity, token)) : reply;
}

function withCookie(reply: Response, cookie: string): Response {
  reply.headers.append("set-cookie", cookie);
  return reply;
}

function tooManyLogIns({ retryAfterMs }: TooManyWait): Response {
  const reply = textReply(429, "too many log-ins from this address wait, as passwords were wrong: try again later");
  return withHeaders(reply, [["retry-after", String(Math.ceil(retryAfterMs / 1000))]]);
}

function hasBodySize(request: Request): boolean {
  return request.headers.has("content-length") || request.headers.has("transfer-encoding");
}

/** By hand: `new URL` costs more than a whole small query. */
function splitUrl(url: string): { path: string; query: string } {
  const authority = url.indexOf("://");
  const start = url.indexOf("/", authority < 0 ? 0 : authority + 3);
  const question = url.indexOf("?", start);
  return question < 0
    ? { path: url.slice(start), query: "" }
    : { path: url.slice(start, question), query: url.slice(question + 1) };
}

function stackOf(error: unknown): string {
  return error instanceof Error ? error.stack ?? error.message : String(error);
}
