/**
 * Browser sessions: after log-in with a password, a cookie identifies the user. Each reply replaces the cookie, so that
 * an intercepted one is useful only briefly. The previous one stays valid a little longer, for concurrent requests.
 */
import type { Identity } from "../../api.ts";

const COOKIE = "sundial_session";
const TOKEN = /^s1[A-Za-z0-9_-]{43}$/;
/** How long a token stays valid after its replacement. */
const GRACE_MS = 60_000;
const SESSIONS_MAX = 10_000;

interface Session {
  identity: Identity;
  endsAtMs: number;
  /** The same for all tokens of one session. */
  id: number;
}

export class Sessions {
  /** Oldest first. */
  private readonly byToken = new Map<string, Session>();
  private lastId = 0;

  constructor(private readonly timeoutMs: number, private readonly nowMs: () => number = () => performance.now()) {}

  /** Returns the user of the Cookie header. */
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

  /**
   * Opens a session and returns the value of Set-Cookie. `header`: Cookie of the request, whose session ends: replies to its
   * requests that still run must not bring its cookie back.
   */
  open(identity: Identity, header?: string): string {
    const before = this.identify(header);
    if (before !== undefined) this.end(before.token);
    return this.add(identity, ++this.lastId);
  }

  /** Returns the value of Set-Cookie for a new token, which replaces `token`. Undefined if the session has ended meanwhile. */
  continue(token: string): string | undefined {
    const session = this.byToken.get(token);
    if (session === undefined) return undefined;
    session.endsAtMs = Math.min(session.endsAtMs, this.nowMs() + GRACE_MS);
    return this.add(session.identity, session.id);
  }

  private add(identity: Identity, id: number): string {
    const now = this.nowMs();
    for (const [token, { endsAtMs }] of this.byToken) {
      if (endsAtMs > now && this.byToken.size < SESSIONS_MAX) break;
      this.byToken.delete(token);
    }
    const token = `s1${base64Url(crypto.getRandomValues(new Uint8Array(32)))}`;
    this.byToken.set(token, { identity, endsAtMs: now + this.timeoutMs, id });
    return cookieOf(token, this.timeoutMs);
  }

  /** Ends the session of a token with all its tokens. Returns the value of Set-Cookie by which the browser forgets it. */
  end(token: string): string {
    const id = this.byToken.get(token)?.id;
    for (const [other, session] of this.byToken) if (session.id === id) this.byToken.delete(other);
    return cookieOf("", 0);
  }

  get size(): number {
    return this.byToken.size;
  }
}

function cookieOf(token: string, timeoutMs: number): string {
  return `${COOKIE}=${token}; HttpOnly; Path=/; SameSite=Strict; Max-Age=${Math.ceil(timeoutMs / 1000)}`;
}

function base64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
