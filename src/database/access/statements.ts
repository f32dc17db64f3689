/** Executes the statements that change access control. */
import { randomBytes } from "node:crypto";
import {
  type AccessCommand,
  type AccessSnapshot,
  allOf,
  described,
  type Grant,
  type Granted,
  hasLevel,
  type Level,
  type Named,
  newPrincipal,
  type Permission,
  permissionOf,
  PERMISSIONS,
  type Principal,
  type PrincipalKind,
  samePrincipal,
  type Target,
  tokenHash,
  withGrant,
  withoutGrant,
} from "../../access/mod.ts";
import { deriveVerifier, TooManyDerivations } from "../../auth/mod.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import { didYouMean } from "../../nearest.ts";
import type { Catalogue, TableSchema } from "../../storage/contract.ts";
import type { Value } from "../../types/mod.ts";
import { findNamed, hiddenCharacterFault } from "../../types/names.ts";
import { type AccessControl, accessDenied, type Actor, type PrincipalEdit } from "./control.ts";
import { encodeVerifier, newToken } from "./sign-in.ts";

const SALT_SIZE_BYTES = 16;
const ID_SIZE_BYTES = 9;
const MINUTE_MS = 60_000;
const TTL_MAX_MS = 10 * 365 * 86_400_000;

/** A command and the values computed for it in advance, because the change itself must be synchronous. */
interface Prepared {
  verifier?: Principal["verifier"];
  token?: Principal["tokens"][number];
}

export class AccessStatements {
  constructor(
    private readonly control: AccessControl,
    private readonly tables: Catalogue,
    private readonly nowMs: () => number,
  ) {}

  /**
   * @throws {SqlError} unless the user may assume the service account.
   */
  checkAssume(identity: Actor["identity"], { text, at }: Named): void {
    if (this.control.mayAssume(identity, text)) return;
    throw accessDenied(identity, "ASSUME SERVICE ACCOUNT", text, at);
  }

  ownerNamed({ text, at }: Named): string {
    const { snapshot } = this.control;
    const name = snapshot.isAdminName(text) ? text : snapshot.principal(text)?.name;
    if (name === undefined) throw unknown(`there is no user, group or service account ${text}`, at);
    return name;
  }

  /** Executes the command and returns its rows, if any. */
  async execute(command: AccessCommand, by: Actor): Promise<Value[][] | undefined> {
    const prepared: Prepared = {};
    let rows: Value[][] | undefined;
    if ((command.kind === "create" || command.kind === "password") && command.password !== undefined) {
      if (command.kind === "create") this.checkName(command.name);
      prepared.verifier = await this.verifierOf(command.password);
    }
    if (command.kind === "createToken") {
      const { ttlMs, refreshes } = command;
      if (ttlMs < MINUTE_MS || ttlMs > TTL_MAX_MS) {
        throw new SqlError(
          "the TTL must be between a minute and 3650 days",
          command.name.at,
          SQLSTATE.invalidParameter,
        );
      }
      const { token, hash } = newToken();
      prepared.token = { hash, expiresAt: this.nowMs() + ttlMs, ttlMs, refreshes };
      rows = [[command.name.text, token, BigInt(prepared.token.expiresAt) * 1000n, refreshes]];
    }
    await this.control.change(by, described(command), (snapshot) => {
      if (command.kind === "alias") {
        rows = [[command.alias, snapshot.principal(command.group.text)?.externalAlias ?? null]];
      }
      return new Change(this.control, this.tables, snapshot, by).edits(command, prepared);
    });
    return rows;
  }

  private async verifierOf({ text, at }: Named): Promise<Principal["verifier"]> {
    if (text === "") {
      throw new SqlError(
        "a password must not be empty: use WITH NO PASSWORD to remove it",
        at,
        SQLSTATE.invalidParameter,
      );
    }
    try {
      const { iterations } = this.control.settings;
      return encodeVerifier(
        await this.control.derivations.run(() => deriveVerifier(text, randomBytes(SALT_SIZE_BYTES), iterations)),
      );
    } catch (error) {
      if (error instanceof TooManyDerivations) throw new SqlError(error.message, at, SQLSTATE.outOfMemory);
      throw error;
    }
  }

  private checkName({ text, at }: Named): void {
    checkName(text, at, this.control.settings.nameLengthMax);
  }
}

function checkName(text: string, at: number, lengthMax: number): void {
  const fault = text === ""
    ? "a name must not be empty"
    : text.length > lengthMax
    ? `a name can have at most ${lengthMax} characters (acl.entity.name.max.length): found ${text.length}`
    : hiddenCharacterFault(text);
  if (fault !== undefined) throw new SqlError(fault, at, SQLSTATE.invalidName);
}

/** One command against one snapshot. */
class Change {
  constructor(
    private readonly control: AccessControl,
    private readonly tables: Catalogue,
    private readonly snapshot: AccessSnapshot,
    private readonly by: Actor,
  ) {}

  edits(command: AccessCommand, prepared: Prepared): PrincipalEdit[] {
    switch (command.kind) {
      case "create":
        return this.create(command, prepared);
      case "drop":
        return this.drop(command);
      case "enable":
      case "disable":
        return [this.altered(command, () => ({ isEnabled: command.kind === "enable" }))];
      case "password":
        return [this.altered(command, () => ({ verifier: prepared.verifier }))];
      case "dropPassword":
        return [this.altered(command, () => ({ verifier: undefined }))];
      case "createToken":
        return [this.altered(command, ({ tokens }) => ({ tokens: [...tokens, prepared.token!] }))];
      case "dropToken":
        return [this.altered(command, ({ tokens }) => ({ tokens: withoutToken(tokens, command.token) }))];
      case "alias":
        return [this.altered({ of: "group", name: command.group }, () => ({ externalAlias: command.alias }))];
      case "dropAlias":
        return [this.altered({ of: "group", name: command.group }, (group) => {
          if (group.externalAlias === command.alias) return { externalAlias: undefined };
          throw unknown(`group ${group.name} has no external alias ${command.alias}`, command.group.at);
        })];
      case "addUser":
      case "removeUser":
        return [this.membership(command)];
      case "grant":
      case "revoke":
        return this.grants(command);
      case "grantAssume":
      case "revokeAssume":
        return this.assumption(command);
    }
  }

  private get isAdmin(): boolean {
    return this.control.rightsOf(this.by.identity).isAdmin;
  }

  private create(command: Extract<AccessCommand, { kind: "create" }>, { verifier }: Prepared): PrincipalEdit[] {
    const { of, name, ifNotExists, externalAlias, ownedBy } = command;
    checkName(name.text, name.at, this.control.settings.nameLengthMax);
    const existing = this.snapshot.principal(name.text);
    const isTaken = existing !== undefined || samePrincipal(name.text, this.control.settings.adminName);
    if (isTaken && ifNotExists) return [];
    if (isTaken) {
      const what = existing?.kind ?? "the built-in administrator";
      throw new SqlError(
        `the name ${name.text} is already used by ${article(what)}`,
        name.at,
        SQLSTATE.duplicateObject,
      );
    }
    const waiting = this.snapshot.recordOf(name.text);
    this.checkPower(waiting?.grants ?? [], name.at);
    const made: Principal = {
      ...newPrincipal(of, name.text),
      id: randomBytes(ID_SIZE_BYTES).toString("base64"),
      verifier,
      externalAlias,
      grants: waiting?.grants ?? [],
      assumes: of === "service account" ? [] : waiting?.assumes ?? [],
    };
    const edits: PrincipalEdit[] = [{ name: name.text, after: made }];
    if (of === "service account") edits.push(...this.ownership(name, ownedBy));
    return edits;
  }

  /** The creator of a service account may assume it, unless OWNED BY names another principal. */
  private ownership(account: Named, ownedBy: Named | undefined): PrincipalEdit[] {
    const owner = ownedBy?.text ?? this.control.creatorOf(this.by.identity);
    const principal = owner === undefined ? undefined : this.snapshot.principal(owner);
    if (principal === undefined || principal.kind === "service account") {
      if (ownedBy === undefined) return []; // the administrator may assume it anyway
      throw unknown(`there is no user or group ${ownedBy.text}`, ownedBy.at);
    }
    return [{ name: principal.name, after: withAssumption(principal, account.text, true) }];
  }

  private drop({ of, name, ifExists }: Extract<AccessCommand, { kind: "drop" }>): PrincipalEdit[] {
    if (ifExists && this.snapshot.principal(name.text)?.kind !== of) return [];
    const dropped = this.find(of, name);
    const edits: PrincipalEdit[] = [{ name: dropped.name, after: null }];
    // Remove links to the principal, because another one may get its name later.
    for (const principal of of === "user" ? [] : this.snapshot.linkedTo(dropped.name)) {
      const isOther = (other: string) => !samePrincipal(other, dropped.name);
      const groups = principal.groups.filter(isOther);
      const assumes = principal.assumes.filter(({ account }) => isOther(account));
      edits.push({ name: principal.name, after: { ...principal, groups, assumes } });
    }
    return edits;
  }

  private altered(
    { of, name }: { of: PrincipalKind; name: Named },
    change: (principal: Principal) => Partial<Principal>,
  ): PrincipalEdit {
    const principal = this.find(of, name);
    return { name: principal.name, after: { ...principal, ...change(principal) } };
  }

  private membership(
    { kind, user, groups }: Extract<AccessCommand, { kind: "addUser" | "removeUser" }>,
  ): PrincipalEdit {
    const principal = this.find("user", user);
    const found = groups.map((group) => this.find("group", group).name);
    const others = principal.groups.filter((name) => !found.some((group) => samePrincipal(group, name)));
    return {
      name: principal.name,
      after: { ...principal, groups: kind === "addUser" ? [...others, ...found] : others },
    };
  }

  /** Finds a principal. Only an administrator may change an administrator. @throws {SqlError} */
  private find(of: PrincipalKind, { text, at }: Named): Principal {
    const principal = this.snapshot.principal(text);
    if (principal === undefined || principal.kind !== of) {
      if (samePrincipal(text, this.control.settings.adminName)) {
        throw new SqlError(
          `${text} is the built-in administrator: use the settings acl.admin.user and acl.admin.password`,
          at,
          SQLSTATE.insufficientPrivilege,
        );
      }
      const names = this.snapshot.principals(of).map(({ name }) => name);
      const hint = this.control.rightsOf(this.by.identity).has("LIST USERS") ? didYouMean(text, names) : "";
      throw unknown(`there is no ${of} ${text}${hint}`, at);
    }
    this.checkPower(this.snapshot.grantsOf(principal), at);
    return principal;
  }

  /** Refuses a change of a principal whose grants make it an administrator, unless the user is one. */
  private checkPower(grants: readonly Grant[], at: number): void {
    const isPowerful = grants.some(({ permission }) => permission === "DATABASE ADMIN");
    if (isPowerful && !this.isAdmin) throw accessDenied(this.by.identity, "DATABASE ADMIN", undefined, at);
  }

  // ---- Grants

  private grants(command: Extract<AccessCommand, { kind: "grant" | "revoke" }>): PrincipalEdit[] {
    const { principal: { text, at } } = command;
    const isVerified = command.kind === "grant" && command.isVerified;
    if (samePrincipal(text, this.control.settings.adminName)) {
      throw new SqlError(
        `${text} is the built-in administrator, who has every permission`,
        at,
        SQLSTATE.invalidParameter,
      );
    }
    const existing = this.snapshot.recordOf(text);
    if (isVerified && (existing === undefined || existing.kind === "pending")) {
      throw unknown(`there is no user, group or service account ${text}`, at);
    }
    if (existing === undefined) checkName(text, at, this.control.settings.nameLengthMax);
    const principal = existing ?? newPrincipal("pending", text);
    const targets = this.targetsOf(command, isVerified);
    const rights = this.control.rightsOf(this.by.identity);
    const schemas = this.tables.tables().map(({ schema }) => schema);
    const apply = (grants: readonly Grant[], { at, ...target }: Target & { at: number }): readonly Grant[] => {
      const changed = command.kind === "grant"
        ? withGrant(grants, { ...target, grantOption: command.grantOption })
        : withoutGrant(grants, target, schemas);
      if (command.kind === "revoke" && isSameList(changed, grants)) return grants;
      if (!rights.canGrant(target)) {
        throw accessDenied(
          this.by.identity,
          `${command.kind.toUpperCase()} ${target.permission}`,
          targetText(target),
          at,
        );
      }
      return changed;
    };
    let after = principal.grants;
    // Only grants of the same permission matter for a target. Visiting all grants takes seconds for ALL on many tables.
    for (const [permission, ofPermission] of Map.groupBy(targets, (target) => target.permission)) {
      const before = after.filter((grant) => grant.permission === permission);
      const changed = ofPermission.reduce(apply, before);
      if (isSameList(changed, before)) continue;
      const kept = new Set(changed), known = new Set(before);
      after = [
        ...after.filter((grant) => grant.permission !== permission || kept.has(grant)),
        ...changed.filter((grant) => !known.has(grant)),
      ];
    }
    const isEmpty = principal.kind === "pending" && after.length === 0 && principal.assumes.length === 0;
    if (isEmpty && existing === undefined) return [];
    return [{ name: principal.name, after: isEmpty ? null : { ...principal, grants: after } }];
  }

  private targetsOf({ permissions, on }: Granted, isVerified: boolean): (Target & { at: number })[] {
    const isOnTables = on !== undefined;
    return permissions.flatMap(({ text, at }) => {
      if (on === undefined || on === "all tables") {
        return this.databasePermissions(text, at, isOnTables).map((permission) => ({ permission, at }));
      }
      return on.flatMap(({ table, columns }): (Target & { at: number })[] => {
        const schema = this.tables.table(table.text)?.schema;
        const name = schema?.name ?? table.text;
        if (columns === undefined) {
          if (isVerified && schema === undefined) throw unknownTable(table);
          return permissionsOn("table", text, at).map((permission) => ({ permission, table: name, at }));
        }
        const names = columnNames(schema, table, columns, isVerified);
        return permissionsOn("column", text, at).flatMap((permission) =>
          names.map((column) => ({ permission, table: name, column, at }))
        );
      });
    });
  }

  /**
   * The permissions that are granted on the database. With ON ALL TABLES, permissions on tables are granted for the
   * whole database.
   */
  private databasePermissions(text: string, at: number, isOnTables: boolean): Permission[] {
    if (text === "ALL") return isOnTables ? allOf("table") : allOf("database");
    const permission = knownPermission(text, at);
    if (isOnTables === hasLevel(permission, "table")) return [permission];
    throw new SqlError(
      isOnTables
        ? `${text} is a permission on the database: remove ON ALL TABLES`
        : `${text} is a permission on tables: add ON ALL TABLES, or ON with the tables`,
      at,
    );
  }

  // ---- Service accounts

  private assumption(command: Extract<AccessCommand, { kind: "grantAssume" | "revokeAssume" }>): PrincipalEdit[] {
    const { account, principal: { text, at } } = command;
    const { identity } = this.by;
    if (this.snapshot.principal(account.text)?.kind !== "service account") {
      throw unknown(`there is no service account ${account.text}`, account.at);
    }
    if (!this.isAdmin && !this.mayPassOn(account.text)) {
      throw accessDenied(identity, "ASSUME SERVICE ACCOUNT", account.text, account.at);
    }
    const principal = this.snapshot.principal(text);
    if (principal === undefined || principal.kind === "service account") {
      throw unknown(`there is no user or group ${text}`, at);
    }
    return [{
      name: principal.name,
      after: command.kind === "grantAssume"
        ? withAssumption(principal, account.text, command.grantOption)
        : withoutAssumption(principal, account.text),
    }];
  }

  private mayPassOn(account: string): boolean {
    return this.control.sourcesOf(this.by.identity, this.snapshot).some(({ assumes }) =>
      assumes.some((link) => link.grantOption && samePrincipal(link.account, account))
    );
  }
}

function permissionsOn(level: Level, text: string, at: number): Permission[] {
  if (text === "ALL") return allOf(level);
  const permission = knownPermission(text, at);
  if (hasLevel(permission, level)) return [permission];
  const levels = permissionOf(permission)!.levels;
  const where = levels.includes("table") ? "on tables, not on columns" : "on the database";
  throw new SqlError(`${text} is granted ${where}`, at);
}

function knownPermission(text: string, at: number): Permission {
  const entry = permissionOf(text);
  if (entry !== undefined) return entry.name;
  const hint = didYouMean(text, PERMISSIONS.map(({ name }) => name));
  throw new SqlError(`there is no permission ${text}${hint}`, at);
}

function columnNames(
  schema: TableSchema | undefined,
  table: Named,
  { star, names }: { star: boolean; names: readonly Named[] },
  isVerified: boolean,
): string[] {
  if (schema === undefined && (star || isVerified)) throw unknownTable(table);
  const found = names.map(({ text, at }) => {
    const column = schema && findNamed(schema.columns, text);
    if (column === undefined && (star || isVerified)) {
      throw new SqlError(`Invalid column: ${text}`, at, SQLSTATE.undefinedColumn);
    }
    return column?.name ?? text;
  });
  if (!star) return found;
  const left = schema!.columns.map(({ name }) => name).filter((name) => !found.includes(name));
  if (left.length === 0) throw new SqlError("EXCLUDE removes all columns", names[0]!.at, SQLSTATE.invalidParameter);
  return left;
}

const unknownTable = ({ text, at }: Named) =>
  new SqlError(`table does not exist [table=${text}]`, at, SQLSTATE.undefinedTable);

const isSameList = (a: readonly Grant[], b: readonly Grant[]) =>
  a === b || a.length === b.length && a.every((grant, k) => grant === b[k]);

const targetText = ({ table, column }: Target) => column === undefined ? table : `${table}(${column})`;

function withoutToken(tokens: Principal["tokens"], token: Named | undefined): Principal["tokens"] {
  if (token === undefined) return [];
  const hash = tokenHash(token.text);
  const left = tokens.filter((each) => each.hash !== hash);
  if (left.length === tokens.length) throw unknown("the token does not exist", token.at);
  return left;
}

function withAssumption(principal: Principal, account: string, grantOption: boolean): Principal {
  const { assumes } = withoutAssumption(principal, account);
  return { ...principal, assumes: [...assumes, { account, grantOption }] };
}

function withoutAssumption(principal: Principal, account: string): Principal {
  return { ...principal, assumes: principal.assumes.filter((link) => !samePrincipal(link.account, account)) };
}

const article = (what: string) => what.startsWith("the ") ? what : `a ${what}`;

const unknown = (message: string, at: number) => new SqlError(message, at, SQLSTATE.undefinedObject);
