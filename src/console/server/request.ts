/**
 * Sends requests with the user's credentials. A request that is refused because of missing credentials waits for the
 * sign-in.
 */
import { serverIsAway } from "../store/connection.ts";

/** The server accepts changes from browsers only with this header: see `src/wire/http/origin.ts`. */
const OWN_PAGE = { "x-sundial-page": "1" };

/** Credentials for requests. */
export interface Credentials {
  /** The Authorization header. Undefined if the browser's session cookie is sufficient. */
  header(): Promise<string | undefined>;
  /** Changes with each sign-in. */
  version(): number;
  /** Asks the user to sign in again. Resolves to false if the user cancels. */
  ask(): Promise<boolean>;
}

let credentials: Credentials | undefined;

export function useCredentials(given: Credentials): void {
  credentials = given;
}

/** The headers that every request needs. */
export async function ownHeaders(): Promise<Record<string, string>> {
  const authorization = await credentials?.header();
  return authorization === undefined ? OWN_PAGE : { ...OWN_PAGE, authorization };
}

type Options = Omit<RequestInit, "headers"> & { headers?: Record<string, string> };

/** Sends a request without the user's credentials. Throws if the server cannot be reached. */
export function send(path: string, options: Options = {}): Promise<Response> {
  return fetch(path, { ...options, headers: { ...OWN_PAGE, ...options.headers } });
}

async function isThere(): Promise<boolean> {
  try {
    return (await send("ping", { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

/** Throws if the server cannot be reached, and on an abort. */
export function request(path: string, options: Options = {}): Promise<Response> {
  const sendOnce = async () => await send(path, { ...options, headers: { ...await ownHeaders(), ...options.headers } });
  return untilSignedIn(sendOnce, options.signal ?? undefined);
}

/** Repeats the request after the user has signed in, as long as the reply demands that. */
export async function untilSignedIn<T extends { status: number }>(
  send: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  for (;;) {
    const version = credentials?.version();
    const reply = await answered(send, signal);
    if (reply.status !== 401 || credentials === undefined) return reply;
    // The user may have signed in while the request was in progress.
    if (credentials.version() === version && !await orAbort(credentials.ask(), signal)) return reply;
  }
}

async function answered<T>(send: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (!signal?.aborted) serverIsAway(isThere);
    throw error;
  }
}

function orAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  return Promise.race([promise, aborted]);
}
