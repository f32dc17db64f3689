/** The tokens of a user of the identity provider. They are only in memory, so a reload asks the provider again. */
import type { SignInError, Tokens } from "./oidc.ts";
import type { Provider } from "./server-settings.ts";

let tokens: Tokens | undefined;
let provider: Provider;
let renewing: Promise<boolean> | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let renewedAtMs = -Infinity;
/** Why the last renewal failed. */
export let renewalError = "";

/** A token that is refused within this time after its renewal is not renewed again. */
const PAUSE_MS = 10_000;
const RETRY_MS = 5_000;
/** Browsers fire longer timers immediately. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export function keepTokens(given: Tokens, of: Provider): void {
  tokens = given;
  provider = of;
  renewalError = "";
  renewLater();
}

export function forgetTokens(): void {
  tokens = undefined;
  clearTimeout(timer);
}

export const heldTokens = (): Readonly<Tokens> | undefined => tokens;

/** The Authorization header. Renews an expired token first. */
export async function bearer(): Promise<string | undefined> {
  if (tokens === undefined) return undefined;
  if (remainingMs(tokens) <= 0) await renew();
  return `Bearer ${provider.sendsIdToken ? tokens.idToken : tokens.accessToken}`;
}

/** Called after the server has refused a token. Resolves to false if the user has to sign in. */
export async function renewRefused(): Promise<boolean> {
  return performance.now() - renewedAtMs > PAUSE_MS && await renew();
}

function renew(): Promise<boolean> {
  return renewing ??= askForNew().finally(() => renewing = undefined);
}

async function askForNew(): Promise<boolean> {
  const before = tokens;
  if (before?.refreshToken === undefined) return false;
  try {
    const { renewed } = await import("./oidc.ts");
    const next = await renewed(provider, before);
    // The user has signed out in the meantime.
    if (tokens !== before) return false;
    keepTokens(next, provider);
    renewedAtMs = performance.now();
    return true;
  } catch (error) {
    const { message, isFinal, refreshToken = before.refreshToken } = error as SignInError;
    renewalError = message;
    if (tokens !== before) return false;
    tokens = { ...before, refreshToken: isFinal ? undefined : refreshToken };
    if (!isFinal && remainingMs(before) > 0) timer = setTimeout(renew, RETRY_MS);
    return false;
  }
}

/** Renews the token before it expires, by a fifth of its lifetime but at most a minute. */
function renewLater(): void {
  clearTimeout(timer);
  if (tokens?.expiresAtMs === undefined || tokens.refreshToken === undefined) return;
  const life = Math.min(remainingMs(tokens), TIMER_MS_MAX);
  timer = setTimeout(renew, Math.max(0, life - Math.min(60_000, life / 5)));
}

const remainingMs = ({ expiresAtMs = Infinity }: Tokens) => expiresAtMs - Date.now();
