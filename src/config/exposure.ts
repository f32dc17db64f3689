/** Which listeners let anybody in whom the network lets in. */
import type { Config } from "./config.ts";
import { type Address, formatAddress } from "./units.ts";

/** The default of pg.password and pg.readonly.password, which everybody knows. */
const KNOWN_PASSWORD = "quest";

interface Gap {
  /** "0.0.0.0:9000 (HTTP, no password)" */
  where: string;
  remedy: string;
}

/** One sentence about listeners that other machines reach and that ask for no password or a known one; undefined if none do. */
export function exposure(config: Config): string | undefined {
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
  if (gaps.length === 0) return undefined;
  const places = [...new Set(gaps.map(({ where }) => where))].join(", ");
  const remedies = gaps.map(({ remedy }) => remedy).join(", ");
  return `open to every machine that reaches it: ${places}. To close: ${remedies}, or bind to 127.0.0.1`;
}

function isLoopback({ hostname }: Address): boolean {
  return hostname === "localhost" || hostname === "::1" || /^127\./.test(hostname);
}
