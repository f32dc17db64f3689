/** The principals and their rights at one moment. Immutable: a change makes a new snapshot with a higher version. */
import { createHash } from "node:crypto";
import type { Grant } from "./grants.ts";
import {
  decodePrincipal,
  type Principal,
  principalKey,
  type PrincipalKind,
  samePrincipal,
  type StoredToken,
} from "./principals.ts";
import { isPrincipalRecord, principalRecordKey } from "./records.ts";
import { ALL_RIGHTS, NO_RIGHTS, Rights } from "./rights.ts";

/**
 * Cache of decoded records, shared by all snapshots of a database: after a start only principals that sign in are
 * decoded.
 */
type Decoded = Map<string, { text: string; principal: Principal }>;

export class AccessSnapshot {
  private readonly rights = new Map<string, Rights>();
  private tokens: Map<string, { principal: Principal; token: StoredToken }> | undefined;

  constructor(
    readonly version: number,
    readonly records: ReadonlyMap<string, string>,
    /** Undefined: the built-in admin cannot sign in. */
    readonly adminName: string | undefined,
    private readonly decoded: Decoded = new Map(),
  ) {}

  /** The snapshot after a change. */
  after(records: ReadonlyMap<string, string>, adminName = this.adminName): AccessSnapshot {
    return new AccessSnapshot(this.version + 1, records, adminName, this.decoded);
  }

  isAdminName(name: string): boolean {
    return this.adminName !== undefined && samePrincipal(name, this.adminName);
  }

  principal(name: string): Principal | undefined {
    const found = this.recordOf(name);
    return found?.kind === "pending" ? undefined : found;
  }

  /** Also one that waits for its principal. */
  recordOf(name: string): Principal | undefined {
    return this.decode(principalRecordKey(name));
  }

  /** In order of names. */
  principals(kind?: PrincipalKind): Principal[] {
    const found: Principal[] = [];
    for (const key of this.records.keys()) {
      if (!isPrincipalRecord(key)) continue;
      const principal = this.decode(key)!;
      if (kind === undefined ? principal.kind !== "pending" : principal.kind === kind) found.push(principal);
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  /** Its own grants and those of its groups, without duplicates; the grant option is kept if any of them has it. */
  grantsOf(principal: Principal): readonly Grant[] {
    const all = [principal, ...this.groupsOf(principal)].flatMap(({ grants }) => grants);
    if (principal.groups.length === 0) return all;
    const byTarget = new Map<string, Grant>();
    for (const grant of all) {
      const key = JSON.stringify([grant.permission, principalKey(grant.table ?? ""), principalKey(grant.column ?? "")]);
      if (!byTarget.get(key)?.grantOption) byTarget.set(key, grant);
    }
    return [...byTarget.values()];
  }

  groupsOf(principal: Principal): Principal[] {
    return principal.groups.flatMap((name) => this.principal(name) ?? []);
  }

  /** The rights of a user or service account; none for other names and disabled principals. */
  rightsOf(name: string): Rights {
    if (this.isAdminName(name)) return ALL_RIGHTS;
    const key = principalKey(name);
    let rights = this.rights.get(key);
    if (rights === undefined) {
      const principal = this.principal(name);
      const isSilent = principal === undefined || principal.kind === "group" || !principal.isEnabled;
      rights = isSilent ? NO_RIGHTS : new Rights(false, this.grantsOf(principal));
      this.rights.set(key, rights);
    }
    return rights;
  }

  /** The rights of a user who is known only by groups. */
  rightsOfGroups(groups: readonly string[]): Rights {
    const grants = groups.flatMap((name) => this.principal(name)?.grants ?? []);
    return grants.length === 0 ? NO_RIGHTS : new Rights(false, grants);
  }

  /** The groups for an identity provider's names. */
  groupsByAlias(aliases: readonly string[]): Principal[] {
    return this.principals("group").filter(({ externalAlias }) =>
      externalAlias !== undefined && aliases.includes(externalAlias)
    );
  }

  /** The principal of a token. The caller checks the expiry. */
  ofToken(token: string): { principal: Principal; token: StoredToken } | undefined {
    if (this.tokens === undefined) {
      this.tokens = new Map();
      for (const [key, text] of this.records) {
        if (!isPrincipalRecord(key) || !text.includes('"tokens"')) continue;
        const principal = this.decode(key)!;
        for (const each of principal.tokens) this.tokens.set(each.hash, { principal, token: each });
      }
    }
    return this.tokens.get(tokenHash(token));
  }

  private decode(key: string): Principal | undefined {
    const text = this.records.get(key);
    if (text === undefined) return undefined;
    const known = this.decoded.get(key);
    if (known?.text === text) return known.principal;
    const principal = decodePrincipal(text);
    this.decoded.set(key, { text, principal });
    return principal;
  }
}

export function tokenHash(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}
