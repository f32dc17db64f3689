/**
 * Makes the pool smaller while the process takes nearly all memory of the machine. What clients make the server keep has limits, but their
 * sum exceeds a small machine's memory: with a full pool, statements and lines that were within theirs ended a server with 2 GB. The pool is
 * a cache.
 */
import type { SharedHeap, SharedPool } from "../storage/mod.ts";
import { releaseFreePages, returnGarbage } from "./memory-release.ts";

const LOOK_MS = 100;
/** This part of the memory is to stay free. */
const FREE_SHARE = 1 / 8;
/** Returned in one look, some ten milliseconds. */
const STEP_BYTES = 64 << 20;
/** The pool grows again by this much in a look. */
const GROWTH_BYTES = 8 << 20;
const POOL_BYTES_MIN = 32 << 20;
/** This thread collects its garbage every second at most. V8 hardly counts buffers outside of its heap. */
const LOOKS_A_COLLECTION = 10;

export interface PressureOptions {
  heap: Pick<SharedHeap, "warmFreeBytes">;
  pool: Pick<SharedPool, "stats" | "setLimit">;
  memoryBytes: number;
  rssBytes?: () => number;
  release: (sizeBytes: number) => void;
  /** Stops this thread for some 50 ms. */
  collect: () => void;
}

export class MemoryPressure {
  private readonly poolBytesMax: number;
  private looksUntilCollection = 0;

  constructor(private readonly options: PressureOptions) {
    this.poolBytesMax = options.pool.stats().limitBytes;
  }

  look(): void {
    const { heap, pool, memoryBytes, rssBytes = () => Deno.memoryUsage().rss, release, collect } = this.options;
    const wantedBytes = memoryBytes * (1 - FREE_SHARE), excess = rssBytes() - wantedBytes;
    if (excess > 0) {
      const step = Math.min(excess, STEP_BYTES), { usedBytes, limitBytes } = pool.stats();
      const missing = Math.max(0, step - heap.warmFreeBytes());
      if (missing > 0) this.setLimit(Math.min(limitBytes, usedBytes) - missing);
      release(step);
      if (this.looksUntilCollection-- === 0) {
        collect();
        this.looksUntilCollection = LOOKS_A_COLLECTION;
      }
    } else if (excess < -memoryBytes * FREE_SHARE) this.setLimit(pool.stats().limitBytes + GROWTH_BYTES);
  }

  private setLimit(wantedBytes: number): void {
    const { options: { pool }, poolBytesMax } = this;
    const bytes = Math.min(poolBytesMax, Math.max(Math.min(POOL_BYTES_MIN, poolBytesMax), wantedBytes));
    if (bytes !== pool.stats().limitBytes) pool.setLimit(bytes);
  }
}

/** Looks again and again. Returns a function that ends this. */
export function watchMemory(memoryBytes: number, { heap, pool }: { heap: SharedHeap; pool: SharedPool }): () => void {
  const release = (size: number) => releaseFreePages(heap, size);
  const pressure = new MemoryPressure({ heap, pool, memoryBytes, release, collect: returnGarbage });
  const timer = setInterval(() => pressure.look(), LOOK_MS);
  Deno.unrefTimer(timer as unknown as number);
  return () => clearInterval(timer);
}
