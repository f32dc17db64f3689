/** The mirror of the writer's state on the main thread: immutable snapshots of tables, made from publications. */
import { assert } from "../assert.ts";
import { CorruptFileError, SqlError, SQLSTATE, TableChangedError, TableClosedError } from "../errors.ts";
import { type RecordChange, RecordMap } from "../access/mod.ts";
import { type AccessPublication, decodeRecords } from "./access.ts";
import type { Interval } from "../sql/plan.ts";
import type {
  AccessSource,
  Catalogue,
  ColumnStorage,
  Dictionary,
  PageRef,
  PartitionInfo,
  PartitionSums,
  PartRef,
  ScanSource,
  SegmentSource,
  TableSchema,
  TableSnapshot,
  TimedPage,
} from "./contract.ts";
import { columnStorageOf } from "./column-storage.ts";
import { type Files, realFiles } from "./files.ts";
import type { SharedHeap } from "./heap.ts";
import { firstOf, PagedSegments, type PageReader, type Run } from "./paged-segments.ts";
import { addSums } from "./page-partitions.ts";
import { refsOf } from "./page-refs.ts";
import { partitionName } from "./partition.ts";
import { Pins } from "./pins.ts";
import { SharedPool } from "./pool.ts";
import { columnById } from "./schema.ts";
import { spliced } from "./splices.ts";
import { isAscii, sameName } from "../types/names.ts";
import { type BranchPublication, type Publication, type TableChange } from "./publication.ts";

class Snapshot implements TableSnapshot {
  /** All segments, by requested columns. */
  private readonly sources = new Map<string, PagedSegments>();
  /** By the lists of columns, which are those of plans: a plan that runs again gets the same source. */
  private readonly sourceOfColumns = new WeakMap<
    readonly number[],
    { intervals: readonly Interval[] | undefined; source: ScanSource }
  >();
  private readonly rows: number;

  constructor(
    private readonly reader: PageReader,
    readonly schema: TableSchema,
    readonly version: number,
    readonly lsn: bigint,
    readonly parts: readonly PartRef[],
    readonly directory: string,
    readonly dictionaries: ReadonlyMap<number, Dictionary>,
    readonly detached: readonly PartitionSums[],
    /** If set, only the schema can be read; the function returns the reason. */
    private readonly failure: (() => Error) | undefined,
  ) {
    let rows = 0;
    for (const { rowCount } of parts) rows += rowCount;
    this.rows = rows;
  }

  get rowCount(): number {
    this.checkReadable();
    return this.rows;
  }

  get timestampMin(): bigint | null {
    return this.ends()?.[0].timestampMin ?? null;
  }

  get timestampMax(): bigint | null {
    return this.ends()?.[1].timestampMax ?? null;
  }

  get partitionMin(): bigint | null {
    return this.ends()?.[0].partitionMin ?? null;
  }

  private ends(): [PartRef, PartRef] | undefined {
    this.checkReadable();
    const { parts, schema } = this;
    return schema.timestampId < 0 || parts.length === 0 ? undefined : [parts[0], parts[parts.length - 1]];
  }

  partitions(): PartitionInfo[] {
    this.checkReadable();
    const found: PartitionSums[] = [];
    for (const page of this.pages()) {
      for (const sums of this.reader.partitionsOf(this.directory, page)) addSums(found, sums);
    }
    return this.named(found);
  }

  detachedPartitions(): PartitionInfo[] {
    this.checkReadable();
    return this.named(this.detached.toSorted((a, b) => (a.start < b.start ? -1 : 1)));
  }

  columnStorage(): ColumnStorage[] {
    this.checkReadable();
    const { columns } = this.schema;
    return columnStorageOf(columns, this.eachSegment(columns.map(({ id }) => id)), (start) => this.nameOf(start));
  }

  timedPages(): TimedPage[] {
    this.checkReadable();
    return this.pages().map((page): TimedPage => {
      const { version, count, rowCount, timestampMin, timestampMax, address } = page;
      const key = [version, count, rowCount, timestampMin, timestampMax].join();
      const segments = address === 0 ? undefined : () => this.reader.read(this.directory, page, []);
      return { key, rowCount, timestampMin, timestampMax, segments };
    });
  }

  /** Segments of all pages. They are not kept. */
  private *eachSegment(columnIds: readonly number[]): Iterable<SegmentSource> {
    for (const page of this.pages()) yield* this.reader.read(this.directory, page, columnIds);
  }

  private named(partitions: readonly PartitionSums[]): PartitionInfo[] {
    return partitions.map((info) => ({ ...info, name: this.nameOf(info.start) }));
  }

  private nameOf(partition: bigint): string {
    const { partitionBy, timestampId, columns } = this.schema;
    const ticks = columns.find((column) => column.id === timestampId)?.type === "TIMESTAMP_NS" ? 1000n : 1n;
    return partitionName(partition, partitionBy, ticks);
  }

  source(columnIds: readonly number[], intervals?: readonly Interval[]): ScanSource {
    this.checkReadable();
    const known = this.sourceOfColumns.get(columnIds);
    if (known !== undefined && known.intervals === intervals) return known.source;
    const source = this.newSource(columnIds, intervals);
    this.sourceOfColumns.set(columnIds, { intervals, source });
    return source;
  }

  private newSource(columnIds: readonly number[], intervals: readonly Interval[] | undefined): ScanSource {
    // A plan that was made for an older definition would read nulls.
    if (columnIds.some((id) => columnById(this.schema, id) === undefined)) throw new TableChangedError(this.schema.id);
    const isWhole = intervals === undefined || this.schema.timestampId < 0;
    const { segments, rowCount } = isWhole
      ? { segments: this.allSources(columnIds), rowCount: this.rows }
      : this.sourcesWithin(columnIds, intervals);
    return {
      tableId: this.schema.id,
      version: this.version,
      rowCount,
      sorted: this.schema.timestampId >= 0,
      directory: this.directory,
      segments,
      dictionaries: columnIds.map((id) => this.dictionaries.get(id)),
    };
  }

  private checkReadable(): void {
    if (this.failure !== undefined) throw this.failure();
  }

  /**
   * For a transaction's snapshot: takes over dictionaries that other sessions have enlarged, as dictionaries are
   * shared.
   */
  withDictionaries(newer: TableChange["dictionaries"]): Snapshot {
    const dictionaries = new Map(this.dictionaries);
    for (const dictionary of newer ?? []) {
      const known = dictionaries.get(dictionary.columnId);
      if (known === undefined || known.own) continue;
      dictionaries.set(dictionary.columnId, { tableId: this.schema.id, ...dictionary });
    }
    const { reader, schema, version, lsn, parts, directory, detached, failure } = this;
    return new Snapshot(reader, schema, version, lsn, parts, directory, dictionaries, detached, failure);
  }

  /** For a transaction's snapshot after another session has dropped the table: reading it fails. */
  lost(): Snapshot {
    const { reader, schema, version, lsn, directory } = this;
    const failure = () => tableLost(schema.name);
    return new Snapshot(reader, schema, version, lsn, [], directory, NO_DICTIONARIES, [], failure);
  }

  private allSources(columnIds: readonly number[]): PagedSegments {
    const key = columnIds.join();
    let sources = this.sources.get(key);
    if (sources === undefined) {
      const runs = this.pages().map((page) => ({ page, from: 0, to: page.count }));
      this.sources.set(key, sources = new PagedSegments(this.reader, this.directory, columnIds, runs));
    }
    return sources;
  }

  private pages(): PageRef[] {
    return this.reader.pagesOf(this.directory, this.parts);
  }

  /** The pages of all parts that overlap the intervals. */
  private pagesWithin(intervals: readonly Interval[]): PageRef[] {
    const { parts } = this, found: PartRef[] = [];
    let next = 0;
    for (const [low, high] of intervals) {
      next = firstOf(next, parts.length, (k) => parts[k].timestampMax >= low);
      while (next < parts.length && parts[next].timestampMin <= high) found.push(parts[next++]);
    }
    return this.reader.pagesOf(this.directory, found);
  }

  /** The segments that overlap the intervals, and their rows. Segments and intervals are both in ascending order. */
  private sourcesWithin(
    columnIds: readonly number[],
    intervals: readonly Interval[],
  ): { segments: PagedSegments; rowCount: number } {
    const { reader, directory } = this, pages = this.pagesWithin(intervals);
    const runs: Run[] = [];
    let rowCount = 0;
    // Where the search continues: page and segment.
    let next = 0, nextSegment = 0;
    for (const [low, high] of intervals) {
      let k = Math.max(next, firstOf(next, pages.length, (k) => pages[k].timestampMax >= low));
      for (; k < pages.length && pages[k].timestampMin <= high; k++) {
        const page = pages[k], begin = k === next ? nextSegment : 0;
        if (begin === page.count) continue;
        let from = begin, to = page.count;
        if (begin > 0 || page.timestampMin < low || page.timestampMax > high) {
          const found = reader.within(directory, page, [low, high], begin);
          ({ from, to } = found);
          rowCount += found.rowCount;
        } else rowCount += page.rowCount;
        if (to > from) runs.push({ page, from, to });
        next = k;
        nextSegment = to;
        if (to < page.count) break;
      }
    }
    return { segments: new PagedSegments(reader, directory, columnIds, runs), rowCount };
  }
}

const NO_DICTIONARIES: ReadonlyMap<number, Dictionary> = new Map();

/** Returns the state of a table after a change. */
function snapshotAfter(
  reader: PageReader,
  before: Snapshot | undefined,
  change: TableChange,
  version: number,
): Snapshot {
  const { tableId, damage } = change;
  const dictionaries = change.dictionaries === undefined ? before?.dictionaries ?? NO_DICTIONARIES : new Map(
    change.dictionaries.map((dictionary) => [dictionary.columnId, { tableId, ...dictionary }]),
  );
  const failure = change.unread
    ? () => new TableClosedError(tableId)
    : damage && (() => new CorruptFileError(damage.path, damage.message));
  return new Snapshot(
    reader,
    change.schema ?? before!.schema,
    version,
    change.lsn,
    spliced(
      before?.parts ?? [],
      (change.parts ?? []).map(({ start, count, refs }) => ({ start, count, added: refsOf(refs) })),
    ),
    change.directory ?? before!.directory,
    dictionaries,
    change.detached ?? before?.detached ?? [],
    failure,
  );
}

/** Another session has dropped a table that a transaction has changed. */
export function tableLost(name: string): SqlError {
  return new SqlError(
    `Cannot continue the transaction: table ${name} was dropped by another session`,
    -1,
    SQLSTATE.serializationFailure,
  );
}

/**
 * The catalogue as one open transaction sees it: its own snapshots of the tables that it has changed, the committed
 * ones otherwise.
 */
class BranchMirror implements Catalogue {
  /** Undefined if the transaction has dropped the table. */
  private readonly own = new Map<number, Snapshot | undefined>();

  constructor(private readonly committed: CatalogueMirror) {}

  get version(): number {
    return this.committed.version;
  }

  table(name: string): TableSnapshot | undefined {
    for (const snapshot of this.own.values()) if (snapshot && sameName(snapshot.schema.name, name)) return snapshot;
    const table = this.committed.table(name);
    return table && this.own.has(table.schema.id) ? undefined : table;
  }

  tableById(id: number): TableSnapshot | undefined {
    return this.own.has(id) ? this.own.get(id) : this.committed.tableById(id);
  }

  tables(): TableSnapshot[] {
    const others = this.committed.tables().filter(({ schema }) => !this.own.has(schema.id));
    const own = [...this.own.values()].filter((snapshot) => snapshot !== undefined);
    return [...others, ...own].sort((a, b) => a.schema.id - b.schema.id);
  }

  pin(): () => void {
    return this.committed.pin();
  }

  apply({ tables }: BranchPublication, version: number): void {
    for (const change of tables) {
      const after = change.dropped
        ? undefined
        : snapshotAfter(this.committed.reader, this.own.get(change.tableId), change, version);
      this.own.set(change.tableId, after);
    }
  }

  /** Applies another session's change of a table. */
  follow({ tableId, dropped, dictionaries }: TableChange): void {
    const table = this.own.get(tableId);
    if (table !== undefined) this.own.set(tableId, dropped ? table.lost() : table.withDictionaries(dictionaries));
  }
}

class AccessMirror implements AccessSource {
  private stored: Uint8Array | undefined;
  private decoded = RecordMap.of();
  private readonly listeners = new Set<(changes: readonly RecordChange[]) => void>();

  /** Without access control the records are not needed, and stay undecoded. */
  get records(): RecordMap {
    if (this.stored !== undefined) {
      this.decoded = RecordMap.of(decodeRecords(this.stored));
      this.stored = undefined;
    }
    return this.decoded;
  }

  apply({ stored, changes }: AccessPublication): void {
    this.stored = stored ?? this.stored;
    if (changes.length > 0) this.decoded = this.records.with(changes);
    for (const listener of this.listeners) listener(changes);
  }

  onChange(listener: (changes: readonly RecordChange[]) => void): void {
    this.listeners.add(listener);
  }
}

export class CatalogueMirror implements Catalogue {
  /** LSN of the last block of the log that this version has. */
  lsn = 0;
  readonly access = new AccessMirror();
  private readonly byId = new Map<number, Snapshot>();
  private byName = new Map<string, Snapshot>();
  private readonly pins: Pins;
  /** By transaction id, of the open transactions. */
  private readonly branches = new Map<number, BranchMirror>();
  private readonly listeners = new Set<(publication: Publication) => void>();

  readonly reader: PageReader;

  /** Over a heap with a pool. */
  constructor(heap: SharedHeap, files: Files = realFiles) {
    this.pins = new Pins(heap);
    this.reader = new SharedPool(heap, files).pages;
  }

  get version(): number {
    return this.pins.version;
  }

  table(name: string): TableSnapshot | undefined {
    const found = this.byName.get(name.toLowerCase());
    if (found !== undefined || isAscii(name)) return found;
    return [...this.byName.values()].find(({ schema }) => sameName(schema.name, name));
  }

  tableById(id: number): TableSnapshot | undefined {
    return this.byId.get(id);
  }

  /** In order of creation. */
  tables(): TableSnapshot[] {
    return [...this.byId.values()].sort((a, b) => a.schema.id - b.schema.id);
  }

  /** Number of pinned versions. */
  get pinCount(): number {
    return this.pins.count;
  }

  pin(): () => void {
    return this.pins.add();
  }

  /** Returns the catalogue as a new transaction sees it until its end. */
  branch(transactionId: number): Catalogue {
    const branch = new BranchMirror(this);
    this.branches.set(transactionId, branch);
    return branch;
  }

  apply(publication: Publication): void {
    const { version, lsn, tables, branch, access } = publication;
    assert(version > this.version, "publications arrive in order");
    // Drops go first: a freed name may be reused in the same publication.
    for (const change of tables.filter(({ dropped }) => dropped)) this.drop(change);
    for (const change of tables.filter(({ dropped }) => !dropped)) this.applyChange(change, version);
    if (branch?.ended) this.branches.delete(branch.transactionId);
    else if (branch !== undefined) this.branches.get(branch.transactionId)?.apply(branch, version);
    this.pins.proceed(version);
    this.lsn = lsn;
    if (access !== undefined) this.access.apply(access);
    for (const listener of this.listeners) listener(publication);
  }

  /** Calls back after each publication. Returns a function that unsubscribes. */
  onChange(listener: (publication: Publication) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private drop(change: TableChange): void {
    const { tableId } = change;
    const before = this.byId.get(tableId);
    this.byId.delete(tableId);
    if (before !== undefined) this.forgetName(before);
    for (const branch of this.branches.values()) branch.follow(change);
  }

  private applyChange(change: TableChange, version: number): void {
    const before = this.byId.get(change.tableId);
    const snapshot = snapshotAfter(this.reader, before, change, version);
    this.byId.set(change.tableId, snapshot);
    if (before !== undefined && before.schema.name !== snapshot.schema.name) this.forgetName(before);
    this.byName.set(snapshot.schema.name.toLowerCase(), snapshot);
    if (change.dictionaries !== undefined) { for (const branch of this.branches.values()) branch.follow(change); }
  }

  /** Frees the name, unless another table has taken it. */
  private forgetName({ schema }: Snapshot): void {
    const name = schema.name.toLowerCase();
    if (this.byName.get(name)?.schema.id === schema.id) this.byName.delete(name);
  }
}
