/**
 * One thread's access to the pool: frames of stored column chunks in shared memory, for all threads (`frames.ts`).
 *
 * A frame has the decoded values of a chunk, which kernels read without further work, while there is free memory. Otherwise it has the chunk
 * as it is stored, a third or a fourth of that, and each scan decodes it to a window of its thread. Queries read by leases (`lease.ts`).
 *
 * Kernels and addresses know one memory, the heap. If there are further ones (`packed-memory.ts`), most packed frames are in these, and a thread
 * copies what it reads of such a frame to a block of its own in the heap.
 */
import type { PostedSegments, SegmentList } from "./contract.ts";
import { EXTENT_ALIGN } from "./datafile.ts";
import { CODEC_BYTES, Codecs } from "./encoding/codecs.ts";
import type { Extent } from "./extent.ts";
import { ExtentReader } from "./extent-reader.ts";
import { type Files, realFiles } from "./files.ts";
import {
  DECODED,
  type Frame,
  type FrameMemory,
  Frames,
  Held,
  isOfShare,
  type OnMiss,
  PACKED,
  type PoolStats,
} from "./frames.ts";
import type { SharedHeap } from "./heap.ts";
import { type LeasedPool, PoolLease } from "./lease.ts";
import { PagedSegments, type PageFrames, type PageLocation, PageReader } from "./paged-segments.ts";
import { WINDOW_BYTES, Windows } from "./windows.ts";

/** This many times values are gathered from an extent before it gets a frame. */
const GATHERED_BEFORE = 1;
const GATHERED_EXTENTS_MAX = 65_536;

export class SharedPool implements PageFrames, LeasedPool {
  /** Reads pages of tables in this thread. */
  readonly pages: PageReader;
  readonly frames: Frames;
  /** Packed frames of further memories. */
  readonly further: Frames | undefined;
  readonly reader: ExtentReader;
  readonly windows: Windows;
  private codecsOfThread: Codecs | undefined;
  private copyOfThread: number | undefined;
  /** How often this thread has gathered from extents without a frame. */
  private readonly gathered = new Map<number, number>();
  private readonly pagesHeld = new Held();

  /** `further`: memories for packed frames besides the heap. */
  constructor(readonly heap: SharedHeap, files: Files = realFiles, further: readonly FrameMemory[] = []) {
    this.frames = new Frames([heap]);
    this.further = further.length === 0 ? undefined : new Frames(further, this.frames);
    this.reader = new ExtentReader(files);
    this.pages = new PageReader(heap, this);
    this.windows = new Windows(() => this.frames.allocate(WINDOW_BYTES));
  }

  /** A list that was posted to this thread. */
  segments(posted: PostedSegments): SegmentList {
    return PagedSegments.ofPosted(this.pages, posted);
  }

  /** Without `onMiss`, frames are read, after waiting for the lock. */
  lease(onMiss?: OnMiss): PoolLease {
    return new PoolLease(this, onMiss);
  }

  codecs(): Codecs {
    return this.codecsOfThread ??= new Codecs(this.heap, this.frames.allocate(CODEC_BYTES));
  }

  /**
   * While the heap's part of the pool has free memory, packed frames are there. Otherwise each part has a share of them by its size, so that
   * both are used. Without the locks this may miss a frame: then the extent gets one in the other part, too, and the first is evicted some time.
   */
  packedFramesOf(extent: Extent): Frames {
    const { frames, further } = this;
    if (further === undefined || frames.has(extent, PACKED)) return frames;
    if (further.has(extent, PACKED)) return further;
    const share = frames.limitBytes / (frames.limitBytes + further.limitBytes);
    return frames.hasRoom(extent.sizeBytes) || isOfShare(extent, share) ? frames : further;
  }

  copyBlock(): number {
    return this.copyOfThread ??= this.frames.allocate(WINDOW_BYTES);
  }

  withPage<T>(directory: string, page: PageLocation, use: (address: number) => T): T {
    const { frames, pagesHeld } = this, { sizeBytes } = page;
    const fill = ({ address }: Frame) =>
      void this.reader.read(directory, page, undefined, () => this.heap.u8.subarray(address, address + sizeBytes));
    const { address } = frames.pin(pagesHeld, page, DECODED, sizeBytes, fill);
    try {
      return use(address);
    } finally {
      frames.unpin(pagesHeld, page);
    }
  }

  isGatheredOften({ file, offset }: Extent): boolean {
    const key = file * 2 ** 32 + offset / EXTENT_ALIGN, count = (this.gathered.get(key) ?? 0) + 1;
    if (count > GATHERED_BEFORE) this.gathered.delete(key);
    else {
      if (this.gathered.size >= GATHERED_EXTENTS_MAX) this.gathered.clear();
      this.gathered.set(key, count);
    }
    return count > GATHERED_BEFORE;
  }

  /** Frees memory of the heap for other uses than the pool. Returns false if no frame could be evicted. */
  evict(sizeBytes: number): boolean {
    return this.frames.evict(sizeBytes);
  }

  setLimit(poolSizeBytes: number): void {
    this.frames.setLimit(poolSizeBytes);
  }

  stats(): PoolStats {
    const stats = this.frames.stats(), further = this.further?.stats();
    if (further === undefined) return stats;
    const sums = Object.entries(stats).map(([name, count]) => [name, count + further[name as keyof PoolStats]]);
    return Object.fromEntries(sums) as Record<keyof PoolStats, number>;
  }

  close(): void {
    this.frames.releaseAll(this.pagesHeld);
    this.reader.close();
    if (this.codecsOfThread !== undefined) this.heap.freeExact(this.codecsOfThread.scratch, CODEC_BYTES, "pool");
    if (this.copyOfThread !== undefined) this.heap.freeExact(this.copyOfThread, WINDOW_BYTES, "pool");
    this.codecsOfThread = this.copyOfThread = undefined;
    for (const window of this.windows.drain()) this.heap.freeExact(window, WINDOW_BYTES, "pool");
  }
}
