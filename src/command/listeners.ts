/** The addresses of the listeners, and errors of listening. */
import { type Address, type Config, formatAddress, type Section } from "../config/mod.ts";
import { ConfigError } from "../errors.ts";
import type { Logger } from "../log/mod.ts";
import { healthSettings } from "../wire/health/settings.ts";
import { httpSettings } from "../wire/http/settings.ts";
import { lineTcpSettings } from "../wire/line-tcp/settings.ts";
import { pgSettings } from "../wire/pg/settings.ts";
import type { Part } from "./ending.ts";

const LISTENERS = [healthSettings, httpSettings, pgSettings, lineTcpSettings];

/** Finds listeners on the same port. The system's error would only say that the port is in use. */
export const checkListeners: NonNullable<Section["check"]> = (config, refuse) => {
  const isAny = (host: string) => host === "0.0.0.0" || host === "::";
  const on = LISTENERS.filter(({ enabled }) => config.get(enabled));
  on.forEach((own, index) => {
    const { hostname, port } = config.get(own.address);
    for (const other of on.slice(0, index)) {
      const taken = config.get(other.address);
      const clash = port !== 0 && port === taken.port &&
        (hostname === taken.hostname || isAny(hostname) || isAny(taken.hostname));
      if (!clash) continue;
      refuse(
        [own.address, other.address, own.enabled, other.enabled],
        `found ${formatAddress({ hostname, port })}, expected a port other than that of ${other.address.key}`,
      );
    }
  });
};

/** Starts a listener at its configured address and logs the address. @throws {ConfigError} if that fails */
export async function listen(
  config: Config,
  { address }: (typeof LISTENERS)[number],
  log: Logger,
  begin: (address: Address) => Promise<{ port: number; close(): Promise<void> }>,
): Promise<Part> {
  const at = config.get(address);
  try {
    const { port, close } = await begin(at);
    log.advisory(`listening on ${formatAddress({ ...at, port })}`);
    return { name: log.name, close };
  } catch (error) {
    throw listenFault(address.key, at, error) ?? error;
  }
}

function listenFault(key: string, address: Address, error: unknown): ConfigError | undefined {
  const code = (error as { code?: string }).code;
  const shown = formatAddress(address);
  if (error instanceof Deno.errors.AddrInUse || code === "EADDRINUSE") {
    return new ConfigError(key, `${key}: ${shown} is in use by another process`);
  }
  // Deno's node:net reports EINVAL for an address that no adapter has.
  if (error instanceof Deno.errors.AddrNotAvailable || code === "EADDRNOTAVAIL" || code === "EINVAL") {
    return new ConfigError(key, `${key}: no network adapter of this machine has the address ${shown}`);
  }
  if (code === "ENOTFOUND" || /failed to lookup address/.test((error as Error).message)) {
    return new ConfigError(key, `${key}: the host of ${shown} has no address`);
  }
  if (error instanceof Deno.errors.PermissionDenied || code === "EACCES") {
    return new ConfigError(key, `${key}: no permission to listen on ${shown}`);
  }
}

/** Addresses that cannot be listened on, regardless of which ports are in use now. */
export function addressFaults(config: Config): ConfigError[] {
  return LISTENERS.flatMap(({ enabled, address }) => {
    if (!config.get(enabled)) return [];
    const at = config.get(address);
    try {
      Deno.listen({ hostname: at.hostname, port: 0 }).close();
      return [];
    } catch (error) {
      return listenFault(address.key, at, error) ?? [];
    }
  });
}
