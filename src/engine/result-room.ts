/**
 * How much of results may be on the way to their readers: posted by query threads, and not yet sent. Each query has a limit, but the sum of
 * 64 of them, and of results whose queries have ended, would fill a small machine's memory.
 */
import { SHARED_WORD, type SharedHeap } from "../storage/heap.ts";

/** Of a query. */
const CHUNKS_MAX = 4;
/** A query may always have one chunk of this size on the way, so that slow readers never stop the others. */
export const SMALL_CHUNK_BYTES = 2 << 20;
/** Of cairo.memory.size. */
const SHARE = 1 / 8;
const UNIT_BYTES = 1 << 10;

const unitsOf = (sizeBytes: number): number => Math.ceil(sizeBytes / UNIT_BYTES);

export class ResultRoom {
  private readonly unitsMax: number;

  constructor(private readonly heap: Pick<SharedHeap, "i32" | "sizeBytes">) {
    this.unitsMax = unitsOf(heap.sizeBytes() * SHARE);
  }

  get usedBytes(): number {
    return Atomics.load(this.heap.i32, SHARED_WORD.resultUnits) * UNIT_BYTES;
  }

  /** Main counts, because a thread that fails could not. */
  add(sizeBytes: number): void {
    Atomics.add(this.heap.i32, SHARED_WORD.resultUnits, unitsOf(sizeBytes));
  }

  subtract(sizeBytes: number): void {
    Atomics.sub(this.heap.i32, SHARED_WORD.resultUnits, unitsOf(sizeBytes));
  }

  /** True if a query of which `chunkCount` chunks are on the way may post another one. Half of the room is for queries of which nothing is. */
  isFor(sizeBytes: number, chunkCount: number): boolean {
    const used = Atomics.load(this.heap.i32, SHARED_WORD.resultUnits), units = unitsOf(sizeBytes);
    if (chunkCount > 0) return chunkCount < CHUNKS_MAX && used + units <= this.unitsMax / 2;
    return sizeBytes <= SMALL_CHUNK_BYTES || used === 0 || used + units <= this.unitsMax;
  }
}
