/** Checks signed tokens (JWT) with the provider's public keys. */
import * as jose from "jose";
import { ALGORITHMS } from "./algorithms.ts";
import type { Claims } from "./claims.ts";
import type { ProviderServer } from "./endpoints.ts";
import { ProviderUnavailable } from "./unavailable.ts";
import type { OidcSettings } from "./settings.ts";

/** After an unknown key, the keys are requested again, but not more often than this. */
const COOLDOWN_MS = 1_000;
const KEYS_AGE_MAX_MS = 600_000;
/** Errors of jose that are the provider's fault, not the token's. */
const PROVIDER_FAULTS = new Set(["ERR_JWKS_INVALID", "ERR_JWKS_TIMEOUT", "ERR_JOSE_GENERIC"]);

export class TokenKeys {
  private keys: ReturnType<typeof jose.createRemoteJWKSet> | undefined;
  private keysUrl = "";

  constructor(
    private readonly settings: Pick<OidcSettings, "audience" | "clientId" | "clockToleranceMs" | "timeoutMs">,
    private readonly fetcher: (url: string, init?: RequestInit) => Promise<Response>,
  ) {}

  /** The claims of a token with valid signature, issuer, audience and times. @throws {ProviderUnavailable} */
  async claimsOf(
    server: ProviderServer,
    token: string,
    onRefused: (reason: string) => undefined,
  ): Promise<Claims | undefined> {
    const { audience, clientId, clockToleranceMs } = this.settings;
    try {
      const { payload } = await jose.jwtVerify(token, this.keysOf(server.jwks_uri), {
        issuer: server.issuer,
        audience: audience === "" ? clientId : audience,
        clockTolerance: clockToleranceMs / 1000,
        requiredClaims: ["exp"],
        algorithms: ALGORITHMS,
      });
      return payload;
    } catch (error) {
      if (error instanceof ProviderUnavailable) throw error;
      if (!(error instanceof jose.errors.JOSEError)) return onRefused("the token is not a signed JWT");
      if (PROVIDER_FAULTS.has(error.code)) throw new ProviderUnavailable(`${server.jwks_uri}: ${error.message}`);
      return onRefused(error.message);
    }
  }

  private keysOf(url: string): NonNullable<TokenKeys["keys"]> {
    if (this.keys !== undefined && url === this.keysUrl) return this.keys;
    this.keysUrl = url;
    return this.keys = jose.createRemoteJWKSet(new URL(url), {
      cooldownDuration: COOLDOWN_MS,
      cacheMaxAge: KEYS_AGE_MAX_MS,
      // Requests have their own time limit.
      timeoutDuration: this.settings.timeoutMs * 2,
      [jose.customFetch]: this.fetcher,
    });
  }
}
