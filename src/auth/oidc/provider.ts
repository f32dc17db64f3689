/** The identity provider: its endpoints, the users of tokens, and tokens for passwords. */
import * as oauth from "oauth4webapi";
import { ConfigError } from "../../errors.ts";
import { LimitedLines, type Logger, logger } from "../../log/mod.ts";
import { type Claims, claimsUser, type ProviderUser } from "./claims.ts";
import { configuredServer, discoveredServer, type ProviderServer, UnfitDocument } from "./endpoints.ts";
import { ProviderHttp, type Request } from "./http.ts";
import { ProviderUnavailable } from "./unavailable.ts";
import { Outage } from "./outage.ts";
import { ProviderStatistics } from "./statistics.ts";
import { type OidcSettings, oidcSettings } from "./settings.ts";
import { TokenKeys } from "./token-keys.ts";

/** Statuses of the user-info endpoint for tokens that it does not accept. 431: a text too long for a token. */
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 403, 431]);
/** Maximum time that the start waits for the discovery document. */
const START_WAIT_MS = 5_000;
/** Age at which the discovery document is requested again. */
const DISCOVERY_AGE_MAX_MS = 3_600_000;

/** Tokens of a user. They are kept only in memory. */
export interface Tokens {
  /** The token that identifies the user: the access token, or the ID token if groups are taken from tokens. */
  token: string;
  refreshToken: string | undefined;
}

export class IdentityProvider {
  readonly statistics = new ProviderStatistics();
  private readonly http: ProviderHttp;
  private readonly outages: Record<Request, Outage>;
  private readonly errors: LimitedLines;
  private readonly refusals: LimitedLines;
  private readonly client: oauth.Client;
  private readonly keys: TokenKeys;
  private known: ProviderServer | undefined;
  private knownAtMs = -Infinity;
  private asking: Promise<ProviderServer> | undefined;

  /** @throws {ConfigError} if the file of authorities cannot be read. */
  constructor(
    readonly settings: OidcSettings,
    private readonly log: Logger = logger("sign-on"),
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    this.client = { client_id: settings.clientId, [oauth.clockTolerance]: Math.ceil(settings.clockToleranceMs / 1000) };
    this.errors = new LimitedLines((line) => log.error(line), "failures of the identity provider");
    this.refusals = new LimitedLines((line) => log.info(line), "tokens and passwords were refused");
    const outageOf = (kind: Request) => new Outage(kind, () => this.probe(kind), log, nowMs);
    this.outages = {
      discovery: outageOf("discovery"),
      keys: outageOf("keys"),
      userinfo: outageOf("userinfo"),
      token: outageOf("token"),
    };
    this.http = new ProviderHttp(settings, {
      onRequest: (kind, seconds, failure) => {
        this.statistics.request(seconds, failure === undefined);
        if (failure === undefined) return this.outages[kind].answered();
        this.errors.add(() => `the identity provider did not answer (${kind}): ${failure}`);
        this.outages[kind].failed(failure);
      },
    });
    this.keys = new TokenKeys(settings, this.http.fetcher("keys"));
    if (settings.configurationUrl === "") this.known = configuredServer(settings);
  }

  /**
   * Requests the discovery document. A provider that is down does not prevent the start. @throws {ConfigError} if the
   * document is unusable
   */
  async open(): Promise<void> {
    const server = this.server().catch((error) => {
      if (error instanceof UnfitDocument) {
        const { key } = oidcSettings.configurationUrl;
        throw new ConfigError(key, `${key}: ${error.message}`);
      }
    });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => timer = setTimeout(resolve, START_WAIT_MS));
    await Promise.race([server, late]).finally(() => clearTimeout(timer));
    if (this.known !== undefined) return;
    server.catch((error) => this.log.error(error.message));
    this.log.advisory("the identity provider is not available: users of the provider cannot sign in until it is");
  }

  close(): void {
    for (const outage of Object.values(this.outages)) outage.close();
    this.http.close();
  }

  /** Undefined until the discovery document has been read. Requests it in that case. */
  get endpoints(): ProviderServer | undefined {
    if (this.settings.configurationUrl !== "" && this.nowMs() - this.knownAtMs > DISCOVERY_AGE_MAX_MS) {
      this.discover().catch(() => {});
    }
    return this.known;
  }

  /**
   * Returns the user of a token. Undefined if the provider, or the check of the token, has refused it. @throws
   * {ProviderUnavailable}
   */
  async userOf(token: string): Promise<ProviderUser | undefined> {
    const server = await this.server();
    const claims = this.settings.groupsInToken
      ? await this.keys.claimsOf(server, token, (reason) => this.refused("token", reason))
      : await this.userInfo(server, token);
    return claims && claimsUser(claims, this.settings);
  }

  private async userInfo(server: ProviderServer, token: string): Promise<Claims | undefined> {
    const reply = await oauth.userInfoRequest(server, this.client, token, this.through("userinfo"));
    if (REFUSALS.has(reply.status)) return this.refused("token", `user-info answers ${reply.status}`);
    if (reply.status !== 200) throw this.failed("user-info", `status ${reply.status}`);
    try {
      const claims = await oauth.processUserInfoResponse(server, this.client, oauth.skipSubjectCheck, reply);
      const isSigned = reply.headers.get("content-type")?.startsWith("application/jwt");
      if (isSigned) await oauth.validateApplicationLevelSignature(server, reply, this.through("keys"));
      return claims;
    } catch (error) {
      throw this.failed("user-info", (error as Error).message);
    }
  }

  /** Password flow. Undefined if name or password are wrong. @throws {ProviderUnavailable} */
  async tokensFor(name: string, password: string): Promise<Tokens | undefined> {
    const { scope } = this.settings;
    const server = await this.server();
    const parameters = new URLSearchParams({ username: name, password, scope });
    const reply = await oauth.genericTokenEndpointRequest(
      server,
      this.client,
      oauth.None(),
      "password",
      parameters,
      this.through("token"),
    );
    return await this.tokensOf(server, reply, "password");
  }

  /** Undefined if the refresh token is no longer valid. @throws {ProviderUnavailable} */
  async renewed(refreshToken: string): Promise<Tokens | undefined> {
    const server = await this.server();
    const reply = await oauth.refreshTokenGrantRequest(
      server,
      this.client,
      oauth.None(),
      refreshToken,
      this.through("token"),
    );
    const tokens = await this.tokensOf(server, reply, "refresh token");
    return tokens && { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken };
  }

  private async tokensOf(server: ProviderServer, reply: Response, what: string): Promise<Tokens | undefined> {
    if (reply.status !== 200) {
      // Only the error code is logged, because descriptions may name the user or repeat the request.
      const code = await errorCode(reply);
      if (code === "invalid_grant") return this.refused(what, code);
      throw this.failed("token endpoint", `status ${reply.status}${code === undefined ? "" : `, ${code}`}`);
    }
    let answer: oauth.TokenEndpointResponse;
    try {
      answer = await oauth.processGenericTokenEndpointResponse(server, this.client, reply);
    } catch (error) {
      throw this.failed("token endpoint", (error as Error).message);
    }
    // Providers may omit the ID token and sign access tokens in the same way.
    const token = this.settings.groupsInToken ? answer.id_token ?? answer.access_token : answer.access_token;
    return { token, refreshToken: answer.refresh_token };
  }

  private refused(what: string, reason: string): undefined {
    this.refusals.add(() => `${what} refused: ${reason}`);
  }

  private failed(what: string, reason: string): ProviderUnavailable {
    this.errors.add(() => `the identity provider's ${what} is unusable: ${reason}`);
    return new ProviderUnavailable(`${what}: ${reason}`);
  }

  private through(kind: Request) {
    // All addresses were checked: http is allowed only for this machine.
    return { [oauth.customFetch]: this.http.fetcher(kind), [oauth.allowInsecureRequests]: true };
  }

  private async server(): Promise<ProviderServer> {
    return this.endpoints ?? await this.discover();
  }

  private discover(): Promise<ProviderServer> {
    this.asking ??= discoveredServer(this.settings, this.http.fetcher("discovery")).then((server) => {
      this.knownAtMs = this.nowMs();
      return this.known = server;
    }).finally(() => this.asking = undefined);
    return this.asking;
  }

  /** Any answer shows that the endpoint is available, including the refusal of a request without a token. */
  private probe(kind: Request): Promise<unknown> {
    const urls: Record<Request, string | undefined> = {
      discovery: this.settings.configurationUrl,
      keys: this.known?.jwks_uri,
      userinfo: this.known?.userinfo_endpoint,
      token: this.known?.token_endpoint,
    };
    return this.http.fetcher(kind)(urls[kind]!, { method: kind === "token" ? "POST" : "GET" }).catch(() => {});
  }
}

async function errorCode(reply: Response): Promise<string | undefined> {
  try {
    const { error } = await reply.json() as { error?: unknown };
    return typeof error === "string" && /^[\w-]{1,64}$/.test(error) ? error : undefined;
  } catch {
    return undefined;
  }
}
