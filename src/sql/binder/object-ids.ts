/**
 * Object ids as in PostgreSQL: `oid` and the `reg…` types are INT here, and a name compared with or cast to one becomes
 * its number.
 */
import { crc32 } from "node:zlib";
import { tableNames, unknownTable } from "./context.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Catalogue } from "../../storage/contract.ts";
import type { Views } from "../plan.ts";
import { tagOfName, typeOf } from "../../types/mod.ts";
import { notOf } from "../../types/parse/values.ts";

const OID_TYPES = new Set(["oid", "regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole"]);

/** The first number of user tables. */
const FIRST_OID = 16_384;
/** The first number of views, of which there are as many. */
const VIEW_OIDS = 2 ** 30;

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

/** The id of the function that parses arrays. Drivers recognise array types by it. */
export const ARRAY_IN = 750;

const ARRAY_IN_TEXTS: Readonly<Record<string, string>> = {
  regproc: "array_in",
  regprocedure: "array_in(cstring,oid,integer)",
};

export function isOidType(name: string): boolean {
  return OID_TYPES.has(name);
}

export function tableOid(tableId: number): number {
  return FIRST_OID + tableId;
}

/** Views have names alone, so their numbers are checksums of these. Two views have the same number by chance only. */
export function viewOid(name: string): number {
  return VIEW_OIDS + crc32(name.toLowerCase()) % VIEW_OIDS;
}

/** Of a table of `pg_catalog`. */
export function systemClassOid(name: string): number | undefined {
  return SYSTEM_CLASSES[name];
}

/** Returns the id of the object that `text` names. @throws {SqlError} at `at` if there is none. */
export function oidOfText(
  type: string,
  text: string,
  { catalogue, views }: { catalogue: Pick<Catalogue, "table" | "tables">; views?: Views },
  at: number,
): number {
  if (/^\d{1,10}$/.test(text)) return Number(text) | 0;
  const name = text.replace(/^(?:pg_catalog|public)\./i, "").replace(/^"(.*)"$/, "$1");
  if (type === "regclass") {
    const system = SYSTEM_CLASSES[name.toLowerCase()];
    if (system !== undefined) return system;
    const table = catalogue.table(name);
    if (table !== undefined) return tableOid(table.schema.id);
    const view = views?.view(name);
    if (view !== undefined) return viewOid(view.name);
    throw unknownTable(text, at, tableNames(catalogue));
  }
  if (ARRAY_IN_TEXTS[type] === name.toLowerCase().replaceAll(" ", "")) return ARRAY_IN;
  if (type === "regtype") {
    const tag = tagOfName(name.toLowerCase());
    if (tag !== undefined) return typeOf(tag).pgOid;
  }
  throw new SqlError(notOf(text, type), at, SQLSTATE.invalidText);
}
