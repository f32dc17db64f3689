/** Which rows of segments that were replaced are where now: so that a transaction finds its rows again after others have changed a table. */
import type { Run } from "./chunks.ts";

/** A segment that has taken rows of an older one: those of its runs with source 0. */
export interface Piece {
  uid: number;
  runs: readonly Run[];
}

interface Move {
  pieces: readonly Piece[];
  /** Rows that have got new values, ascending. */
  changed: Uint32Array<ArrayBufferLike>;
}

export interface RowPlace {
  uid: number;
  row: number;
}

/** Rows that came together as `group`: those with the numbers from `from` on, in order of time, are at `at` of a segment. */
interface Added {
  group: number;
  from: number;
  count: number;
  uid: number;
  at: number;
}

/** Runs and changed rows that are kept for a table. After more, rows that have moved are not found any more. */
const SIZE_MAX = 1_000_000;
const NONE = new Uint32Array(0);

export class Moves {
  /** How many ask for them: nothing is kept for nobody. */
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

  /** How many runs of added rows are known, to go back to. */
  get addedCount(): number {
    return this.added.length;
  }

  forgetAdded(count: number): void {
    this.added.length = Math.min(count, this.added.length);
  }

  /** Rows that are added from now on are the group's, and numbered from `offset` on; undefined: theirs are not kept. */
  number(group: number | undefined, offset: number): void {
    this.adding = group === undefined ? undefined : { group, offset };
  }

  /** Rows were added: those from `from` on of what is being added. */
  addRows(uid: number, at: number, from: number, count: number): void {
    if (this.adding === undefined || this.readers === 0 || this.size > SIZE_MAX) return;
    const { group, offset } = this.adding;
    this.size++;
    this.added.push({ group, from: offset + from, count, uid, at });
  }

  /** Which of the added rows a row of a segment is, and where each of them was put. */
  numbers(): AddedRows {
    return new AddedRows(this.added);
  }

  /** Segment `uid` was replaced. */
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

  /** Where a row is in the segments of the list `has` tells of; undefined when it is gone, or `isUnchanged` and it is not. */
  follow({ uid, row }: RowPlace, has: (uid: number) => boolean, isUnchanged: boolean): RowPlace | undefined {
    while (!has(uid)) {
      const move = this.byUid.get(uid);
      if (move === undefined || (isUnchanged && includes(move.changed, row))) return undefined;
      const next = placeIn(move.pieces, row);
      if (next === undefined) return undefined;
      ({ uid, row } = next);
    }
    return { uid, row };
  }

  /** Each segment that has taken rows of another one: that one's number, and the runs. */
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

  numberOf({ uid, row }: RowPlace): { group: number; number: number } | undefined {
    const found = this.byUid.get(uid)?.find(({ at, count }) => row >= at && row < at + count);
    return found && { group: found.group, number: found.from + row - found.at };
  }

  placeOf({ group, number }: { group: number; number: number }): RowPlace | undefined {
    const found = this.byGroup.get(group)?.find(({ from, count }) => number >= from && number < from + count);
    return found && { uid: found.uid, row: found.at + number - found.from };
  }
}

function placeIn(pieces: readonly Piece[], row: number): RowPlace | undefined {
  for (const { uid, runs } of pieces) {
    let at = 0;
    for (const { source, start, count } of runs) {
      if (source === 0 && row >= start && row < start + count) return { uid, row: at + row - start };
      at += count;
    }
  }
  return undefined;
}

/** What stands in row `row` of runs: undefined when it was added there. */
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
