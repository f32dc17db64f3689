/** The addresses of the identity provider: from its discovery document, or from the settings. */
import * as oauth from "oauth4webapi";
import { ProviderUnavailable } from "./unavailable.ts";
import { hostUrl, isSafe, type OidcSettings } from "./settings.ts";

type Needed = "authorization_endpoint" | "token_endpoint" | "userinfo_endpoint" | "jwks_uri";

/** The provider's metadata, with the names of discovery documents. */
export type ProviderServer = oauth.AuthorizationServer & Required<Pick<oauth.AuthorizationServer, Needed>>;

/** The provider as described by the settings. The endpoints were checked at the start. */
export function configuredServer(settings: OidcSettings): ProviderServer {
  const base = hostUrl(settings);
  const url = (endpoint: string) => new URL(endpoint, base).href;
  return {
    // Issuers are written without the default port.
    issuer: settings.issuer === "" ? new URL(base).origin : settings.issuer,
    authorization_endpoint: url(settings.authorizationEndpoint),
    token_endpoint: url(settings.tokenEndpoint),
    userinfo_endpoint: url(settings.userInfoEndpoint),
    jwks_uri: url(settings.publicKeysEndpoint),
    ...(settings.endSessionEndpoint === "" ? {} : { end_session_endpoint: url(settings.endSessionEndpoint) }),
  };
}

/** The discovery document is unusable. */
export class UnfitDocument extends ProviderUnavailable {}

/** @throws {UnfitDocument} @throws {ProviderUnavailable} */
export async function discoveredServer(
  settings: Pick<OidcSettings, "configurationUrl" | "issuer">,
  fetcher: (url: string) => Promise<Response>,
): Promise<ProviderServer> {
  const { configurationUrl } = settings;
  const reply = await fetcher(configurationUrl);
  if (reply.status !== 200) throw new ProviderUnavailable(`${configurationUrl}: status ${reply.status}`);
  let server: oauth.AuthorizationServer;
  try {
    const { issuer } = await reply.clone().json() as { issuer?: unknown };
    server = await oauth.processDiscoveryResponse(expectedIssuer(settings, issuer), reply);
  } catch (error) {
    throw new UnfitDocument(`${configurationUrl}: ${(error as Error).message}`);
  }
  const endpoint = (name: Needed | "end_session_endpoint"): string => {
    const value = server[name];
    if (typeof value === "string" && URL.canParse(value) && isSafe(new URL(value))) return value;
    const found = value === undefined ? "nothing" : JSON.stringify(value);
    throw new UnfitDocument(`${configurationUrl}: ${name}: found ${found}, expected an https URL`);
  };
  return {
    ...server,
    authorization_endpoint: endpoint("authorization_endpoint"),
    token_endpoint: endpoint("token_endpoint"),
    userinfo_endpoint: endpoint("userinfo_endpoint"),
    jwks_uri: endpoint("jwks_uri"),
    ...(server.end_session_endpoint === undefined ? {} : { end_session_endpoint: endpoint("end_session_endpoint") }),
  };
}

/** The document's address without its well-known part. Whether it ends with a slash depends on the document. */
function expectedIssuer(
  { configurationUrl, issuer }: Pick<OidcSettings, "configurationUrl" | "issuer">,
  found: unknown,
): URL {
  if (issuer !== "") return new URL(issuer);
  const url = new URL(configurationUrl);
  url.pathname = url.pathname.slice(0, url.pathname.lastIndexOf("/.well-known/") + 1);
  url.search = "";
  if (typeof found === "string" && !found.endsWith("/")) url.pathname = url.pathname.replace(/\/$/, "");
  return url;
}
