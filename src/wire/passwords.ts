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

/** Names of schemes are case-insensitive. */
const BASIC = /^basic +/i, BEARER = /^bearer +/i;

/** Credentials of an Authorization header; undefined for other schemes and for invalid base64. */
export function basicCredentials(header: string): Credentials | undefined {
  if (!BASIC.test(header)) return undefined;
  const text = decodeBase64(header.replace(BASIC, ""));
  const colon = text?.indexOf(":") ?? -1;
  return text === undefined || colon < 0 ? undefined : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** The token of an Authorization header; undefined for other schemes. */
export function bearerToken(header: string): string | undefined {
  return BEARER.test(header) ? header.replace(BEARER, "").trim() : undefined;
}

function decodeBase64(text: string): string | undefined {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
