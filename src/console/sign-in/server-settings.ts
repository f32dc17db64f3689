/** Public information about the server: GET /settings. */
import { send } from "../server/request.ts";

export interface ServerSettings {
  /** True if users must sign in. */
  isProtected: boolean;
  /** False in read-only mode. */
  acceptsWrites: boolean;
  /** The name of the server in its settings. */
  instanceName?: string;
  /** The identity provider, if users can sign in there. */
  provider?: Provider;
}

export interface Provider {
  clientId: string;
  /** Where the provider redirects the browser. Undefined: to the page's own address. */
  redirectUri?: string;
  scope: string;
  /** True if the id token instead of the access token is sent to the server. */
  sendsIdToken: boolean;
  clockToleranceSeconds: number;
  /** Undefined while the server does not know the provider's addresses. */
  addresses?: Addresses;
}

export interface Addresses {
  issuer: string;
  authorization: string;
  token: string;
  keys: string;
  /** Optional, because not all providers have one. */
  endSession?: string;
}

/** Undefined if the server does not answer. */
export async function fetchServerSettings(): Promise<ServerSettings | undefined> {
  try {
    const { config } = await (await send("settings")).json();
    return {
      isProtected: config["acl.enabled"] === true,
      acceptsWrites: config["accepting.writes"]?.length > 0,
      instanceName: config["instance.name"],
      provider: config["acl.oidc.enabled"] === true ? providerOf(config) : undefined,
    };
  } catch {
    return undefined;
  }
}

function providerOf(config: Record<string, string | null>): Provider {
  const one = (key: string) => config[`acl.oidc.${key}`] ?? undefined;
  const issuer = one("issuer");
  return {
    clientId: one("client.id")!,
    redirectUri: one("redirect.uri"),
    scope: one("scope")!,
    sendsIdToken: Boolean(one("groups.encoded.in.token")),
    clockToleranceSeconds: Number(one("clock.tolerance") ?? 30),
    addresses: issuer && {
          issuer,
          authorization: one("authorization.endpoint")!,
          token: one("token.endpoint")!,
          keys: one("public.keys.endpoint")!,
          endSession: one("end.session.endpoint"),
        } || undefined,
  };
}
