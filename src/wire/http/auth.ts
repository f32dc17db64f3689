/** Authenticates requests: by the configured user, or by a session cookie. */
import type { Identity } from "../../api.ts";
import { LogInDelays, TooManyWait } from "../log-in-delays.ts";
import { basicCredentials, type Credentials, equalInConstantTime } from "../passwords.ts";
import type { Headers } from "../http1/mod.ts";
import type { Sessions } from "./sessions.ts";
import type { HttpSettings } from "./settings.ts";

export const ANONYMOUS: Identity = { name: "admin", groups: [] };

/** `token`: of the request's session. */
export interface Known {
  identity: Identity;
  token?: string;
}

/** Undefined: credentials are required, and missing or wrong. */
type Answer = Known | undefined | TooManyWait;

export class Authenticator {
  private readonly delays: LogInDelays;

  constructor(private readonly config: HttpSettings, private readonly sessions: Sessions) {
    // Waiting requests occupy their connections and must leave enough for others.
    this.delays = new LogInDelays({ waitingMax: () => Math.min(64, Math.ceil(config.limits.connectionsMax / 4)) });
  }

  /** `onWait` is called if the answer is delayed because of wrong passwords. */
  authenticate(headers: Headers, hostname: string, onWait: () => void): Answer | Promise<Answer> {
    const { user, password } = this.config;
    if (user === "" || password === "") return { identity: ANONYMOUS };
    const header = headers.get("authorization");
    if (header === null) return this.sessions.identify(headers.get("cookie") ?? undefined);
    const given = basicCredentials(header);
    if (given === undefined) return undefined;
    const before = this.delays.before(given.user === user ? user : "", hostname);
    if (before === undefined) return this.check(given, hostname);
    onWait();
    return before instanceof TooManyWait ? before : before.then(() => this.check(given, hostname));
  }

  /** Ends the waits of delayed requests. */
  close(): void {
    this.delays.close();
  }

  private check(given: Credentials, hostname: string): Known | undefined {
    const { user, password } = this.config;
    const isUser = equalInConstantTime(given.user, user), isPassword = equalInConstantTime(given.password, password);
    const known = isUser ? user : "";
    if (!isUser || !isPassword) {
      this.delays.wrong(known, hostname, given.password);
      return undefined;
    }
    this.delays.right(known, hostname);
    return { identity: { name: user, groups: [] } };
  }
}
