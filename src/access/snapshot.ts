/** The principals and their rights at one moment. Immutable: a change makes a new snapshot with a higher version. */
import { createHash } from "node:crypto";
import type { Grant } from "./grants.ts";
import { Directory } from "./directory.ts";
import { type Principal, principalKey, type PrincipalKind, samePrincipal, type StoredToken } from "./principals.ts";
import type { RecordChange, RecordMap } from "./record-map.ts";
import { isPrincipalRecord, principalRecordKey } from "./records.ts";
import { ALL_RIGHTS, NO_RIGHTS, Rights } from "./rights.ts";

export class AccessSnapshot {
  private readonly rights = new Map<string, Rights>();
  /** Rights by lists of aliases. A list is the same object as long as a user's groups do not change. */
  private readonly rightsByAliases = new WeakMap<readonly string[], Rights>();

  constructor(
    readonly version: number,
    readonly records: RecordMap,
    /** Undefined: the built-in admin cannot sign in. */
    readonly adminName: string | undefined,
    private readonly directory = new Directory(),
  ) {}

  /** Returns the snapshot after the changes. */
  after(changes: readonly RecordChange[], records = this.records.with(changes)): AccessSnapshot {
    this.directory.change(this.records, changes);
    return new AccessSnapshot(this.version + 1, records, this.adminName, this.directory);
  }

  isAdminName(name: string): boolean {
    return this.adminName !== undefined && samePrincipal(name, this.adminName);
  }

  principal(name: string): Principal | undefined {
    const found = this.recordOf(name);
    return found?.kind === "pending" ? undefined : found;
  }

  /** Also returns a pending principal. */
  recordOf(name: string): Principal | undefined {
    return this.decode(principalRecordKey(name));
  }

  /** All principals in order of their names. */
  principals(kind?: PrincipalKind): Principal[] {
    const found: Principal[] = [];
    for (const [key] of this.records) {
      if (!isPrincipalRecord(key)) continue;
      const principal = this.decode(key)!;
      if (kind === undefined ? principal.kind !== "pending" : principal.kind === kind) found.push(principal);
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  /** Its own grants and those of its groups, without duplicates; the grant option is kept if any of them has it. */
  grantsOf(principal: Principal): readonly Grant[] {
    const all = [principal, ...this.groupsOf(principal)].flatMap(({ grants }) => grants);
    return principal.groups.length === 0 ? all : merged(all);
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
      rights = isSilent ? NO_RIGHTS : this.prepared(principal);
      this.rights.set(key, rights);
    }
    return rights;
  }

  private prepared(principal: Principal): Rights {
    const make = () => new Rights(false, this.grantsOf(principal));
    return this.directory.rightsOf(principal, this.groupsOf(principal), make);
  }

  /** The rights of a user who has these groups at the identity provider. */
  rightsOfAliases(aliases: readonly string[]): Rights {
    let rights = this.rightsByAliases.get(aliases);
    if (rights === undefined) {
      const grants = merged(this.groupsByAlias(aliases).flatMap(({ grants }) => grants));
      rights = grants.length === 0 ? NO_RIGHTS : new Rights(false, grants);
      this.rightsByAliases.set(aliases, rights);
    }
    return rights;
  }

  /** The groups for an identity provider's names. Several groups may have one alias. */
  groupsByAlias(aliases: readonly string[]): Principal[] {
    const groups = aliases.flatMap((alias) => this.directory.find(this.directory.byAlias, this.records, alias));
    return [...new Set(groups)];
  }

  /** The principals that are members of the group, or may assume the service account. */
  linkedTo(name: string): Principal[] {
    return this.directory.find(this.directory.byLink, this.records, principalKey(name));
  }

  /** The principal of a token. The caller checks the expiry. */
  ofToken(token: string): { principal: Principal; token: StoredToken } | undefined {
    const hash = tokenHash(token);
    for (const principal of this.directory.find(this.directory.byToken, this.records, hash)) {
      const found = principal.tokens.find((each) => each.hash === hash);
      if (found !== undefined) return { principal, token: found };
    }
    return undefined;
  }

  private decode(key: string): Principal | undefined {
    return this.directory.decode(this.records, key);
  }
}

/** Merges equal grants. The grant option is kept if any of them has it. */
function merged(grants: readonly Grant[]): Grant[] {
  const byTarget = new Map<string, Grant>();
  for (const grant of grants) {
    const key = JSON.stringify([grant.permission, principalKey(grant.table ?? ""), principalKey(grant.column ?? "")]);
    if (!byTarget.get(key)?.grantOption) byTarget.set(key, grant);
  }
  return [...byTarget.values()];
}

export function tokenHash(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}
