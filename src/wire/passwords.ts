/** Passwords as clients send them. */
import { createHash, timingSafeEqual } from "node:crypto";

/** Takes a time that does not depend on where the texts differ. */
export function equalInConstantTime(given: string, wanted: string): boolean {
  return timingSafeEqual(digest(given), digest(wanted));
}

const digest = (text: string) => createHash("sha256").update(text).digest();

export interface Credentials {
  user: string;
  password: string;
}

const SCHEME = "Basic ";

/** Credentials of an Authorization header; undefined for other schemes and for invalid base64. */
export function basicCredentials(header: string): Credentials | undefined {
  if (!header.startsWith(SCHEME)) return undefined;
  const text = decodeBase64(header.slice(SCHEME.length));
  const colon = text?.indexOf(":") ?? -1;
  return text === undefined || colon < 0 ? undefined : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

const BEARER = "Bearer ";

/** The token of an Authorization header; undefined for other schemes. */
export function bearerToken(header: string): string | undefined {
  return header.startsWith(BEARER) ? header.slice(BEARER.length).trim() : undefined;
}

function decodeBase64(text: string): string | undefined {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
