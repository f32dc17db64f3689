/**
 * The records of access control by key, as storage keeps them: one text each. Storage makes them durable, and applies
 * the effects of table changes on grants in the order of its log, so that a rename and its grants are one change.
 */
import { isAscii } from "../types/names.ts";
import { afterColumnRename, afterTableRename, type Grant, withGrant, withoutTable } from "./grants.ts";
import { allOf } from "./permissions.ts";
import { decodePrincipal, encodePrincipal, principalKey } from "./principals.ts";
import type { RecordChange } from "./record-map.ts";

/** A change of a table that affects grants. */
export type TableEvent =
  /** `creator` gets all permissions on it. */
  | { kind: "tableCreated"; table: string; creator: string }
  | { kind: "columnsAdded"; table: string; columns: readonly string[]; creator: string }
  | { kind: "tableRenamed"; from: string; to: string }
  | { kind: "columnRenamed"; table: string; from: string; to: string }
  /** With CASCADE PERMISSIONS; otherwise grants are kept by name. */
  | { kind: "permissionsDropped"; table: string };

const PRINCIPAL = "principal/";

export const principalRecordKey = (name: string) => PRINCIPAL + principalKey(name);

export const isPrincipalRecord = (key: string) => key.startsWith(PRINCIPAL);

/** Records by key, in any order. */
interface Records extends Iterable<readonly [key: string, text: string]> {
  get(key: string): string | undefined;
}

/** The records that an event changes. */
export function changesOf(records: Records, event: TableEvent): RecordChange[] {
  if (event.kind === "tableCreated" || event.kind === "columnsAdded") {
    const key = principalRecordKey(event.creator), text = records.get(key);
    if (text === undefined) return []; // the built-in admin, or a principal that has been dropped
    const principal = decodePrincipal(text);
    const grants = creatorsGrants(event).reduce<readonly Grant[]>(withGrant, principal.grants);
    return [[key, encodePrincipal({ ...principal, grants })]];
  }
  const changes: RecordChange[] = [];
  const mentions = mentioned(event.kind === "tableRenamed" ? [event.from, event.to] : [event.table]);
  for (const [key, text] of records) {
    if (!isPrincipalRecord(key) || !mentions.test(text)) continue;
    const principal = decodePrincipal(text);
    const grants = grantsAfter(principal.grants, event);
    if (grants !== principal.grants) changes.push([key, encodePrincipal({ ...principal, grants })]);
  }
  return changes;
}

/** Matches every text that contains one of the names in any spelling, because decoding all records would be slow. */
function mentioned(names: readonly string[]): RegExp {
  if (!names.every(isAscii)) return /"grants"/;
  return new RegExp(names.map((name) => RegExp.escape(JSON.stringify(name))).join("|"), "iu");
}

function creatorsGrants(event: Extract<TableEvent, { creator: string }>): Grant[] {
  const { table } = event;
  if (event.kind === "tableCreated") {
    return allOf("table").map((permission) => ({ permission, table, grantOption: true }));
  }
  return event.columns.flatMap((column) =>
    allOf("column").map((permission) => ({ permission, table, column, grantOption: true }))
  );
}

function grantsAfter(grants: readonly Grant[], event: Exclude<TableEvent, { creator: string }>): readonly Grant[] {
  switch (event.kind) {
    case "tableRenamed":
      return afterTableRename(grants, event.from, event.to);
    case "columnRenamed":
      return afterColumnRename(grants, event.table, event.from, event.to);
    case "permissionsDropped":
      return withoutTable(grants, event.table);
  }
}
