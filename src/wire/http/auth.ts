/** Authenticates requests by password, token or session cookie, or by the configured user if access control is off. */
import type { Access, Identity } from "../../api.ts";
import { ProviderUnavailable, TooManyDerivations } from "../../auth/mod.ts";
import { isLoopback } from "../../config/mod.ts";
import { LogInDelays, TooManyWait } from "../log-in-delays.ts";
import { basicCredentials, bearerToken, type Credentials, equalInConstantTime } from "../passwords.ts";

import type { HttpRequest } from "../http1/mod.ts";
import type { Sessions } from "./sessions.ts";
import type { HttpSettings } from "./settings.ts";

export const ANONYMOUS: Identity = { name: "admin" };

/** `token`: of the request's session, if it has one. */
export interface Known {
  identity: Identity;
  token?: string;
}

/** The reason why a request is refused. */
export interface Unknown {
  status: 401 | 403 | 429 | 503;
  reason: string;
  headers: [name: string, value: string][];
}

export type Answer = Known | Unknown;

type Asker = Pick<HttpRequest, "headers" | "isSecure" | "connection">;

export class Authenticator {
  private readonly delays: LogInDelays;
  /** The last credentials of each connection, because checking them again would take longer than a small query. */
  private readonly last = new WeakMap<object, { header: string; identity: Identity }>();

  constructor(
    private readonly config: HttpSettings,
    private readonly sessions: Sessions,
    private readonly access: Access | undefined,
  ) {
    // Waiting requests occupy their connections and must leave enough for others.
    this.delays = new LogInDelays({ waitingMax: () => Math.min(64, Math.ceil(config.limits.connectionsMax / 4)) });
  }

  /** `onWait` is called if the answer is delayed because of wrong passwords. */
  authenticate(request: Asker, hostname: string, onWait: () => void): Answer | Promise<Answer> {
    const { config: { user, password }, access } = this;
    if (access === undefined && (user === "" || password === "")) return { identity: ANONYMOUS };
    const header = request.headers.get("authorization");
    if (header === null) return this.ofSession(request.headers.get("cookie") ?? undefined);
    if (access === undefined) return this.ofHeader(request, header, hostname, onWait);
    const last = this.last.get(request.connection);
    if (last?.header === header && access.isCurrent(last.identity)) return { identity: last.identity };
    const answer = this.ofHeader(request, header, hostname, onWait);
    const remember = (answer: Answer): Answer => {
      if ("identity" in answer) this.last.set(request.connection, { header, identity: answer.identity });
      return answer;
    };
    return answer instanceof Promise ? answer.then(remember) : remember(answer);
  }

  private ofHeader(request: Asker, header: string, hostname: string, onWait: () => void): Answer | Promise<Answer> {
    const { config: { user }, access } = this;
    const token = access && bearerToken(header);
    if (token !== undefined) return this.ofToken(access!.withToken(token));
    const given = basicCredentials(header);
    if (given === undefined) return this.unauthorized();
    if (access !== undefined && !request.isSecure && !isLoopback(hostname) && !this.config.allowsClearText) {
      return { status: 403, reason: "passwords in clear text need TLS (acl.clear.text.passwords)", headers: [] };
    }
    const known = access === undefined ? (given.user === user ? user : "") : access.knownName(given.user);
    const check = () => this.check(given, known, hostname);
    const before = this.delays.before(known, hostname);
    if (before === undefined) return check();
    onWait();
    return before instanceof TooManyWait ? tooManyLogIns(before.retryAfterMs) : before.then(check);
  }

  /** Ends the waits of delayed requests. */
  close(): void {
    this.delays.close();
  }

  /** Returns a refusal if this identity may not use this interface. */
  refusalOf(identity: Identity): Unknown | undefined {
    const reason = this.access?.refusalOf(identity, "http");
    return reason === undefined ? undefined : { status: 403, reason, headers: [] };
  }

  private ofSession(cookie: string | undefined): Answer | Promise<Answer> {
    const known = this.sessions.identify(cookie);
    if (known === undefined) return this.unauthorized();
    const answer = (isValid: boolean) => isValid ? known : this.unauthorized();
    const isValid = this.access?.renew(known.identity) ?? true;
    return isValid instanceof Promise ? isValid.then(answer).catch(later) : answer(isValid);
  }

  private ofToken(found: Identity | undefined | Promise<Identity | undefined>): Answer | Promise<Answer> {
    if (found instanceof Promise) return found.then((identity) => this.ofToken(identity)).catch(later);
    return found === undefined ? this.unauthorized('Bearer error="invalid_token"') : { identity: found };
  }

  private check(given: Credentials, known: string, hostname: string): Answer | Promise<Answer> {
    const answer = (identity: Identity | undefined): Answer => {
      if (identity !== undefined) {
        this.delays.right(known, hostname);
        return { identity };
      }
      this.delays.wrong(known, hostname, given.password);
      return this.unauthorized();
    };
    if (this.access === undefined) return answer(this.configuredUser(given));
    const found = this.access.withPassword(given.user, given.password);
    if (!(found instanceof Promise)) return answer(found);
    return found.then(answer, later);
  }

  private configuredUser(given: Credentials): Identity | undefined {
    const { user, password } = this.config;
    const isUser = equalInConstantTime(given.user, user), isPassword = equalInConstantTime(given.password, password);
    return isUser && isPassword ? { name: user } : undefined;
  }

  /** Browsers ask for a password only with this challenge. */
  private unauthorized(challenge = "Bearer"): Unknown {
    const headers: Unknown["headers"] = this.access === undefined ? [] : [["WWW-Authenticate", challenge]];
    if (this.config.asksBrowsers) headers.push(["WWW-Authenticate", 'Basic realm="sundial", charset="UTF-8"']);
    return { status: 401, reason: "Unauthorized", headers };
  }
}

/** The answer to errors after which a client may try again. */
function later(error: unknown): Unknown {
  if (error instanceof TooManyDerivations) return { ...tooManyLogIns(1000), reason: error.message };
  if (!(error instanceof ProviderUnavailable)) throw error;
  // Details of the provider's answer are only logged.
  const reason = "the identity provider is not available: try again later";
  return { status: 503, reason, headers: [["Retry-After", "1"]] };
}

function tooManyLogIns(retryAfterMs: number): Unknown {
  return {
    status: 429,
    reason: "too many log-ins from this address are waiting because of wrong passwords: try again later",
    headers: [["Retry-After", String(Math.ceil(retryAfterMs / 1000))]],
  };
}
