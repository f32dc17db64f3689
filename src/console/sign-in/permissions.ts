/** The user's permissions, so that the page offers only what the server would allow. */
import { signal } from "@preact/signals";
import { query } from "../server/client.ts";
import { serverSettings } from "./session.ts";

export interface HeldPermission {
  permission: string;
  /** Null for a permission on the database, which includes all tables. */
  table: string | null;
  /** Null for a permission on all columns of the table. */
  column: string | null;
  canGrant: boolean;
  origin: string;
}

/** Undefined if access control is off, so that everything is allowed. */
export const permissions = signal<readonly HeldPermission[] | undefined>(undefined);

export async function loadPermissions(): Promise<void> {
  if (!serverSettings.value.isProtected) return;
  const { rows } = await query("show permissions");
  permissions.value = rows?.dataset.map(([permission, table, column, canGrant, origin]) => ({
    permission: String(permission),
    table: table as string | null,
    column: column as string | null,
    canGrant: canGrant === true,
    origin: String(origin),
  }));
}

const ADMIN = "DATABASE ADMIN";
/** The only useful permissions in read-only mode. */
const READING = ["SELECT", "HTTP"];

/** True if the user has the permission on the whole table, or without `table` on the database. */
export function may(permission: string, table?: string): boolean {
  return isHeld(permission, (held) => held.table === null || (held.table === table && held.column === null));
}

/** True if the user has the permission on the column. */
export function mayOn(permission: string, table: string, column: string): boolean {
  return isHeld(
    permission,
    (held) => held.table === null || (held.table === table && (held.column ?? column) === column),
  );
}

/** True if the user has the permission on any table or column, or on any column of `table`. */
export function maySomewhere(permission: string, table?: string): boolean {
  return isHeld(permission, (held) => held.table === null || table === undefined || held.table === table);
}

function isHeld(permission: string, isRight: (held: HeldPermission) => boolean): boolean {
  if (!serverSettings.value.acceptsWrites && !READING.includes(permission)) return false;
  return permissions.value?.some((held) =>
    held.permission === ADMIN || (held.permission === permission && isRight(held))
  ) ?? true;
}

export const mayImport = () => may("CREATE TABLE") || maySomewhere("INSERT");
