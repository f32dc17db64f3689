/**
 * Applies the changes of a transaction to its own state of a table, or repeats them on the state that others have
 * committed since.
 */
import { assert } from "../assert.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { Entry, RowChange } from "./entries.ts";
import { applyToTable } from "./definitions.ts";
import { type AddedRows, type RowLocation, sourceRow } from "./moves.ts";
import { type Rows, toRows } from "./rows.ts";
import type { Segments } from "./segments.ts";
import type { Table } from "./table.ts";

/** Changes keep their order within a table. Rows of one group are appended together. */
export function applyEntries(
  entries: readonly Entry[],
  tableOf: (tableId: number) => Table,
  onDrop: (tableId: number) => void,
  onApplied: (tableId: number) => void = () => {},
): void {
  const waiting = new Map<number, { group: number; parts: Rows[] }>();
  const flush = (tableId: number) => {
    const added = waiting.get(tableId);
    waiting.delete(tableId);
    if (added === undefined) return;
    tableOf(tableId).append(added.parts, added.group);
    onApplied(tableId);
  };
  for (const { tableId, what } of entries) {
    const table = tableOf(tableId);
    if (what.kind === "append") {
      if (waiting.get(tableId)?.group !== what.group) flush(tableId);
      if (what.batch.rowCount === 0) continue;
      const rows = toRows(table.schema, what.batch, (id) => table.dictionary(id));
      const added = waiting.get(tableId);
      if (added === undefined) waiting.set(tableId, { group: what.group, parts: [rows] });
      else added.parts.push(rows);
      continue;
    }
    flush(tableId);
    if (what.kind === "definition") {
      if (what.definition.op === "drop") {
        table.truncate();
        onDrop(tableId);
      } else applyToTable(table, what.definition);
    } else applyRowChange(table, what);
    onApplied(tableId);
  }
  for (const tableId of [...waiting.keys()]) flush(tableId);
}

function applyRowChange(table: Table, what: RowChange): void {
  what.before = table.segments;
  if (what.kind === "update") table.update(what.ordinals, what.columns);
  else table.delete(what.ordinals);
}

/**
 * Repeats the changes of an old fork, which began with `start`, on `table`, a new fork of `base`. Changed rows are
 * located by their identity at the start.
 * @throws {SqlError} 40001 when others have changed or deleted one of them.
 */
export function rebase(
  { base, old, start, table }: { base: Table; old: Table; start: Segments; table: Table },
  entries: readonly Entry[],
  onApplied: () => void,
): Entry[] {
  const finder = new RowFinder(base, old, start, table);
  const done: Entry[] = [];
  for (let k = 0; k < entries.length;) {
    const { what } = entries[k];
    if (what.kind === "update" || what.kind === "delete") {
      const moved = { ...what, ordinals: finder.ordinalsOf(what) };
      applyRowChange(table, moved);
      onApplied();
      done.push({ ...entries[k++], what: moved });
      continue;
    }
    const from = k;
    while (k < entries.length && entries[k].what.kind !== "update" && entries[k].what.kind !== "delete") k++;
    applyEntries(entries.slice(from, k), () => table, () => {}, onApplied);
    done.push(...entries.slice(from, k));
  }
  return done;
}

/** Finds rows of the old fork in the new one. */
class RowFinder {
  private readonly origins;
  private readonly startCounts;
  private readonly begun;
  private readonly added;

  constructor(private readonly base: Table, old: Table, start: Segments, private readonly table: Table) {
    this.origins = old.moves.origins();
    this.added = old.moves.numbers();
    this.startCounts = new Map(start.slice().map(({ uid, rowCount }) => [uid, rowCount]));
    this.begun = new Set(table.segments.slice().map(({ uid }) => uid));
  }

  /** Row ordinals in the new fork in its present state. */
  ordinalsOf({ before, ordinals }: RowChange): Float64Array {
    const firstRows = new Map<number, number>();
    let firstRow = 0;
    for (const { uid, rowCount } of this.table.segments) {
      firstRows.set(uid, firstRow);
      firstRow += rowCount;
    }
    const found = new Float64Array(ordinals.length);
    const added = this.table.moves.numbers();
    let k = 0;
    firstRow = 0;
    for (const { uid, rowCount } of before) {
      for (; k < ordinals.length && ordinals[k] < firstRow + rowCount; k++) {
        const location = this.find({ uid, row: ordinals[k] - firstRow }, firstRows, added);
        if (location === undefined) throw conflict(`rows of table ${this.base.schema.name}`);
        found[k] = firstRows.get(location.uid)! + location.row;
        assert(k === 0 || found[k] > found[k - 1], "rows keep their order");
      }
      firstRow += rowCount;
    }
    return found;
  }

  /**
   * Traces the row back to the start of the transaction, then forward through the changes of others, then through those
   * of this transaction.
   */
  private find(row: RowLocation, firstRows: ReadonlyMap<number, number>, added: AddedRows): RowLocation | undefined {
    const begun = this.begin(row, added);
    return begun && this.table.moves.follow(begun, (uid) => firstRows.has(uid), false);
  }

  /** The row in the new fork before this transaction changed it there. */
  private begin({ uid, row }: RowLocation, added: AddedRows): RowLocation | undefined {
    for (;;) {
      if (row < (this.startCounts.get(uid) ?? 0)) {
        return this.base.moves.follow({ uid, row }, (other) => this.begun.has(other), true);
      }
      const number = this.added.numberOf({ uid, row });
      if (number !== undefined) return added.locationOf(number);
      const origin = this.origins.get(uid);
      const source = origin && sourceRow(origin.runs, row);
      if (source === undefined) return undefined;
      ({ uid } = origin!);
      row = source;
    }
  }
}

/** Error for conflicting changes by two transactions. SQLSTATE 40001. */
export function conflict(what: string): SqlError {
  return new SqlError(
    `Cannot commit the transaction: another session has changed ${what} in the meantime; retry the transaction from its start`,
    -1,
    SQLSTATE.serializationFailure,
  );
}
