/** Access control of an open database: the current snapshot of rights, the checks at each execution, and changes. */
import { randomBytes } from "node:crypto";
import { type Client, type Identity, shownUser } from "../../api.ts";
import {
  AccessSnapshot,
  ALL_RIGHTS,
  type CheckedTable,
  encodePrincipal,
  NO_RIGHTS,
  type Permission,
  type Principal,
  principalRecordKey,
  type Rights,
  samePrincipal,
} from "../../access/mod.ts";
import { Derivations } from "../../auth/mod.ts";
import type { accessSettings } from "../../access/settings.ts";
import type { Values } from "../../config/mod.ts";
import { ConfigError, SqlError, SQLSTATE } from "../../errors.ts";
import type { Requirement } from "../../requirement.ts";
import { unknownColumn } from "../../sql/mod.ts";
import type { AccessSource, Catalogue, StorageWriter } from "../../storage/contract.ts";

type Settings = Values<typeof accessSettings>;

/** The new state of a principal; null removes it. */
export interface PrincipalEdit {
  name: string;
  after: Principal | null;
}

/** The user who changes access control, and the connection. */
export interface Actor {
  identity: Identity;
  client?: Client;
}

const WIRE_PERMISSION = { http: "HTTP", pg: "PGWIRE", line: "ILP" } as const;

/** A record that is not a principal: the secret for deriving salts of unknown users. */
const MOCK_SECRET = "secret/mock";
/** The administrator's verifier, set by the offline command. It takes precedence over acl.admin.password. */
export const ADMIN_VERIFIER = "admin/verifier";

/** Retries if other sessions change the same principals at the same time. */
const TRIES_MAX = 20;

export class AccessControl {
  snapshot: AccessSnapshot;
  /** All derivations for passwords. */
  readonly derivations = new Derivations();
  private changing: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly source: AccessSource,
    /** All tables. */
    readonly tables: Catalogue,
    private readonly writer: Pick<StorageWriter, "changeAccess">,
    readonly settings: Settings,
    private readonly audit: (line: string) => void = () => {},
    /** The identity provider's claim with a user's groups. */
    private readonly groupsClaim = "groups",
  ) {
    const adminName = settings.adminSignsIn ? settings.adminName : undefined;
    this.snapshot = new AccessSnapshot(1, source.records, adminName);
    source.onChange((changes) => this.snapshot = this.snapshot.after(changes, source.records));
  }

  /** @throws {ConfigError} if a principal has the administrator's name. */
  async open(): Promise<void> {
    const { adminName } = this.snapshot;
    if (adminName !== undefined && this.snapshot.principal(adminName) !== undefined) {
      const { kind } = this.snapshot.principal(adminName)!;
      const key = "acl.admin.user";
      throw new ConfigError(key, `${key}: "${adminName}" is already the name of a ${kind}: choose another name`);
    }
    const reset = this.source.records.get(ADMIN_VERIFIER);
    if (reset !== undefined) {
      const { setAt } = JSON.parse(reset) as { setAt: string };
      this.audit(
        `the password of ${this.settings.adminName} was set by reset-admin-password at ${setAt}: acl.admin.password has no effect`,
      );
    }
    if (!this.source.records.has(MOCK_SECRET)) {
      const after = randomBytes(32).toString("base64");
      await this.writer.changeAccess([{ key: MOCK_SECRET, before: null, after }]);
    }
  }

  get mockSecret(): string {
    return this.source.records.get(MOCK_SECRET)!;
  }

  /** The rights of the session: its own, or those of the service account that it has assumed. */
  rightsOf(identity: Identity): Rights {
    const { assumed } = identity;
    if (assumed === undefined) return this.ownRightsOf(identity);
    return this.mayAssume(identity, assumed) ? this.snapshot.rightsOf(assumed) : NO_RIGHTS;
  }

  /** The rights of the signed-in user, which apply to endpoints. */
  ownRightsOf(identity: Identity): Rights {
    const { name, external } = identity;
    if (external !== undefined) return this.snapshot.rightsOfAliases(external.groups);
    return this.isCurrent(identity) ? this.snapshot.rightsOf(name) : NO_RIGHTS;
  }

  /** The principals whose grants apply to the user: itself and its groups. */
  sourcesOf(identity: Identity, snapshot = this.snapshot): Principal[] {
    const { name, external } = identity;
    if (external !== undefined) return snapshot.groupsByAlias(external.groups);
    const principal = this.isCurrent(identity) ? snapshot.principal(name) : undefined;
    return principal === undefined ? [] : [principal, ...snapshot.groupsOf(principal)];
  }

  /** False if the principal was removed, even if another one has its name now. */
  private isCurrent({ name, id }: Identity): boolean {
    return this.snapshot.isAdminName(name) || this.snapshot.principal(name)?.id === id;
  }

  mayAssume(identity: Identity, account: string): boolean {
    if (this.snapshot.principal(account)?.kind !== "service account") return false;
    if (this.ownRightsOf(identity).isAdmin) return true;
    return this.sourcesOf(identity).some(({ assumes }) => assumes.some((link) => samePrincipal(link.account, account)));
  }

  /**
   * Checks that a statement may run. `tables`: the tables as the session sees them. @throws {SqlError} 42501, or 42703
   * for a column without the right, as if it did not exist.
   */
  authorize(identity: Identity, client: Client | undefined, requires: readonly Requirement[], tables: Catalogue): void {
    const rights = this.rightsOf(identity);
    if (rights.isAdmin && rights === ALL_RIGHTS) return;
    const endpoint = WIRE_PERMISSION[client?.wire ?? "http"];
    const own = identity.assumed === undefined ? rights : this.ownRightsOf(identity);
    if (client !== undefined && !own.has(endpoint)) throw this.denied(identity, endpoint, undefined, -1);
    if (rights.isAdmin) return;
    for (const requirement of requires) this.check(identity, rights, requirement, tables);
  }

  private check(identity: Identity, rights: Rights, requirement: Requirement, tables: Catalogue): void {
    const { permission, table, columns, at } = requirement;
    if (table === undefined) {
      if (!rights.has(permission)) throw this.denied(identity, permission, undefined, at);
      return;
    }
    const schema = this.tables.tableById(table.id)?.schema;
    if (schema === undefined) {
      // Only the transaction that created the table sees it.
      if (tables.tableById(table.id) !== undefined) return;
      throw this.denied(identity, permission, table.name, at);
    }
    const held = rights.on(permission, schema);
    if (held === "all") return;
    if (columns === undefined || held.size === 0) throw this.denied(identity, permission, table.name, at);
    // Columns that this transaction has added are allowed.
    const isStored = (id: number) => schema.columns.some((column) => column.id === id);
    const missing = columns.find(({ id }) => !held.has(id) && isStored(id));
    if (missing === undefined) return;
    if (permission !== "SELECT") throw this.denied(identity, permission, `${table.name}(${missing.name})`, at);
    throw unknownColumn(missing.name, missing.at, schema.columns.filter(({ id }) => held.has(id)));
  }

  /** Checks a permission without a statement, such as for line protocol. */
  require(identity: Identity, permission: Permission, table?: CheckedTable): void {
    const rights = this.rightsOf(identity);
    const isHeld = table === undefined ? rights.has(permission) : rights.on(permission, table) === "all";
    if (!isHeld) throw this.denied(identity, permission, table?.name, -1);
  }

  /** The error for a missing permission. For an external user without any permission, it says why there is none. */
  denied(identity: Identity, what: string, table: string | undefined, at: number): SqlError {
    const denied = accessDenied(identity, what, table, at);
    const why = this.withoutGroups(identity);
    return why === undefined ? denied : new SqlError(`${denied.message}: ${why}`, at, denied.sqlState);
  }

  /** Why an external user has no permission; undefined if a group is mapped. */
  withoutGroups({ external }: Identity): string | undefined {
    if (external === undefined || this.snapshot.groupsByAlias(external.groups).length > 0) return undefined;
    return external.groups.length === 0
      ? `signed in, but the identity provider returned no groups for this user (claim "${this.groupsClaim}")`
      : `signed in, but no group here has one of the user's groups at the identity provider as its external alias`;
  }

  /** The principal that gets the rights on new objects. */
  creatorOf({ name, assumed, external }: Identity): string | undefined {
    return assumed ?? (external === undefined ? name : undefined);
  }

  /**
   * Changes principals. Changes run one after the other. `make` may be called again with a newer snapshot; its errors
   * are rethrown. `what`: the description for the audit log, without secrets.
   */
  async change(by: Actor, what: string, make: (snapshot: AccessSnapshot) => PrincipalEdit[]): Promise<void> {
    const hasChanged = await this.apply(make);
    if (hasChanged) this.record(by, what);
  }

  /** Writes an audit line. `what`: without secrets. */
  record(by: Actor, what: string): void {
    this.audit(auditLine(by, what));
  }

  /** Extends the expiry of a token after its use. */
  async extendToken(name: string, hash: string, nowMs: number): Promise<void> {
    await this.apply((snapshot) => {
      const principal = snapshot.principal(name);
      if (principal === undefined) return [];
      const tokens = principal.tokens.map((token) =>
        token.hash === hash ? { ...token, expiresAt: nowMs + token.ttlMs } : token
      );
      return [{ name, after: { ...principal, tokens } }];
    });
  }

  /** Returns false if there was nothing to change. */
  private async apply(make: (snapshot: AccessSnapshot) => PrincipalEdit[]): Promise<boolean> {
    const change = this.changing.then(async () => {
      for (let tries = 1;; tries++) {
        const { records } = this.snapshot;
        const changes = make(this.snapshot).map(({ name, after }) => {
          const key = principalRecordKey(name);
          return { key, before: records.get(key) ?? null, after: after === null ? null : encodePrincipal(after) };
        }).filter(({ before, after }) => before !== after);
        if (changes.length === 0) return false;
        try {
          await this.writer.changeAccess(changes);
          return true;
        } catch (error) {
          const isRace = error instanceof SqlError && error.sqlState === SQLSTATE.serializationFailure;
          if (!isRace || tries === TRIES_MAX) throw error;
        }
      }
    });
    this.changing = change.catch(() => {});
    return await change;
  }
}

function auditLine({ identity, client }: Actor, what: string): string {
  const user = shownUser(identity), who = identity.assumed === undefined ? user : `${user} as ${identity.assumed}`;
  const from = client === undefined ? "" : `, from=${client.address()}, wire=${client.wire}`;
  return `${what} [by=${who}${from}]`;
}

/** SQLSTATE 42501. */
export function accessDenied({ name }: Identity, what: string, table: string | undefined, at: number): SqlError {
  const where = table === undefined ? what : `${what} on ${table}`;
  return new SqlError(`Access denied for ${name} [${where}]`, at, SQLSTATE.insufficientPrivilege);
}
