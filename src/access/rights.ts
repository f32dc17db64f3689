/** What one principal may do, made for quick checks: of an immutable snapshot, so that a check is a few look-ups in sets. */
import { covers, type Grant, keyOf, type Target } from "./grants.ts";
import { hasLevel, type Permission } from "./permissions.ts";

/** A table as checks see it: its schema. The object is another one after each change. */
export interface CheckedTable {
  readonly name: string;
  /** Column id of the designated timestamp, or -1. */
  readonly timestampId: number;
  readonly columns: readonly { readonly id: number; readonly name: string }[];
}

/** All columns, later ones too, or those of these ids. */
export type Columns = "all" | ReadonlySet<number>;

const NO_COLUMNS: ReadonlySet<number> = new Set();
/** Whoever has one of these on a column has it on the designated timestamp too. */
const IMPLIES_TIMESTAMP: ReadonlySet<Permission> = new Set(["SELECT", "UPDATE"]);

interface TableGrants {
  all: Set<Permission>;
  /** By the column's key. */
  columns: Map<string, Set<Permission>>;
}

export class Rights {
  private readonly database = new Set<Permission>();
  /** By the table's key. */
  private readonly tables = new Map<string, TableGrants>();
  /** What was looked up, as long as the tables stay as they are. */
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

  /** On the whole database. */
  has(permission: Permission): boolean {
    return this.isAdmin || this.database.has(permission);
  }

  /** The columns of the table on which the permission is held; on a table as a whole it is held where they are "all". */
  on(permission: Permission, table: CheckedTable): Columns {
    if (this.isAdmin || this.database.has(permission)) return "all";
    let ofTable = this.known.get(table);
    if (ofTable === undefined) this.known.set(table, ofTable = new Map());
    let columns = ofTable.get(permission);
    if (columns === undefined) ofTable.set(permission, columns = this.lookUp(permission, table));
    return columns;
  }

  /** Is there anything to be done with the table, or a column of it? Others are not told that it exists. */
  sees(table: CheckedTable): boolean {
    if (this.isAdmin || this.tables.has(keyOf(table.name))) return true;
    for (const permission of this.database) if (hasLevel(permission, "table")) return true;
    return false;
  }

  /** The columns that one is told of: with a right on the table as a whole all of them, otherwise those with a right of their own. */
  seen(table: CheckedTable): Columns {
    if (this.isAdmin) return "all";
    for (const permission of this.database) if (hasLevel(permission, "table")) return "all";
    const grants = this.tables.get(keyOf(table.name));
    if (grants === undefined) return NO_COLUMNS;
    if (grants.all.size > 0) return "all";
    const ids = new Set(table.columns.filter(({ name }) => grants.columns.has(keyOf(name))).map(({ id }) => id));
    for (const id of this.on("SELECT", table) as ReadonlySet<number>) ids.add(id);
    return ids;
  }

  /** May this be handed on? */
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
