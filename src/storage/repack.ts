/**
 * Brings chunks that were stored raw, or by an older program, to the present form: while the server is idle, some chunks at a time. A data
 * file knows whether the present program has decided about all of its chunks (`DataFile.packing`), so chunks that stay raw because they
 * do not shrink are not tried again, and a start goes on where the last one has stopped.
 *
 * A pass goes through the segments that the table had when it began, as they never change. Of each it takes what the table has of it
 * now. Stale chunks only ever become fewer. If a segment was replaced meanwhile, its chunks may be in another one: then there is
 * another pass.
 */
import { CorruptFileError, SqlError } from "../errors.ts";
import { layoutOf } from "../types/mod.ts";
import type { Chunk } from "./chunks.ts";
import type { ChunkOrder, EncodedChunk } from "./encoders.ts";
import { isPackable, isStale, lacksPostings } from "./encoding/codecs.ts";
import { PACKING } from "./encoding/encodings.ts";
import type { Extent } from "./extent.ts";
import { type Idle, IdleWork } from "./idle.ts";
import type { Segment } from "./segment.ts";
import type { Store } from "./store.ts";
import type { Table } from "./table.ts";

/** Values in memory of the chunks of a step, besides those of one chunk. */
const STEP_BYTES = 8 << 20;

/** How long a step looks for stale chunks at most. */
const LOOK_MS = 5;

interface Pass {
  readonly table: Table;
  /** Segments of the snapshot. */
  readonly segments: Iterator<Segment>;
  /** Columns that were indexed when the pass began. */
  readonly indexed: readonly number[];
  /** The segment whose chunks are being replaced, and the columns that have been. */
  current: number | undefined;
  readonly done: Set<number>;
  /** A segment was not found, or could not be read. */
  isIncomplete: boolean;
  /** Damaged: another pass finds nothing else. */
  isHopeless: boolean;
}

/** Chunks whose values are in memory. */
interface Work {
  readonly table: Table;
  readonly segment: Segment;
  readonly orders: readonly ChunkOrder[];
  readonly blocks: readonly { address: number; sizeBytes: number }[];
  /** The job on another thread. */
  job?: number;
}

export class Repack extends IdleWork {
  private pass: Pass | undefined;
  private work: Work | undefined;
  /** Tables of which nothing is left, or nothing that can be done. */
  private readonly finished = new WeakSet<Table>();
  private isFinished: boolean;
  /** Damaged tables. */
  private readonly hopeless = new WeakSet<Table>();

  constructor(store: Store, idle: Idle) {
    super(store, idle, "older segments are encoded later");
    this.isFinished = store.options.encoding === "raw";
  }

  /** The table has changed. A column may be indexed now. */
  look(table: Table): void {
    if (this.store.options.encoding === "raw" || table.isPacked || this.hopeless.has(table)) return;
    this.finished.delete(table);
    this.isFinished = false;
  }

  /** Chunks of this table are being stored anew, and no command has come meanwhile. */
  isUnderway(table: Table): boolean {
    return this.pass?.table === table && this.idle.isLong;
  }

  /** Something is left to do, and the server has been idle for long enough. */
  get isDue(): boolean {
    if (this.isFinished || !this.isFree) return false;
    return this.work?.job === undefined || this.outcome !== undefined;
  }

  /** Another thread works for it. */
  get isWaiting(): boolean {
    return this.work?.job !== undefined;
  }

  /** Takes the chunks of a step to the data files, or begins with those of the next one. */
  protected override doStep(): void {
    if (this.work !== undefined) this.finish(this.work);
    else this.begin();
  }

  private get outcome() {
    return this.store.options.encoders!.outcome(this.work!.job!);
  }

  /** Looks for stale chunks for a while, and begins with the first ones. */
  private begin(): void {
    for (const deadline = performance.now() + LOOK_MS; performance.now() < deadline;) {
      this.pass ??= this.nextPass();
      if (this.pass === undefined) {
        this.isFinished = true;
        if (this.sinceCheckpoint > 0) this.checkpoint();
        return;
      }
      const { table } = this.pass;
      const next = this.isCurrent(table) ? this.nextChunks(this.pass) : "end";
      if (next === "nothing") continue;
      if (next !== "end") return this.encode(next);
      if (this.isCurrent(table)) this.end(this.pass);
      this.pass = undefined;
    }
  }

  private encode(work: Work): void {
    this.work = work;
    const { encoders } = this.store.options;
    if (encoders === undefined) return this.finish(work);
    const job = encoders.offer(work.orders);
    if (typeof job === "number") {
      work.job = job;
      return;
    }
    // No thread is idle, so the server is not.
    this.drop(work);
    this.idle.wasUsed();
  }

  private isCurrent(table: Table): boolean {
    return this.store.tables.get(table.schema.id) === table && table.damage === undefined;
  }

  /** A table with chunks that may be stale. */
  private nextPass(): Pass | undefined {
    for (const table of this.store.tables.values()) {
      if (table.damage !== undefined || this.finished.has(table)) continue;
      if (table.unread !== undefined) {
        if (table.wasPacked) continue;
        try {
          this.store.open(table);
        } catch (error) {
          if (!(error instanceof SqlError)) throw error;
          this.finished.add(table); // until the next start
          continue;
        }
      }
      if (table.damage === undefined && !table.isPacked) return newPass(table);
      this.finished.add(table);
    }
  }

  /** "nothing": nothing is to be done for this segment. */
  private nextChunks(pass: Pass): Work | "nothing" | "end" {
    const { table } = pass;
    try {
      if (pass.current === undefined) {
        const next = pass.segments.next();
        if (next.done) return "end";
        pass.done.clear();
        if (staleColumns(pass, next.value).length === 0) return "nothing";
        pass.current = next.value.uid;
      }
      const segment = table.segmentByUid(pass.current);
      const columns = segment === undefined ? [] : staleColumns(pass, segment);
      if (segment !== undefined && columns.length > 0) return this.load(table, segment, columns);
      pass.isIncomplete ||= segment === undefined;
    } catch (error) {
      if (!(error instanceof CorruptFileError)) throw error;
      // It stays as it is. A query that reads it reports the error.
      pass.isHopeless = true;
    }
    pass.current = undefined;
    return "nothing";
  }

  private load(table: Table, segment: Segment, columns: readonly number[]): Work {
    const { heap } = this.store.options;
    const blocks: { address: number; sizeBytes: number }[] = [], orders: ChunkOrder[] = [];
    let loaded = 0;
    try {
      for (const columnId of columns) {
        const chunk = segment.chunks[columnId]!, { rowCount } = segment;
        const sizeBytes = table.disk.loadedBytes(chunk);
        if (loaded > 0 && loaded + sizeBytes > STEP_BYTES) break;
        loaded += sizeBytes;
        const address = heap.allocate(sizeBytes, "batch");
        blocks.push({ address, sizeBytes });
        const type = table.typeOfColumn(columnId)!;
        table.disk.loadChunk(type, chunk, rowCount, address);
        orders.push({ columnId, type, address, rowCount, isIndexed: table.isIndexed(columnId) });
      }
      return { table, segment, orders, blocks };
    } catch (error) {
      for (const { address, sizeBytes } of blocks) heap.free(address, sizeBytes, "batch");
      throw error;
    }
  }

  private finish(work: Work): void {
    const { table, segment, orders } = work;
    const { encoders } = this.store.options;
    try {
      const outcome = work.job === undefined ? table.disk.encode(orders) : encoders!.outcome(work.job)!;
      if (outcome !== "failed" && this.isCurrent(table)) this.exchange(table, segment, orders, outcome);
    } finally {
      if (work.job !== undefined) encoders!.release(work.job);
      this.drop(work);
    }
    this.checkpointIfMuch();
  }

  /** If others have replaced the chunks meanwhile, the next step finds what is stale now. */
  private exchange(
    table: Table,
    segment: Segment,
    orders: readonly ChunkOrder[],
    chunks: readonly EncodedChunk[],
  ): void {
    const before = table.data.writtenBytes;
    if (!table.disk.exchange(segment, orders, chunks)) return;
    for (const { columnId } of orders) this.pass?.done.add(columnId);
    this.sinceCheckpoint += table.data.writtenBytes - before;
    this.store.options.heap.addCounter("repackedSegments", 1);
    this.store.publisher.touch(table);
    this.store.publisher.publish();
  }

  private drop({ blocks }: Work): void {
    for (const { address, sizeBytes } of blocks) this.store.options.heap.free(address, sizeBytes, "batch");
    this.work = undefined;
  }

  private end({ table, indexed, isIncomplete, isHopeless }: Pass): void {
    if (isIncomplete && !isHopeless) return; // another pass
    this.finished.add(table);
    if (isHopeless) return void this.hopeless.add(table);
    table.data.markPacked();
    table.posted = new Set(indexed);
    table.changed = true;
    this.sinceCheckpoint = Math.max(1, this.sinceCheckpoint);
  }
}

function newPass(table: Table): Pass {
  const pass: Omit<Pass, "segments"> = {
    table,
    indexed: table.indexedColumns(),
    current: undefined,
    done: new Set(),
    isIncomplete: false,
    isHopeless: false,
  };
  return Object.assign(pass, { segments: snapshotOf(pass) });
}

/** The segments of the table and of its detached partitions, as they are at the first call. */
function* snapshotOf(pass: Omit<Pass, "segments">): Generator<Segment> {
  const { table: { segments, detached, data } } = pass;
  /** What `read` returns. Nothing if the file has gone with all that was in it, or is damaged. */
  const unlessGone = <T>(extent: Extent | undefined, read: () => readonly T[]): readonly T[] => {
    if (extent !== undefined && !data.list.has(extent.file)) {
      pass.isIncomplete = true;
      return [];
    }
    try {
      return read();
    } catch (error) {
      if (!(error instanceof CorruptFileError)) throw error;
      pass.isHopeless = true;
      return [];
    }
  };
  for (const { lists } of [segments, ...detached.values()]) {
    for (const list of lists) {
      for (const page of unlessGone(list.isRead ? undefined : list.extent, () => list.pages)) {
        yield* unlessGone(page.extent, () => page.segments);
      }
    }
  }
}

function staleColumns({ table, indexed, done }: Pass, { chunks, rowCount }: Segment): number[] {
  const isColumnStale = (chunk: Chunk | undefined, id: number) => {
    if (chunk === undefined || chunk.plain.file < 0 || chunk.plain.address !== 0 || done.has(id)) return false;
    const type = table.typeOfColumn(id);
    if (type === undefined || !isPackable(layoutOf(type))) return false;
    // A file of the snapshot may have gone.
    const packing = table.data.list.get(chunk.plain.file)?.packing ?? 0;
    if (packing < PACKING && isStale(layoutOf(type), chunk.plain)) return true;
    return indexed.includes(id) && !table.posted.has(id) && lacksPostings(chunk.plain, rowCount);
  };
  return chunks.flatMap((chunk, id) => isColumnStale(chunk, id) ? [id] : []);
}
