/** The memory of one query: blocks of the heap, counted against the query's limit over all threads that work on it. */
import { SqlError, SQLSTATE } from "../errors.ts";
import { HeapFullError, SharedHeap } from "../storage/heap.ts";
import type { QueryMemory } from "./contract.ts";

/** A query that would go beyond its limit. SQLSTATE 53200. */
function overLimit(operator: string, sizeBytes: number, limitBytes: number): SqlError {
  return new SqlError(
    `${operator} needs ${sizeBytes} more bytes: the query's memory limit of ${limitBytes} bytes is reached`,
    0,
    SQLSTATE.outOfMemory,
  );
}

/** This much of what functions made and let go may wait for the collector of each thread. */
const GARBAGE_BYTES_MAX = 32 << 20;

let collect: (() => void) | undefined;
let madeSinceCollection = 0;

/** How this thread collects its garbage. V8 by itself waits until it needs room, whatever a query's limit is. */
export function collectWith(collectGarbage: () => void): void {
  collect = collectGarbage;
}

/** Before so many bytes are made in JavaScript's heap. */
function beforeMaking(sizeBytes: number): void {
  madeSinceCollection += sizeBytes;
  if (madeSinceCollection <= GARBAGE_BYTES_MAX || collect === undefined) return;
  madeSinceCollection = sizeBytes;
  collect();
}

/** What `memoryUnits` of a slot counts. */
export const UNIT_BYTES = 4_096;

export class CountedMemory implements QueryMemory {
  private readonly blocks = new Map<number, number>();
  private readonly accounted = new Map<string, number>();
  private units = 0;
  /** All that this thread has made in buffers of JavaScript, and let go since or not. */
  madeBytes = 0;

  /** `counter`: i32 index of the word that counts the query's units of 4 KiB over all its threads; without one, this thread is all. */
  constructor(
    private readonly heap: SharedHeap,
    readonly limitBytes: number,
    private readonly counter?: number,
  ) {}

  get usedBytes(): number {
    return (this.counter === undefined ? this.units : Atomics.load(this.heap.i32, this.counter)) * UNIT_BYTES;
  }

  private take(units: number, operator: string): void {
    const before = this.counter === undefined ? this.units : Atomics.add(this.heap.i32, this.counter, units);
    this.units += units;
    if (units > 0 && this.limitBytes > 0 && (before + units) * UNIT_BYTES > this.limitBytes) {
      this.give(units);
      throw overLimit(operator, units * UNIT_BYTES, this.limitBytes);
    }
  }

  private give(units: number): void {
    this.units -= units;
    if (this.counter !== undefined) Atomics.sub(this.heap.i32, this.counter, units);
  }

  allocate(sizeBytes: number, operator: string): number {
    const units = SharedHeap.blockBytes(sizeBytes) / UNIT_BYTES;
    this.take(units, operator);
    try {
      const address = this.heap.allocate(sizeBytes, "query");
      this.blocks.set(address, sizeBytes);
      return address;
    } catch (error) {
      this.give(units);
      if (!(error instanceof HeapFullError)) throw error;
      throw new SqlError(
        `${operator} needs ${sizeBytes} more bytes: the server's shared memory is full (${error.message})`,
        0,
        SQLSTATE.outOfMemory,
      );
    }
  }

  free(address: number, sizeBytes: number): void {
    this.blocks.delete(address);
    this.heap.free(address, sizeBytes, "query");
    this.give(SharedHeap.blockBytes(sizeBytes) / UNIT_BYTES);
  }

  account(sizeBytes: number, operator: string): void {
    if (sizeBytes > 0) this.made(sizeBytes);
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
    this.made(sizeBytes);
  }

  private made(sizeBytes: number): void {
    this.madeBytes += sizeBytes;
    beforeMaking(sizeBytes);
  }

  /** Leaves a block to another thread of the query, which calls `adopt`. */
  detach(address: number): void {
    const size = this.blocks.get(address);
    if (size === undefined) return;
    this.blocks.delete(address);
    this.give(SharedHeap.blockBytes(size) / UNIT_BYTES);
  }

  adopt(address: number, sizeBytes: number, operator: string): void {
    this.blocks.set(address, sizeBytes);
    this.take(SharedHeap.blockBytes(sizeBytes) / UNIT_BYTES, operator);
  }

  /** Leaves every block to another thread, which adopts them: addresses and sizes. */
  handOver(): [address: number, sizeBytes: number][] {
    const given = [...this.blocks];
    for (const [address] of given) this.detach(address);
    return given;
  }

  release(): void {
    for (const [address, size] of [...this.blocks]) this.free(address, size);
    this.give(this.units);
  }
}

export function createQueryMemory(heap: SharedHeap, limitBytes: number, counter?: number): CountedMemory {
  return new CountedMemory(heap, limitBytes, counter);
}
