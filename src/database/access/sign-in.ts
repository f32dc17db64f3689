/** Authenticates clients by password or token. */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Access, Identity } from "../../api.ts";
import type { IdentityProvider } from "../../auth/oidc/mod.ts";
import { type AccessSnapshot, ENDPOINTS, type Principal, type StoredVerifier, tokenHash } from "../../access/mod.ts";
import { deriveVerifier, isPasswordOf, mockVerifier, type Verifier } from "../../auth/mod.ts";
import type { TableSchema } from "../../storage/contract.ts";
import { type AccessControl, ADMIN_VERIFIER } from "./control.ts";
import type { ExternalUsers } from "./external.ts";

const SALT_SIZE_BYTES = 16;
const REMEMBERED_MAX = 10_000;

/** A verified password, valid as long as the stored key does not change. */
interface Remembered {
  mac: Uint8Array;
  /** The principal's stored key when the password was verified. */
  storedKey: string;
}

export class SignIn implements Access {
  /** By the principal's name, the oldest first. */
  private readonly remembered = new Map<string, Remembered>();
  /** Random for each process. */
  private readonly memoryKey = randomBytes(32);
  private adminDerivedFrom: string | undefined;
  private adminDerived: Promise<Verifier> | undefined;
  private readonly refreshedAt = new Map<string, number>();

  constructor(
    private readonly control: AccessControl,
    private readonly nowMs: () => number,
    readonly provider?: IdentityProvider,
    private readonly external?: ExternalUsers,
  ) {}

  /**
   * Returns synchronously for a password that was verified before. Users of the database take precedence over external
   * ones.
   */
  withPassword(name: string, password: string): Identity | undefined | Promise<Identity | undefined> {
    if (this.proofOf(name) === "password") return this.external!.withPassword(name, password);
    const mac = createHmac("sha256", this.memoryKey).update(`${name}\0${password}`).digest();
    const known = this.remembered.get(name);
    if (known !== undefined && timingSafeEqual(known.mac, mac) && known.storedKey === this.storedKeyOf(name)) {
      return this.identify(name);
    }
    return this.checkPassword(name, password, mac);
  }

  private async checkPassword(name: string, password: string, mac: Uint8Array): Promise<Identity | undefined> {
    const verifier = await this.verifierOf(name);
    const isRight = await this.control.derivations.run(() => isPasswordOf(password, verifier));
    // The principal may have changed during the derivation.
    const storedKey = this.storedKeyOf(name);
    if (!isRight || storedKey === undefined || storedKey !== base64(verifier.storedKey)) return undefined;
    this.remembered.delete(name);
    this.remembered.set(name, { mac, storedKey });
    if (this.remembered.size > REMEMBERED_MAX) this.remembered.delete(this.remembered.keys().next().value!);
    return this.identify(name);
  }

  withToken(token: string): Identity | undefined | Promise<Identity | undefined> {
    const found = this.snapshot.ofToken(token);
    if (found === undefined && this.external !== undefined && !TOKEN.test(token)) return this.external.withToken(token);
    if (found === undefined || !found.principal.isEnabled || found.token.expiresAt <= this.nowMs()) return undefined;
    const { principal, token: { hash, refreshes } } = found;
    if (refreshes) this.refresh(principal, hash);
    return { name: principal.name, id: principal.id, secret: hash };
  }

  /** Extends the token's expiry. If that cannot be written, the token keeps its expiry. */
  private refresh({ name }: Principal, hash: string): void {
    const now = this.nowMs(), last = this.refreshedAt.get(hash);
    if (last !== undefined && now - last < this.control.settings.tokenRefreshThresholdMs) return;
    this.refreshedAt.set(hash, now);
    this.control.extendToken(name, hash, now).catch(() => {});
  }

  async verifierOf(name: string): Promise<Verifier> {
    if (this.snapshot.isAdminName(name)) return await this.adminVerifier();
    const principal = this.signsIn(name);
    return principal?.verifier === undefined
      ? mockVerifier(this.saltOf(name), this.control.settings.iterations)
      : decodeVerifier(principal.verifier);
  }

  identify(name: string): Identity | undefined {
    if (this.snapshot.isAdminName(name)) {
      return { name: this.snapshot.adminName!, secret: this.storedKeyOf(name) };
    }
    const principal = this.signsIn(name);
    return principal && { name: principal.name, id: principal.id, secret: this.storedKeyOf(name) };
  }

  proofOf(name: string): "local" | "password" | "token" {
    if (this.provider === undefined) return "local";
    const kind = this.snapshot.isAdminName(name) ? "user" : this.snapshot.principal(name)?.kind;
    if (kind !== undefined && kind !== "group") return "local";
    const { allowsPgTokens, allowsPasswords } = this.provider.settings;
    if (allowsPgTokens && (name === TOKEN_USER || name === "")) return "token";
    return allowsPasswords && name !== "" ? "password" : "local";
  }

  knownName(name: string): string {
    return this.identify(name)?.name ?? (this.proofOf(name) === "local" ? "" : name);
  }

  /** True if the secret used to sign in is still valid. */
  isCurrent({ name, id, secret, external }: Identity): boolean {
    if (external !== undefined) return this.external!.isKnown(secret);
    if (secret === undefined) return false;
    if (this.snapshot.isAdminName(name)) return secret === this.storedKeyOf(name);
    const principal = this.signsIn(name);
    if (principal === undefined || principal.id !== id) return false;
    if (secret === principal.verifier?.storedKey) return true;
    const now = this.nowMs();
    const token = principal.tokens.find(({ hash, expiresAt }) => hash === secret && expiresAt > now);
    if (token?.refreshes) this.refresh(principal, token.hash);
    return token !== undefined;
  }

  renew(identity: Identity): boolean | Promise<boolean> {
    const { external } = identity;
    if (external === undefined) return this.isCurrent(identity);
    return external.isCurrent || external.renew();
  }

  refusalOf(identity: Identity, endpoint: keyof typeof ENDPOINTS): string | undefined {
    const permission = ENDPOINTS[endpoint];
    if (this.control.ownRightsOf(identity).has(permission)) return undefined;
    return this.control.denied(identity, permission, undefined, -1).message;
  }

  sees(identity: Identity, table: TableSchema): boolean {
    return this.control.rightsOf(identity).sees(table);
  }

  private get snapshot(): AccessSnapshot {
    return this.control.snapshot;
  }

  /** The user or service account, if it is enabled. */
  private signsIn(name: string): Principal | undefined {
    const principal = this.snapshot.principal(name);
    return principal !== undefined && principal.kind !== "group" && principal.isEnabled ? principal : undefined;
  }

  /** A key that changes with the principal's password. Undefined without a password. */
  private storedKeyOf(name: string): string | undefined {
    if (!this.snapshot.isAdminName(name)) return this.signsIn(name)?.verifier?.storedKey;
    const kept = this.snapshot.records.get(ADMIN_VERIFIER);
    if (kept !== undefined) return (JSON.parse(kept) as StoredVerifier).storedKey;
    // The password may have changed by a reload of the settings.
    return this.control.settings.adminPassword === this.adminDerivedFrom ? this.adminStoredKey : undefined;
  }

  /** Undefined until derived. */
  private adminStoredKey: string | undefined;

  /** The verifier set by the offline command, or that of acl.admin.password. */
  private async adminVerifier(): Promise<Verifier> {
    const kept = this.snapshot.records.get(ADMIN_VERIFIER);
    if (kept !== undefined) return decodeVerifier(JSON.parse(kept));
    const password = this.control.settings.adminPassword;
    if (this.adminDerived === undefined || password !== this.adminDerivedFrom) {
      this.adminDerivedFrom = password;
      this.adminStoredKey = undefined;
      const derived = deriveVerifier(password, this.saltOf(this.snapshot.adminName!), this.control.settings.iterations);
      this.adminDerived = derived;
      derived.then(({ storedKey }) => {
        if (this.adminDerived === derived) this.adminStoredKey = base64(storedKey);
      }, () => this.adminDerived = undefined);
    }
    return await this.adminDerived;
  }

  /**
   * The salt of a user. It is deterministic, also for unknown users, so that they cannot be distinguished from existing
   * ones.
   */
  private saltOf(name: string): Uint8Array {
    return createHmac("sha256", this.control.mockSecret).update(name).digest().subarray(0, SALT_SIZE_BYTES);
  }
}

export function encodeVerifier({ salt, iterations, storedKey, serverKey }: Verifier): StoredVerifier {
  return { salt: base64(salt), iterations, storedKey: base64(storedKey), serverKey: base64(serverKey) };
}

function decodeVerifier({ salt, iterations, storedKey, serverKey }: StoredVerifier): Verifier {
  return { salt: bytes(salt), iterations, storedKey: bytes(storedKey), serverKey: bytes(serverKey) };
}

const base64 = (data: Uint8Array): string => data.toBase64();
const bytes = (text: string): Uint8Array => Uint8Array.fromBase64(text);
/** The user name for signing in with a token over the PostgreSQL wire. */
const TOKEN_USER = "_sso";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const TOKEN_LENGTH = 46;
/** REST tokens are never sent to the identity provider. */
const TOKEN = new RegExp(`^qt1[A-Za-z0-9]{${TOKEN_LENGTH - 3}}$`);

/** A REST token and its hash, which is stored. */
export function newToken(): { token: string; hash: string } {
  let token = "qt1";
  while (token.length < TOKEN_LENGTH) {
    // Bytes from 248 on would make the first letters more frequent.
    for (const byte of randomBytes(64)) {
      if (byte < 248 && token.length < TOKEN_LENGTH) token += ALPHABET[byte % ALPHABET.length];
    }
  }
  return { token, hash: tokenHash(token) };
}
