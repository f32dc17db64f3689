/** The mirror of the writer's state on the main thread: immutable snapshots of tables, made from publications. */
import { CorruptFileError, TableClosedError } from "../errors.ts";
import type { Interval } from "../sql/plan.ts";
import type {
  Catalogue,
  Dictionary,
  PartitionInfo,
  ScanSource,
  SegmentRecord,
  SegmentSource,
  TableSchema,
  TableSnapshot,
} from "./contract.ts";
import { SHARED_WORD, type SharedHeap } from "./heap.ts";
import { partitionName } from "./partition.ts";
import type { Publication, TableChange } from "./publication.ts";

class Snapshot implements TableSnapshot {
  private readonly rows: number;
  /** Ordinal in the table of each segment's first row. */
  private readonly firstRows: Float64Array;
  /** Segment sources by the columns asked for. Taken over by the next snapshot, as most segments stay. */
  private readonly sources = new Map<string, SegmentSource[]>();

  constructor(
    readonly schema: TableSchema,
    readonly version: number,
    readonly lsn: bigint,
    readonly segments: readonly SegmentRecord[],
    readonly files: string[],
    readonly dictionaries: ReadonlyMap<number, Dictionary>,
    private readonly isClosed: boolean,
    private readonly damage: TableChange["damage"],
    private before: Snapshot | undefined,
  ) {
    this.firstRows = new Float64Array(segments.length);
    let rows = 0;
    for (let k = 0; k < segments.length; k++) {
      this.firstRows[k] = rows;
      rows += segments[k].rowCount;
    }
    this.rows = rows;
    before?.forgetBefore();
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

  private ends(): [SegmentRecord, SegmentRecord] | undefined {
    this.checkReadable();
    const { segments, schema } = this;
    return schema.timestampId < 0 || segments.length === 0 ? undefined : [segments[0], segments[segments.length - 1]];
  }

  partitions(): PartitionInfo[] {
    this.checkReadable();
    const { partitionBy, timestampId, columns } = this.schema;
    const ticks = columns.find((column) => column.id === timestampId)?.type === "TIMESTAMP_NS" ? 1000n : 1n;
    const found: PartitionInfo[] = [];
    let start: bigint | undefined;
    for (const segment of this.segments) {
      if (segment.partition !== start || found.length === 0) {
        start = segment.partition;
        found.push({
          index: found.length,
          name: partitionName(start, partitionBy, ticks),
          rowCount: 0,
          timestampMin: segment.timestampMin,
          timestampMax: segment.timestampMax,
          diskSizeBytes: 0,
        });
      }
      const info = found[found.length - 1];
      info.rowCount += segment.rowCount;
      info.timestampMax = segment.timestampMax;
      for (const chunk of segment.chunks) {
        if (chunk !== undefined) info.diskSizeBytes += chunk.sizeBytes || chunk.valueBytes;
      }
    }
    return found;
  }

  source(columnIds: readonly number[], intervals?: readonly Interval[]): ScanSource {
    this.checkReadable();
    const all = this.allSources(columnIds);
    const segments = intervals === undefined || this.schema.timestampId < 0 ? all : this.prune(all, intervals);
    let rowCount = 0;
    for (const segment of segments) rowCount += segment.rowCount;
    return {
      tableId: this.schema.id,
      version: this.version,
      rowCount,
      sorted: this.schema.timestampId >= 0,
      files: this.files,
      segments,
      dictionaries: columnIds.map((id) => this.dictionaries.get(id)),
    };
  }

  private checkReadable(): void {
    if (this.isClosed) throw new TableClosedError(this.schema.id);
    if (this.damage !== undefined) throw new CorruptFileError(this.damage.path, this.damage.message);
  }

  private allSources(columnIds: readonly number[]): SegmentSource[] {
    const key = columnIds.join();
    let sources = this.sources.get(key);
    if (sources !== undefined) return sources;
    const { before, segments } = this;
    const old = before?.sources.get(key) ?? [];
    sources = segments.map((segment, k) => {
      if (old.length > k && before!.segments[k] === segment && before!.firstRows[k] === this.firstRows[k]) {
        return old[k];
      }
      const { rowCount, timestampMin, timestampMax, chunks } = segment;
      return {
        rowCount,
        timestampMin,
        timestampMax,
        firstRow: this.firstRows[k],
        ordinal: k,
        chunks: columnIds.map((id) => chunks[id]),
      };
    });
    this.sources.set(key, sources);
    return sources;
  }

  /** Segments that overlap an interval: both are in ascending order. */
  private prune(all: SegmentSource[], intervals: readonly Interval[]): SegmentSource[] {
    const kept: SegmentSource[] = [];
    let next = 0;
    for (const [low, high] of intervals) {
      let from = next, to = all.length;
      while (from < to) {
        const middle = (from + to) >>> 1;
        if (all[middle].timestampMax < low) from = middle + 1;
        else to = middle;
      }
      for (; from < all.length && all[from].timestampMin <= high; from++) kept.push(all[from]);
      next = from;
    }
    return kept;
  }

  /** A snapshot keeps the one before it, for its cache, but not a chain of them. */
  private forgetBefore(): void {
    this.before = undefined;
  }
}

const NO_DICTIONARIES: ReadonlyMap<number, Dictionary> = new Map();

export class CatalogueMirror implements Catalogue {
  version = 0;
  private readonly byId = new Map<number, Snapshot>();
  private byName = new Map<string, Snapshot>();
  /** How often each version is pinned. */
  private readonly pins = new Map<number, number>();
  private readonly listeners = new Set<(publication: Publication) => void>();

  constructor(private readonly heap: SharedHeap) {}

  table(name: string): TableSnapshot | undefined {
    return this.byName.get(name.toLowerCase());
  }

  tableById(id: number): TableSnapshot | undefined {
    return this.byId.get(id);
  }

  /** In the order in which they were made. */
  tables(): TableSnapshot[] {
    return [...this.byId.values()].sort((a, b) => a.schema.id - b.schema.id);
  }

  /** Snapshots that readers hold. */
  get pinCount(): number {
    return this.pins.size;
  }

  pin(): () => void {
    const { version } = this;
    this.pins.set(version, (this.pins.get(version) ?? 0) + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const left = this.pins.get(version)! - 1;
      if (left > 0) this.pins.set(version, left);
      else {
        this.pins.delete(version);
        this.announceOldest();
      }
    };
  }

  apply(publication: Publication): void {
    for (const change of publication.tables) this.applyChange(change, publication.version);
    this.version = publication.version;
    this.announceOldest();
    for (const listener of this.listeners) listener(publication);
  }

  /** Calls back after each publication; gives the way to stop that. */
  onChange(listener: (publication: Publication) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private applyChange(change: TableChange, version: number): void {
    const before = this.byId.get(change.tableId);
    if (change.dropped) {
      if (before !== undefined) {
        this.byId.delete(change.tableId);
        this.byName.delete(before.schema.name.toLowerCase());
      }
      return;
    }
    const schema = change.schema ?? before!.schema;
    let segments = before?.segments ?? [];
    if (change.splice !== undefined) {
      const { start, count, segments: added } = change.splice;
      segments = [...segments.slice(0, start), ...added, ...segments.slice(start + count)];
    }
    const dictionaries = change.dictionaries === undefined ? before?.dictionaries ?? NO_DICTIONARIES : new Map(
      change.dictionaries.map((dictionary) => [dictionary.columnId, { tableId: change.tableId, ...dictionary }]),
    );
    const files = change.files ?? before?.files ?? [];
    const snapshot = new Snapshot(
      schema,
      version,
      change.lsn,
      segments,
      files,
      dictionaries,
      change.unread ?? false,
      change.damage,
      before,
    );
    this.byId.set(change.tableId, snapshot);
    if (before !== undefined && before.schema.name !== schema.name) {
      this.byName.delete(before.schema.name.toLowerCase());
    }
    this.byName.set(schema.name.toLowerCase(), snapshot);
  }

  /** The writer frees what no version from this one on lists. */
  private announceOldest(): void {
    let oldest = this.version;
    for (const version of this.pins.keys()) if (version < oldest) oldest = version;
    Atomics.store(this.heap.i64, SHARED_WORD.oldestVersion / 2, BigInt(oldest));
  }
}
