/** Starts the listeners of the database. */
import type { Database } from "../api.ts";
import { logger, wireLogger } from "../log/mod.ts";
import { loadConsole, startHttp } from "../wire/http/mod.ts";
import { httpSettings } from "../wire/http/settings.ts";
import { startLineTcp } from "../wire/line-tcp/mod.ts";
import { lineTcpSettings, servesLineTcp } from "../wire/line-tcp/settings.ts";
import { startPg } from "../wire/pg/mod.ts";
import { pgSettings } from "../wire/pg/settings.ts";
import { consoleDirectory } from "./console.ts";
import type { Part } from "./ending.ts";
import { listen } from "./listeners.ts";
import type { Shared } from "./shared.ts";

interface Wires extends Shared {
  database: Database;
  parts: Part[];
}

export async function startWires(wires: Wires): Promise<void> {
  const { config, parts } = wires;
  if (config.get(httpSettings.enabled)) parts.push(await beginHttp(wires));
  if (config.get(pgSettings.enabled)) parts.push(await beginPg(wires));
  if (servesLineTcp(config)) parts.push(await beginLineTcp(wires));
}

function beginHttp(
  { config, metrics, certificates, connections, database, sockets, largeStatements }: Wires,
): Promise<Part> {
  const log = wireLogger("http-server");
  const certificate = certificates?.of("http");
  return listen(config, httpSettings, log, async (at) => {
    const console = loadConsole(await consoleDirectory());
    const options = { certificate, database, config, log, metrics, console, sockets, largeStatements };
    const http = startHttp({ ...at, ...options });
    for (const wire of ["exec", "exp", "imp", "line_http"] as const) connections.set(wire, () => http.inFlight()[wire]);
    metrics.read("httpRequests", () => http.requests());
    return http;
  });
}

function beginPg(
  { config, metrics, certificates, connections, database, sockets, largeStatements }: Wires,
): Promise<Part> {
  const log = wireLogger("pg-server");
  const certificate = certificates?.of("pg");
  return listen(config, pgSettings, log, async (at) => {
    const options = { certificate, database, log, metrics, sockets, largeStatements };
    const pg = await startPg(Object.assign(config.view(pgSettings), at, options));
    connections.set("pg", () => pg.connectionCount());
    return pg;
  });
}

function beginLineTcp({ config, metrics, certificates, connections, database }: Wires): Promise<Part> {
  const log = logger("line-tcp-server");
  const certificate = certificates?.of("lineTcp");
  return listen(config, lineTcpSettings, log, (at) => {
    const options = { certificate, database, log, metrics };
    const line = startLineTcp(Object.assign(config.view(lineTcpSettings), at, options));
    connections.set("line_tcp", () => line.connectionCount());
    return Promise.resolve(line);
  });
}
