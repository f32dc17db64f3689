/**
 * What a statement requires of its user. The binder derives it from the statement as written, before any rule prunes columns
 * or answers from statistics. A session checks it at each execution.
 */
import type { Permission } from "./access/mod.ts";

export type { Permission };

export interface Requirement {
  readonly permission: Permission;
  /** Absent for a permission on the database. */
  readonly table?: { readonly id: number; readonly name: string };
  /**
   * The columns that the statement uses, in the order of the text. Empty if it uses the table but none of its columns,
   * as `SELECT count() FROM t` does. Absent if the permission is needed on the whole table.
   */
  readonly columns?: readonly UsedColumn[];
  /** Offset in the statement: of the table's name, or of the statement's first word. */
  readonly at: number;
}

export interface UsedColumn {
  readonly id: number;
  /** The name in the statement. For a column of `*`, its own name. */
  readonly name: string;
  /**
   * Offset of the first use: of the name, of the `*`, or of the clause that uses a designated timestamp without naming
   * it.
   */
  readonly at: number;
}
