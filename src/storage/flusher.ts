/** How segments leave the memory for the data files: when they take too much of it, and ahead of a checkpoint. */
import { DiskFullError } from "../errors.ts";
import type { MemoryBlock, WriterMemory } from "./memory.ts";
import type { Publisher } from "./publisher.ts";
import type { Table } from "./table.ts";
import type { WriterOptions } from "./options.ts";

/** What is stored between two groups of commits. */
const STEP_BYTES = 8 << 20;

export class Flusher {
  /** What was left when segments were last stored: tails, and what readers are pinned to. Looking again needs more than that. */
  private unstorableBytes = 0;
  /** How long the log was when segments were stored ahead, and the table that was last. */
  private storedAheadAt = 0;
  private storedLast = -1;

  constructor(
    private readonly tables: ReadonlyMap<number, Table>,
    private readonly memory: WriterMemory,
    private readonly publisher: Publisher,
    private readonly options: Pick<WriterOptions, "log" | "memoryBytes" | "checkpointLogBytes">,
  ) {}

  /** Between steps of a bulk load. */
  duringLoad(table: Table): void {
    if (this.memory.tailBytes > this.options.memoryBytes) this.storeUnpublished(table, false);
  }

  /** While a table is opened: nobody sees what it holds yet, so that all of it may leave the memory, its tail too. */
  whileOpening(table: Table): void {
    if (this.memory.tailBytes > this.options.memoryBytes) this.storeUnpublished(table, true);
  }

  /** For published tables: as much as keeps to the budget, a step at a time as long as that keeps up. */
  whenOverBudget(): void {
    const { memoryBytes } = this.options;
    const { tailBytes } = this.memory;
    if (tailBytes <= Math.max(memoryBytes, this.unstorableBytes * 1.125)) return;
    try {
      if (this.storeSome(tailBytes > memoryBytes * 1.5 ? Infinity : STEP_BYTES)) return;
      if (this.memory.tailBytes > memoryBytes) this.storeTails(this.memory.tailBytes - memoryBytes * 0.75);
      this.unstorableBytes = this.memory.tailBytes;
    } catch (error) {
      this.options.log("ERROR", `segments could not be stored: ${(error as Error).message}`);
    }
  }

  /**
   * Once the log is half as long as it may get: segments are stored bit by bit, so that the checkpoint finds little to do.
   * @throws what a sync throws, which cannot be made up for.
   */
  ahead(logSizeBytes: number): void {
    const { checkpointLogBytes } = this.options;
    const step = Math.min(STEP_BYTES, checkpointLogBytes / 16);
    if (logSizeBytes < this.storedAheadAt) this.storedAheadAt = 0;
    if (logSizeBytes < checkpointLogBytes / 2 || logSizeBytes - this.storedAheadAt < step) return;
    this.storedAheadAt = logSizeBytes;
    this.storeSome(2 * step, true);
  }

  private storeUnpublished(table: Table, tail: boolean): void {
    try {
      table.store(tail, Infinity, !tail);
    } catch (error) {
      // The rows are in the log already. They stay in memory until the disk takes them.
      if (!(error instanceof DiskFullError)) throw error;
      return;
    }
    const inUse = new Set<MemoryBlock>();
    for (const { segments } of new Set([table, ...this.publisher.unpublished])) {
      for (const { chunks } of segments) {
        for (const chunk of chunks) {
          if (chunk?.values !== undefined) inUse.add(chunk.values);
          chunk?.texts.forEach((block) => inUse.add(block));
        }
      }
    }
    this.memory.sweep(inUse);
  }

  /** Stores about so much of what is in memory; false when there is no more. Tables take turns. */
  private storeSome(bytesMax: number, sync = false): boolean {
    let left = bytesMax;
    const tables = [...this.tables.values()].filter((table) => table.changed && table.damage === undefined);
    const next = Math.max(0, tables.findIndex((table) => table.schema.id > this.storedLast));
    for (const table of [...tables.slice(next), ...tables.slice(0, next)]) {
      if (left <= 0) break;
      const before = table.segments;
      left -= table.store(false, left);
      if (table.segments === before) continue;
      this.publisher.touch(table);
      if (sync) table.data.sync();
      this.storedLast = table.schema.id;
    }
    this.publisher.publish();
    return left <= 0;
  }

  /** Of thousands of tables the tails alone may be too much: those that were added to longest ago leave the memory. */
  private storeTails(bytes: number): void {
    const idle = [...this.tables.values()].filter((table) => table.damage === undefined).sort((a, b) => a.lsn - b.lsn);
    for (const table of idle) {
      if (bytes <= 0) break;
      const tailBytes = table.tailBytes();
      if (tailBytes === 0) continue;
      table.store(true, Infinity, false);
      this.publisher.touch(table);
      bytes -= tailBytes;
    }
    this.publisher.publish();
  }
}
