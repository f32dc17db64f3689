/** The HTTP interface: selects the route of a request, authenticates the client, and maps failures to status codes. */
import { type Config, isSetting } from "../../config/mod.ts";
import { shownAddress, shownText } from "../../log/mod.ts";
import type { Identity } from "../../api.ts";
import { ANONYMOUS, type Answer as Authenticated, Authenticator } from "./auth.ts";
import type { Call, HttpOptions, HttpWire, Route } from "./contract.ts";
import { headerLines, type HttpRequest, type Reply, startServer, textReply } from "../http1/mod.ts";
import { InFlight } from "./in-flight.ts";
import { judge, type Verdict } from "./origin.ts";
import type { ConsoleFiles } from "./console-files.ts";
import { type Parameters, Targets } from "./parameters.ts";
import { isJsonReply, methodNotSupported, notFound } from "./reply.ts";
import { assets, ASSETS_PATH } from "./routes/assets.ts";
import { ROUTES } from "./routes/mod.ts";
import { redirect } from "./routes/redirect.ts";
import { securityHeaders } from "../security-headers.ts";
import { consolePrefix, httpSettings, keepAliveHeader, originRules } from "./settings.ts";
import { Results } from "./results/mod.ts";
import { Sessions } from "./sessions.ts";
import { Uploads } from "./uploads.ts";

export type { HttpOptions } from "./contract.ts";
export { type ConsoleFiles, loadConsole } from "./console-files.ts";

export interface HttpServer {
  port: number;
  /** Number of requests that are not completely answered. */
  inFlight(): Record<HttpWire, number>;
  /** Number of requests since the start, by route name. */
  requests(): Record<string, number>;
  close(): Promise<void>;
}

/** Serves until `close`, which accepts no more requests and waits for running ones. */
export function startHttp(options: HttpOptions): HttpServer {
  const { config, certificate } = options;
  const settings = config.of(httpSettings);
  const routes = routesOf(config, options.console);
  const inFlight = new InFlight(config);
  const requests = Object.fromEntries(ROUTES.map(({ name }) => [name, 0]));
  const results = new Results(
    config,
    (error) => options.log.error(`a spooled result could not be removed: ${stackOf(error)}`),
  );
  const uploads = new Uploads(
    config,
    (error) => options.log.error(`an uploaded file could not be removed: ${stackOf(error)}`),
  );
  const sessions = new Sessions(settings.sessionTimeoutMs);
  const authenticator = new Authenticator(settings, sessions, options.database.access);
  const targets = new Targets();
  const security = securityHeaders(), securityLines = headerLines(security);
  const keepAlive = keepAliveHeader(config);
  const server = startServer({
    hostname: options.hostname,
    port: options.port,
    limits: settings.limits,
    ownHeaders: security,
    secure: certificate && ((connection) => certificate.secure(connection)),
    sockets: options.sockets,
    onError(error) {
      options.log.error(`unhandled error in the HTTP server: ${stackOf(error)}`);
      options.metrics?.unhandledErrors.inc();
    },
    handle(request) {
      const { path, parameters } = targets.read(request.target);
      const { method, remoteAddr } = request;
      const { hostname } = remoteAddr as Deno.NetAddr;
      const route = routes.get(path);
      const kind = route?.wire;
      if (route !== undefined && route.name in requests) requests[route.name]!++;
      const refused = kind === undefined ? undefined : inFlight.enter(kind, route?.inFlightMax);
      // A streaming reply is in flight until its end.
      if (kind !== undefined && refused === undefined) request.onEnd = () => inFlight.leave(kind);
      const asker = { method, header: (name: string) => request.headers.get(name) };
      const verdict = judge(asker, () => originRules(config), false);
      const reply = refused ?? answerOf(verdict) ??
        answer(request, { hostname, path, parameters, route, authenticator, sessions, results, uploads, options });
      const completed = (reply: Reply) => {
        if (isJsonReply(reply)) reply.headers.push(["Keep-Alive", keepAlive]);
        if (verdict.headers.length > 0) reply.headers.push(...verdict.headers);
        if (route?.ownSecurity !== true) reply.lines = [...reply.lines ?? [], securityLines];
        if (!settings.keepsConnections) reply.isLast = true;
        const { status } = reply;
        if (verdict.refusal !== undefined) {
          options.log.clientRefused?.(remoteAddr, `${method} ${path}: ${verdict.refusal}`);
        }
        if (status === 401) options.log.clientRefused?.(remoteAddr, `${method} ${path}: authentication failed`);
        // Log only the path, because the query may contain a statement.
        options.log.debug?.(() => `${status} ${method} ${shownText(path)} [client=${shownAddress(remoteAddr)}]`);
        return reply;
      };
      return reply instanceof Promise ? reply.then(completed) : completed(reply);
    },
  });
  return {
    port: server.port,
    inFlight: () => inFlight.counts,
    requests: () => requests,
    async close() {
      authenticator.close();
      await results.close();
      await server.close();
      await uploads.close();
    },
  };
}

/** The reply to a request that is refused or is a preflight; otherwise undefined. */
function answerOf({ refusal, isPreflight }: Verdict): Reply | undefined {
  if (refusal !== undefined) return textReply(403, refusal);
  if (isPreflight) return { status: 204, headers: [] };
}

function routesOf(config: Config, files: ConsoleFiles): Map<string, Route> {
  const { redirects, redirectCount } = config.of(httpSettings);
  const routes = new Map<string, Route>();
  for (const route of ROUTES) {
    if (route.isServed?.(config) === false) continue;
    for (const path of pathsOf(route, config)) routes.set(path, route);
  }
  const prefix = consolePrefix(config);
  for (const name of files.assets.keys()) routes.set(prefix + ASSETS_PATH + name, assets);
  for (const [index, redirection] of Object.values(redirects).slice(0, redirectCount).entries()) {
    if (redirection === null) continue;
    const { from, to } = redirection;
    const isDefault = config.source(Object.values(httpSettings.redirects)[index]!) === "default";
    if (isDefault) routes.set(prefix + from, redirect(prefix + to));
    else routes.set(from, redirect(to));
  }
  return routes;
}

/** Applies the console's prefix, except to paths that are set explicitly. */
function pathsOf({ paths, hasNoPrefix }: Route, config: Config): readonly string[] {
  const prefix = consolePrefix(config);
  if (!isSetting(paths)) return paths.map((path) => prefix + path);
  const isPrefixed = !hasNoPrefix && config.source(paths) === "default";
  return isPrefixed ? config.get(paths).map((path) => prefix + path) : config.get(paths);
}

/** The parts of a request that are known before it is answered. */
interface Arrival {
  /** Address of the client. */
  hostname: string;
  path: string;
  parameters: Parameters;
  route: Route | undefined;
  authenticator: Authenticator;
  sessions: Sessions;
  results: Results;
  uploads: Uploads;
  options: HttpOptions;
}

function answer(request: HttpRequest, arrival: Arrival): Reply | Promise<Reply> {
  const { hostname, route, authenticator, options } = arrival;
  const startedMs = performance.now();
  // For HEAD no statement is run, because its answer would be discarded.
  const method = request.method === "HEAD" && route?.wire === undefined ? "GET" : request.method;
  // With access control, an unknown path is answered like known ones, so that unauthenticated clients cannot find out
  // paths.
  const isFree = route === undefined
    ? options.database.access === undefined
    : isOpen(route, options) && method === "GET";
  if (isFree) return answerTo(request, arrival, { method, identity: ANONYMOUS, startedMs, authenticationNs: 0 });
  const metrics = route?.wire === undefined ? undefined : options.metrics?.wires[route.wire];
  const known = (who: Authenticated): Reply | Promise<Reply> => {
    const refused = "status" in who ? who : authenticator.refusalOf(who.identity);
    if (refused !== undefined) metrics?.authenticationsFailed.inc();
    if (refused !== undefined || "status" in who) return textReply(refused!.status, refused!.reason, refused!.headers);
    if (who.identity !== ANONYMOUS) metrics?.authenticationsSucceeded.inc();
    // Without users there is nothing to be measured.
    const authenticationNs = who.identity === ANONYMOUS ? 0 : Math.round((performance.now() - startedMs) * 1e6);
    return answerTo(request, arrival, { method, ...who, startedMs, authenticationNs });
  };
  const who = authenticator.authenticate(request, hostname, () => metrics?.authenticationsDelayed.inc());
  return who instanceof Promise ? who.then(known) : known(who);
}

/** Data of a request after authentication. `token`: of the request's session. */
interface Asker {
  method: string;
  identity: Identity;
  token?: string;
  startedMs: number;
  authenticationNs: number;
}

function answerTo(
  request: HttpRequest,
  { path, parameters, route, sessions, results, uploads, options }: Arrival,
  { method, identity, token, startedMs, authenticationNs }: Asker,
): Reply | Promise<Reply> {
  if ((method === "POST" || method === "PUT") && !hasBodySize(request)) {
    return textReply(400, "Content-length not specified for POST/PUT request");
  }
  if (route === undefined) return method === "GET" ? notFound() : methodNotSupported(method);
  if (!Object.hasOwn(route.methods, method)) return methodNotSupported(method);
  const call: Call = {
    request,
    path,
    parameters,
    identity,
    client: { wire: "http", address: () => shownAddress(request.remoteAddr), canWrite: true },
    database: options.database,
    options,
    results,
    uploads,
    startedMs,
    authenticationNs,
  };
  const completed = (reply: Reply): Reply => {
    const cookie = cookieFor(call, route, token, sessions);
    return cookie === undefined ? reply : withCookie(reply, cookie, request);
  };
  const reply = route.methods[method]!(call);
  return reply instanceof Promise ? reply.then(completed) : completed(reply);
}

/** The Set-Cookie header that opens, continues or ends a session. `token`: of the request's session. */
function cookieFor(call: Call, { wire }: Route, token: string | undefined, sessions: Sessions): string | undefined {
  if (call.identity === ANONYMOUS) return undefined;
  const asked = wire === "exec" ? call.parameters.get("session")?.toLowerCase() : undefined;
  if (token !== undefined) return asked === "false" ? sessions.end(token) : sessions.continue(token);
  return asked === "true" ? sessions.open(call.identity, call.request.headers.get("cookie") ?? undefined) : undefined;
}

function isOpen({ open }: Route, { database }: HttpOptions): boolean {
  return open === true || (open === "unless access control is on" && database.access === undefined);
}

function withCookie(reply: Reply, cookie: string, { isSecure }: HttpRequest): Reply {
  reply.headers.push(["Set-Cookie", isSecure ? `${cookie}; Secure` : cookie]);
  return reply;
}

function hasBodySize(request: HttpRequest): boolean {
  return request.headers.has("content-length") || request.headers.has("transfer-encoding");
}

function stackOf(error: unknown): string {
  return error instanceof Error ? error.stack ?? error.message : String(error);
}
