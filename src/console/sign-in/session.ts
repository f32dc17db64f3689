/**
 * Who uses the page. A local user's password is sent once, for a session cookie that scripts cannot read. Tokens of a provider are
 * kept in memory only.
 */
import { signal } from "@preact/signals";
import { useCredentials } from "../server/request.ts";
import { fetchServerSettings, type ServerSettings } from "./server-settings.ts";

/** `expired`: the user must sign in again; the page stays as it is. */
export type Phase = "starting" | "signed-out" | "signed-in" | "expired";

export const phase = signal<Phase>("starting");
export const serverSettings = signal<ServerSettings>({ isProtected: false, acceptsWrites: true });
/** Undefined until somebody is signed in. */
export const userName = signal<string | undefined>(undefined);
/** Why the last attempt to sign in has failed. */
export const refusal = signal("");

let version = 0;
/** Resolves the requests that wait for the user to sign in again. */
let settleWaiting: ((isSignedIn: boolean) => void) | undefined;
let waiting: Promise<boolean> | undefined;

/** Finds out whether the user is signed in already. */
export async function startSession(): Promise<void> {
  useCredentials({ header: () => Promise.resolve(undefined), version: () => version, ask: askAgain });
  const [settings, answer] = await Promise.all([fetchServerSettings(), whoAmI()]);
  if (settings !== undefined) serverSettings.value = settings;
  take(answer);
}

/** Signs a local user in. Returns false if the server refuses; `refusal` says why. */
export async function signInWithPassword(name: string, password: string): Promise<boolean> {
  const answer = await whoAmI(`Basic ${base64(`${name}:${password}`)}`);
  if ("name" in answer) return take(answer);
  refusal.value = answer.status === 401 ? "The user name or the password is wrong." : answer.message;
  return false;
}

/** The waiting requests fail; the page stays. */
export function cancelSignIn(): void {
  settle(false);
  settle(false);
  phase.value = "signed-in";
}

/** Nothing of the session stays in the page. */
export async function signOut(): Promise<void> {
  await fetch("exec?session=false", { method: "POST", headers: { "x-sundial-page": "1" }, body: FORM }).catch(() => {});
  location.reload();
}

type Answer = { name: string } | { status: number; message: string };

const FORM = new URLSearchParams({ query: "select current_user()" });

/** Asks the server. A password opens a session. */
async function whoAmI(authorization?: string): Promise<Answer> {
  try {
    const reply = await fetch(authorization === undefined ? "exec" : "exec?session=true", {
      method: "POST",
      headers: { "x-sundial-page": "1", ...authorization === undefined ? {} : { authorization } },
      body: FORM,
    });
    const text = await reply.text();
    if (!reply.ok) return { status: reply.status, message: text.trim() };
    return { name: String(JSON.parse(text).dataset[0][0]) };
  } catch {
    return { status: 0, message: "The server cannot be reached." };
  }
}

/** Returns true if the user is signed in now. */
function take(answer: Answer): boolean {
  if ("name" in answer) {
    // What the page shows belongs to the user before.
    if (phase.value === "expired" && answer.name !== userName.value) location.reload();
    version++;
    userName.value = answer.name;
    refusal.value = "";
    phase.value = "signed-in";
    settle(true);
    return true;
  }
  if (answer.status === 401 || answer.status === 403) phase.value = "signed-out";
  // What else is wrong with the server is shown when a statement runs.
  else phase.value = "signed-in";
  if (answer.status === 403) refusal.value = answer.message;
  return false;
}

function askAgain(): Promise<boolean> {
  phase.value = "expired";
  return waiting ??= new Promise((resolve) => settleWaiting = resolve);
}

function settle(isSignedIn: boolean): void {
  settleWaiting?.(isSignedIn);
  settleWaiting = waiting = undefined;
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
