/** The memory of one query: heap blocks, counted against the query's limit over all threads that work on it. */
import { assert } from "../assert.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import { HeapFullError, SharedHeap } from "../storage/heap.ts";
import type { QueryMemory } from "./contract.ts";

/** The error for exceeding the query's limit. SQLSTATE 53200. */
function overLimit(operator: string, sizeBytes: number, limitBytes: number): SqlError {
  return new SqlError(
    `${operator} needs ${sizeBytes} more bytes: the query's memory limit of ${limitBytes} bytes is reached (cairo.query.memory.limit)`,
    0,
    SQLSTATE.outOfMemory,
  );
}

/** True if the query's limit is reached, or the shared memory is full. */
export function isOutOfMemory(error: unknown): boolean {
  return error instanceof SqlError && error.sqlState === SQLSTATE.outOfMemory;
}

/** Maximum garbage of functions on each thread before a collection. */
const GARBAGE_BYTES_MAX = 16 << 20;

let collect: (() => void) | undefined;
let madeSinceCollection = 0;

/**
 * Sets the garbage collector of this thread. V8 by itself collects only when it needs space, regardless of a query's
 * limit.
 */
export function collectWith(collectGarbage: () => void): void {
  collect = collectGarbage;
}

/** Called before this many bytes are allocated in JavaScript's heap. */
function beforeMaking(sizeBytes: number): void {
  madeSinceCollection += sizeBytes;
  if (madeSinceCollection <= GARBAGE_BYTES_MAX || collect === undefined) return;
  madeSinceCollection = sizeBytes;
  collect();
}

/** Unit of a slot's `memoryUnits`. */
export const UNIT_BYTES = 4_096;

export class CountedMemory implements QueryMemory {
  private readonly blocks = new Map<number, number>();
  private readonly accounted = new Map<string, number>();
  private units = 0;
  /** Sum of `accounted`, and its maximum so far. */
  private heldBytes = 0;
  private mostHeldBytes = 0;
  /** Total bytes that this thread has allocated in JavaScript buffers, including freed ones. */
  madeBytes = 0;

  /**
   * `counter`: i32 index of the word that counts the query's 4 KiB units over all threads; without it, only this thread
   * counts. `evict`: see `block`.
   */
  constructor(
    private readonly heap: SharedHeap,
    readonly limitBytes: number,
    private counter?: number,
    private readonly evict?: (sizeBytes: number) => boolean,
  ) {}

  get usedBytes(): number {
    return (this.counter === undefined ? this.units : Atomics.load(this.heap.i32, this.counter)) * UNIT_BYTES;
  }

  /** What this thread holds of it. */
  get ownBytes(): number {
    return this.units * UNIT_BYTES;
  }

  /** Counts units of the query, and returns whether they are within its limit. */
  private count(units: number): boolean {
    const before = this.counter === undefined ? this.units : Atomics.add(this.heap.i32, this.counter, units);
    this.units += units;
    return this.limitBytes === 0 || (before + units) * UNIT_BYTES <= this.limitBytes;
  }

  private take(units: number, operator: string): void {
    if (this.count(units) || units === 0) return;
    this.give(units);
    throw overLimit(operator, units * UNIT_BYTES, this.limitBytes);
  }

  private give(units: number): void {
    this.units -= units;
    if (this.counter !== undefined) Atomics.sub(this.heap.i32, this.counter, units);
  }

  /**
   * Frames of the pool keep their memory if there is too little. But enough free memory can lie in pieces between them: then they are
   * evicted.
   */
  private block(sizeBytes: number): number {
    const { heap } = this, size = SharedHeap.blockBytes(sizeBytes);
    for (;;) {
      try {
        return heap.allocate(sizeBytes, "query");
      } catch (error) {
        if (!(error instanceof HeapFullError)) throw error;
        if (heap.sizeBytes() - heap.usedBytes() < size || this.evict?.(size) !== true) throw error;
      }
    }
  }

  allocate(sizeBytes: number, operator: string): number {
    const units = SharedHeap.blockBytes(sizeBytes) / UNIT_BYTES;
    this.take(units, operator);
    try {
      const address = this.block(sizeBytes);
      this.blocks.set(address, sizeBytes);
      return address;
    } catch (error) {
      this.give(units);
      if (!(error instanceof HeapFullError)) throw error;
      throw new SqlError(
        `${operator} needs ${sizeBytes} more bytes: the server's shared memory is full (cairo.memory.size; ${error.message})`,
        0,
        SQLSTATE.outOfMemory,
      );
    }
  }

  free(address: number, sizeBytes: number): void {
    const isOwn = this.blocks.delete(address), units = SharedHeap.blockBytes(sizeBytes) / UNIT_BYTES;
    this.heap.free(address, sizeBytes, "query");
    if (isOwn || this.counter === undefined) this.give(units);
    else Atomics.sub(this.heap.i32, this.counter, units);
  }

  share(address: number): void {
    const size = this.blocks.get(address);
    if (size === undefined) return;
    this.blocks.delete(address);
    // The query's count stays. Without a counter, this thread is the only one, and its count is the query's.
    if (this.counter !== undefined) this.units -= SharedHeap.blockBytes(size) / UNIT_BYTES;
  }

  private readonly atRelease = new Set<() => void>();

  onRelease(free: () => void): () => void {
    this.atRelease.add(free);
    return () => this.atRelease.delete(free);
  }

  account(sizeBytes: number, operator: string): void {
    if (sizeBytes > 0) this.madeBytes += sizeBytes;
    // What an operator gives up, for example to continue on disk, is garbage beside what the query makes next.
    else if (-sizeBytes > GARBAGE_BYTES_MAX) madeSinceCollection -= sizeBytes;
    this.heldBytes += sizeBytes;
    // Copies and intermediate values grow with what is held. V8 collects buffers that are held only briefly.
    if (this.heldBytes > this.mostHeldBytes) {
      beforeMaking(this.heldBytes - this.mostHeldBytes);
      this.mostHeldBytes = this.heldBytes;
    }
    const bytes = (this.accounted.get(operator) ?? 0) + sizeBytes;
    const units = Math.ceil(bytes / UNIT_BYTES) - Math.ceil((bytes - sizeBytes) / UNIT_BYTES);
    this.accounted.set(operator, bytes);
    if (units > 0) this.take(units, operator);
    else this.give(-units);
  }

  need(sizeBytes: number, operator: string): void {
    if (this.limitBytes > 0 && this.usedBytes + sizeBytes > this.limitBytes) {
      throw overLimit(operator, sizeBytes, this.limitBytes);
    }
    this.madeBytes += sizeBytes;
    beforeMaking(sizeBytes);
  }

  /** Passes a block to another thread of the query, which calls `adopt`. */
  detach(address: number): void {
    const size = this.blocks.get(address);
    if (size === undefined) return;
    this.blocks.delete(address);
    this.give(SharedHeap.blockBytes(size) / UNIT_BYTES);
  }

  /** Throws if the block exceeds the limit, but has adopted and counted it: its owner frees it. */
  adopt(address: number, sizeBytes: number, operator: string): void {
    const units = SharedHeap.blockBytes(sizeBytes) / UNIT_BYTES;
    this.blocks.set(address, sizeBytes);
    if (!this.count(units)) throw overLimit(operator, units * UNIT_BYTES, this.limitBytes);
  }

  /** Passes all blocks to another thread, which adopts them. Returns addresses and sizes. */
  handOver(): [address: number, sizeBytes: number][] {
    const given = [...this.blocks];
    for (const [address] of given) this.detach(address);
    return given;
  }

  /** Takes what it holds out of the query's count: its blocks are kept for another query, and only this thread has used them. */
  leave(): void {
    assert(this.counter !== undefined, "a query counts the blocks");
    Atomics.sub(this.heap.i32, this.counter, this.units);
    this.counter = undefined;
    this.madeBytes = 0;
  }

  /** Adds what it holds to the count of the query that uses it from now on. `counter`: see the constructor. */
  join(counter: number): void {
    assert(this.counter === undefined, "no query counts the blocks");
    Atomics.add(this.heap.i32, this.counter = counter, this.units);
  }

  mark(): ReadonlySet<number> {
    return new Set(this.blocks.keys());
  }

  freeSince(mark: ReadonlySet<number>): void {
    for (const [address, size] of [...this.blocks]) if (!mark.has(address)) this.free(address, size);
    beforeMaking(0);
  }

  release(): void {
    for (const free of this.atRelease) free();
    this.atRelease.clear();
    for (const [address, size] of [...this.blocks]) this.free(address, size);
    this.give(this.units);
  }
}

export function createQueryMemory(...parameters: ConstructorParameters<typeof CountedMemory>): CountedMemory {
  return new CountedMemory(...parameters);
}
