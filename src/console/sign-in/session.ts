/**
 * The session of the page's user. A local user's password is sent once, for a session cookie that scripts cannot read.
 * Tokens of the identity provider are kept only in memory.
 */
import { signal } from "@preact/signals";
import { send, useCredentials } from "../server/request.ts";
import { openStorageOf } from "../store/saved.ts";
import { finishSignIn, goToProvider, leaveProvider, takeReturn, takeReturns } from "./provider-sign-in.ts";
import { fetchServerSettings, type ServerSettings } from "./server-settings.ts";
import { bearer, forgetTokens, heldTokens, renewalError, renewRefused } from "./tokens.ts";

/** `expired`: the user must sign in again, while the page stays unchanged. */
export type Phase = "starting" | "signed-out" | "signed-in" | "expired";

export interface User {
  /** Name in this database. */
  name: string;
  /** Name at the identity provider. */
  fullName?: string;
  isExternal: boolean;
}

export const shownName = ({ name, fullName }: User) => fullName ?? name;

/** True until the server answers. */
export const isWaiting = signal(false);
/** True while the provider's answer is checked after its redirect. */
export const isReturning = signal(false);
export const phase = signal<Phase>("starting");
export const serverSettings = signal<ServerSettings>({ isProtected: false, acceptsWrites: true });
/** Undefined until a user is signed in. */
export const user = signal<User | undefined>(undefined);
/** Why the last attempt to sign in failed. */
export const refusal = signal("");

const RETRY_MS = 1_000;
let version = 0;
let leaves = false;
/** Resolves the requests that wait for the user to sign in again. */
let settleWaiting: ((isSignedIn: boolean) => void) | undefined;
let waiting: Promise<boolean> | undefined;

/** Finds out whether the user is already signed in. */
export async function startSession(): Promise<void> {
  useCredentials({ header: bearer, version: () => version, ask: askAgain });
  const returned = takeReturn();
  isReturning.value = returned !== undefined;
  let settings: ServerSettings | undefined, answer: Answer | undefined;
  for (;;) {
    [settings, answer] = await Promise.all([fetchServerSettings(), returned === undefined ? whoAmI() : undefined]);
    if (settings !== undefined && !(answer !== undefined && isAway(answer))) break;
    // Without the user's name, nothing of theirs could be shown.
    isWaiting.value = true;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  isWaiting.value = false;
  if (settings !== undefined) serverSettings.value = settings;
  if (returned !== undefined && settings?.provider !== undefined) {
    refusal.value = await messageOf(finishSignIn(settings.provider, returned));
  }
  const isSignedIn = take(answer ?? await whoAmI());
  if (!isSignedIn && returned === undefined && settings?.provider !== undefined && takeReturns()) {
    await signInAtProvider();
  }
}

/** Signs a local user in. Returns false if the server refuses, with the reason in `refusal`. */
export async function signInWithPassword(name: string, password: string): Promise<boolean> {
  const answer = await whoAmI(`Basic ${base64(`${name}:${password}`)}`);
  if ("name" in answer) {
    forgetTokens();
    return take(answer);
  }
  refusal.value = answer.status === 401 ? "The user name or the password is wrong." : answer.message;
  return false;
}

/** Leaves the page for the identity provider. If that fails, the reason is in `refusal`. */
export async function signInAtProvider(): Promise<void> {
  refusal.value = "";
  refusal.value = await messageOf(goToProvider(serverSettings.value.provider!));
}

/** Lets the waiting requests fail. The page stays. */
export function cancelSignIn(): void {
  settle(false);
  phase.value = "signed-in";
}

/** True if the page is left by a sign-out. */
export const isSigningOut = (): boolean => leaves;

/** Removes everything about the session from the page. */
export async function signOut(): Promise<void> {
  leaves = true;
  await send("exec?session=false", { method: "POST", body: FORM }).catch(() => {});
  if (!leaveProvider(serverSettings.value.provider)) location.reload();
}

type Answer = { name: string } | { status: number; message: string };

const FORM = new URLSearchParams({ query: "select current_user()" });

/** Asks the server for the current user. A password opens a session. */
async function whoAmI(password?: string): Promise<Answer> {
  try {
    const authorization = password ?? await bearer();
    const reply = await send(password === undefined ? "exec" : "exec?session=true", {
      method: "POST",
      headers: authorization === undefined ? {} : { authorization },
      body: FORM,
    });
    const text = await reply.text();
    if (!reply.ok) return { status: reply.status, message: text.trim() };
    return { name: String(JSON.parse(text).dataset[0][0]) };
  } catch {
    return { status: 0, message: "The server cannot be reached." };
  }
}

/** No answer, too many requests, and what proxies say while the server starts. */
const AWAY = [0, 429, 502, 503, 504];
const isAway = (answer: Answer): boolean => "status" in answer && AWAY.includes(answer.status);

/** Returns true if the user is signed in now. */
function take(answer: Answer): boolean {
  if ("name" in answer) {
    const { name } = answer, tokens = heldTokens();
    // The contents of the page belong to the previous user.
    if (phase.value === "expired" && name !== user.value?.name) {
      location.reload();
      return true;
    }
    openStorageOf(name);
    version++;
    user.value = { name, fullName: tokens?.fullName, isExternal: tokens !== undefined };
    refusal.value = "";
    phase.value = "signed-in";
    settle(true);
    return true;
  }
  const { status, message } = answer, hasToken = heldTokens() !== undefined;
  // Other errors of the server are shown when a statement runs.
  if (status === 401 || status === 403 || hasToken) {
    phase.value = "signed-out";
  } else {
    openStorageOf("");
    phase.value = "signed-in";
  }
  if (status === 401 && hasToken) refusal.value = "The server does not accept the sign-in of the identity provider.";
  else if (status === 403 || hasToken) refusal.value = message;
  return false;
}

async function askAgain(): Promise<boolean> {
  if (await renewRefused()) return true;
  if (phase.value !== "expired") refusal.value = renewalError;
  phase.value = "expired";
  return await (waiting ??= new Promise((resolve) => settleWaiting = resolve));
}

function settle(isSignedIn: boolean): void {
  settleWaiting?.(isSignedIn);
  settleWaiting = waiting = undefined;
}

/** Returns the error message. Empty if the work succeeds. */
async function messageOf(work: Promise<void>): Promise<string> {
  try {
    await work;
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
