/**
 * Grants as data, and the effects of GRANT and REVOKE. A grant is (permission, table or none, column or none, grant option), by
 * name: tables and columns need not exist. Without a table it applies to all tables, including later ones; without a column to all
 * columns.
 */
import { nameKey, sameName } from "../types/names.ts";
import { hasLevel, type Permission } from "./permissions.ts";

export interface Grant {
  readonly permission: Permission;
  readonly table?: string;
  readonly column?: string;
  readonly grantOption: boolean;
}

/** The target of a grant, without the option. */
export type Target = Pick<Grant, "permission" | "table" | "column">;

/** The parts of a table that matter for grants. */
export interface GrantedTable {
  readonly name: string;
  readonly columns: readonly { readonly name: string }[];
}

function isSame(a: Target, b: Target): boolean {
  return a.permission === b.permission && sameOptional(a.table, b.table) && sameOptional(a.column, b.column);
}

function sameOptional(a: string | undefined, b: string | undefined): boolean {
  return a === undefined || b === undefined ? a === b : sameName(a, b);
}

/** True if `a` has the same target as `b` or a higher level that includes it. */
export function covers(a: Target, b: Target): boolean {
  if (a.permission !== b.permission) return false;
  if (a.table === undefined) return true;
  if (b.table === undefined || !sameName(a.table, b.table)) return false;
  return a.column === undefined || (b.column !== undefined && sameName(a.column, b.column));
}

/** Adds a grant, replacing the option of an equal one. Grants that a higher level already includes are omitted. */
export function withGrant(grants: readonly Grant[], added: Grant): Grant[] {
  const others = grants.filter((grant) => !isSame(grant, added));
  const isRedundant = (grant: Grant, by: Grant) => covers(by, grant) && (by.grantOption || !grant.grantOption);
  if (others.some((other) => isRedundant(added, other))) return others;
  return [...others.filter((other) => !isRedundant(other, added)), added];
}

/**
 * Revokes a permission on a target and all levels below it. A grant on a higher level is replaced by grants on the
 * other existing tables or columns.
 */
export function withoutGrant(grants: readonly Grant[], target: Target, tables: readonly GrantedTable[]): Grant[] {
  const kept: Grant[] = [];
  for (const grant of grants) {
    if (covers(target, grant)) continue;
    if (covers(grant, target)) kept.push(...narrowed(grant, target, tables));
    else kept.push(grant);
  }
  return kept;
}

/** Returns what remains of a grant on a higher level than `target`. */
function narrowed(grant: Grant, target: Target, tables: readonly GrantedTable[]): Grant[] {
  const { permission, grantOption } = grant;
  const left: Grant[] = [];
  if (grant.table === undefined) {
    for (const { name } of tables) {
      if (!sameName(name, target.table!)) left.push({ permission, table: name, grantOption });
    }
  }
  if (target.column === undefined || !hasLevel(permission, "column")) return left;
  const table = tables.find(({ name }) => sameName(name, target.table!));
  for (const { name } of table?.columns ?? []) {
    if (!sameName(name, target.column)) left.push({ permission, table: table!.name, column: name, grantOption });
  }
  return left;
}

/** Renames the table in grants. Earlier grants on the new name, given while no such table existed, end. */
export function afterTableRename(grants: readonly Grant[], from: string, to: string): readonly Grant[] {
  const isOn = (grant: Grant, name: string) => grant.table !== undefined && sameName(grant.table, name);
  if (!grants.some((grant) => isOn(grant, from) || isOn(grant, to))) return grants;
  if (sameName(from, to)) return grants.map((grant) => isOn(grant, from) ? { ...grant, table: to } : grant);
  return grants.filter((grant) => !isOn(grant, to)).map((grant) => isOn(grant, from) ? { ...grant, table: to } : grant);
}

/** Like `afterTableRename`, for a column. */
export function afterColumnRename(
  grants: readonly Grant[],
  table: string,
  from: string,
  to: string,
): readonly Grant[] {
  const isOn = (grant: Grant, name: string) =>
    grant.table !== undefined && grant.column !== undefined && sameName(grant.table, table) &&
    sameName(grant.column, name);
  if (!grants.some((grant) => isOn(grant, from) || isOn(grant, to))) return grants;
  const kept = sameName(from, to) ? grants : grants.filter((grant) => !isOn(grant, to));
  return kept.map((grant) => isOn(grant, from) ? { ...grant, column: to } : grant);
}

/** Removes all grants on a table, for DROP TABLE … CASCADE PERMISSIONS. */
export function withoutTable(grants: readonly Grant[], table: string): readonly Grant[] {
  const isOn = (grant: Grant) => grant.table !== undefined && sameName(grant.table, table);
  return grants.some(isOn) ? grants.filter((grant) => !isOn(grant)) : grants;
}

/** Key for maps of tables and columns. */
export const keyOf = nameKey;
