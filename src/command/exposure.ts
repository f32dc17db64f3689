/** Finds listeners that are open to everybody on the network, or that accept passwords in clear text. */
import { type Address, type Config, formatAddress, isLoopback } from "../config/mod.ts";
import { accessSettings } from "../access/settings.ts";
import { oidcSettings } from "../auth/oidc/settings.ts";
import { healthSettings } from "../wire/health/settings.ts";
import { httpSettings } from "../wire/http/settings.ts";
import { lineTcpSettings, servesLineTcp } from "../wire/line-tcp/settings.ts";
import { pgSettings } from "../wire/pg/settings.ts";
import { tlsSettings } from "../wire/tls/settings.ts";

/** The publicly known default of acl.admin.password, pg.password and pg.readonly.password. */
const KNOWN_PASSWORD = "quest";

interface Gap {
  /** "0.0.0.0:9000 (HTTP, no password)" */
  where: string;
  remedy: string;
}

/**
 * Returns sentences for the log: one about all open listeners, and one for each listener that accepts clear-text
 * passwords.
 */
export function exposure(config: Config): string[] {
  return [...openListeners(config), ...readablePasswords(config), ...withoutEffect(config)];
}

/** Settings for users that access control replaces. */
const REPLACED = [
  httpSettings.user,
  httpSettings.password,
  pgSettings.user,
  pgSettings.password,
  pgSettings.readonlyEnabled,
  pgSettings.readonlyUser,
  pgSettings.readonlyPassword,
];

function withoutEffect(config: Config): string[] {
  if (!config.get(accessSettings.enabled)) return [];
  const lines: string[] = [];
  const ignored = REPLACED.filter((setting) => config.source(setting) !== "default").map(({ key }) => key);
  if (ignored.length > 0) {
    const admin = accessSettings.adminName.key;
    lines.push(`with acl.enabled=true, ${ignored.join(", ")} have no effect on who may connect: ${admin} may`);
  }
  if (config.get(lineTcpSettings.enabled) && config.get(lineTcpSettings.asksWho)) {
    lines.push(
      "line protocol over TCP is closed, because its clients cannot authenticate: send lines over HTTP, or set " +
        `${lineTcpSettings.asksWho.key}=false to open it to everybody`,
    );
  }
  return lines;
}

/** Listeners that other machines can reach and that require no password or a publicly known one. */
function openListeners(config: Config): string[] {
  const gaps: Gap[] = [];
  const find = (wire: string, address: Address, isOpen: boolean, why: string, remedy: string) => {
    if (isOpen && !isLoopback(address.hostname)) {
      gaps.push({ where: `${formatAddress(address)} (${wire}, ${why})`, remedy });
    }
  };
  const http = config.get(httpSettings.address), pg = config.get(pgSettings.address);
  const hasHttp = config.get(httpSettings.enabled), hasPg = config.get(pgSettings.enabled);
  const access = config.of(accessSettings);
  const isKnown = access.enabled && access.adminSignsIn && access.adminPassword === KNOWN_PASSWORD;
  find("HTTP", http, hasHttp && isKnown, "the default password", "set acl.admin.password");
  find("PostgreSQL wire", pg, hasPg && isKnown, "the default password", "set acl.admin.password");
  const asksNobody = hasHttp && !access.enabled && config.get(httpSettings.user) === "";
  find("HTTP", http, asksNobody, "no password", "set http.user and http.password");
  const reader = hasPg && config.get(pgSettings.readonlyEnabled);
  const passwords = access.enabled
    ? []
    : [[pgSettings.password, hasPg], [pgSettings.readonlyPassword, reader]] as const;
  for (const [setting, isUsed] of passwords) {
    const password = config.get(setting);
    const why = password === "" ? "an empty password" : "the default password";
    find("PostgreSQL wire", pg, isUsed && (password === "" || password === KNOWN_PASSWORD), why, `set ${setting.key}`);
  }
  const line = config.get(lineTcpSettings.address);
  find("line protocol", line, servesLineTcp(config), "no password", "set line.tcp.enabled=false");
  if (gaps.length === 0) return [];
  const places = [...new Set(gaps.map(({ where }) => where))].join(", ");
  const remedies = [...new Set(gaps.map(({ remedy }) => remedy))].join(", ");
  return [`open to every machine that can reach it: ${places}. To close it: ${remedies}, or bind to 127.0.0.1`];
}

/** Listeners that other machines can reach and that accept passwords without TLS. */
function readablePasswords(config: Config): string[] {
  const hasTls = (listener: "http" | "health" | "pg") =>
    config.get(tlsSettings[listener].enabled) ?? config.get(tlsSettings.shared.enabled);
  const access = config.of(accessSettings), takesClearText = !access.enabled || access.allowsClearText;
  // Tokens and passwords of the identity provider are sent in clear text, regardless of the method for other users.
  const oidc = config.of(oidcSettings);
  const asksForExternal = oidc.enabled && (oidc.allowsPgTokens || oidc.allowsPasswords);
  const asksHttp = config.get(httpSettings.user) !== "" && config.get(httpSettings.password) !== "";
  const asksHealth = config.get(healthSettings.enabled) && config.get(healthSettings.requiresAuthentication);
  const listeners = [
    {
      wire: "HTTP",
      address: config.get(httpSettings.address),
      isReadable: config.get(httpSettings.enabled) && (access.enabled || asksHttp) && takesClearText && !hasTls("http"),
      remedy: "set http.tls.enabled=true, or bind to 127.0.0.1 behind a proxy with TLS",
    },
    {
      wire: "PostgreSQL wire",
      address: config.get(pgSettings.address),
      isReadable: config.get(pgSettings.enabled) && takesClearText &&
        (config.get(pgSettings.authMethod) === "password" || asksForExternal) &&
        !(hasTls("pg") && config.get(tlsSettings.pg.required)),
      remedy: "set pg.auth.method=scram-sha-256, or pg.tls.enabled=true and pg.tls.required=true, or bind to 127.0.0.1",
    },
    {
      wire: "health",
      address: config.get(healthSettings.address),
      isReadable: asksHealth && asksHttp && !hasTls("health"),
      remedy: "set http.min.tls.enabled=true, or bind to 127.0.0.1",
    },
  ];
  return listeners.filter(({ address, isReadable }) => isReadable && !isLoopback(address.hostname))
    .map(({ wire, address, remedy }) => {
      const place = `${formatAddress(address)} (${wire})`;
      return `passwords can cross the network in clear text, because TLS is not required: ${place}. To protect them: ${remedy}`;
    });
}
