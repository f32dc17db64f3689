/**
 * OpenID Connect in the browser: Authorization Code with PKCE, refresh, and the address of the sign-out. Loaded only if
 * it is used.
 * @see https://openid.net/specs/openid-connect-core-1_0.html
 */
import * as oauth from "oauth4webapi";
import { ALGORITHMS } from "../../auth/oidc/algorithms.ts";
import type { Addresses, Provider } from "./server-settings.ts";

/** A pending sign-in, stored while the browser is at the provider. It is useless after the sign-in. */
export interface Flow {
  state: string;
  nonce: string;
  verifier: string;
  redirectUri: string;
}

export interface Tokens {
  accessToken: string;
  idToken: string;
  refreshToken?: string;
  /** Date.now() at the end of validity. Undefined if the provider does not report it. */
  expiresAtMs?: number;
  subject: string;
  /** The user's full name. */
  fullName?: string;
}

/** An error, in words for the user. `isFinal`: another attempt with the same tokens will fail too. */
export class SignInError extends Error {
  /** The refresh token for the next attempt, because the previous one may be used up. */
  refreshToken?: string;

  constructor(message: string, readonly isFinal: boolean, cause?: unknown) {
    super(message, { cause });
  }
}

const TIMEOUT_MS = 30_000;

/** The address at which the user signs in. */
export async function authorizationUrl(provider: Provider, redirectUri: string): Promise<{ url: URL; flow: Flow }> {
  const { clientId, scope } = provider;
  const flow = {
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    verifier: oauth.generateRandomCodeVerifier(),
    redirectUri,
  };
  const url = new URL(addressesOf(provider).authorization);
  const parameters = {
    client_id: clientId,
    response_type: "code",
    scope,
    redirect_uri: redirectUri,
    state: flow.state,
    nonce: flow.nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(flow.verifier),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return { url, flow };
}

/** Exchanges the code with which the provider sent the browser back. @throws {SignInError} */
export function tokensFor(provider: Provider, answer: URLSearchParams, flow: Flow): Promise<Tokens> {
  return explained(async () => {
    const server = serverOf(provider), client = clientOf(provider);
    const parameters = oauth.validateAuthResponse(server, client, answer, flow.state);
    const reply = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      oauth.None(),
      parameters,
      flow.redirectUri,
      flow.verifier,
      optionsFor(provider),
    );
    const options = { expectedNonce: flow.nonce, requireIdToken: true };
    return await checked(
      provider,
      server,
      reply,
      await oauth.processAuthorizationCodeResponse(server, client, reply, options),
    );
  });
}

/** @throws {SignInError} */
export function renewed(provider: Provider, before: Tokens): Promise<Tokens> {
  return explained(async () => {
    const server = serverOf(provider), client = clientOf(provider);
    const reply = await oauth.refreshTokenGrantRequest(
      server,
      client,
      oauth.None(),
      before.refreshToken!,
      optionsFor(provider),
    );
    const answer = await oauth.processRefreshTokenResponse(server, client, reply);
    const tokens = await checked(provider, server, reply, answer, before).catch((error) => {
      throw Object.assign(explanationOf(error), { refreshToken: answer.refresh_token });
    });
    if (tokens.subject !== before.subject) {
      throw new SignInError("The provider has renewed the sign-in of another user.", true);
    }
    return tokens;
  });
}

/**
 * Checks the signature of the id token, whose claims have been checked. A refresh may return no id token, and no new
 * refresh token.
 */
async function checked(
  provider: Provider,
  server: oauth.AuthorizationServer,
  reply: Response,
  answer: oauth.TokenEndpointResponse,
  before?: Tokens,
): Promise<Tokens> {
  const claims = oauth.getValidatedIdTokenClaims(answer);
  if (claims !== undefined) await oauth.validateApplicationLevelSignature(server, reply, optionsFor(provider));
  const { access_token, id_token, refresh_token, expires_in } = answer;
  const lifetime = provider.sendsIdToken && claims !== undefined ? claims.exp - claims.iat : expires_in;
  return {
    accessToken: access_token,
    idToken: id_token ?? before!.idToken,
    refreshToken: refresh_token ?? before?.refreshToken,
    // By this computer's clock, which may differ from the provider's.
    expiresAtMs: lifetime === undefined ? undefined : Date.now() + lifetime * 1000,
    subject: claims?.sub ?? before!.subject,
    fullName: typeof claims?.name === "string" ? claims.name : before?.fullName,
  };
}

function addressesOf({ addresses }: Provider): Addresses {
  if (addresses === undefined) throw new SignInError("The server cannot reach the identity provider.", false);
  return addresses;
}

/** A new object each time, because the library caches the provider's keys by it, which may have changed. */
function serverOf(provider: Provider): oauth.AuthorizationServer {
  const { issuer, authorization, token, keys } = addressesOf(provider);
  return {
    issuer,
    authorization_endpoint: authorization,
    token_endpoint: token,
    jwks_uri: keys,
    id_token_signing_alg_values_supported: ALGORITHMS,
  };
}

function clientOf({ clientId, clockToleranceSeconds }: Provider): oauth.Client {
  return { client_id: clientId, [oauth.clockTolerance]: clockToleranceSeconds };
}

/** Allows http addresses. The server accepts them only for a provider on its own machine. */
function optionsFor({ addresses }: Provider) {
  return {
    signal: AbortSignal.timeout(TIMEOUT_MS),
    [oauth.allowInsecureRequests]: addresses!.token.startsWith("http:"),
  };
}

async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof SignInError ? error : explanationOf(error as Error & { code?: string });
  }
}

function explanationOf(error: Error & { code?: string }): SignInError {
  const refused = (message: string) => new SignInError(message, true, error);
  if (error instanceof oauth.AuthorizationResponseError || error instanceof oauth.ResponseBodyError) {
    const details = error.error_description === undefined ? "" : `: ${error.error_description}`;
    if (error instanceof oauth.ResponseBodyError && error.status >= 500) {
      return unavailable(`status ${error.status}`, error);
    }
    return refused(`The identity provider refuses: ${error.error}${details}.`);
  }
  const { cause } = error;
  if (cause instanceof Response && cause.status >= 500) return unavailable(`status ${cause.status}`, error);
  if (error.name === "TimeoutError") return unavailable(`no answer for ${TIMEOUT_MS / 1000} s`, error);
  // The error of fetch() without a network, or if the provider does not allow this origin.
  if (error instanceof TypeError && error.code === undefined) {
    return unavailable("no connection, or this page's origin is not allowed there", error);
  }
  switch (error.code) {
    case oauth.JWT_TIMESTAMP_CHECK:
      return refused("The sign-in has expired by the clock of this computer: compare it with the provider's.");
    case oauth.KEY_SELECTION:
      // The keys may have changed in between.
      return new SignInError(
        "The id token is signed with a key that the identity provider does not list.",
        false,
        error,
      );
    default:
      return refused(`The answer of the identity provider is not valid: ${error.message}.`);
  }
}

const unavailable = (why: string, error: Error) =>
  new SignInError(`The identity provider is unavailable: ${why}.`, false, error);
