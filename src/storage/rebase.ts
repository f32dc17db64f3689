/** The changes of a transaction, applied: to its own state of a table, or once more to what others have made of the table since. */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { Entry, RowChange } from "./branch.ts";
import { applyToTable } from "./definitions.ts";
import { type Rows, toRows } from "./rows.ts";
import type { Segment, Table } from "./table.ts";

/** In order by table; neighbouring rows that are added to a table go into it together. */
export function applyEntries(
  entries: readonly Entry[],
  tableOf: (tableId: number) => Table,
  onDrop: (tableId: number) => void,
): void {
  const waiting = new Map<number, Rows[]>();
  const flush = (tableId: number) => {
    const parts = waiting.get(tableId);
    waiting.delete(tableId);
    if (parts !== undefined) tableOf(tableId).append(parts);
  };
  for (const { tableId, what } of entries) {
    const table = tableOf(tableId);
    if (what.kind === "append") {
      if (what.batch.rowCount === 0) continue;
      const rows = toRows(table.schema, what.batch, (id) => table.dictionary(id));
      const parts = waiting.get(tableId);
      if (parts === undefined) waiting.set(tableId, [rows]);
      else parts.push(rows);
      continue;
    }
    flush(tableId);
    if (what.kind === "definition") {
      if (what.definition.op === "drop") {
        table.truncate();
        onDrop(tableId);
      } else applyToTable(table, what.definition);
    } else applyRowChange(table, what);
  }
  for (const tableId of [...waiting.keys()]) flush(tableId);
}

function applyRowChange(table: Table, what: RowChange): void {
  if (what.kind === "update") table.update(what.places, what.columns);
  else table.delete(what.places);
  what.rewritten = table.rewritten;
}

/** A segment on the new base, and how many of its first rows are the same as in the transaction's. */
interface Counterpart {
  uid: number;
  rowCount: number;
}

/**
 * A new fork of `base` with the changes of an old one that began with `start`. Rows to be changed are found again by their segments'
 * numbers, which stay while rows are only added behind theirs.
 * @throws {SqlError} 40001 when others have changed one of the segments, or when it cannot be told.
 */
export function rebase(
  base: Table,
  start: readonly Segment[],
  entries: readonly Entry[],
): { table: Table; start: Segment[]; entries: Entry[] } {
  const table = base.fork();
  const begun = table.segments;
  const counterparts = new Map<number, Counterpart>(start.map(({ uid, rowCount }) => [uid, { uid, rowCount }]));
  const done: Entry[] = [];
  for (let k = 0; k < entries.length;) {
    const { what } = entries[k];
    if (what.kind === "update" || what.kind === "delete") {
      const moved = { ...what, ...translated(table, what, counterparts), before: table.segments };
      applyRowChange(table, moved);
      follow(what, moved, counterparts);
      done.push({ ...entries[k++], what: moved });
      continue;
    }
    const from = k;
    while (k < entries.length && entries[k].what.kind !== "update" && entries[k].what.kind !== "delete") k++;
    applyEntries(entries.slice(from, k), () => table, () => {});
    done.push(...entries.slice(from, k));
  }
  return { table, start: begun, entries: done };
}

/** Calls back for each segment that holds some of a change's rows, with the numbers of these in it. */
function eachSegment({ before, places }: RowChange, call: (segment: Segment, rows: number[]) => void): void {
  let firstRow = 0, at = 0;
  for (const segment of before) {
    const rows: number[] = [];
    while (at < places.length && places[at] < firstRow + segment.rowCount) rows.push(places[at++] - firstRow);
    if (rows.length > 0) call(segment, rows);
    firstRow += segment.rowCount;
  }
}

/** The places of a change's rows in the table as it is now. */
function translated(table: Table, what: RowChange, counterparts: ReadonlyMap<number, Counterpart>) {
  const firstRows = new Map<number, number>();
  let firstRow = 0;
  for (const { uid, rowCount } of table.segments) {
    firstRows.set(uid, firstRow);
    firstRow += rowCount;
  }
  const places = new Float64Array(what.places.length);
  let at = 0;
  eachSegment(what, ({ uid }, rows) => {
    const counterpart = counterparts.get(uid);
    const first = counterpart && firstRows.get(counterpart.uid);
    if (counterpart === undefined || first === undefined || rows.at(-1)! >= counterpart.rowCount) {
      throw conflict(`rows of table ${table.schema.name}`);
    }
    for (const row of rows) places[at++] = first + row;
  });
  return { places };
}

/** After the change has been repeated: which segments of the two states now are the same rows. */
function follow(old: RowChange, repeated: RowChange, counterparts: Map<number, Counterpart>): void {
  eachSegment(old, ({ uid }, rows) => {
    const counterpart = counterparts.get(uid)!;
    counterparts.delete(uid);
    const oldUid = old.rewritten.get(uid), newUid = repeated.rewritten.get(counterpart.uid);
    if (oldUid === undefined || newUid === undefined) return;
    const rowCount = counterpart.rowCount - (old.kind === "delete" ? rows.length : 0);
    counterparts.set(oldUid, { uid: newUid, rowCount });
  });
}

/** Two transactions cannot both have their way. SQLSTATE 40001. */
export function conflict(what: string): SqlError {
  return new SqlError(
    `Cannot commit the transaction: another session has changed ${what} meanwhile; try it again from the start`,
    -1,
    SQLSTATE.serializationFailure,
  );
}
