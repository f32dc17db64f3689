/**
 * Users of the identity provider. The provider's answer about a token or password is cached for `acl.oidc.cache.ttl`.
 * Concurrent requests for the same one share one answer.
 */
import { createHmac, randomBytes } from "node:crypto";
import { type ExternalUser, type Identity, shownUser } from "../../api.ts";
import type { IdentityProvider, ProviderUser, Tokens } from "../../auth/oidc/mod.ts";
import { LimitedLines, logger } from "../../log/mod.ts";

/** Users of the database have other ids, and the administrator has none. */
const EXTERNAL_ID = "external";
const USERS_MAX = 10_000;
const REFUSED_MAX = 1_000;
/**
 * Time for which a refused token or password is refused again without asking the provider, so that repetitions do not
 * burden it.
 */
const REFUSED_MS = 5_000;

/** The services of the identity provider that are used here. */
export type Provider = Pick<IdentityProvider, "settings" | "userOf" | "tokensFor" | "renewed">;

/** A user found for a token or password. Sessions keep it even after the cache has dropped it. */
class SignedOn implements ExternalUser {
  /** performance.now() until which the provider's last answer is valid. */
  private validUntilMs = -Infinity;
  private renewing: Promise<boolean> | undefined;
  private user!: ProviderUser;
  groups!: readonly string[];

  constructor(
    user: ProviderUser,
    private tokens: Tokens,
    private readonly provider: Provider,
    private readonly nowMs: () => number,
  ) {
    this.update(user, tokens);
  }

  get name(): string {
    return this.user.subject;
  }

  get fullName(): string | undefined {
    return this.user.fullName;
  }

  get isCurrent(): boolean {
    return this.nowMs() < this.validUntilMs;
  }

  update(user: ProviderUser, tokens: Tokens): void {
    this.user = user;
    this.groups = user.groups;
    this.tokens = tokens;
    this.validUntilMs = this.nowMs() + trustedMs(user, this.provider.settings.cacheTtlMs);
  }

  /** Ends the sign-on: nothing is allowed any more. */
  end(): void {
    this.groups = [];
    this.validUntilMs = -Infinity;
  }

  renew(): Promise<boolean> {
    this.renewing ??= this.askAgain().finally(() => this.renewing = undefined);
    return this.renewing;
  }

  private async askAgain(): Promise<boolean> {
    const { refreshToken, token } = this.tokens;
    let tokens: Tokens | undefined = this.tokens;
    let user = await this.provider.userOf(token);
    if (user === undefined && refreshToken !== undefined) {
      tokens = await this.provider.renewed(refreshToken);
      user = tokens && await this.provider.userOf(tokens.token);
    }
    // A session cannot change its user.
    if (user === undefined || tokens === undefined || user.subject !== this.name) {
      this.end();
      return false;
    }
    this.update(user, tokens);
    return true;
  }
}

/** Time for which an answer is valid: at most as long as the token itself, if that is known. */
function trustedMs({ expiresAtMs }: ProviderUser, ttlMs: number): number {
  return expiresAtMs === undefined ? ttlMs : Math.min(ttlMs, expiresAtMs - Date.now());
}

interface Found {
  user: SignedOn;
  /** performance.now() of the answer. */
  checkedAtMs: number;
  trustedUntilMs: number;
}

/** Counters by the metric's key. */
interface SignOnStatistics {
  signOns: { accepted: number; refused: number; unavailable: number };
  signOnCacheHits: number;
  signOnsCached: number;
  signOnCacheAge: number;
}

/** The counters without sign-on. */
export const NO_SIGN_ONS: SignOnStatistics = {
  signOns: { accepted: 0, refused: 0, unavailable: 0 },
  signOnCacheHits: 0,
  signOnsCached: 0,
  signOnCacheAge: 0,
};

export class ExternalUsers {
  private readonly outcomes = { ...NO_SIGN_ONS.signOns };
  private hitCount = 0;
  /** By the hash of the token, or of name and password, in order of the last check. */
  private readonly found = new Map<string, Found>();
  /** performance.now() until which each is refused. */
  private readonly refused = new Map<string, number>();
  private readonly asking = new Map<string, Promise<SignedOn | undefined>>();
  private readonly signedIn = new LimitedLines((line) => logger("sign-on").info(line), "users signed in");
  /** Random for each process. */
  private readonly hashKey = randomBytes(32);

  constructor(
    private readonly provider: Provider,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  get statistics(): SignOnStatistics {
    return {
      signOns: this.outcomes,
      signOnCacheHits: this.hitCount,
      signOnsCached: this.found.size,
      signOnCacheAge: this.oldestSeconds(),
    };
  }

  /** Age in seconds of the oldest answer that is still valid. */
  private oldestSeconds(): number {
    const now = this.nowMs();
    for (const { checkedAtMs, trustedUntilMs } of this.found.values()) {
      if (trustedUntilMs > now) return (now - checkedAtMs) / 1000;
    }
    return 0;
  }

  /** Returns synchronously if the answer is cached. @throws {ProviderUnavailable} */
  withToken(token: string): Identity | undefined | Promise<Identity | undefined> {
    return this.identify(this.hash("token", token), async () => {
      const user = await this.provider.userOf(token);
      return user && { user, tokens: { token, refreshToken: undefined } };
    });
  }

  /** The password flow. Otherwise like `withToken`. */
  withPassword(name: string, password: string): Identity | undefined | Promise<Identity | undefined> {
    return this.identify(this.hash("password", name, password), async () => {
      const tokens = await this.provider.tokensFor(name, password);
      const user = tokens && await this.provider.userOf(tokens.token);
      return user && { user, tokens };
    });
  }

  /**
   * True if the token or password itself was accepted within the cache time. Renewing a session by its tokens does not
   * extend the validity of a password.
   */
  isKnown(hash: string | undefined): boolean {
    const known = this.found.get(hash ?? "");
    const isKnown = known !== undefined && this.nowMs() < known.trustedUntilMs && known.user.isCurrent;
    if (isKnown) this.hitCount++;
    return isKnown;
  }

  private identify(
    hash: string,
    ask: () => Promise<{ user: ProviderUser; tokens: Tokens } | undefined>,
  ): Identity | undefined | Promise<Identity | undefined> {
    if (this.isKnown(hash)) return identityOf(this.found.get(hash)!.user, hash);
    if ((this.refused.get(hash) ?? -Infinity) > this.nowMs()) {
      this.hitCount++;
      return undefined;
    }
    let pending = this.asking.get(hash);
    if (pending === undefined) {
      pending = this.check(hash, ask).finally(() => this.asking.delete(hash));
      this.asking.set(hash, pending);
    }
    return pending.then((user) => user && identityOf(user, hash));
  }

  private async check(hash: string, ask: Parameters<ExternalUsers["identify"]>[1]): Promise<SignedOn | undefined> {
    let answer: Awaited<ReturnType<typeof ask>>;
    try {
      answer = await ask();
    } catch (error) {
      this.outcomes.unavailable++;
      throw error;
    }
    const before = this.found.get(hash)?.user;
    this.found.delete(hash);
    if (answer === undefined) {
      this.outcomes.refused++;
      before?.end();
      add(this.refused, hash, this.nowMs() + REFUSED_MS, REFUSED_MAX);
      return undefined;
    }
    this.outcomes.accepted++;
    const { user, tokens } = answer;
    const now = this.nowMs();
    let signedOn = before;
    if (signedOn?.name === user.subject) signedOn.update(user, tokens);
    else {
      signedOn = new SignedOn(user, tokens, this.provider, this.nowMs);
      const name = shownUser({ name: signedOn.name, external: signedOn });
      this.signedIn.add(() => `signed in by the identity provider: ${name}`);
    }
    const trustedUntilMs = now + trustedMs(user, this.provider.settings.cacheTtlMs);
    add(this.found, hash, { user: signedOn, checkedAtMs: now, trustedUntilMs }, USERS_MAX);
    return signedOn;
  }

  /** Hashes tokens and passwords, because the cache must not contain them. */
  private hash(...parts: string[]): string {
    return createHmac("sha256", this.hashKey).update(parts.join("\0")).digest("base64");
  }
}

function identityOf(user: SignedOn, hash: string): Identity {
  return { name: user.name, id: EXTERNAL_ID, secret: hash, external: user };
}

/** Adds an entry, and removes the oldest if there are too many. */
function add<V>(map: Map<string, V>, key: string, value: V, sizeMax: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > sizeMax) map.delete(map.keys().next().value!);
}
