/** The settings of sign-on by OpenID Connect. */
import { bool, int, ms, path, seconds, type Section, type SettingReader, text, type Values } from "../../config/mod.ts";
import { accessSettings } from "../../access/settings.ts";

const DISCOVERY_PATH = "/.well-known/openid-configuration";

const endpoint = (key: string, byDefault: string, what: string) =>
  text(
    key,
    byDefault,
    `${what}: a path at acl.oidc.host, or a URL. Without effect if acl.oidc.configuration.url is set.`,
  );

export const oidcSettings = {
  enabled: bool(
    "acl.oidc.enabled",
    false,
    "Sign-on by an OpenID Connect provider, in addition to users of the database. Requires acl.enabled.",
  ),
  configurationUrl: text(
    "acl.oidc.configuration.url",
    "",
    `URL of the provider's discovery document, which ends in ${DISCOVERY_PATH}. Replaces host, port and endpoints.`,
  ),
  host: text("acl.oidc.host", "", "Host of the provider, if there is no discovery document."),
  port: int("acl.oidc.port", 443, "Port of the provider.", { min: 1, max: 65_535 }),
  hasTls: bool(
    "acl.oidc.tls.enabled",
    true,
    "Uses https for acl.oidc.host. Can be turned off only for a provider on this machine.",
  ),
  validatesTls: bool(
    "acl.oidc.tls.validation.enabled",
    true,
    "Checks the provider's certificate. Cannot be turned off: add its authority to acl.oidc.tls.keystore.path.",
  ),
  authorities: path(
    "acl.oidc.tls.keystore.path",
    "",
    "PEM file with certificates of the authorities that may issue the provider's certificate, relative to the root. Empty: the system's authorities.",
  ),
  authoritiesPassword: text(
    "acl.oidc.tls.keystore.password",
    "",
    "Accepted for compatibility, without effect: a PEM file of certificates has no password.",
    { secret: true, isIgnored: true },
  ),
  issuer: text(
    "acl.oidc.issuer",
    "",
    "Issuer of the provider's tokens. Empty: as in the discovery document, or https://host:port.",
  ),
  authorizationEndpoint: endpoint(
    "acl.oidc.authorization.endpoint",
    "/as/authorization.oauth2",
    "Authorization endpoint",
  ),
  tokenEndpoint: endpoint("acl.oidc.token.endpoint", "/as/token.oauth2", "Token endpoint"),
  userInfoEndpoint: endpoint("acl.oidc.userinfo.endpoint", "/idp/userinfo.openid", "User-info endpoint"),
  publicKeysEndpoint: endpoint("acl.oidc.public.keys.endpoint", "/pf/JWKS", "Keys that sign tokens"),
  endSessionEndpoint: endpoint("acl.oidc.end.session.endpoint", "", "Endpoint for signing out, if there is one"),
  clientId: text("acl.oidc.client.id", "", "Client id of this server at the provider. Required."),
  audience: text(
    "acl.oidc.audience",
    "",
    "Audience that tokens must have if the server itself checks them. Empty: acl.oidc.client.id.",
  ),
  redirectUri: text(
    "acl.oidc.redirect.uri",
    "",
    "URL of the console to which the provider redirects browsers. Empty: the address that the browser uses.",
  ),
  scope: text("acl.oidc.scope", "openid", "Requested scopes, separated by blanks. They must include openid."),
  usesPkce: bool("acl.oidc.pkce.enabled", true, "The console signs in with PKCE. It always does.", { isIgnored: true }),
  allowsPasswords: bool(
    "acl.oidc.ropc.flow.enabled",
    false,
    "Passes names and passwords of users that are not in the database to the provider (grant_type=password).",
  ),
  allowsPgTokens: bool(
    "acl.oidc.pg.token.as.password.enabled",
    false,
    "The PostgreSQL wire accepts a token as the password of the user _sso.",
  ),
  timeoutMs: ms("acl.oidc.http.timeout", "30000", "Time limit of a request to the provider."),
  cacheTtlMs: ms(
    "acl.oidc.cache.ttl",
    "30000",
    "Time for which a checked token or password is accepted without asking the provider again.",
  ),
  groupsClaim: text("acl.oidc.groups.claim", "groups", "Claim with the names of the user's groups at the provider."),
  subjectClaim: text("acl.oidc.sub.claim", "sub", "Claim with the user's name in this database."),
  groupsInToken: bool(
    "acl.oidc.groups.encoded.in.token",
    false,
    "Takes user and groups from the token itself (a signed JWT) instead of the user-info endpoint.",
  ),
  clockToleranceMs: seconds(
    "acl.oidc.clock.tolerance",
    "30",
    "Accepted difference between the clocks of provider and server when a token's times are checked.",
  ),
};

export type OidcSettings = Values<typeof oidcSettings>;

/** Settings with URLs, or paths at the host. Only the first may be empty. */
const ENDPOINTS = [
  oidcSettings.endSessionEndpoint,
  oidcSettings.authorizationEndpoint,
  oidcSettings.tokenEndpoint,
  oidcSettings.userInfoEndpoint,
  oidcSettings.publicKeysEndpoint,
] as const;

const THIS_MACHINE = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** True for https, and for a provider on this machine. */
export function isSafe(url: URL): boolean {
  return url.protocol === "https:" || (url.protocol === "http:" && THIS_MACHINE.test(url.hostname));
}

export function hostUrl({ host, port, hasTls }: Pick<OidcSettings, "host" | "port" | "hasTls">): string {
  return `${hasTls ? "https" : "http"}://${host}:${port}`;
}

export const oidcSection: Section = {
  title: "Sign-on by OpenID Connect",
  settings: [oidcSettings],
  check(config, refuse) {
    if (!config.get(oidcSettings.enabled)) return;
    const { enabled, clientId, scope, validatesTls, configurationUrl, redirectUri } = oidcSettings;
    if (!config.get(accessSettings.enabled)) {
      refuse([enabled, accessSettings.enabled], "sign-on requires acl.enabled=true");
    }
    if (config.get(clientId) === "") refuse([clientId, enabled], "found an empty value, expected a client id");
    if (!config.get(scope).split(/\s+/).includes("openid")) {
      refuse([scope], `found "${config.get(scope)}", expected scopes that include openid`);
    }
    if (!config.get(validatesTls)) {
      refuse(
        [validatesTls],
        "the provider's certificate is always checked: add its authority to acl.oidc.tls.keystore.path",
      );
    }
    if (config.get(oidcSettings.timeoutMs) === 0) refuse([oidcSettings.timeoutMs], "found 0, expected a longer time");
    const redirect = config.get(redirectUri);
    if (redirect !== "" && !isSafeUrl(redirect)) refuse([redirectUri], wantsHttps(redirect));
    const discovery = config.get(configurationUrl);
    if (discovery === "") return checkEndpoints(config, refuse);
    if (!isSafeUrl(discovery)) refuse([configurationUrl], wantsHttps(discovery));
    else if (!new URL(discovery).pathname.endsWith(DISCOVERY_PATH)) {
      refuse([configurationUrl], `found "${discovery}", expected a URL that ends in ${DISCOVERY_PATH}`);
    }
  },
};

function checkEndpoints(config: SettingReader, refuse: Parameters<NonNullable<Section["check"]>>[1]): void {
  const { host, port, hasTls, configurationUrl } = oidcSettings;
  const name = config.get(host);
  if (name === "") {
    return refuse([host], `found an empty value, expected the provider's host, or ${configurationUrl.key}`);
  }
  const base = hostUrl({ host: name, port: config.get(port), hasTls: config.get(hasTls) });
  if (!URL.canParse(base) || new URL(base).pathname !== "/") return refuse([host], `found "${name}", expected a host`);
  if (!isSafe(new URL(base))) return refuse([hasTls], wantsHttps(base));
  for (const endpoint of ENDPOINTS) {
    const value = config.get(endpoint);
    if (value === "" && endpoint === ENDPOINTS[0]) continue;
    const isUrl = value !== "" && URL.canParse(value, base);
    if (!isUrl || !isSafe(new URL(value, base))) refuse([endpoint], wantsHttps(value));
  }
}

function isSafeUrl(text: string): boolean {
  return URL.canParse(text) && isSafe(new URL(text));
}

const wantsHttps = (found: string) => `found "${found}", expected an https URL (http is allowed only for this machine)`;
