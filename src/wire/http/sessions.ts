/**
 * Sessions of browsers: who has shown a password once is known by a cookie from then on. Each reply to it carries a new one,
 * so that one that was overheard does not last; the one before holds a little longer, for requests that are on their way.
 */
import type { Identity } from "../../api.ts";

const COOKIE = "sundial_session";
const TOKEN = /^s1[A-Za-z0-9_-]{43}$/;
/** After a newer one was given. */
const GRACE_MS = 60_000;
const SESSIONS_MAX = 10_000;

interface Session {
  identity: Identity;
  endsAtMs: number;
}

export class Sessions {
  /** The oldest first. */
  private readonly byToken = new Map<string, Session>();

  constructor(private readonly timeoutMs: number, private readonly nowMs: () => number = () => performance.now()) {}

  /** Who the Cookie header names. */
  identify(header: string | undefined): { identity: Identity; token: string } | undefined {
    for (const part of header?.split(";") ?? []) {
      const [name, token = ""] = part.trim().split("=", 2);
      if (name !== COOKIE || !TOKEN.test(token)) continue;
      const session = this.byToken.get(token);
      if (session === undefined) continue;
      if (session.endsAtMs > this.nowMs()) return { identity: session.identity, token };
      this.byToken.delete(token);
    }
    return undefined;
  }

  /** The value of Set-Cookie for a session, which takes the place of the one of `before`. */
  give(identity: Identity, before?: string): string {
    const now = this.nowMs();
    const old = before === undefined ? undefined : this.byToken.get(before);
    if (old !== undefined) old.endsAtMs = Math.min(old.endsAtMs, now + GRACE_MS);
    for (const [token, { endsAtMs }] of this.byToken) {
      if (endsAtMs > now && this.byToken.size < SESSIONS_MAX) break;
      this.byToken.delete(token);
    }
    const token = `s1${base64Url(crypto.getRandomValues(new Uint8Array(32)))}`;
    this.byToken.set(token, { identity, endsAtMs: now + this.timeoutMs });
    return `${COOKIE}=${token}; HttpOnly; Path=/; SameSite=Strict; Max-Age=${Math.ceil(this.timeoutMs / 1000)}`;
  }

  get size(): number {
    return this.byToken.size;
  }
}

function base64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
