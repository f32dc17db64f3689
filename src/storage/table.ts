/**
 * A table in the writer: its schema, its segments in order, and how rows are added and removed. Segments and their sequence never change;
 * each change makes a new list, so restoring the published state means taking the old list again.
 */
import { CorruptFileError } from "../errors.ts";
import { type ConvertedValues, convertValues } from "../types/conversion.ts";
import { LAYOUT_WIDTH, layoutOf } from "../types/mod.ts";
import type { Chunk, ChunkMaker } from "./chunks.ts";
import type { AppendColumn, PartitionMove, TableColumn, TableSchema } from "./contract.ts";
import type { DataFiles } from "./datafile.ts";
import type { SymbolTable } from "./dictionary.ts";
import { HeapFullError, type SharedHeap } from "./heap.ts";
import { addedKey, keyReader, lastOfSameKeys, missingKey } from "./keys.ts";
import type { LateMerges, LateRange, PreparedMerge } from "./late-merges.ts";
import type { ManifestHead } from "./manifest-head.ts";
import type { MemoryBlock } from "./memory.ts";
import { cut, insertedRows, mergedRuns, partSizes, rowCountOf, type Run, textBytesOf } from "./merge.ts";
import type { MergedStats, MergeOrder, SharedColumn } from "./mergers.ts";
import { changedMeanwhile, Moves, type Piece } from "./moves.ts";
import { partitionOf, type PartitionRange, timeBefore } from "./partition.ts";
import { firstNotBelow, halvesOf, inOrder, type RowColumn, type Rows, timeAt, toCodes } from "./rows.ts";
import { passVersions } from "./page.ts";
import { type Part, type PartitionVersion, type Segment, Segments, type SplicedSegments } from "./segments.ts";
import { columnById } from "./schema.ts";
import { memoryOf, TableDisk } from "./table-disk.ts";
import type { BlockLocation } from "./wal/format.ts";

/** A segment is not extended once one of its columns has this many bytes of text. */
const SEGMENT_TEXT_BYTES_MAX = 16 << 20;

/**
 * A segment has fewer rows if its columns would take more than this many bytes, but at least the minimum. Texts count
 * separately.
 */
const SEGMENT_VALUE_BYTES_MAX = 64 << 20;
const SEGMENT_ROWS_MIN = 256;

/**
 * Maximum rows of a tail of a table with late rows. It leaves space, because the first late row would split a full
 * segment.
 */
const ROWS_WITH_ROOM = 57_344;

/** Bytes of memory that new segments take between two steps of a change that rewrites segments. */
const REWRITE_STEP_BYTES = 4 << 20;

/** A column with so many symbols gets postings without being declared INDEX. */
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
  private tailsWithRoom = 0;
  private range: PartitionRange = { start: 0n, end: 0n };
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

  /** A copy of the rows of a segment that is on disk. */
  rowsOf({ chunks, rowCount }: Segment): Rows {
    const columns = chunks.map((chunk, id) => chunk && this.make.rowsOf(this.typeOf(id), chunk, rowCount, this.data));
    const time = columns[this.schema.timestampId];
    return { rowCount, columns, times: time && halvesOf(time.values, rowCount) };
  }

  /** A copy of the designated timestamps of a segment that is on disk. */
  timesOf({ chunks, rowCount }: Segment): Int32Array {
    const id = this.schema.timestampId;
    return halvesOf(this.make.rowsOf(this.typeOf(id), chunks[id]!, rowCount, this.data).values, rowCount);
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
    fork.tailsWithRoom = this.tailsWithRoom;
    fork.uids = this.uids;
    fork.segments = this.segments.map(withoutRoom, (part) => part.isLive);
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
    this.tailsWithRoom = fork.tailsWithRoom;
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
    const kept = lastOfSameKeys(this.schema, this.keyColumns, rows);
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
        for (const row of this.sameKeysIn(segment, kept, from, to)) ordinals.push(firstRow + row);
      }
      firstRow += segment.rowCount;
    }
    if (ordinals.length > 0) this.delete(Float64Array.from(ordinals));
    return kept;
  }

  /** The columns of the deduplication key but the timestamp. */
  private get keyColumns(): TableColumn[] {
    const { columns, dedupKeys, timestampId } = this.schema;
    return columns.filter(({ id }) => dedupKeys.includes(id) && id !== timestampId);
  }

  /** The rows of a segment that rows [from, to), which are in time order, replace. */
  sameKeysIn(segment: Segment, rows: Rows, from: number, to: number): number[] {
    const keys = this.keyColumns;
    const resident = (id: number) =>
      segment.chunks[id] && this.make.resident(this.typeOf(id), segment.chunks[id], segment.rowCount, this.data);
    const times = resident(this.schema.timestampId)!;
    const columns = keys.map((column) => resident(column.id));
    const { heap } = this;
    const stored = keys.map(({ type }, k) =>
      columns[k] === undefined ? missingKey(type) : keyReader(type, heap.u8, columns[k]!.address, heap.u8)
    );
    const added = keys.map(({ id, type }) => addedKey(type, rows.columns[id]));
    const found: number[] = [];
    for (let row = from; row < to;) {
      const high = rows.times![2 * row + 1], low = rows.times![2 * row];
      const end = firstNotBelow(rows.times!, 0, row, to, high, low, true);
      const first = firstNotBelow(heap.i32, times.address / 4, 0, segment.rowCount, high, low, false);
      const last = firstNotBelow(heap.i32, times.address / 4, first, segment.rowCount, high, low, true);
      if (first < last) {
        const wanted = new Set<string>();
        for (; row < end; row++) wanted.add(added.map((key) => key(row)).join("|"));
        for (let k = first; k < last; k++) if (wanted.has(stored.map((key) => key(k)).join("|"))) found.push(k);
      }
      row = end;
    }
    times.release();
    for (const column of columns) column?.release();
    return found;
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
      this.segments = this.segments.withPartition(isInSchema ? moved : moved.map((s) => this.inSchema(s)));
    }
    this.detached = detached;
    this.changed = true;
  }

  /** Leaves out chunks of columns that were dropped while the segment was detached or staged. */
  inSchema(segment: Segment): Segment {
    const ids = new Set(this.schema.columns.map(({ id }) => id));
    if (segment.chunks.every((chunk, id) => chunk === undefined || ids.has(id))) return segment;
    return { ...segment, chunks: segment.chunks.map((c, id) => ids.has(id) ? c : undefined), words: undefined };
  }

  /** Sets new values of `columns` in the rows with these ordinals, ascending. */
  update(ordinals: Float64Array, columns: readonly AppendColumn[]): void {
    this.changed = true;
    const values = this.newValues(ordinals.length, columns);
    this.eachTouched(ordinals, (segment, rows, from) => {
      const updated = this.updated(segment, values, rows, from);
      this.moves.add(segment.uid, [{ uid: updated.uid, runs: allRows(segment.rowCount) }], rows);
      return updated;
    });
  }

  delete(ordinals: Float64Array): void {
    this.changed = true;
    this.eachTouched(ordinals, (segment, rows) => {
      const runs = runsWithout(rows, segment.rowCount);
      const left = this.left(segment, runs);
      this.moves.add(segment.uid, left === undefined ? [] : [{ uid: left.uid, runs }]);
      return left;
    });
  }

  /** New values of columns, as they are stored. */
  newValues(rowCount: number, columns: readonly AppendColumn[]): NewValues {
    return columns.map((given) => {
      const column = columnById(this.schema, given.columnId)!;
      const values = column.type === "SYMBOL"
        ? toCodes(given, rowCount, this.dictionary(column.id))
        : given.values.slice();
      return { column, rows: { values, heap: given.heap } };
    });
  }

  /** The values of a column in a segment as those of another type; undefined if all are null. */
  convertedRows({ chunks, rowCount }: Segment, { id, type }: TableColumn, to: string): ConvertedValues | undefined {
    const chunk = chunks[id];
    if (chunk === undefined) return undefined;
    const { heap: { u8, i32 }, make } = this;
    const { address, texts, release } = make.resident(type, chunk, rowCount, this.data);
    const values = u8.subarray(address, address + rowCount * LAYOUT_WIDTH[layoutOf(type)]);
    let symbols: Int32Array | undefined;
    if (type === "SYMBOL") {
      const { entries, count } = this.dictionary(id), at = entries.address / 4;
      symbols = i32.subarray(at, at + 2 * count);
    }
    try {
      return convertValues(type, to, { values, rowCount, bytes: u8, symbols });
    } finally {
      release();
      if (chunk.plain.address === 0) make.discard(texts);
    }
  }

  /** A new segment of one column alone, which has these values. */
  segmentOfColumn(columnId: number, given: ConvertedValues, rowCount: number): Segment {
    const type = this.typeOf(columnId), values = type === "SYMBOL" ? this.codesOf(columnId, given) : given;
    const chunks: (Chunk | undefined)[] = [];
    chunks[columnId] = this.make.append(type, undefined, 0, values, 0, rowCount, this.data);
    return { uid: this.newUid(), partition: 0n, rowCount, timestampMin: 0n, timestampMax: 0n, chunks };
  }

  private codesOf(columnId: number, { values, heap = new Uint8Array(0) }: ConvertedValues): RowColumn {
    const pairs = new Int32Array(values.buffer, values.byteOffset, values.byteLength / 4);
    const codes = new Int32Array(pairs.length / 2), dictionary = this.dictionary(columnId);
    for (let row = 0; row < codes.length; row++) {
      const length = pairs[2 * row + 1];
      codes[row] = length < 0 ? -1 : dictionary.intern(heap, pairs[2 * row], length);
    }
    return { values: new Uint8Array(codes.buffer) };
  }

  /** The segment with the new values from number `from` on in these of its rows. */
  updated(segment: Segment, values: NewValues, rows: Uint32Array, from: number): Segment {
    const { rowCount } = segment;
    const chunks = segment.chunks.slice();
    for (const { column: { id, type }, rows: added } of values) {
      chunks[id] = this.make.update(type, chunks[id], rowCount, added, rows, from, this.data);
    }
    return { ...segment, uid: this.newUid(), chunks, words: undefined };
  }

  /** What is left of a segment if only these runs of rows stay. */
  left(segment: Segment, runs: Run[]): Segment | undefined {
    return runs.length === 0 ? undefined : this.segmentOf(segment.partition, segment, undefined, runs);
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
      return replacement && this.inSchema(replacement);
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
    return firstNotBelow(times, 0, from, rowCount, Number(end >> 32n), Number(BigInt.asIntN(32, end)), false);
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
    if (onTime > from) this.tailsWithRoom = 2;
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
    const rowsMax = Math.min(this.tailsWithRoom > 0 ? ROWS_WITH_ROOM : Infinity, this.rowsMaxOf(before, rows));
    const isFull = before === undefined || before.rowCount >= rowsMax ||
      before.chunks.some((chunk) => chunk !== undefined && chunk.textBytes >= SEGMENT_TEXT_BYTES_MAX);
    const tail = isFull ? undefined : before;
    const rowsBefore = tail?.rowCount ?? 0;
    const until = Math.min(to, from + rowsMax - rowsBefore);
    const chunks: (Chunk | undefined)[] = [];
    for (const { id, type } of this.schema.columns) {
      chunks[id] = this.make.append(type, tail?.chunks[id], rowsBefore, rows.columns[id], from, until, this.data);
    }
    const { times } = rows;
    const segment: Segment = {
      uid: tail?.uid ?? this.newUid(),
      partition,
      rowCount: rowsBefore + until - from,
      timestampMin: tail?.timestampMin ?? (times === undefined ? 0n : timeAt(times, from)),
      timestampMax: times === undefined ? 0n : timeAt(times, until - 1),
      chunks,
    };
    this.moves.addRows(segment.uid, rowsBefore, from, until - from);
    if (tail !== undefined) this.segments = this.segments.with(end - 1, segment);
    else {
      this.segments = this.segments.splice(end, 0, [segment]);
      if (this.tailsWithRoom > 0) this.tailsWithRoom--;
      inserted(1);
    }
    return until;
  }

  /** Maximum number of rows of a segment with the columns of both. */
  rowsMaxOf(segment: Segment | undefined, rows?: Rows): number {
    let width = 0;
    for (const { id, type } of this.schema.columns) {
      if (segment?.chunks[id] !== undefined || rows?.columns[id] !== undefined) width += LAYOUT_WIDTH[layoutOf(type)];
    }
    const fitting = Math.max(SEGMENT_ROWS_MIN, Math.floor(SEGMENT_VALUE_BYTES_MAX / Math.max(1, width)));
    return Math.min(this.make.segmentRowsMax, fitting);
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

  prepareMerge(
    segment: Segment,
    rows: Rows,
    shared: readonly (SharedColumn | undefined)[],
    from: number,
    to: number,
  ): PreparedMerge | undefined {
    const { make, directory, schema: { columns, timestampId } } = this;
    const partRows = partSizes(segment.rowCount + to - from, this.rowsMaxOf(segment, rows));
    const reads = new Set<MemoryBlock>(), writes: MemoryBlock[] = [];
    try {
      const prepared = columns.toSorted((a, b) => a.id - b.id).flatMap(({ id, type }) => {
        const chunk = segment.chunks[id], added = rows.columns[id];
        if (chunk === undefined && added === undefined) return [];
        for (const block of [chunk?.values, ...chunk?.texts ?? []]) if (block !== undefined) reads.add(block);
        const textBytes = added !== undefined && layoutOf(type) === "text" ? textBytesOf(added, from, to) : 0;
        return [{ id, type, ...make.prepare(type, chunk, partRows, textBytes, writes) }];
      });
      const order: MergeOrder = {
        segment,
        directory,
        timestampId,
        from,
        to,
        partRows,
        columns: prepared.map(({ id, type, values, textsAt, loadAt }) => (
          { columnId: id, type, added: shared[id], to: values.map(({ address }) => address), textsAt, loadAt }
        )),
      };
      const finish = (stats: MergedStats) => {
        this.heap.addCounter("rewrittenSegments", 1);
        return partRows.map((rowCount, k) => {
          const chunks: (Chunk | undefined)[] = [];
          for (const { id } of columns) chunks[id] = undefined;
          prepared.forEach(({ id, type, values, texts, textBytes }, c) => {
            chunks[id] = make.newChunk(type, rowCount, stats[k][c], values[k], texts, textBytes);
          });
          return this.newSegment(segment.partition, rowCount, chunks);
        });
      };
      return { order, reads: [...reads], writes, finish };
    } catch (error) {
      make.discard(writes);
      if (error instanceof HeapFullError) return undefined;
      throw error;
    }
  }

  mergeInto(segment: Segment, rows: Rows, from: number, to: number): Segment[] {
    const runs = this.mergedRuns(segment, 0, segment.rowCount, rows, from, to);
    const { segments, pieces } = this.assembled(segment, rows, runs);
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

  /** The order in time of rows [at, end) of a segment and of rows [from, to). Of equal times, those of the segment come first. */
  mergedRuns(segment: Segment, at: number, end: number, rows: Rows, from: number, to: number): Run[] {
    const chunk = segment.chunks[this.schema.timestampId]!;
    const loaded = this.make.resident(this.typeOf(this.schema.timestampId), chunk, segment.rowCount, this.data);
    const runs = mergedRuns(this.heap, loaded.address, at, end, rows.times!, from, to);
    loaded.release();
    return runs;
  }

  /** New segments, with these runs of rows of a segment and of `rows`. */
  assembled(segment: Segment, rows: Rows | undefined, runs: Run[]): { segments: Segment[]; pieces: Piece[] } {
    this.heap.addCounter("rewrittenSegments", 1);
    const parts = cut(runs, partSizes(rowCountOf(runs), this.rowsMaxOf(segment, rows)));
    const segments = parts.map((part) => this.segmentOf(segment.partition, segment, rows, part));
    return { segments, pieces: segments.map(({ uid }, k) => ({ uid, runs: parts[k] })) };
  }

  private segmentOf(partition: bigint, old: Segment, rows: Rows | undefined, runs: Run[]): Segment {
    const chunks: (Chunk | undefined)[] = [];
    const inserted = insertedRows(runs);
    for (const { id, type } of this.schema.columns) {
      chunks[id] = this.make.assemble(type, old.chunks[id], old.rowCount, rows?.columns[id], runs, inserted, this.data);
    }
    return this.newSegment(partition, rowCountOf(runs), chunks);
  }

  private newSegment(partition: bigint, rowCount: number, chunks: readonly (Chunk | undefined)[]): Segment {
    const stats = this.schema.timestampId < 0 ? undefined : chunks[this.schema.timestampId]!.plain.stats;
    const timestampMin = (stats?.min as bigint) ?? 0n, timestampMax = (stats?.max as bigint) ?? 0n;
    return { uid: this.newUid(), partition, rowCount, timestampMin, timestampMax, chunks };
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

/** Rows `from` … `to`-1, of a partition. Those before `onTime` are late. */
interface PartitionRows {
  readonly partition: bigint;
  readonly from: number;
  onTime: number;
  readonly to: number;
}

/** New values of columns, by the order of the rows that get them. */
export type NewValues = readonly { readonly column: TableColumn; readonly rows: RowColumn }[];

/** The indexes of the segments that have the rows `ordinals`, ascending: for each its rows, of which the first is `ordinals[from]`. */
export function* touchedBy(
  ordinals: Float64Array,
  segments: Segments,
): Iterable<{ index: number; rows: Uint32Array; from: number }> {
  for (let at = 0; at < ordinals.length;) {
    const { index, firstRow } = segments.indexOfRow(ordinals[at]);
    const end = firstRow + segments.at(index)!.rowCount;
    const from = at;
    while (at < ordinals.length && ordinals[at] < end) at++;
    yield { index, rows: Uint32Array.from(ordinals.subarray(from, at), (ordinal) => ordinal - firstRow), from };
  }
}

export function allRows(rowCount: number): Run[] {
  return [{ source: 0, start: 0, count: rowCount }];
}

/** All rows but these, which are ascending. */
export function runsWithout(rows: Iterable<number>, rowCount: number): Run[] {
  const runs: Run[] = [];
  let at = 0;
  for (const row of rows) {
    if (row > at) runs.push({ source: 0, start: at, count: row - at });
    at = row + 1;
  }
  if (at < rowCount) runs.push({ source: 0, start: at, count: rowCount - at });
  return runs;
}

/** Replaces segments of a table, in ascending order. All new ones may not fit into memory, so the table flushes them step by step. */
class Rewrite {
  private waiting: SplicedSegments[] = [];
  private waitingBytes = 0;
  /** How many segments more there are than before. */
  private added = 0;

  constructor(private readonly table: Table) {}

  /** The segment that had this index before, or a later one. */
  at(index: number): Segment {
    return this.table.segments.at(index + this.added)!;
  }

  replace(index: number, segments: readonly Segment[]): void {
    this.waiting.push({ start: index + this.added, count: 1, segments });
    for (const segment of segments) this.waitingBytes += memoryOf(segment);
    if (this.waitingBytes < REWRITE_STEP_BYTES) return;
    this.apply();
    this.table.onStep();
  }

  /** Returns the number of segments added. */
  end(): number {
    this.apply();
    return this.added;
  }

  private apply(): void {
    this.table.segments = this.table.segments.apply(this.waiting);
    for (const { segments } of this.waiting) this.added += segments.length - 1;
    this.waiting = [];
    this.waitingBytes = 0;
  }
}

/** Returns the segment without free space, so that appending allocates new memory. */
function withoutRoom(segment: Segment): Segment {
  const { rowCount } = segment;
  if (!segment.chunks.some((chunk) => chunk !== undefined && chunk.capacity > rowCount)) return segment;
  return { ...segment, chunks: segment.chunks.map((chunk) => chunk && { ...chunk, capacity: rowCount }) };
}

export function halves(value: bigint): [high: number, low: number] {
  return [Number(value >> 32n), Number(BigInt.asIntN(32, value))];
}
