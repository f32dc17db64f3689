/**
 * Records where the rows of replaced segments are now, so that a transaction finds its rows after others have changed
 * the table.
 */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { Run } from "./merge.ts";

/** A segment that has taken over rows of an older one: its runs with source 0. */
export interface Piece {
  uid: number;
  runs: readonly Run[];
}

interface Move {
  pieces: readonly Piece[];
  /** Rows that got new values, ascending. */
  changed: Uint32Array<ArrayBufferLike>;
}

export interface RowLocation {
  uid: number;
  row: number;
}

/**
 * A run of rows that were appended as part of `group`: the rows numbered from `from` on, in time order, are at row `at`
 * of segment `uid`.
 */
interface Added {
  group: number;
  from: number;
  count: number;
  uid: number;
  at: number;
}

/** Maximum number of runs and changed rows that are kept for a table. Rows that move after that cannot be found. */
const SIZE_MAX = 1_000_000;
const NONE = new Uint32Array(0);

export class Moves {
  /** Number of transactions that need the moves. Nothing is recorded while it is 0. */
  private readers = 0;
  private size = 0;
  private readonly byUid = new Map<number, Move>();
  private added: Added[] = [];
  private adding: { group: number; offset: number } | undefined;

  get isRead(): boolean {
    return this.readers > 0;
  }

  read(): void {
    this.readers++;
  }

  release(): void {
    if (--this.readers === 0) this.clear();
  }

  clear(): void {
    this.byUid.clear();
    this.added = [];
    this.size = 0;
  }

  /** Number of recorded runs of added rows; `forgetAdded` goes back to it. */
  get addedCount(): number {
    return this.added.length;
  }

  forgetAdded(count: number): void {
    this.added.length = Math.min(count, this.added.length);
  }

  /**
   * Rows that are added from now on belong to `group` and are numbered from `offset` on. undefined: they are not
   * recorded.
   */
  number(group: number | undefined, offset: number): void {
    this.adding = group === undefined ? undefined : { group, offset };
  }

  /**
   * Records that rows were added: `count` of the rows being added, from number `from` on, at row `at` of segment `uid`.
   */
  addRows(uid: number, at: number, from: number, count: number): void {
    if (this.adding === undefined || this.readers === 0 || this.size > SIZE_MAX) return;
    const { group, offset } = this.adding;
    this.size++;
    this.added.push({ group, from: offset + from, count, uid, at });
  }

  /** Maps between rows of segments and the numbers of added rows. */
  numbers(): AddedRows {
    return new AddedRows(this.added);
  }

  /** Records that segment `uid` was replaced by `pieces`. */
  add(uid: number, pieces: readonly Piece[], changed: Uint32Array<ArrayBufferLike> = NONE): void {
    this.keep(uid, { pieces, changed });
  }

  addAll(other: Moves): void {
    for (const [uid, move] of other.byUid) this.keep(uid, move);
  }

  private keep(uid: number, move: Move): void {
    if (this.readers === 0 || this.size > SIZE_MAX) return;
    this.size += move.changed.length + move.pieces.reduce((sum, { runs }) => sum + runs.length, 0);
    this.byUid.set(uid, move);
  }

  /**
   * Follows a row to a segment for which `has` is true. Returns undefined if the row was deleted, or if `isUnchanged`
   * and it got new values.
   */
  follow({ uid, row }: RowLocation, has: (uid: number) => boolean, isUnchanged: boolean): RowLocation | undefined {
    while (!has(uid)) {
      const move = this.byUid.get(uid);
      if (move === undefined || (isUnchanged && includes(move.changed, row))) return undefined;
      const next = locationIn(move.pieces, row);
      if (next === undefined) return undefined;
      ({ uid, row } = next);
    }
    return { uid, row };
  }

  /** For each segment that has taken over rows of another one: the other one's uid, and the runs. */
  origins(): Map<number, { uid: number; runs: readonly Run[] }> {
    const origins = new Map<number, { uid: number; runs: readonly Run[] }>();
    for (const [uid, { pieces }] of this.byUid) {
      for (const piece of pieces) origins.set(piece.uid, { uid, runs: piece.runs });
    }
    return origins;
  }
}

export class AddedRows {
  private readonly byUid: ReadonlyMap<number, Added[]>;
  private readonly byGroup: ReadonlyMap<number, Added[]>;

  constructor(added: readonly Added[]) {
    this.byUid = Map.groupBy(added, ({ uid }) => uid);
    this.byGroup = Map.groupBy(added, ({ group }) => group);
  }

  numberOf({ uid, row }: RowLocation): { group: number; number: number } | undefined {
    const found = this.byUid.get(uid)?.find(({ at, count }) => row >= at && row < at + count);
    return found && { group: found.group, number: found.from + row - found.at };
  }

  locationOf({ group, number }: { group: number; number: number }): RowLocation | undefined {
    const found = this.byGroup.get(group)?.find(({ from, count }) => number >= from && number < from + count);
    return found && { uid: found.uid, row: found.at + number - found.from };
  }
}

function locationIn(pieces: readonly Piece[], row: number): RowLocation | undefined {
  for (const { uid, runs } of pieces) {
    let at = 0;
    for (const { source, start, count } of runs) {
      if (source === 0 && row >= start && row < start + count) return { uid, row: at + row - start };
      at += count;
    }
  }
  return undefined;
}

/** The old segment's row that is at row `row` of the runs; undefined if that row was added. */
export function sourceRow(runs: readonly Run[], row: number): number | undefined {
  let at = 0;
  for (const { source, start, count } of runs) {
    if (row < at + count) return source === 0 ? start + row - at : undefined;
    at += count;
  }
  return undefined;
}

function includes(rows: Uint32Array<ArrayBufferLike>, row: number): boolean {
  let from = 0, to = rows.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (rows[middle] < row) from = middle + 1;
    else to = middle;
  }
  return rows[from] === row;
}

/** SQLSTATE 40001: rows that a statement has found are no longer where they were. */
export function changedMeanwhile(): SqlError {
  const message = "Cannot change the rows: another statement has changed them meanwhile";
  return new SqlError(message, 0, SQLSTATE.serializationFailure);
}
