/**
 * Flushes of segments whose chunks are encoded on other threads. The writer hands a segment over, goes on with commits, and writes the
 * chunks to the data file when they come back: if the table still has the very segment. Otherwise a commit has replaced it meanwhile, or
 * the writer has flushed it itself, and the result is dropped.
 */
import type { ChunkOrder, EncodedChunk, Encoders } from "./encoders.ts";
import { SHARED_WORD, type SharedHeap } from "./heap.ts";
import type { MemoryBlock, WriterMemory } from "./memory.ts";
import type { Publisher } from "./publisher.ts";
import type { HandOver, Segment } from "./segment.ts";
import type { Table } from "./table.ts";

/** Bytes of memory of the segments under way, besides those of one segment. */
const UNDERWAY_BYTES_MAX = 64 << 20;
const WAIT_MS = 5;
/** Default of `patienceMs`. */
const PATIENCE_MS = 1000;

interface Job {
  readonly job: number;
  readonly table: Table;
  readonly segment: Segment;
  readonly blocks: readonly MemoryBlock[];
  readonly sizeBytes: number;
  /** The data file is synced after the result was written. */
  readonly syncs: boolean;
}

interface Parts {
  readonly tables: ReadonlyMap<number, Table>;
  /** The table, or the one that these rows will be added to, exists or is being loaded. */
  readonly exists: (table: Table) => boolean;
  readonly memory: WriterMemory;
  readonly publisher: Publisher;
  readonly heap: SharedHeap;
  /** False: nothing is written any more. */
  readonly mayWrite: () => boolean;
  readonly patienceMs?: number;
}

export class BackgroundFlush {
  private readonly underway = new Map<Segment, Job>();
  /** Of jobs whose segment was flushed by the writer meanwhile, and which a thread still reads. */
  private readonly abandoned = new Set<Job>();
  private progressAtMs = 0;
  /** Memory of the segments under way, which they will leave. */
  sizeBytes = 0;
  /** False while the writer has to finish what it does. */
  private mayWait = true;

  constructor(private readonly encoders: Encoders | undefined, private readonly parts: Parts) {}

  /** True if `collect` has something to do. */
  get hasOutcomes(): boolean {
    for (const { job } of this.jobs()) if (this.encoders!.outcome(job) !== undefined) return true;
    return false;
  }

  /** Runs `action`, during which the writer stores all segments by itself. */
  withoutWaiting<T>(action: () => T): T {
    const before = this.mayWait;
    this.mayWait = false;
    try {
      return action();
    } finally {
      this.mayWait = before;
    }
  }

  /** True if the writer should wait for segments of this table. */
  isAwaited(table: Table): boolean {
    return this.mayWait && !this.isLate && [...this.underway.values()].some((job) => job.table === table);
  }

  /** `waits`: if all threads are at work, the segments are asked for again; otherwise the writer stores them. */
  handOver(table: Table, waits: boolean, syncs: boolean): HandOver {
    return (segment) => {
      if (this.encoders === undefined || !this.mayWait || this.isLate) return this.takeBack(segment);
      if (this.underway.has(segment)) return "later";
      const started = this.start(table, segment, syncs);
      return started === "full" && waits ? "later" : started === "started" ? "handed over" : "here";
    };
  }

  /** For segments that the writer stores by itself, whether or not they are under way. */
  readonly takeBack: HandOver = (segment) => {
    const job = this.underway.get(segment);
    if (job !== undefined) this.abandon(job);
    return "here";
  };

  /** Waits for a result, or for a command, but not for long. */
  wait(): void {
    const { i32 } = this.parts.heap, seen = Atomics.load(i32, SHARED_WORD.writerWake);
    if (!this.hasOutcomes) Atomics.wait(i32, SHARED_WORD.writerWake, seen, WAIT_MS);
  }

  /** Takes what has come back. */
  collect(): void {
    for (const job of this.jobs()) {
      const outcome = this.encoders!.outcome(job.job);
      if (outcome === undefined) continue;
      this.progressAtMs = performance.now();
      try {
        if (outcome !== "failed" && this.isWanted(job)) this.take(job, outcome);
      } finally {
        this.encoders!.release(job.job);
        this.forget(job);
      }
    }
  }

  private get isLate(): boolean {
    const { patienceMs = PATIENCE_MS } = this.parts;
    return this.underway.size > 0 && performance.now() - this.progressAtMs >= patienceMs;
  }

  private jobs(): Job[] {
    return [...this.underway.values(), ...this.abandoned];
  }

  private start(table: Table, segment: Segment, syncs: boolean): "started" | "full" | "none" {
    const chunks = table.disk.chunkOrders(segment);
    // Readers may not know the memory yet, and it may go at the next rollback.
    const blocks = blocksOf(segment, chunks);
    if (blocks.some(({ since }) => since === undefined)) return "none";
    const sizeBytes = blocks.reduce((sum, block) => sum + block.sizeBytes, 0);
    if (this.underway.size > 0 && this.sizeBytes + sizeBytes > UNDERWAY_BYTES_MAX) return "full";
    const job = this.encoders!.offer(chunks);
    if (typeof job !== "number") return job === "full" && this.underway.size > 0 ? "full" : "none";
    if (this.underway.size === 0) this.progressAtMs = performance.now();
    for (const block of blocks) block.refs++;
    this.underway.set(segment, { job, table, segment, blocks, sizeBytes, syncs });
    this.sizeBytes += sizeBytes;
    return "started";
  }

  /** The segment is stored otherwise. */
  private abandon(job: Job): void {
    if (this.encoders!.withdraw(job.job)) return this.forget(job);
    this.underway.delete(job.segment);
    this.abandoned.add(job);
    this.sizeBytes -= job.sizeBytes;
  }

  private isWanted({ table, segment }: Job): boolean {
    if (!this.underway.has(segment) || !this.parts.mayWrite()) return false;
    return this.parts.exists(table);
  }

  private take({ table, segment, syncs }: Job, chunks: readonly EncodedChunk[]): void {
    const { tables, publisher, heap } = this.parts;
    if (!table.disk.store(segment, chunks)) return;
    heap.addCounter("flushedSegmentsOfHelpers", 1);
    // Of a load the next step keeps count.
    if (tables.get(table.schema.id) !== table) return;
    publisher.touch(table);
    publisher.publish();
    if (syncs) table.data.sync();
  }

  private forget(job: Job): void {
    const { memory, publisher } = this.parts;
    if (this.underway.delete(job.segment)) this.sizeBytes -= job.sizeBytes;
    this.abandoned.delete(job);
    for (const block of job.blocks) {
      block.refs--;
      if (block.refs === 0) memory.retire(block, publisher.version);
    }
  }
}

/** The memory that the encoding of these chunks reads. */
function blocksOf({ chunks }: Segment, orders: readonly ChunkOrder[]): MemoryBlock[] {
  const blocks = new Set<MemoryBlock>();
  for (const { columnId } of orders) {
    const { values, texts } = chunks[columnId]!;
    for (const block of [values, ...texts]) if (block !== undefined) blocks.add(block);
  }
  return [...blocks];
}
