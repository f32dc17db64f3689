/** Numbers of objects, as PostgreSQL has them: `oid` and its relatives are INT here, and a name beside them becomes its number. */
import { tableNames, unknownTable } from "./context.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Catalogue } from "../../storage/contract.ts";
import { tagOfName, typeOf } from "../../types/mod.ts";

const OID_TYPES = new Set(["oid", "regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole"]);

/** Numbers of tables that users make begin here. */
const FIRST_OID = 16_384;

const SYSTEM_CLASSES: Readonly<Record<string, number>> = {
  pg_type: 1247,
  pg_attribute: 1249,
  pg_proc: 1255,
  pg_class: 1259,
  pg_database: 1262,
  pg_constraint: 2606,
  pg_description: 2609,
  pg_index: 2610,
  pg_namespace: 2615,
  pg_extension: 3079,
};

/** The function that reads arrays: drivers tell arrays from other types by it. */
export const ARRAY_IN = 750;

export function isOidType(name: string): boolean {
  return OID_TYPES.has(name);
}

export function tableOid(tableId: number): number {
  return FIRST_OID + tableId;
}

/** Of a table of `pg_catalog`. */
export function systemClassOid(name: string): number | undefined {
  return SYSTEM_CLASSES[name];
}

/** The number of what `text` names. @throws {SqlError} at `at` when there is no such thing. */
export function oidOfText(
  type: string,
  text: string,
  catalogue: Pick<Catalogue, "table" | "tables">,
  at: number,
): number {
  if (/^\d{1,10}$/.test(text)) return Number(text) | 0;
  const name = text.replace(/^(?:pg_catalog|public)\./i, "").replace(/^"(.*)"$/, "$1");
  if (type === "regclass") {
    const system = SYSTEM_CLASSES[name.toLowerCase()];
    if (system !== undefined) return system;
    const table = catalogue.table(name);
    if (table !== undefined) return tableOid(table.schema.id);
    throw unknownTable(text, at, tableNames(catalogue));
  }
  if (type === "regproc" && name.toLowerCase() === "array_in") return ARRAY_IN;
  if (type === "regtype") {
    const tag = tagOfName(name.toLowerCase());
    if (tag !== undefined) return typeOf(tag).pgOid;
  }
  throw new SqlError(`'${text}' is no ${type}`, at, SQLSTATE.invalidText);
}
