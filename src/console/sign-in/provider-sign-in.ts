/** The browser's way to the identity provider and back. */
import type { Flow } from "./oidc.ts";
import type { Provider } from "./server-settings.ts";
import { forgetTokens, heldTokens, keepTokens } from "./tokens.ts";

/** Both end with the browser's tab. Neither holds a token. */
const FLOW = "sundial.sign-in";
const RETURNS = "sundial.sign-in.returns";

/** What the provider has sent the browser back with. `flow`: undefined if this tab did not begin a sign-in. */
export interface Return {
  answer: URLSearchParams;
  flow?: Flow & { search: string; hash: string };
}

/** Reads the page's address, and removes the answer from it. An answer can be used once. */
export function takeReturn(): Return | undefined {
  const answer = new URLSearchParams(location.search);
  if (!answer.has("state") || !(answer.has("code") || answer.has("error"))) return undefined;
  const text = sessionStorage.getItem(FLOW);
  sessionStorage.removeItem(FLOW);
  const flow = text === null ? undefined : JSON.parse(text) as Return["flow"];
  history.replaceState(null, "", location.pathname + (flow?.search ?? ""));
  // Unlike replaceState, it is told to the page.
  if (flow !== undefined) location.hash = flow.hash;
  return { answer, flow };
}

/** @throws {SignInError} */
export async function finishSignIn(provider: Provider, { answer, flow }: Return): Promise<void> {
  const { SignInError, tokensFor } = await import("./oidc.ts");
  if (flow === undefined) throw new SignInError("This sign-in was not begun here, or it was used before.", true);
  keepTokens(await tokensFor(provider, answer, flow), provider);
  sessionStorage.setItem(RETURNS, "true");
}

/** Leaves the page. @throws {SignInError} */
export async function goToProvider(provider: Provider): Promise<void> {
  const { authorizationUrl, SignInError } = await import("./oidc.ts");
  // Without it browsers have no cryptography for pages.
  if (!isSecureContext) {
    throw new SignInError(
      "Sign-in with the identity provider needs TLS: open this page by https or as localhost.",
      true,
    );
  }
  const { url, flow } = await authorizationUrl(provider, pageUrl(provider));
  sessionStorage.setItem(FLOW, JSON.stringify({ ...flow, search: location.search, hash: location.hash }));
  location.assign(url);
}

/** True once if this tab was signed in before a reload, so that the provider can do it again without a question. */
export function takeReturns(): boolean {
  const returns = sessionStorage.getItem(RETURNS) !== null;
  sessionStorage.removeItem(RETURNS);
  return returns;
}

/** Forgets the tokens. Returns true if the page is left for the provider's own sign-out. */
export function leaveProvider(provider: Provider | undefined): boolean {
  const tokens = heldTokens(), endSession = provider?.addresses?.endSession;
  forgetTokens();
  sessionStorage.removeItem(RETURNS);
  if (provider === undefined || tokens === undefined || endSession === undefined) return false;
  const url = new URL(endSession);
  // Without id_token_hint, as addresses are logged: the provider may ask the user to confirm.
  url.searchParams.set("client_id", provider.clientId);
  url.searchParams.set("post_logout_redirect_uri", pageUrl(provider));
  location.assign(url);
  return true;
}

function pageUrl({ redirectUri }: Provider): string {
  return redirectUri ?? new URL(".", location.href).href;
}
