/** Rows about access control, for SHOW USERS and similar statements and for all_permissions(). */
import type { Identity } from "../../api.ts";
import {
  type AccessSnapshot,
  type Grant,
  hasLevel,
  type Permission,
  PERMISSIONS,
  type Principal,
  type PrincipalKind,
  samePrincipal,
} from "../../access/mod.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Catalogue, TableSchema } from "../../storage/contract.ts";
import type { Value } from "../../types/mod.ts";
import { findNamed } from "../../types/names.ts";
import type { AccessControl } from "./control.ts";

interface Question {
  access: AccessControl;
  /** All tables. */
  tables: Catalogue;
  identity: Identity;
  /** The principal in the statement, if it names one. */
  of: string | undefined;
  at: number;
}

type Source = (question: Question) => Value[][];

export const ACCESS_SOURCES: Readonly<Record<string, Source>> = {
  show_users: (question) => listed(question, "user"),
  show_groups(question) {
    if (question.of === undefined) return listed(question, "group");
    const user = about(question, "user");
    return question.access.snapshot.groupsOf(user).map(({ name }) => [name]).sort();
  },
  show_service_accounts: (question) => listed(question, "service account"),
  show_service_accounts_of(question) {
    const { snapshot } = question.access;
    const principal = about(question);
    const options = new Map<string, boolean>();
    for (const { assumes } of [principal, ...snapshot.groupsOf(principal)]) {
      for (const { account, grantOption } of assumes) {
        options.set(account, grantOption || options.get(account) === true);
      }
    }
    return [...options].filter(([account]) => snapshot.principal(account) !== undefined).sort();
  },
  show_user: (question) => signInRows(question, "user"),
  show_service_account: (question) => signInRows(question, "service account"),
  show_permissions: permissionRows,
};

export function allPermissionRows(): Value[][] {
  return PERMISSIONS.map(({ name, levels, summary }) => [
    name,
    levels.includes("database"),
    levels.includes("table"),
    levels.includes("column"),
    summary,
  ]);
}

function listed({ access, identity }: Question, kind: PrincipalKind): Value[][] {
  access.require(identity, "LIST USERS");
  return access.snapshot.principals(kind).map(({ name }) => [name]);
}

/** The principal that the question is about. Users need no permission to see their own details. */
function about({ access, identity, of, at }: Question, kind?: PrincipalKind): Principal {
  const name = of ?? identity.name;
  const isOwn = isUser(identity, name) ||
    (identity.assumed !== undefined && samePrincipal(name, identity.assumed));
  if (!isOwn) access.require(identity, "USER DETAILS");
  const principal = access.snapshot.principal(name);
  if (principal !== undefined && (kind === undefined || principal.kind === kind)) return principal;
  throw new SqlError(`there is no ${kind ?? "user, group or service account"} ${name}`, at, SQLSTATE.undefinedObject);
}

/** False for an external user who asks about itself, because it is not a principal of the database. */
function isAbout({ identity, of }: Question): boolean {
  return of !== undefined || identity.external === undefined;
}

/** True if the identity is this user of the database, and not a user of the identity provider with the same name. */
function isUser({ name, external }: Identity, user: string): boolean {
  return external === undefined && samePrincipal(user, name);
}

function signInRows(question: Question, kind: PrincipalKind): Value[][] {
  const { access, of, identity } = question;
  const isAdmin = kind === "user" && isAbout(question) && access.snapshot.isAdminName(of ?? identity.name);
  if (isAdmin && of !== undefined && !isUser(identity, of)) access.require(identity, "USER DETAILS");
  const principal = isAdmin || !isAbout(question) ? undefined : about(question, kind);
  const isEnabled = principal?.isEnabled ?? true;
  return [
    ["Password", isAdmin || (isEnabled && principal?.verifier !== undefined)],
    ["JWK Token", false],
    ["REST Token", isEnabled && (principal?.tokens.length ?? 0) > 0],
  ];
}

/** permission, table_name, column_name, grant_option, origin. Grants on tables that do not exist are omitted. */
function permissionRows(question: Question): Value[][] {
  const { access, access: { snapshot }, tables, identity, of } = question;
  const name = of ?? identity.name;
  if (isAbout(question) && snapshot.isAdminName(name)) {
    if (!isUser(identity, name)) access.require(identity, "USER DETAILS");
    return [["DATABASE ADMIN", null, null, true, "G"]];
  }
  const grants = isAbout(question) ? grantsOf(snapshot, about(question)) : access.ownRightsOf(identity).grants;
  const rows = grants.flatMap((grant): Value[][] => {
    const { permission, table, column, grantOption } = grant;
    const schema = table === undefined ? undefined : tables.table(table)?.schema;
    if (table !== undefined && schema === undefined) return [];
    const found = column === undefined ? undefined : findNamed(schema!.columns, column);
    if (column !== undefined && found === undefined) return [];
    return [[permission, schema?.name ?? null, found?.name ?? null, grantOption, "G"]];
  });
  return [...rows, ...implicitRows(grants, tables)];
}

function grantsOf(snapshot: AccessSnapshot, principal: Principal): readonly Grant[] {
  return principal.kind === "group" ? principal.grants : snapshot.grantsOf(principal);
}

/** Rows for the designated timestamp, which is included in a permission on another column. */
function implicitRows(grants: readonly Grant[], tables: Catalogue): Value[][] {
  const rows: Value[][] = [];
  const seen = new Set<string>();
  for (const { permission, table, column } of grants) {
    const schema = column === undefined || !impliesTimestamp(permission) ? undefined : tables.table(table!)?.schema;
    const timestamp = schema && timestampOf(schema);
    const key = `${permission} ${schema?.id}`;
    if (timestamp === undefined || seen.has(key) || findNamed(schema!.columns, column!) === undefined) continue;
    seen.add(key);
    const isGranted = grants.some((grant) =>
      grant.permission === permission && (grant.table === undefined || tables.table(grant.table)?.schema === schema) &&
      (grant.column === undefined || findNamed([timestamp], grant.column) !== undefined)
    );
    if (!isGranted) rows.push([permission, schema!.name, timestamp.name, false, "I"]);
  }
  return rows;
}

const impliesTimestamp = (permission: Permission) =>
  hasLevel(permission, "column") && (permission === "SELECT" || permission === "UPDATE");

const timestampOf = ({ columns, timestampId }: TableSchema) => columns.find(({ id }) => id === timestampId);
