/**
 * Many rows that an UPDATE or a DELETE changes. The stage has new versions of the segments that they are in: of an UPDATE only the
 * columns that it sets. Rows are found by their ids, so the table may change meanwhile in other places.
 */
import { type ChangedBatch, ROW_BITS } from "./contract.ts";
import { allRows, runsWithout } from "./merge.ts";
import { unpackChangedBatch } from "./packed.ts";
import { changedMeanwhile } from "./moves.ts";
import { touchedBy } from "./rewrite.ts";
import { inTableOrder } from "./row-ids.ts";
import { checkUpdate } from "./rows.ts";
import type { Segment } from "./segment.ts";
import type { NewValues } from "./segment-maker.ts";
import { Staged } from "./staged.ts";
import type { Store } from "./store.ts";
import type { Table } from "./table.ts";

/**
 * New versions are made when so much waits: rows of some two segments, so that other commits do not wait for long. Tests set smaller
 * limits.
 */
export const WAITING_MAX = { rows: 131_072, bytes: 16 << 20 };

/** A segment of the table of which rows are changed. */
interface Touched {
  readonly rowCount: number;
  /** The changed rows: row r is bit r & 7 of byte r >> 3. */
  readonly rows: Uint8Array;
  /** The uid of its new version in the stage; undefined if no row is left. */
  uid: number | undefined;
}

export class StagedChanges extends Staged {
  private readonly stage = this.newStage();
  private waiting: ChangedBatch[] = [];
  private waitingRows = 0;
  private waitingBytes = 0;
  /** By uid. */
  private readonly touched = new Map<number, Touched>();
  override readonly makesRoom: boolean;

  /** `columnIds`: those that an UPDATE sets. */
  constructor(
    store: Store,
    table: Table,
    private readonly change: "update" | "delete",
    private readonly columnIds: readonly number[],
  ) {
    super(store, table);
    this.makesRoom = change === "delete";
  }

  protected override addBatch(packed: Uint8Array): void {
    const batch = unpackChangedBatch(packed, this.columnIds);
    if (batch.rowIds.length === 0) return;
    this.waiting.push(batch);
    this.waitingRows += batch.rowIds.length;
    this.waitingBytes += packed.length;
    if (this.waitingRows < WAITING_MAX.rows && this.waitingBytes < WAITING_MAX.bytes) return;
    // If rows come in the order of the table, others of the last segment follow. It is written when they have come.
    const { head, tail } = cutAtLastSegment(this.waiting);
    if (head.length === 0) return this.stageWaiting();
    this.waiting = head;
    this.stageWaiting();
    this.waiting = tail;
    for (const { rowIds } of tail) this.waitingRows += rowIds.length;
  }

  protected override finish(): void {
    this.stageWaiting();
    const columns = this.columnIds.map((columnId) => ({ columnId, values: new Uint8Array(0) }));
    checkUpdate(this.table.schema, { rowCount: 0, columns });
    this.stage.disk.flush(true, Infinity, false);
  }

  protected override move(): number {
    const { table, columnIds } = this;
    const versions = new Map<number, Segment>();
    for (const segment of this.stage.segments) versions.set(segment.uid, segment);
    table.replaceSegments(ascending(this.touched.keys()), (segment) => {
      const { rowCount, uid } = this.touched.get(segment.uid)!;
      // Rows were added to it.
      if (segment.rowCount !== rowCount) throw changedMeanwhile();
      const version = uid === undefined ? undefined : versions.get(uid)!;
      if (version === undefined || this.change === "delete") return version;
      const chunks = segment.chunks.slice();
      for (const id of columnIds) chunks[id] = version.chunks[id];
      return { ...segment, uid: version.uid, chunks, words: undefined };
    });
    if (table.moves.isRead) this.recordMoves();
    return 0;
  }

  /** Tells transactions where the rows have gone. */
  private recordMoves(): void {
    const { moves } = this.table;
    for (const [from, { rowCount, rows, uid }] of this.touched) {
      if (uid === undefined) moves.add(from, []);
      else if (this.change === "delete") moves.add(from, [{ uid, runs: runsWithout(rowsOf(rows), rowCount) }]);
      else moves.add(from, [{ uid, runs: allRows(rowCount) }], Uint32Array.from(rowsOf(rows)));
    }
  }

  private stageWaiting(): void {
    if (this.waiting.length === 0) return;
    const { table, store } = this;
    // Texts of a new version stay where those of the old one are, whose memory belongs to the table.
    if (table.segments.lists.some(({ isLive }) => isLive)) {
      table.disk.flush(true, Infinity, false);
      store.publisher.touch(table);
      store.publisher.publish();
    }
    const { ordinals, columns } = inTableOrder(table, this.waiting);
    this.waiting = [];
    this.waitingRows = this.waitingBytes = 0;
    checkUpdate(table.schema, { rowCount: ordinals.length, columns });
    const values = table.maker.newValues(ordinals.length, columns);
    const replaced: number[] = [];
    for (const { index, rows, from } of touchedBy(ordinals, table.segments)) {
      const segment = table.segments.at(index)!;
      let touched = this.touched.get(segment.uid);
      if (touched === undefined) {
        const { rowCount } = segment;
        touched = { rowCount, rows: new Uint8Array((rowCount + 7) >> 3), uid: undefined };
        this.touched.set(segment.uid, touched);
      }
      if (segment.rowCount !== touched.rowCount) throw changedMeanwhile();
      for (const row of rows) touched.rows[row >> 3] |= 1 << (row & 7);
      const before = touched.uid;
      if (before !== undefined) replaced.push(before);
      const version = this.change === "update"
        ? this.updated(before === undefined ? segment : this.staged(before), values, rows, from)
        : table.maker.left(segment, runsWithout(rowsOf(touched.rows), segment.rowCount));
      touched.uid = version?.uid;
      if (version !== undefined) this.stageSegment(version);
    }
    if (replaced.length > 0) this.stage.omit(replaced);
  }

  /** The new version of a segment, with the changed columns alone. */
  private updated(segment: Segment, values: NewValues, rows: Uint32Array, from: number): Segment {
    const version = this.table.maker.updated(segment, values, rows, from);
    return { ...version, chunks: version.chunks.map((chunk, id) => this.columnIds.includes(id) ? chunk : undefined) };
  }

  private stageSegment(segment: Segment): void {
    const { stage } = this;
    stage.segments = stage.segments.splice(stage.segments.length, 0, [segment]);
    stage.onStep();
  }

  private staged(uid: number): Segment {
    const { segments } = this.stage;
    return segments.at(segments.indexOfRow(segments.placesOf([uid]).get(uid)!.firstRow).index)!;
  }
}

/** The rows behind the last one that is in another segment than the last row. */
function cutAtLastSegment(batches: readonly ChangedBatch[]): { head: ChangedBatch[]; tail: ChangedBatch[] } {
  const segmentOf = (rowId: bigint) => rowId >> BigInt(ROW_BITS);
  const last = segmentOf(batches.at(-1)!.rowIds.at(-1)!);
  for (let k = batches.length - 1; k >= 0; k--) {
    const { rowIds } = batches[k];
    let from = rowIds.length;
    while (from > 0 && segmentOf(rowIds[from - 1]) === last) from--;
    if (from === 0) continue;
    const tail = from < rowIds.length ? [part(batches[k], from, rowIds.length)] : [];
    return { head: [...batches.slice(0, k), part(batches[k], 0, from)], tail: [...tail, ...batches.slice(k + 1)] };
  }
  return { head: [], tail: [...batches] };
}

function part({ rowIds, columns }: ChangedBatch, from: number, to: number): ChangedBatch {
  return {
    rowIds: rowIds.subarray(from, to),
    columns: columns.map((column) => {
      const width = column.values.length / rowIds.length;
      return { ...column, values: column.values.subarray(width * from, width * to) };
    }),
  };
}

function ascending(uids: Iterable<number>): number[] {
  return [...uids].sort((a, b) => a - b);
}

/** The rows whose bits are set. */
function* rowsOf(bits: Uint8Array): Iterable<number> {
  for (let byte = 0; byte < bits.length; byte++) {
    if (bits[byte] === 0) continue;
    for (let bit = 0; bit < 8; bit++) if ((bits[byte] & (1 << bit)) !== 0) yield 8 * byte + bit;
  }
}
