/** Sends the browser to the identity provider and handles its return. */
import type { Flow } from "./oidc.ts";
import type { Provider } from "./server-settings.ts";
import { forgetTokens, heldTokens, keepTokens } from "./tokens.ts";

/** Session storage keys, which last as long as the browser's tab. Neither holds a token. */
const FLOW = "sundial.sign-in";
const RETURNS = "sundial.sign-in.returns";

/** The provider's answer in the page's address. `flow`: undefined if this tab did not start a sign-in. */
export interface Return {
  answer: URLSearchParams;
  flow?: Flow & { search: string; hash: string };
}

/** Reads the page's address, and removes the answer from it, because an answer can be used only once. */
export function takeReturn(): Return | undefined {
  const answer = new URLSearchParams(location.search);
  if (!answer.has("state") || !(answer.has("code") || answer.has("error"))) return undefined;
  const text = sessionStorage.getItem(FLOW);
  sessionStorage.removeItem(FLOW);
  const flow = text === null ? undefined : JSON.parse(text) as Return["flow"];
  history.replaceState(null, "", location.pathname + (flow?.search ?? ""));
  // Unlike replaceState, this fires an event.
  if (flow !== undefined) location.hash = flow.hash;
  return { answer, flow };
}

/** @throws {SignInError} */
export async function finishSignIn(provider: Provider, { answer, flow }: Return): Promise<void> {
  const { SignInError, tokensFor } = await import("./oidc.ts");
  if (flow === undefined) throw new SignInError("This sign-in was not started here, or it was already used.", true);
  keepTokens(await tokensFor(provider, answer, flow), provider);
  sessionStorage.setItem(RETURNS, "true");
}

/** Leaves the page for the provider. @throws {SignInError} */
export async function goToProvider(provider: Provider): Promise<void> {
  const { authorizationUrl, SignInError } = await import("./oidc.ts");
  // Browsers provide cryptography only to secure contexts.
  if (!isSecureContext) {
    throw new SignInError(
      "Signing in with the identity provider needs TLS: open this page by https or as localhost.",
      true,
    );
  }
  const { url, flow } = await authorizationUrl(provider, pageUrl(provider));
  sessionStorage.setItem(FLOW, JSON.stringify({ ...flow, search: location.search, hash: location.hash }));
  location.assign(url);
}

/**
 * Returns true once if this tab was signed in before a reload, so that the provider can repeat it without a question.
 */
export function takeReturns(): boolean {
  const returns = sessionStorage.getItem(RETURNS) !== null;
  sessionStorage.removeItem(RETURNS);
  return returns;
}

/** Discards the tokens. Returns true if the page is left for the provider's sign-out. */
export function leaveProvider(provider: Provider | undefined): boolean {
  const tokens = heldTokens(), endSession = provider?.addresses?.endSession;
  forgetTokens();
  sessionStorage.removeItem(RETURNS);
  if (provider === undefined || tokens === undefined || endSession === undefined) return false;
  const url = new URL(endSession);
  // Sent without id_token_hint, because addresses are logged. The provider may ask the user to confirm.
  url.searchParams.set("client_id", provider.clientId);
  url.searchParams.set("post_logout_redirect_uri", pageUrl(provider));
  location.assign(url);
  return true;
}

function pageUrl({ redirectUri }: Provider): string {
  return redirectUri ?? new URL(".", location.href).href;
}
