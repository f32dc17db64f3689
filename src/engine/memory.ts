/** Memory of one query: blocks of the shared heap, counted against its limit over all threads that work on it. */
import { SqlError, SQLSTATE } from "../errors.ts";
import { HeapFullError, SharedHeap } from "../storage/heap.ts";
import type { QueryMemory } from "./contract.ts";

const UNIT_BYTES = 4_096;

/** The limit of one query was reached. SQLSTATE 53200. */
function overLimit(limitBytes: number, operator: string): SqlError {
  return new SqlError(`query needs more memory than its limit of ${(limitBytes / 2 ** 20).toFixed(0)} MiB: reached in ${operator}`, 0, SQLSTATE.outOfMemory);
}

/** All queries together, pool and tails took the whole heap. SQLSTATE 53200. */
function heapFull(heap: SharedHeap, operator: string): SqlError {
  return new SqlError(`out of memory in ${operator}: all ${(heap.sizeBytes() / 2 ** 20).toFixed(0)} MiB of the shared memory are in use`, 0, SQLSTATE.outOfMemory);
}

class HeapQueryMemory implements QueryMemory {
  /** Blocks by address, with the size they were asked for. */
  private readonly blocks = new Map<number, number>();
  private accounted = 0;

  /** `counter` and `word`: where the query's 4 KiB units in use are counted, in shared memory when several threads take part. */
  constructor(private readonly heap: SharedHeap, private readonly limitBytes: number, private readonly counter: Int32Array, private readonly word: number) {}

  get usedBytes(): number {
    return Atomics.load(this.counter, this.word) * UNIT_BYTES;
  }

  allocate(sizeBytes: number, operator: string): number {
    this.count(SharedHeap.blockBytes(sizeBytes), operator);
    try {
      const address = this.heap.allocate(sizeBytes, "query");
      this.blocks.set(address, sizeBytes);
      return address;
    } catch (error) {
      this.count(-SharedHeap.blockBytes(sizeBytes), operator);
      throw error instanceof HeapFullError ? heapFull(this.heap, operator) : error;
    }
  }

  free(address: number, sizeBytes: number): void {
    if (!this.blocks.delete(address)) throw new Error("a query frees only what it allocated");
    this.heap.free(address, sizeBytes, "query");
    this.count(-SharedHeap.blockBytes(sizeBytes), "");
  }

  account(sizeBytes: number, operator: string): void {
    this.accounted += sizeBytes;
    this.count(sizeBytes, operator);
  }

  private count(sizeBytes: number, operator: string): void {
    const units = Math.round(sizeBytes / UNIT_BYTES);
    const before = Atomics.add(this.counter, this.word, units);
    if (units > 0 && (before + units) * UNIT_BYTES > this.limitBytes) {
      Atomics.sub(this.counter, this.word, units);
      throw overLimit(this.limitBytes, operator);
    }
  }

  /** Gives the live blocks away: they are another thread's from now on. They stay counted. */
  handOver(): [address: number, sizeBytes: number][] {
    const given = [...this.blocks];
    this.blocks.clear();
    return given;
  }

  /** Takes blocks that another thread handed over. */
  adopt(blocks: [address: number, sizeBytes: number][]): void {
    for (const [address, sizeBytes] of blocks) this.blocks.set(address, sizeBytes);
  }

  release(): void {
    for (const [address, sizeBytes] of [...this.blocks]) this.free(address, sizeBytes);
    if (this.accounted !== 0) this.account(-this.accounted, "");
  }
}

export type { HeapQueryMemory };

/** For a query that runs on one thread. */
export function createQueryMemory(heap: SharedHeap, limitBytes: number): HeapQueryMemory {
  return new HeapQueryMemory(heap, limitBytes, new Int32Array(1), 0);
}

/** For one thread of a query whose use is counted in the shared word `word` (an index into `heap.i32`). */
export function sharedQueryMemory(heap: SharedHeap, limitBytes: number, word: number): HeapQueryMemory {
  return new HeapQueryMemory(heap, limitBytes, heap.i32, word);
}
