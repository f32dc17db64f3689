/**
 * The rights of one principal, prepared for fast checks: derived from an immutable snapshot, so that a check is a few
 * set lookups.
 */
import { covers, type Grant, keyOf, type Target } from "./grants.ts";
import { hasLevel, type Permission } from "./permissions.ts";

/** A table as the checks see it: its schema. Each change of the table creates a new object. */
export interface CheckedTable {
  readonly name: string;
  /** Column id of the designated timestamp, or -1. */
  readonly timestampId: number;
  readonly columns: readonly { readonly id: number; readonly name: string }[];
}

/** All columns including later ones, or those with these ids. */
export type Columns = "all" | ReadonlySet<number>;

const NO_COLUMNS: ReadonlySet<number> = new Set();
/** Permissions that, granted on a column, include the designated timestamp. */
const IMPLIES_TIMESTAMP: ReadonlySet<Permission> = new Set(["SELECT", "UPDATE"]);

interface TableGrants {
  all: Set<Permission>;
  /** By column key. */
  columns: Map<string, Set<Permission>>;
}

export class Rights {
  private readonly database = new Set<Permission>();
  /** By table key. */
  private readonly tables = new Map<string, TableGrants>();
  /** Cached results for the present state of the tables. */
  private readonly known = new WeakMap<CheckedTable, Map<Permission, Columns>>();

  /** `isAdmin`: everything is allowed. */
  constructor(readonly isAdmin: boolean, readonly grants: readonly Grant[]) {
    for (const { permission, table, column } of grants) {
      if (table === undefined) this.database.add(permission);
      else if (column === undefined) this.ofTable(table).all.add(permission);
      else {
        const { columns } = this.ofTable(table), key = keyOf(column);
        const known = columns.get(key);
        if (known === undefined) columns.set(key, new Set([permission]));
        else known.add(permission);
      }
    }
    if (this.database.has("DATABASE ADMIN")) this.isAdmin = true;
  }

  /** True if granted on the whole database. */
  has(permission: Permission): boolean {
    return this.isAdmin || this.database.has(permission);
  }

  /** The columns of the table on which the permission is held: "all" if it is held on the table as a whole. */
  on(permission: Permission, table: CheckedTable): Columns {
    if (this.isAdmin || this.database.has(permission)) return "all";
    let ofTable = this.known.get(table);
    if (ofTable === undefined) this.known.set(table, ofTable = new Map());
    let columns = ofTable.get(permission);
    if (columns === undefined) ofTable.set(permission, columns = this.lookUp(permission, table));
    return columns;
  }

  /**
   * True if the principal has any right on the table or one of its columns. Otherwise it must not learn that the table
   * exists.
   */
  sees(table: CheckedTable): boolean {
    if (this.isAdmin || this.tables.has(keyOf(table.name))) return true;
    for (const permission of this.database) if (hasLevel(permission, "table")) return true;
    return false;
  }

  /**
   * The columns whose names are shown. A principal with SELECT sees those that it may read. Others see all columns if
   * they have a right on the whole table. Columns with a right of their own are always shown.
   */
  seen(table: CheckedTable): Columns {
    const readable = this.on("SELECT", table);
    if (readable === "all") return "all";
    const grants = this.tables.get(keyOf(table.name));
    if (readable.size === 0) {
      for (const permission of this.database) if (hasLevel(permission, "table")) return "all";
      if (grants !== undefined && grants.all.size > 0) return "all";
    }
    const ids = new Set(readable);
    for (const { id, name } of table.columns) if (grants?.columns.has(keyOf(name))) ids.add(id);
    return ids;
  }

  /** True if the principal may grant this to others. */
  canGrant(target: Target): boolean {
    return this.isAdmin || this.grants.some((grant) => grant.grantOption && covers(grant, target));
  }

  private lookUp(permission: Permission, table: CheckedTable): Columns {
    const grants = this.tables.get(keyOf(table.name));
    if (grants === undefined) return NO_COLUMNS;
    if (grants.all.has(permission)) return "all";
    const ids = new Set<number>();
    for (const { id, name } of table.columns) if (grants.columns.get(keyOf(name))?.has(permission)) ids.add(id);
    if (ids.size > 0 && table.timestampId >= 0 && IMPLIES_TIMESTAMP.has(permission)) ids.add(table.timestampId);
    return ids;
  }

  private ofTable(name: string): TableGrants {
    const key = keyOf(name);
    let table = this.tables.get(key);
    if (table === undefined) this.tables.set(key, table = { all: new Set(), columns: new Map() });
    return table;
  }
}

export const NO_RIGHTS = new Rights(false, []);
export const ALL_RIGHTS = new Rights(true, []);
