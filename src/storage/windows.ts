/** Memory into which a thread decodes the chunks that the pool keeps packed. It is reused, so it stays in the cache of the processor. */
import { assert } from "../assert.ts";
import { SEGMENT_ROWS_MAX } from "./chunks.ts";
import { HeapFullError } from "./heap.ts";

/** A window has space for the values of a segment's column. */
export const WINDOW_BYTES = 8 * SEGMENT_ROWS_MAX;
/** A thread has a window for each column that its queries read at the same time, up to this many. */
const WINDOWS_MAX = 32;
/** The windows of a thread take at most this share of the pool's size, besides the pool. */
const WINDOWS_SHARE = 1 / 8;

export class Windows {
  private readonly all = new Set<number>();
  private readonly free: number[] = [];

  constructor(private readonly allocate: () => number) {}

  /** Undefined if there is none left. */
  take(poolSizeBytes: number): number | undefined {
    const found = this.free.pop();
    if (found !== undefined) return found;
    if (this.all.size >= Math.min(WINDOWS_MAX, Math.floor(poolSizeBytes * WINDOWS_SHARE / WINDOW_BYTES))) {
      return undefined;
    }
    try {
      const window = this.allocate();
      this.all.add(window);
      return window;
    } catch (error) {
      if (error instanceof HeapFullError) return undefined;
      throw error;
    }
  }

  giveBack(address: number): void {
    assert(this.all.has(address) && !this.free.includes(address), "a window is given back once");
    this.free.push(address);
  }

  /** The windows, which are no longer used. */
  drain(): number[] {
    const windows = [...this.all];
    this.all.clear();
    this.free.length = 0;
    return windows;
  }
}
