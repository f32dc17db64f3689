/** Collects the permissions that a statement requires while it is bound. */
import type { Permission } from "../../access/mod.ts";
import type { Requirement, UsedColumn } from "../../requirement.ts";

type Table = NonNullable<Requirement["table"]>;

export class Requirements {
  private readonly byKey = new Map<string, Requirement>();

  /** `check`: called for each permission on a table, with its place. */
  constructor(private readonly check?: (permission: Permission, table: Table, at: number) => void) {}

  /** Requires a permission on the database or on the whole table. */
  add(permission: Permission, at: number, table?: Table): void {
    const key = keyOf(permission, table);
    if (this.byKey.has(key)) return;
    if (table !== undefined) this.check?.(permission, table, at);
    this.byKey.set(key, table === undefined ? { permission, at } : { permission, table: identityOf(table), at });
  }

  /** Requires a permission on columns of the table: those recorded in the result. */
  ofColumns(permission: Permission, at: number, table: Table): ColumnUse {
    this.check?.(permission, table, at);
    // Uses a separate key, because the permission on the whole table may be required too.
    const key = `${keyOf(permission, table)} columns`;
    const known = this.byKey.get(key) as UsedColumns | undefined;
    if (known !== undefined) return known;
    const requirement = new UsedColumns(permission, identityOf(table), at);
    this.byKey.set(key, requirement);
    return requirement;
  }

  /** As plain data, columns in the order of the text. */
  list(): Requirement[] {
    const required = [...this.byKey.values()].filter((each) => !(each instanceof UsedColumns) || each.isRequired);
    return required.map(({ permission, table, columns, at }) => ({
      permission,
      at,
      ...table && { table },
      ...columns && { columns: columns.toSorted((a, b) => a.at - b.at) },
    }));
  }
}

/** The columns of one table that a statement uses. */
export interface ColumnUse {
  /** Requires the permission even if no column is used. */
  useTable(): void;
  use(id: number, name: string, at: number): void;
}

class UsedColumns implements Requirement, ColumnUse {
  isRequired = false;
  /** By id, each with its first use. */
  private readonly used = new Map<number, UsedColumn>();

  constructor(readonly permission: Permission, readonly table: Table, readonly at: number) {}

  get columns(): UsedColumn[] {
    return [...this.used.values()];
  }

  useTable(): void {
    this.isRequired = true;
  }

  use(id: number, name: string, at: number): void {
    this.isRequired = true;
    const known = this.used.get(id);
    if (known === undefined || known.at > at) this.used.set(id, { id, name, at });
  }
}

const keyOf = (permission: Permission, table: Table | undefined) => `${permission} ${table?.id ?? ""}`;
const identityOf = ({ id, name }: Table): Table => ({ id, name });
