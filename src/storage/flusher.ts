/** Flushes segments from memory to the data files: when they take too much memory, and ahead of a checkpoint. */
import { DiskFullError } from "../errors.ts";
import type { BackgroundFlush } from "./background-flush.ts";
import type { MemoryBlock, WriterMemory } from "./memory.ts";
import type { Publisher } from "./publisher.ts";
import type { Table } from "./table.ts";
import type { WriterOptions } from "./options.ts";

/** Bytes to flush between two groups of commits. */
const STEP_BYTES = 8 << 20;

export class Flusher {
  /**
   * Memory that the last flush could not free: tails, and blocks that readers pin. The next flush waits until clearly
   * more is in use.
   */
  private unflushableBytes = 0;
  /** Log size at the last flush ahead of a checkpoint, and the id of the table that was flushed last. */
  private flushedAheadAt = 0;
  private lastFlushed = -1;

  constructor(
    private readonly tables: ReadonlyMap<number, Table>,
    private readonly memory: WriterMemory,
    private readonly publisher: Publisher,
    private readonly background: BackgroundFlush,
    private readonly options: Pick<WriterOptions, "log" | "memoryBytes" | "checkpointLogBytes">,
  ) {}

  /** Called between the steps of a bulk load. */
  duringLoad(table: Table): void {
    if (this.memory.tailBytes > this.options.memoryBytes) this.flushUnpublished(table, false);
  }

  /**
   * Called while a table is opened. Its rows are not published yet, so all of them may leave memory, the tail included.
   */
  whileOpening(table: Table): void {
    if (this.memory.tailBytes > this.options.memoryBytes) this.flushUnpublished(table, true);
  }

  /**
   * Flushes published tables until memory is within the budget: step by step, or all at once if that does not keep up.
   */
  whenOverBudget(): void {
    const { memoryBytes } = this.options;
    const { tailBytes } = this.memory, leaving = this.background.sizeBytes;
    const isLate = tailBytes > memoryBytes * 1.5;
    if (tailBytes - (isLate ? 0 : leaving) <= Math.max(memoryBytes, this.unflushableBytes * 1.125)) return;
    try {
      if (isLate) this.background.withoutWaiting(() => this.flushSome(Infinity));
      else if (
        this.flushSome(STEP_BYTES, { waits: tailBytes <= memoryBytes * 1.25 }) || this.background.sizeBytes > 0
      ) return;
      if (this.memory.tailBytes > memoryBytes) this.flushTails(this.memory.tailBytes - memoryBytes * 0.75);
      this.unflushableBytes = this.memory.tailBytes;
    } catch (error) {
      this.options.log("ERROR", `segments could not be flushed: ${(error as Error).message}`);
    }
  }

  /**
   * Once the log has reached half of its limit, flushes segments bit by bit, so that the checkpoint has little left to
   * do.
   * @throws the error of a failed sync, after which the state of the files is unknown.
   */
  ahead(logSizeBytes: number): void {
    const { checkpointLogBytes } = this.options;
    const step = Math.min(STEP_BYTES, checkpointLogBytes / 16);
    if (logSizeBytes < this.flushedAheadAt) this.flushedAheadAt = 0;
    if (logSizeBytes < checkpointLogBytes / 2 || logSizeBytes - this.flushedAheadAt < step) return;
    this.flushedAheadAt = logSizeBytes;
    this.flushSome(2 * step, { syncs: true });
  }

  private flushUnpublished(table: Table, tail: boolean): void {
    try {
      table.disk.flush(tail, Infinity, !tail, this.background.takeBack);
    } catch (error) {
      // The rows are in the log already. They stay in memory until the disk has space.
      if (!(error instanceof DiskFullError)) throw error;
      return;
    }
    const inUse = new Set<MemoryBlock>();
    for (const used of new Set([table, ...this.publisher.unpublished])) {
      for (const { chunks } of used.liveSegments()) {
        for (const chunk of chunks) {
          if (chunk?.values !== undefined) inUse.add(chunk.values);
          chunk?.texts.forEach((block) => inUse.add(block));
        }
      }
    }
    this.memory.sweep(inUse);
  }

  /**
   * Flushes about `bytesMax` bytes; returns false if there was less to flush. Tables take turns. `waits`: if the other threads have
   * enough to encode.
   */
  private flushSome(bytesMax: number, { syncs = false, waits = true } = {}): boolean {
    let left = bytesMax;
    const tables = [...this.tables.values()].filter((table) => table.changed && table.damage === undefined);
    const next = Math.max(0, tables.findIndex((table) => table.schema.id > this.lastFlushed));
    for (const table of [...tables.slice(next), ...tables.slice(0, next)]) {
      if (left <= 0) break;
      const before = table.segments;
      left -= table.disk.flush(false, left, true, this.background.handOver(table, waits, syncs));
      if (table.segments === before) continue;
      this.publisher.touch(table);
      if (syncs) table.data.sync();
      this.lastFlushed = table.schema.id;
    }
    this.publisher.publish();
    return left <= 0;
  }

  /**
   * With thousands of tables the tails alone may exceed the budget: flushes those that were appended to longest ago.
   */
  private flushTails(bytes: number): void {
    const idle = [...this.tables.values()].filter((table) => table.damage === undefined).sort((a, b) => a.lsn - b.lsn);
    for (const table of idle) {
      if (bytes <= 0) break;
      const tailBytes = table.disk.tailBytes();
      if (tailBytes === 0) continue;
      table.disk.flush(true, Infinity, false, this.background.takeBack);
      this.publisher.touch(table);
      bytes -= tailBytes;
    }
    this.publisher.publish();
  }
}
