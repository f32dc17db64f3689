/** Finds listeners that let in everybody on the network, or accept passwords in clear text. */
import type { Config } from "./config.ts";
import { type Address, formatAddress } from "./units.ts";

/** The publicly known default of pg.password and pg.readonly.password. */
const KNOWN_PASSWORD = "quest";

interface Gap {
  /** "0.0.0.0:9000 (HTTP, no password)" */
  where: string;
  remedy: string;
}

/**
 * Sentences for the log: one about all open listeners, and one about each listener that accepts clear-text passwords.
 */
export function exposure(config: Config): string[] {
  return [...openListeners(config), ...readablePasswords(config)];
}

/** Listeners that other machines can reach and that require no password or a publicly known one. */
function openListeners(config: Config): string[] {
  const gaps: Gap[] = [];
  const find = (wire: string, address: Address, isOpen: boolean, why: string, remedy: string) => {
    if (isOpen && !isLoopback(address)) gaps.push({ where: `${formatAddress(address)} (${wire}, ${why})`, remedy });
  };
  const http = config.get("http.net.bind.to"), pg = config.get("pg.net.bind.to");
  const hasHttp = config.get("http.enabled"), hasPg = config.get("pg.enabled");
  find("HTTP", http, hasHttp && config.get("http.user") === "", "no password", "set http.user and http.password");
  const reader = hasPg && config.get("pg.readonly.user.enabled");
  const passwords = [["pg.password", hasPg], ["pg.readonly.password", reader]] as const;
  for (const [key, isUsed] of passwords) {
    const password = config.get(key);
    const why = password === "" ? "an empty password" : "the default password";
    find("PostgreSQL wire", pg, isUsed && (password === "" || password === KNOWN_PASSWORD), why, `set ${key}`);
  }
  const hasLines = config.get("line.tcp.enabled") && !config.get("readonly");
  const line = config.get("line.tcp.net.bind.to");
  find("line protocol", line, hasLines, "no password", "set line.tcp.enabled=false");
  if (gaps.length === 0) return [];
  const places = [...new Set(gaps.map(({ where }) => where))].join(", ");
  const remedies = gaps.map(({ remedy }) => remedy).join(", ");
  return [`open to every machine that reaches it: ${places}. To close: ${remedies}, or bind to 127.0.0.1`];
}

/** Listeners that other machines can reach and that accept passwords without TLS. */
function readablePasswords(config: Config): string[] {
  const hasTls = (key: "http.tls.enabled" | "http.min.tls.enabled" | "pg.tls.enabled") =>
    config.get(key) ?? config.get("tls.enabled");
  const asksHttp = config.get("http.user") !== "" && config.get("http.password") !== "";
  const asksHealth = config.get("http.min.enabled") && config.get("http.health.check.authentication.required");
  const listeners = [
    {
      wire: "HTTP",
      address: config.get("http.net.bind.to"),
      isReadable: config.get("http.enabled") && asksHttp && !hasTls("http.tls.enabled"),
      remedy: "set http.tls.enabled=true, or bind to 127.0.0.1 behind a proxy with TLS",
    },
    {
      wire: "PostgreSQL wire",
      address: config.get("pg.net.bind.to"),
      isReadable: config.get("pg.enabled") && config.get("pg.auth.method") === "password" &&
        !(hasTls("pg.tls.enabled") && config.get("pg.tls.required")),
      remedy: "set pg.auth.method=scram-sha-256, or pg.tls.enabled=true and pg.tls.required=true, or bind to 127.0.0.1",
    },
    {
      wire: "health",
      address: config.get("http.min.bind.to"),
      isReadable: asksHealth && asksHttp && !hasTls("http.min.tls.enabled"),
      remedy: "set http.min.tls.enabled=true, or bind to 127.0.0.1",
    },
  ];
  return listeners.filter(({ address, isReadable }) => isReadable && !isLoopback(address))
    .map(({ wire, address, remedy }) => {
      const place = `${formatAddress(address)} (${wire})`;
      return `passwords can cross the network in clear text, as clients may do without TLS: ${place}. To protect them: ${remedy}`;
    });
}

function isLoopback({ hostname }: Address): boolean {
  return hostname === "localhost" || hostname === "::1" || /^127\./.test(hostname);
}
