/** Checks the health of a running server as a monitor would. For containers, which contain no other program for it. */
import { type Address, type Config, formatAddress } from "../../config/mod.ts";
import { ConfigError } from "../../errors.ts";
import { askDirectly } from "../../log/mod.ts";
import { httpSettings } from "../http/settings.ts";
import { tlsSettings } from "../tls/settings.ts";
import { healthSettings } from "./settings.ts";

/** Must be shorter than the time-out of containers. */
const PATIENCE_MS = 4000;

/** `config`: the settings with which the server was started. @throws {ConfigError} if the minimal server is off. */
export async function probeHealth(config: Config): Promise<{ isHealthy: boolean; said: string }> {
  const address = config.get(healthSettings.address);
  if (!config.get(healthSettings.enabled)) {
    throw new ConfigError("http.min.enabled", "http.min.enabled: the minimal server, which reports health, is off");
  }
  if (address.port === 0) {
    throw new ConfigError(
      "http.min.bind.to",
      "http.min.bind.to: the system chose the port, which is in the server's log",
    );
  }
  const target = reachable(address);
  const isSecure = config.get(tlsSettings.health.enabled) ?? config.get(tlsSettings.shared.enabled);
  const url = `${isSecure ? "https" : "http"}://${formatAddress(target)}/`;
  const headers: Record<string, string> = { host: formatAddress(target), connection: "close" };
  if (config.get(healthSettings.requiresAuthentication) && config.get(httpSettings.user) !== "") {
    const bytes = new TextEncoder().encode(`${config.get(httpSettings.user)}:${config.get(httpSettings.password)}`);
    headers.authorization = `Basic ${bytes.toBase64()}`;
  }
  try {
    const status = await askDirectly(target, { method: "GET", path: "/", headers, timeoutMs: PATIENCE_MS, isSecure });
    const isHealthy = status >= 200 && status < 300;
    return { isHealthy, said: `${isHealthy ? "healthy" : "not healthy"}: ${status} from ${url}` };
  } catch (error) {
    return { isHealthy: false, said: `not healthy: no answer from ${url}: ${(error as Error).message}` };
  }
}

/** A server that listens on all adapters is queried on the loopback adapter. */
function reachable({ hostname, port }: Address): Address {
  if (hostname === "0.0.0.0") return { hostname: "127.0.0.1", port };
  return hostname === "::" ? { hostname: "::1", port } : { hostname, port };
}
