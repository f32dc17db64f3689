/**
 * Many rows that are added to a table. They go into segments of a stage, in the order of time. Late ones are merged with the segments
 * that they belong to, in steps between which other commits run. What has been merged with a partition holds for the version that it
 * had. If it has another one at the end, its segments that are not the same are merged again. Then each result takes the place of its
 * segment. Staged segments that are behind all rows of their partition become a part of the table as they are.
 */
import { assert } from "../assert.ts";
import { allRows, type Run } from "./merge.ts";
import { LateRows, type StagedPartition } from "./late-rows.ts";
import { Load } from "./load.ts";
import type { Piece } from "./moves.ts";
import { isLive } from "./page.ts";
import { firstNotBelow, halves, type Rows } from "./rows.ts";
import { inSchema } from "./segment.ts";
import type { Segment, SplicedSegments } from "./segments.ts";
import { checkNotFormer } from "./schema.ts";
import { Staged } from "./staged.ts";
import type { Store } from "./store.ts";
import type { Table } from "./table.ts";

/** Rows that are merged with a segment in one step, and bytes that are flushed in one. Tests set smaller ones. */
export const MERGE_STEP = { rows: 65_536, bytes: 8 << 20 };
/** Segments that are looked at in one step. */
const SEEN_MAX = 64;

/** The rows that belong to a segment: ordinals `from` … `to`-1. Those before `replacing` may have the same keys as its rows. */
interface LateRange {
  readonly from: number;
  readonly to: number;
  readonly replacing: number;
}

/** What takes the place of a segment of `rowCount` rows. */
interface Merge {
  readonly rowCount: number;
  readonly from: number;
  readonly to: number;
  readonly uids: readonly number[];
}

/** What takes the place of segments of a partition, for which these rows have been staged. */
interface Exchange {
  /** Of the partition, and of the table's schema. */
  readonly version: number;
  readonly schemaVersion: number;
  /** Segments by their number in the partition. */
  readonly segments: readonly { readonly index: number; readonly uid: number; readonly range: LateRange }[];
  /** As in `Target`. */
  readonly behind: number;
}

/** The staged rows of a partition, and its segments `first` … `end`-1 in the table. */
interface Target {
  readonly late: StagedPartition;
  /** Of the partition in the table; -1 if it is not there. */
  readonly version: number;
  readonly first: number;
  readonly end: number;
  /** Rows from this ordinal on are behind all rows of the table. They fill whole staged segments. */
  readonly behind: number;
}

export class StagedRows extends Staged {
  private stage = this.newStage();
  private readonly rows: Load;
  /** The results of merges. */
  private readonly merged = this.newStage();
  /** By the uid of the segment. */
  private readonly merges = new Map<number, Merge>();
  /** By the start of the partition. */
  private readonly exchanges = new Map<bigint, Exchange>();
  /** The deduplication keys that staged rows and merges comply with. */
  private keys: string;
  private reader: LateRows | undefined;

  /** `columnIds`: of the batches, in order. */
  constructor(store: Store, table: Table, private readonly columnIds: readonly number[]) {
    super(store, table);
    this.rows = new Load(this.stage, columnIds, store.background);
    this.keys = keysOf(table);
  }

  protected override addBatch(packed: Uint8Array): void {
    checkNotFormer(this.table.schema, this.columnIds);
    this.rows.add(packed);
  }

  protected override *preparation(): Iterable<void> {
    yield* this.rows.steps();
    const { table } = this;
    while (!this.isAppended && hasLiveSegments(table)) {
      const before = table.segments;
      table.disk.flush(false, MERGE_STEP.bytes);
      if (table.segments === before) break;
      this.publish();
      yield;
    }
    // What others have changed meanwhile is merged again, as long as that becomes less.
    for (let before = Infinity;;) {
      const count = yield* this.pass();
      if (count === 0 || count >= before) return;
      before = count;
    }
  }

  protected override finish(): void {
    checkNotFormer(this.table.schema, this.columnIds);
    this.rows.finish();
    if (!this.isAppended && hasLiveSegments(this.table)) {
      this.table.disk.flush(true, Infinity, false);
      this.publish();
    }
    const rest = this.pass();
    while (!rest.next().done) this.hold();
  }

  protected override move(): number {
    const { table, stage } = this;
    const rowsBefore = table.rowCount;
    if (this.isAppended) table.segments = table.segments.concat(stage.segments);
    else {
      const spliced: SplicedSegments[] = [];
      for (let at = 0; at < stage.rowCount;) {
        const target = this.targetOf(this.late.partitionOf(at));
        spliced.push(...this.splicesOf(target));
        at = target.late.to;
      }
      table.segments = table.segments.apply(spliced);
    }
    table.changed = true;
    assert(this.keys !== "" || table.rowCount === rowsBefore + stage.rowCount, "each row is added once");
    return stage.rowCount;
  }

  private splicesOf({ late, version, first, end }: Target): SplicedSegments[] {
    const { table, stage } = this;
    const exchange = this.exchanges.get(late.start);
    assert(
      exchange !== undefined && this.isCurrent(exchange, version),
      "rows are merged with this version of the partition",
    );
    const spliced = exchange.segments.map(({ index, uid, range }): SplicedSegments => {
      const segments = this.segmentsOf(this.merges.get(uid)!);
      if (table.moves.isRead) table.moves.add(uid, this.piecesOf(table.segments.at(first + index)!, range, segments));
      return { start: first + index, count: 1, segments: segments.map((after) => inSchema(after, table.schema)) };
    });
    if (exchange.behind < late.to) {
      const whole = stage.segments.slice(stage.segments.indexOfRow(exchange.behind).index, late.end);
      spliced.push({ start: end, count: 0, segments: whole.map((segment) => inSchema(segment, table.schema)) });
    }
    return spliced;
  }

  private isCurrent({ version, schemaVersion }: Exchange, now: number): boolean {
    return version === now && schemaVersion === this.table.schema.schemaVersion;
  }

  /** The staged segments become the last ones of the table as they are. */
  private get isAppended(): boolean {
    return !this.isLate && this.stage.schema.schemaVersion === this.table.schema.schemaVersion;
  }

  /** Some rows do not come behind all rows of the table. */
  private get isLate(): boolean {
    const last = this.table.segments.bounds?.[1], first = this.stage.segments.bounds?.[0];
    return last !== undefined && first !== undefined && !this.isBehind(first.timestampMin, last.timestampMax);
  }

  private isBehind(staged: bigint, stored: bigint): boolean {
    const { timestampId, dedupKeys } = this.table.schema;
    // A row of the same time may have the same keys.
    return timestampId < 0 || (dedupKeys.length > 0 ? staged > stored : staged >= stored);
  }

  private get late(): LateRows {
    return this.reader ??= new LateRows(this.table, this.stage);
  }

  /** Merges rows with those segments with which they have not been merged. Returns how many these were. */
  private *pass(): Generator<void, number> {
    this.complyWithKeys();
    let count = 0, seen = 0;
    for (let at = 0; !this.isAppended && at < this.stage.rowCount;) {
      const target = this.targetOf(this.late.partitionOf(at)), known = this.exchanges.get(target.late.start);
      if (known === undefined || !this.isCurrent(known, target.version)) count += yield* this.mergeWith(target);
      at = target.late.to;
      if (++seen % SEEN_MAX === 0) yield;
    }
    return count;
  }

  /** Merges the rows of a partition. Notes the result if the partition has still the same version then. */
  private *mergeWith({ late, version }: Target): Generator<void, number> {
    const { merges, table: { schema: { schemaVersion } } } = this;
    const segments: { index: number; uid: number; range: LateRange }[] = [];
    let count = 0, seen = 0, isWhole = true;
    this.exchanges.delete(late.start);
    for (let at = late.from;;) {
      // Between steps others may change the table.
      const target = this.targetOf(late), { first, end, behind } = target;
      if (target.version !== version) isWhole = false;
      if (first === end || at >= behind) {
        if (isWhole) this.exchanges.set(late.start, { version, schemaVersion, segments, behind });
        return count;
      }
      const found = this.segmentsAt(at, target);
      for (const { index, segment, range } of found) {
        // Of a segment in memory the texts cannot be shared. It is flushed before the last pass.
        if (isLive(segment)) isWhole = false;
        if (isEmpty(range) || isLive(segment)) continue;
        if (index - first > (segments.at(-1)?.index ?? -1)) {
          segments.push({ index: index - first, uid: segment.uid, range });
        }
        const merge = merges.get(segment.uid);
        if (merge !== undefined && isMergeOf(merge, segment, range)) continue;
        yield* this.merge(segment, range);
        count++;
      }
      at = found.at(-1)!.range.to;
      if (++seen % SEEN_MAX === 0) yield;
    }
  }

  private targetOf(late: StagedPartition): Target {
    const { table, stage } = this;
    const partition = table.segments.partition(late.start);
    if (partition === undefined) {
      const first = table.segmentIndexOf(late.start);
      return { late, version: -1, first, end: first, behind: late.from };
    }
    const { version, first, end } = partition;
    if (table.schema.timestampId < 0) return { late, version, first, end, behind: late.from };
    const tail = table.segments.at(end - 1)!;
    const index = stage.segments.search(({ partition, timestampMin }) =>
      partition < late.start || (partition === late.start && !this.isBehind(timestampMin, tail.timestampMax))
    );
    const behind = stage.segments.firstRowOf(index);
    // Few rows do not get a segment of their own.
    const isSmall = tail.rowCount + late.to - behind <= table.maker.rowsMaxOf(tail);
    return { late, version, first, end, behind: isSmall ? late.to : behind };
  }

  /** The segments in which this late row may have to be, or to replace a row. The row is in the range of the last one. */
  private segmentsAt(
    ordinal: number,
    { late, first, end, behind }: Target,
  ): { index: number; segment: Segment; range: LateRange }[] {
    const { table: { segments, schema } } = this;
    const time = this.late.timeOf(ordinal), partition = late.start, replaces = schema.dedupKeys.length > 0;
    const after = segments.search((s) =>
      s.partition < partition || (s.partition === partition && s.timestampMin <= time)
    );
    const last = Math.max(first, after - 1);
    const from = !replaces
      ? last
      : segments.search((s) => s.partition < partition || (s.partition === partition && s.timestampMax < time));
    return segments.slice(Math.min(from, last), last + 1).map((segment, k, list) => {
      const index = last + 1 - list.length + k;
      const from = index === first ? late.from : this.late.firstAt(segment.timestampMin, late);
      const to = index === end - 1 ? behind : this.late.firstAt(segments.at(index + 1)!.timestampMin, late);
      const replacing = replaces ? Math.max(to, this.late.firstAt(segment.timestampMax, late, true)) : to;
      return { index, segment, range: { from, to, replacing } };
    });
  }

  private *merge({ uid, rowCount }: Segment, range: LateRange): Iterable<void> {
    const { merged, table } = this;
    const uids: number[] = [];
    let isDone = false;
    try {
      // Between steps others may change it, and its chunks may be moved.
      const place = () => table.segments.placesOf([uid]).get(uid);
      const current = () => table.segments.at(table.segments.indexOfRow(place()!.firstRow).index)!;
      if (place()?.rowCount !== rowCount) return;
      for (const { rows, runs } of this.runsOf(current, range)) {
        const { segments } = runs.length === 0 ? { segments: [] } : table.maker.assembled(current(), rows, runs);
        merged.segments = merged.segments.splice(merged.segments.length, 0, segments);
        for (const { uid } of segments) uids.push(uid);
        // The table may have got columns meanwhile.
        if (merged.schema !== table.schema) merged.follow(table);
        merged.disk.flush(true, Infinity, false);
        yield;
        if (place()?.rowCount !== rowCount) return;
      }
      merged.omit(this.merges.get(uid)?.uids ?? []);
      this.merges.set(uid, { rowCount, from: range.from, to: range.to, uids });
      isDone = true;
    } finally {
      if (!isDone) merged.omit(uids);
    }
  }

  /** The late rows of a range in parts, each with the rows of the segment that come before its last row. */
  private *runsOf(current: () => Segment, range: LateRange): Iterable<{ rows: Rows | undefined; runs: Run[] }> {
    const { table, late } = this;
    const replaced = this.replacedRows(current(), range);
    for (let from = range.from, at = 0;;) {
      const to = Math.min(range.to, from + MERGE_STEP.rows);
      const segment = current();
      if (from === to) return yield { rows: undefined, runs: runsLeft(allRows(segment.rowCount), replaced) };
      const rows = late.rows(from, to);
      const end = to === range.to
        ? segment.rowCount
        : firstNotBelow(table.maker.timesOf(segment), 0, at, segment.rowCount, ...halves(late.timeOf(to - 1)), true);
      yield { rows, runs: runsLeft(table.maker.mergedRuns(segment, at, end, rows, 0, to - from), replaced) };
      if (to === range.to) return;
      from = to;
      at = end;
    }
  }

  /** The rows of a segment with the same keys as late ones. */
  private replacedRows(segment: Segment, { from, replacing }: LateRange): number[] {
    const { table, late } = this;
    if (table.schema.dedupKeys.length === 0) return [];
    const found = new Set<number>();
    for (let at = from; at < replacing;) {
      const to = Math.min(replacing, at + MERGE_STEP.rows);
      for (const row of table.maker.sameKeysIn(segment, late.rows(at, to), 0, to - at)) found.add(row);
      at = to;
    }
    return [...found].sort((a, b) => a - b);
  }

  private segmentsOf({ uids }: Merge): Segment[] {
    const { segments } = this.merged;
    const places = segments.placesOf(uids);
    return uids.map((uid) => segments.at(segments.indexOfRow(places.get(uid)!.firstRow).index)!);
  }

  /** Where the rows of a segment are in the segments that take its place. */
  private piecesOf(segment: Segment, range: LateRange, after: readonly Segment[]): Piece[] {
    const runs = [...this.runsOf(() => segment, range)].flatMap(({ runs }) => runs);
    return after.map(({ uid, rowCount }) => {
      const piece: Run[] = [];
      for (let left = rowCount; left > 0;) {
        const [run] = runs, count = Math.min(left, run.count);
        piece.push({ ...run, count });
        if (count === run.count) runs.shift();
        else runs[0] = { ...run, start: run.start + count, count: run.count - count };
        left -= count;
      }
      return { uid, runs: piece };
    });
  }

  /** Keys may have been set since the rows came: rows with the same ones are left out, and all merges are made again. */
  private complyWithKeys(): void {
    const { table, merged, merges } = this;
    const keys = keysOf(table);
    if (keys === this.keys) return;
    this.keys = keys;
    merged.truncate();
    merges.clear();
    this.exchanges.clear();
    if (keys === "") return;
    const before = this.stage;
    this.stage = this.newStage();
    for (const segment of before.segments) this.stage.append([table.maker.rowsOf(inSchema(segment, table.schema))]);
    this.stage.disk.flush(true, Infinity, false);
    before.truncate();
    this.reader = undefined;
  }

  private publish(): void {
    this.store.publisher.touch(this.table);
    this.store.publisher.publish();
  }
}

function keysOf({ schema: { dedupKeys } }: Table): string {
  return dedupKeys.join();
}

function hasLiveSegments({ segments }: Table): boolean {
  return segments.lists.some((list) => list.isLive);
}

function isEmpty({ from, replacing }: LateRange): boolean {
  return from === replacing;
}

/** False if the segment has got rows since, or if others have taken over a part of the late rows. */
function isMergeOf(merge: Merge, { rowCount }: Segment, { from, to }: LateRange): boolean {
  return merge.rowCount === rowCount && merge.from === from && merge.to === to;
}

/** Runs without these rows of the segment, which are ascending. */
function runsLeft(runs: Run[], rows: readonly number[]): Run[] {
  if (rows.length === 0) return runs;
  const left: Run[] = [];
  let next = 0;
  for (const run of runs) {
    if (run.source === 1) {
      left.push(run);
      continue;
    }
    let { start } = run;
    const end = start + run.count;
    while (next < rows.length && rows[next] < start) next++;
    for (; next < rows.length && rows[next] < end; next++) {
      if (rows[next] > start) left.push({ source: 0, start, count: rows[next] - start });
      start = rows[next] + 1;
    }
    if (start < end) left.push({ source: 0, start, count: end - start });
  }
  return left;
}
