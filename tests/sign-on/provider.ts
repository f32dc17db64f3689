/**
 * A real identity provider, oidc-provider, that runs in the test's process. Its tokens are kept apart from it, so that it can be
 * restarted and change its keys. In front of it, a test can disturb its answers.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import * as jose from "jose";
import Provider from "oidc-provider";

export const CLIENT_ID = "sundial";
const SCOPE = "openid profile groups";

export interface User {
  name?: string;
  /** The claim as it is sent. */
  groups?: unknown;
  /** For the password flow. */
  password?: string;
  /** The provider refuses this user's tokens. */
  isRevoked?: boolean;
}

/** Answers in place of the provider; false: the provider answers. */
export type Disturbance = (request: IncomingMessage, reply: ServerResponse) => boolean;

export interface TestProvider {
  issuer: string;
  users: Map<string, User>;
  /** Numbers of requests by path. */
  requests: Map<string, number>;
  disturbance: Disturbance | undefined;
  /** An access token. */
  accessToken(subject: string): Promise<string>;
  /** An ID token of the present key. `claims`: in place of the right ones. */
  idToken(subject: string, claims?: jose.JWTPayload, headers?: { alg?: string }): Promise<string>;
  /** Makes new keys; tokens of the old ones are no longer valid. */
  rotateKeys(): Promise<void>;
  /** Ends the server; connections are refused. */
  stop(): Promise<void>;
  /** At the same address. */
  start(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Options {
  users?: Record<string, User>;
  /** Of the console, for the code flow. They are read again with each new key. */
  redirectUris?: string[];
  /** Seconds until tokens expire. */
  tokenTtl?: { access?: number; id?: number };
}

export async function startProvider(options: Options = {}): Promise<TestProvider> {
  const users = new Map(Object.entries(options.users ?? {}));
  const requests = new Map<string, number>();
  const stored = new Map<string, Record<string, unknown>>();
  const redirectUris = options.redirectUris ?? ["http://127.0.0.1/"];
  let server = createServer(), port = 0, provider: Provider, callback: (...args: unknown[]) => void;
  let key: jose.CryptoKey, keyId = 0;

  async function makeProvider(): Promise<void> {
    const pair = await jose.generateKeyPair("RS256", { extractable: true });
    key = pair.privateKey;
    const jwk = { ...await jose.exportJWK(key), kid: `key-${++keyId}`, use: "sig", alg: "RS256" };
    provider = new Provider(`http://127.0.0.1:${port}`, {
      adapter: adapterOf(stored),
      clients: [{
        client_id: CLIENT_ID,
        token_endpoint_auth_method: "none",
        grant_types: ["authorization_code", "refresh_token", "password"],
        response_types: ["code"],
        redirect_uris: redirectUris,
        post_logout_redirect_uris: redirectUris,
        // Native clients may have any port, but the provider asks for consent each time.
        application_type: options.redirectUris === undefined ? "native" : "web",
      }],
      jwks: { keys: [jwk] },
      claims: { openid: ["sub"], profile: ["name"], groups: ["groups"] },
      scopes: ["openid", "offline_access", "profile", "groups"],
      conformIdTokenClaims: false,
      clientBasedCORS: () => true,
      pkce: { required: () => true },
      issueRefreshToken: () => true,
      cookies: { keys: ["cookies of the test"] },
      ttl: { AccessToken: options.tokenTtl?.access ?? 3600, IdToken: options.tokenTtl?.id ?? 3600, Grant: 86_400 },
      findAccount: (_context: unknown, id: string) => {
        const user = users.get(id);
        if (user === undefined || user.isRevoked) return undefined;
        const { name, groups } = user;
        return { accountId: id, claims: () => ({ sub: id, name, groups }) };
      },
      // deno-lint-ignore no-explicit-any
    } as any);
    provider.registerGrantType("password", passwordGrant, ["username", "password", "scope"]);
    callback = provider.callback() as typeof callback;
  }

  // deno-lint-ignore no-explicit-any
  async function passwordGrant(context: any): Promise<void> {
    const { username, password } = context.oidc.params;
    const user = users.get(username);
    if (user === undefined || user.isRevoked || user.password !== password) {
      context.status = 400;
      context.body = { error: "invalid_grant", error_description: `wrong password ${password} of ${username}` };
      return;
    }
    context.body = {
      access_token: await accessToken(username),
      id_token: await idToken(username),
      refresh_token: await tokenOf("RefreshToken", username),
      expires_in: 3600,
      token_type: "Bearer",
    };
  }

  async function tokenOf(kind: "AccessToken" | "RefreshToken", subject: string): Promise<string> {
    // deno-lint-ignore no-explicit-any
    const kinds = provider as any;
    const client = await provider.Client.find(CLIENT_ID);
    const grant = new kinds.Grant({ accountId: subject, clientId: CLIENT_ID });
    grant.addOIDCScope(SCOPE);
    return await new kinds[kind]({
      accountId: subject,
      client,
      grantId: await grant.save(),
      gty: "password",
      scope: SCOPE,
    }).save();
  }

  const accessToken = (subject: string) => tokenOf("AccessToken", subject);

  function idToken(
    subject: string,
    claims: jose.JWTPayload = {},
    headers: { alg?: string } = {},
  ): Promise<string> {
    const now = Math.floor(Date.now() / 1000), user = users.get(subject);
    const right = {
      iss: `http://127.0.0.1:${port}`,
      aud: CLIENT_ID,
      sub: subject,
      iat: now,
      exp: now + (options.tokenTtl?.id ?? 3600),
      name: user?.name,
      groups: user?.groups as string[],
    };
    return new jose.SignJWT({ ...right, ...claims }).setProtectedHeader({
      alg: "RS256",
      kid: `key-${keyId}`,
      ...headers,
    })
      .sign(key);
  }

  async function start(): Promise<void> {
    server = createServer();
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
    server.on("request", (request, reply) => {
      const path = request.url!.split("?")[0];
      requests.set(path, (requests.get(path) ?? 0) + 1);
      if (made.disturbance?.(request, reply) !== true) callback(request, reply);
    });
  }

  async function stop(): Promise<void> {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  const made: TestProvider = {
    issuer: "",
    users,
    requests,
    disturbance: undefined,
    accessToken,
    idToken,
    rotateKeys: makeProvider,
    start,
    stop,
    [Symbol.asyncDispose]: stop,
  };
  await start();
  await makeProvider();
  made.issuer = `http://127.0.0.1:${port}`;
  return made;
}

/** Keeps what the provider stores in a map that outlives it. */
function adapterOf(stored: Map<string, Record<string, unknown>>) {
  return class {
    constructor(readonly kind: string) {}

    private key(id: string): string {
      return `${this.kind}:${id}`;
    }
    private where(field: string, value: string): Record<string, unknown> | undefined {
      for (const [key, entry] of stored) if (key.startsWith(`${this.kind}:`) && entry[field] === value) return entry;
    }
    upsert(id: string, payload: Record<string, unknown>): Promise<void> {
      stored.set(this.key(id), payload);
      return Promise.resolve();
    }
    find(id: string) {
      return Promise.resolve(stored.get(this.key(id)));
    }
    findByUid(uid: string) {
      return Promise.resolve(this.where("uid", uid));
    }
    findByUserCode(code: string) {
      return Promise.resolve(this.where("userCode", code));
    }
    consume(id: string): Promise<void> {
      const entry = stored.get(this.key(id));
      if (entry !== undefined) entry.consumed = Math.floor(Date.now() / 1000);
      return Promise.resolve();
    }
    destroy(id: string): Promise<void> {
      stored.delete(this.key(id));
      return Promise.resolve();
    }
    revokeByGrantId(grantId: string): Promise<void> {
      for (const [key, entry] of stored) if (entry.grantId === grantId) stored.delete(key);
      return Promise.resolve();
    }
  };
}
