/**
 * A table in the writer: its schema, its segments in order, and how rows are added and removed. `SegmentMaker` makes the segments. Segments
 * and their sequence never change; each change makes a new list, so restoring the published state means taking the old list again.
 */
import { CorruptFileError } from "../errors.ts";
import type { ChunkMaker } from "./chunks.ts";
import type { AppendColumn, PartitionMove, TableColumn, TableSchema } from "./contract.ts";
import type { DataFiles } from "./datafile.ts";
import type { SymbolTable } from "./dictionary.ts";
import type { SharedHeap } from "./heap.ts";
import { keyColumns, lastOfSameKeys } from "./keys.ts";
import type { LateMerges, LateRange } from "./late-merges.ts";
import type { ManifestHead } from "./manifest-head.ts";
import { allRows, runsWithout } from "./merge.ts";
import { changedMeanwhile, Moves } from "./moves.ts";
import { passVersions } from "./page.ts";
import { partitionOf, type PartitionRange, timeBefore } from "./partition.ts";
import { Rewrite, touchedBy } from "./rewrite.ts";
import { firstNotBelow, halves, inOrder, type Rows, timeAt } from "./rows.ts";
import { columnById } from "./schema.ts";
import { inSchema } from "./segment.ts";
import { SegmentMaker } from "./segment-maker.ts";
import { type Part, type PartitionVersion, type Segment, Segments, type SplicedSegments } from "./segments.ts";
import { TableDisk } from "./table-disk.ts";
import type { BlockLocation } from "./wal/format.ts";

/** A segment is not extended once one of its columns has this many bytes of text. */
const SEGMENT_TEXT_BYTES_MAX = 16 << 20;

/**
 * Maximum rows of a tail of a table with late rows. It leaves space, because the first late row would split a full
 * segment.
 */
const ROWS_WITH_SPACE = 57_344;

/** A column with this many symbols gets postings without being declared INDEX. */
const INDEXED_SYMBOLS_MIN = 2048;

/** Detached partitions, by their start. Their rows are not rows of the table until ATTACH PARTITION. */
export type Detached = ReadonlyMap<bigint, Segments>;

export const NOTHING_DETACHED: Detached = new Map();

/** What changes replace: taking a change back means taking the former state again. */
export interface TableState {
  readonly schema: TableSchema;
  readonly segments: Segments;
  readonly detached: Detached;
  readonly lsn: number;
  readonly changed: boolean;
}

/** The part of a manifest that is on disk. */
export interface StoredManifest {
  /** Generation of the snapshot. */
  readonly generation: number;
  readonly sizeBytes: number;
  readonly editsBytes: number;
  readonly segments: Segments;
  readonly detached: Detached;
  /** Of an older format, to which no edit can be added. */
  readonly isOld?: true;
}

/** The part of a table that has not been read since the start. */
export interface Unread {
  /** The state to which the blocks apply. "nothing": the log creates the table. */
  base: "manifest" | "nothing" | "memory";
  /** Blocks of the log, in order. The manifest may cover some of them. */
  blocks: BlockLocation[];
  /** LSN that the table will have after reading, as far as it is known. */
  lsn: number;
}

export class Table {
  /** Undefined once the table is open. */
  unread: Unread | undefined;
  segments: Segments = Segments.EMPTY;
  /** The segments that readers see. */
  published: Segments = Segments.EMPTY;
  publishedSchema: TableSchema | undefined;
  detached: Detached = NOTHING_DETACHED;
  publishedDetached: Detached = NOTHING_DETACHED;
  readonly dictionaries = new Map<number, SymbolTable>();
  /** LSN of the last block applied. */
  lsn = 0;
  /** True if changed since its manifest was written. */
  changed = false;
  /** Generation of the newest manifest. */
  generation = 0;
  /** Indexed columns of symbols whose chunks all have postings, where they pay. */
  posted: ReadonlySet<number> = new Set();
  /** Of a table that has not been read: the present rules have decided how all of its chunks are stored. */
  wasPacked = false;
  /** The catalogue says that the manifest names no page of an earlier format, or the table is newer. */
  wasConverted = true;
  /** A start would read the manifest: the catalogue, or the block of the log that creates the table, names it. */
  isListed = false;
  /** The part of the newest manifest that is on disk. Undefined until the table is read, or if there is none. */
  stored: StoredManifest | undefined;
  nextColumnId = 0;
  /** Set if the table is damaged: it can be neither read nor written. */
  damage: CorruptFileError | undefined;
  /** Called between the steps of a large change. May flush segments and free memory, or throw to stop the change. */
  onStep: () => void = () => {};
  /** A state that may be restored, although no reader has it: its memory must stay. */
  former: TableState | undefined;
  /** Records where rows of replaced segments have gone, while a transaction may need it. */
  readonly moves = new Moves();
  /** Shared with the table's forks, so that each uid belongs to one segment. */
  private uids = { next: 1 };
  /** How many more tails leave space for late rows. */
  private tailsWithSpace = 0;
  private range: PartitionRange = { start: 0n, end: 0n };
  readonly maker: SegmentMaker;
  readonly disk: TableDisk;

  constructor(
    public schema: TableSchema,
    readonly directory: string,
    readonly data: DataFiles,
    private readonly make: ChunkMaker,
    private readonly heap: SharedHeap,
    private readonly newDictionary: () => SymbolTable,
    private readonly merges: LateMerges,
  ) {
    this.nextColumnId = 1 + Math.max(-1, ...schema.columns.map((column) => column.id));
    this.maker = new SegmentMaker(this, data, make, heap);
    this.disk = new TableDisk(this, data, make, heap);
  }

  get state(): TableState {
    const { schema, segments, detached, lsn, changed } = this;
    return { schema, segments, detached, lsn, changed };
  }

  restore({ schema, segments, detached, lsn, changed }: TableState): void {
    Object.assign(this, { schema, segments, detached, lsn, changed });
  }

  /** Takes over what the manifest of this generation says. Blocks that it covers will not be applied. */
  load(head: ManifestHead, stored: StoredManifest, generation: number): void {
    this.schema = head.schema;
    this.nextColumnId = head.nextColumnId;
    this.uids.next = head.nextUid ?? this.uids.next;
    passVersions(head.nextVersion ?? 1);
    this.posted = new Set(head.posted);
    this.lsn = Math.max(this.lsn, head.lsn);
    this.segments = stored.segments;
    this.detached = stored.detached;
    this.stored = stored;
    this.generation = generation;
    if (stored.isOld) this.changed = true; // The next checkpoint writes it anew.
    if (this.unread !== undefined) this.unread.blocks = this.unread.blocks.filter(({ lsn }) => lsn > head.lsn);
  }

  /** The table can be neither read nor written from now on. */
  setDamage(error: CorruptFileError): void {
    this.damage ??= error;
    this.unread = undefined;
    this.segments = Segments.EMPTY;
    this.detached = NOTHING_DETACHED;
    this.changed = true;
  }

  /** LSN of the last block that concerns the table, whether or not it was applied. */
  get newestLsn(): number {
    return Math.max(this.lsn, this.unread?.lsn ?? 0);
  }

  dictionary(columnId: number): SymbolTable {
    let dictionary = this.dictionaries.get(columnId);
    if (dictionary === undefined) this.dictionaries.set(columnId, dictionary = this.newDictionary());
    return dictionary;
  }

  newUid(): number {
    return this.uids.next++;
  }

  get nextUid(): number {
    return this.uids.next;
  }

  /** An empty table for rows that will be added to this one. It shares files, dictionaries and the numbering of segments. */
  stage(): Table {
    const { schema, directory, data, make, heap, newDictionary, merges } = this;
    const stage = new Table(schema, directory, data, make, heap, newDictionary, merges);
    stage.uids = this.uids;
    stage.follow(this);
    return stage;
  }

  /** Takes over the columns that the table of this stage has now. */
  follow(table: Table): void {
    this.schema = table.schema;
    this.nextColumnId = table.nextColumnId;
    for (const { id, type } of table.schema.columns) {
      if (type === "SYMBOL") this.dictionaries.set(id, table.dictionary(id));
    }
  }

  /**
   * Returns a fork of the table for a transaction. It shares the immutable segments and the dictionaries, which only
   * grow. It does not append to segments in index: their free space belongs to this table.
   */
  fork(): Table {
    const { schema, directory, data, make, heap, newDictionary, merges } = this;
    const fork = new Table(schema, directory, data, make, heap, newDictionary, merges);
    for (const { id, type } of schema.columns) if (type === "SYMBOL") this.dictionary(id);
    for (const [id, dictionary] of this.dictionaries) fork.dictionaries.set(id, dictionary);
    fork.nextColumnId = this.nextColumnId;
    fork.tailsWithSpace = this.tailsWithSpace;
    fork.uids = this.uids;
    fork.segments = this.segments.map(withoutFreeSpace, (part) => part.isLive);
    fork.detached = this.detached;
    return fork;
  }

  /**
   * Takes over the state of a fork, which began with `before`. Segments that the fork has not changed keep this table's
   * objects.
   */
  adopt(fork: Table, before: Segments): void {
    const own = new Map<number, Segment>();
    const changed = new Set<Part>(fork.segments.differenceFrom(this.segments).flatMap(({ added }) => added));
    for (const { pages, replaced } of fork.segments.replacedPages(this.segments)) {
      for (const page of pages) changed.add(page);
      for (const { segments } of replaced) for (const segment of segments) own.set(segment.uid, segment);
    }
    const untouched = new Set(before.live());
    this.segments = fork.segments.map(
      (segment) => untouched.has(segment) ? own.get(segment.uid) ?? segment : segment,
      (part) => changed.has(part),
    );
    this.moves.addAll(fork.moves);
    this.schema = fork.schema;
    for (const [id, dictionary] of fork.dictionaries) this.dictionaries.set(id, dictionary);
    this.nextColumnId = fork.nextColumnId;
    this.tailsWithSpace = fork.tailsWithSpace;
    this.changed = true;
  }

  get rowCount(): number {
    return this.segments.rowCount;
  }

  /**
   * Appends the rows of one group of commits, in order of arrival. `group`: the rows are recorded so that they can be
   * found by their number in it.
   */
  append(parts: Rows[], group?: number): void {
    this.changed = true;
    const replaces = this.schema.dedupKeys.length > 0;
    let offset = 0;
    for (const sorted of inOrder(this.schema, parts)) {
      this.moves.number(replaces ? undefined : group, offset);
      offset += sorted.rowCount;
      const rows = replaces ? this.replaceSameKeys(sorted) : sorted;
      const ranges = this.rangesOf(rows);
      this.mergeLate(rows, ranges);
      for (const range of ranges) this.appendToPartition(rows, range);
    }
  }

  /** The rows of each partition. */
  private rangesOf(rows: Rows): PartitionRows[] {
    const ranges: PartitionRows[] = [];
    for (let row = 0; row < rows.rowCount;) {
      const range = rows.times === undefined ? this.noTime : this.rangeOf(timeAt(rows.times, row));
      const from = row;
      row = this.endOfRange(rows, row, range);
      ranges.push({ partition: range.start, from, onTime: from, to: row });
    }
    return ranges;
  }

  /** Leaves out rows that a later row with the same keys replaces, and deletes the stored rows that are replaced. */
  private replaceSameKeys(rows: Rows): Rows {
    const kept = lastOfSameKeys(this.schema, keyColumns(this.schema), rows);
    const last = this.segments.bounds?.[1];
    if (last === undefined || timeAt(kept.times!, 0) > last.timestampMax) return kept;
    const ordinals: number[] = [];
    const first = timeAt(kept.times!, 0), end = timeAt(kept.times!, kept.rowCount - 1);
    const start = this.segments.search(({ timestampMax }) => timestampMax < first);
    let firstRow = this.segments.firstRowOf(start);
    for (const segment of this.segments.slice(start, this.segments.search((s) => s.timestampMin <= end))) {
      const { timestampMin: min, timestampMax: max } = segment;
      const from = firstNotBelow(kept.times!, 0, 0, kept.rowCount, ...halves(min), false);
      const to = firstNotBelow(kept.times!, 0, from, kept.rowCount, ...halves(max), true);
      if (from < to) {
        for (const row of this.maker.sameKeysIn(segment, kept, from, to)) ordinals.push(firstRow + row);
      }
      firstRow += segment.rowCount;
    }
    if (ordinals.length > 0) this.delete(Float64Array.from(ordinals));
    return kept;
  }

  /**
   * Returns the partitions that are older than the table's time to live, counted from its newest row or from now,
   * whichever is earlier: a row in the future expires nothing.
   */
  expired(nowMicros: bigint): PartitionMove[] {
    const { ttl, partitionBy } = this.schema;
    const last = this.segments.bounds?.[1];
    if (ttl === undefined || last === undefined) return [];
    const now = nowMicros * this.ticks;
    const cutoff = timeBefore(last.timestampMax < now ? last.timestampMax : now, ttl, this.ticks);
    const moves: PartitionMove[] = [];
    for (const { partition: start } of this.segments.partitions()) {
      if (partitionOf(start, partitionBy, this.ticks).end > cutoff) break;
      moves.push({ start, from: "attached", to: "nowhere" });
    }
    return moves;
  }

  hasPartition(place: "attached" | "detached", start: bigint): boolean {
    return place === "detached" ? this.detached.has(start) : this.segments.partition(start) !== undefined;
  }

  /** Moves whole partitions. A move from where the partition is not does nothing. */
  movePartitions(moves: readonly PartitionMove[]): void {
    const detached = new Map(this.detached), { segments } = this;
    // Neighbours go together: one by one, each would copy a page.
    const gone = new Map<bigint, PartitionVersion>();
    const added: Segments[] = [];
    for (const { start, from, to } of moves) {
      const attached = from === "detached" || gone.has(start) ? undefined : segments.partition(start);
      const moved = detached.get(start);
      if (attached !== undefined) gone.set(start, attached);
      else if (from === "attached" || !detached.delete(start)) continue;
      if (to === "detached") detached.set(start, segments.segmentsOf(attached!));
      else if (to === "attached") added.push(moved!);
    }
    this.segments = segments.apply(rangesOf([...gone.values()]));
    // Pages are not read if no column was ever dropped.
    const isInSchema = this.schema.columns.length === this.nextColumnId;
    for (const moved of added) {
      this.segments = this.segments.withPartition(isInSchema ? moved : moved.map((s) => inSchema(s, this.schema)));
    }
    this.detached = detached;
    this.changed = true;
  }

  /** Sets new values of `columns` in the rows with these ordinals, ascending. */
  update(ordinals: Float64Array, columns: readonly AppendColumn[]): void {
    this.changed = true;
    const values = this.maker.newValues(ordinals.length, columns);
    this.eachTouched(ordinals, (segment, rows, from) => {
      const updated = this.maker.updated(segment, values, rows, from);
      this.moves.add(segment.uid, [{ uid: updated.uid, runs: allRows(segment.rowCount) }], rows);
      return updated;
    });
  }

  delete(ordinals: Float64Array): void {
    this.changed = true;
    this.eachTouched(ordinals, (segment, rows) => {
      const runs = runsWithout(rows, segment.rowCount);
      const left = this.maker.left(segment, runs);
      this.moves.add(segment.uid, left === undefined ? [] : [{ uid: left.uid, runs }]);
      return left;
    });
  }

  /**
   * Replaces segments by what `replacementOf` makes of them. `uids`: theirs, ascending.
   * @throws {SqlError} 40001 if one of them has been replaced by another one.
   */
  replaceSegments(uids: readonly number[], replacementOf: (segment: Segment) => Segment | undefined): void {
    this.changed = true;
    let found = 0;
    const segments = this.segments.mapSegments(uids, (segment) => {
      found++;
      const replacement = replacementOf(segment);
      return replacement && inSchema(replacement, this.schema);
    });
    if (found < uids.length) throw changedMeanwhile();
    this.segments = segments;
  }

  /** Leaves out the segments with these uids. */
  omit(uids: readonly number[]): void {
    this.segments = this.segments.mapSegments([...uids].sort((a, b) => a - b), () => undefined);
  }

  truncate(): void {
    this.segments = Segments.EMPTY;
    this.changed = true;
  }

  /** Discards the values of a dropped column. */
  dropColumn(columnId: number): void {
    this.changed = true;
    this.segments = this.segments.map((segment) => {
      if (segment.chunks[columnId] === undefined) return segment;
      const chunks = segment.chunks.slice();
      chunks[columnId] = undefined;
      return { ...segment, chunks, words: undefined };
    });
  }

  /** No chunk is stored otherwise than the present rules would store it. */
  get isPacked(): boolean {
    if (this.unread !== undefined) return this.wasPacked;
    return this.data.isPacked && this.indexedColumns().every((id) => this.posted.has(id));
  }

  /** Columns whose new chunks get postings. */
  indexedColumns(): number[] {
    return this.schema.columns.filter((column) => this.isColumnIndexed(column)).map(({ id }) => id);
  }

  /** The segment with this uid, also of a detached partition. */
  segmentByUid(uid: number): Segment | undefined {
    for (const segments of [this.segments, ...this.detached.values()]) {
      const found = segments.segmentByUid(uid);
      if (found !== undefined) return found;
    }
  }

  /** Undefined if the column was dropped. */
  typeOfColumn(columnId: number): string | undefined {
    return columnById(this.schema, columnId)?.type;
  }

  /** The segments of all pages with a chunk in memory, of the table and of its detached partitions, also as they were. */
  *liveSegments(): Iterable<Segment> {
    for (const { segments, detached } of this.former === undefined ? [this] : [this, this.former]) {
      yield* segments.live();
      for (const partition of detached.values()) yield* partition.live();
    }
  }

  private readonly noTime: PartitionRange = { start: 0n, end: 0n };

  private typeOf(columnId: number): string {
    return columnById(this.schema, columnId)!.type;
  }

  isIndexed(columnId: number): boolean {
    return this.isColumnIndexed(columnById(this.schema, columnId)!);
  }

  /** True if the rows of a symbol are found by postings: the column is declared so, or has many symbols. */
  private isColumnIndexed({ id, type, indexed }: TableColumn): boolean {
    return type === "SYMBOL" && (indexed || (this.dictionaries.get(id)?.count ?? 0) >= INDEXED_SYMBOLS_MIN);
  }

  /** Units of the designated timestamp in a microsecond. */
  private get ticks(): bigint {
    return this.typeOf(this.schema.timestampId) === "TIMESTAMP_NS" ? 1000n : 1n;
  }

  private rangeOf(timestamp: bigint): PartitionRange {
    if (timestamp < this.range.start || timestamp >= this.range.end) {
      this.range = partitionOf(timestamp, this.schema.partitionBy, this.ticks);
    }
    return this.range;
  }

  private endOfRange({ times, rowCount }: Rows, from: number, { end }: PartitionRange): number {
    if (times === undefined || timeAt(times, rowCount - 1) < end) return rowCount;
    return firstNotBelow(times, 0, from, rowCount, ...halves(end), false);
  }

  /** Index of the first segment in this partition or after it. */
  segmentIndexOf(partition: bigint): number {
    return this.segments.search((segment) => segment.partition < partition);
  }

  /** The last segment of the partition, if it is the one before `end`. */
  private tailBefore(end: number, partition: bigint): Segment | undefined {
    const tail = end > 0 ? this.segments.at(end - 1) : undefined;
    return tail?.partition === partition ? tail : undefined;
  }

  /** Appends the rows of a partition that are not late. */
  private appendToPartition(rows: Rows, { partition, from, onTime, to }: PartitionRows): void {
    let end = this.endOfPartition(partition);
    if (onTime > from) this.tailsWithSpace = 2;
    while (onTime < to) {
      onTime = this.appendToTail(partition, end, rows, onTime, to, (added) => end += added);
      this.onStep();
    }
  }

  /** Index of the first segment behind the partition. */
  private endOfPartition(partition: bigint): number {
    const last = this.segments.bounds?.[1];
    return last !== undefined && last.partition > partition
      ? this.segmentIndexOf(partition + 1n)
      : this.segments.length;
  }

  /** Appends rows to the segment before `end`, or to a new one there. Returns the first row that did not fit. */
  private appendToTail(
    partition: bigint,
    end: number,
    rows: Rows,
    from: number,
    to: number,
    inserted: (count: number) => void,
  ): number {
    const before = this.tailBefore(end, partition);
    const rowsMax = Math.min(this.tailsWithSpace > 0 ? ROWS_WITH_SPACE : Infinity, this.maker.rowsMaxOf(before, rows));
    const isFull = before === undefined || before.rowCount >= rowsMax ||
      before.chunks.some((chunk) => chunk !== undefined && chunk.textBytes >= SEGMENT_TEXT_BYTES_MAX);
    const tail = isFull ? undefined : before;
    const rowsBefore = tail?.rowCount ?? 0;
    const until = Math.min(to, from + rowsMax - rowsBefore);
    const segment = this.maker.extended(partition, tail, rows, from, until);
    this.moves.addRows(segment.uid, rowsBefore, from, until - from);
    if (tail !== undefined) this.segments = this.segments.with(end - 1, segment);
    else {
      this.segments = this.segments.splice(end, 0, [segment]);
      if (this.tailsWithSpace > 0) this.tailsWithSpace--;
      inserted(1);
    }
    return until;
  }

  /** Merges the rows that are before the last time of their partitions into the segments of these. */
  private mergeLate(rows: Rows, ranges: PartitionRows[]): void {
    const last = this.segments.bounds?.[1];
    if (rows.times === undefined || last === undefined || timeAt(rows.times, 0) >= last.timestampMax) return;
    const late: LateRange[] = [];
    for (const range of ranges) {
      const { partition, from, to } = range, end = this.endOfPartition(partition);
      const tail = this.tailBefore(end, partition);
      if (tail === undefined || timeAt(rows.times, from) >= tail.timestampMax) continue;
      range.onTime = firstNotBelow(rows.times, 0, from, to, ...halves(tail.timestampMax), false);
      late.push(...this.lateRanges(this.segmentIndexOf(partition), end, rows.times, from, range.onTime));
    }
    if (late.length === 0) return;
    const rewrite = new Rewrite(this);
    this.merges.run(this, rows, late, rewrite);
    rewrite.end();
  }

  /** Which of rows [from, to) belong to which of segments [first, end). */
  private lateRanges(first: number, end: number, times: Int32Array, from: number, to: number): LateRange[] {
    const starts = this.segments.slice(first, end).map(({ timestampMin }) => timestampMin);
    const ranges: LateRange[] = [];
    let index = 0;
    while (from < to) {
      const time = timeAt(times, from);
      while (index + 1 < starts.length && starts[index + 1] <= time) index++;
      const until = index + 1 < starts.length
        ? firstNotBelow(times, 0, from, to, ...halves(starts[index + 1]), false)
        : to;
      ranges.push({ index: first + index, from, to: until });
      from = until;
    }
    return ranges;
  }

  mergeInto(segment: Segment, rows: Rows, from: number, to: number): Segment[] {
    const runs = this.maker.mergedRuns(segment, 0, segment.rowCount, rows, from, to);
    const { segments, pieces } = this.maker.assembled(segment, rows, runs);
    this.moves.add(segment.uid, pieces);
    for (const { uid, runs } of pieces) {
      let at = 0;
      for (const { source, start, count } of runs) {
        if (source === 1) this.moves.addRows(uid, at, start, count);
        at += count;
      }
    }
    return segments;
  }

  /**
   * Calls `change` for each segment that contains some of the rows `ordinals`, with its rows. A segment for which it
   * returns undefined is removed.
   */
  private eachTouched(
    ordinals: Float64Array,
    change: (segment: Segment, rows: Uint32Array, from: number) => Segment | undefined,
  ): void {
    const rewrite = new Rewrite(this);
    for (const { index, rows, from } of touchedBy(ordinals, this.segments)) {
      const changed = change(rewrite.at(index), rows, from);
      rewrite.replace(index, changed === undefined ? [] : [changed]);
    }
    rewrite.end();
  }
}

/** Rows `from` … `to`-1, of a partition. Those before `onTime` are late. */
interface PartitionRows {
  readonly partition: bigint;
  readonly from: number;
  onTime: number;
  readonly to: number;
}

/** Returns the segment without free space, so that appending allocates new memory. */
function withoutFreeSpace(segment: Segment): Segment {
  const { rowCount } = segment;
  if (!segment.chunks.some((chunk) => chunk !== undefined && chunk.capacity > rowCount)) return segment;
  return { ...segment, chunks: segment.chunks.map((chunk) => chunk && { ...chunk, capacity: rowCount }) };
}

/** The ranges of segments of partitions, to be left out. */
function rangesOf(partitions: PartitionVersion[]): SplicedSegments[] {
  const ranges: { start: number; count: number; segments: [] }[] = [];
  for (const { first, end } of partitions.sort((a, b) => a.first - b.first)) {
    const last = ranges.at(-1);
    if (last !== undefined && last.start + last.count === first) last.count += end - first;
    else ranges.push({ start: first, count: end - first, segments: [] });
  }
  return ranges;
}
