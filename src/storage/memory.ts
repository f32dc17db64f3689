/**
 * Blocks of shared memory that the writer owns. A block lives as long as a chunk of the current state refers to it (`refs`), and
 * then until no reader is pinned to a version that referred to it.
 */
import { HeapFullError, type HeapTag, SHARED_WORD, SharedHeap } from "./heap.ts";

export class MemoryBlock {
  /** Number of pages, chunks and dictionaries of the published state that use it. */
  refs = 0;
  /** Bytes handed out, for blocks that are filled bit by bit. */
  used = 0;
  /** True if a published version used it. Until then no reader can know it. */
  published = false;
  isFree = false;

  constructor(readonly address: number, readonly sizeBytes: number, readonly tag: HeapTag) {}
}

export class WriterMemory {
  /** Blocks allocated since the last publication. */
  private fresh: MemoryBlock[] = [];
  private retired: { version: number; block: MemoryBlock }[] = [];
  /** Called when the heap is full; returns true if it freed some memory. */
  onPressure: (sizeBytes: number) => boolean = () => false;
  /** Bytes of tails and of segments that are not stored, retired ones included. */
  tailBytes = 0;

  constructor(readonly heap: SharedHeap) {}

  allocate(sizeBytes: number, tag: HeapTag): MemoryBlock {
    const size = SharedHeap.blockBytes(Math.max(1, sizeBytes));
    const block = new MemoryBlock(this.take(size, tag), size, tag);
    this.fresh.push(block);
    if (tag === "tail") this.tailBytes += size;
    return block;
  }

  /** Frees a block that was never published. */
  discard(block: MemoryBlock): void {
    const at = this.fresh.lastIndexOf(block);
    if (at >= 0) this.fresh.splice(at, 1);
    this.free(block);
  }

  /** Retires a block that no chunk uses from version `version` on. */
  retire(block: MemoryBlock, version: number): void {
    if (!block.published) return; // `settle` frees it
    this.retired.push({ version, block });
  }

  /**
   * After a publication or a rollback to the last one: frees the blocks that were allocated in between and are unused.
   */
  settle(): void {
    for (const block of this.fresh) {
      if (block.refs === 0) this.free(block);
      else block.published = true;
    }
    this.fresh = [];
  }

  /**
   * During a large load: frees blocks that were allocated for it and whose data is on disk by now. `inUse`: blocks to
   * keep.
   */
  sweep(inUse: ReadonlySet<MemoryBlock>): void {
    const kept: MemoryBlock[] = [];
    for (const block of this.fresh) {
      if (block.refs === 0 && !inUse.has(block)) this.free(block);
      else kept.push(block);
    }
    this.fresh = kept;
  }

  /** Frees retired blocks that no reader can see any more. */
  reclaim(): void {
    const oldest = Number(Atomics.load(this.heap.i64, SHARED_WORD.oldestVersion / 2));
    if (this.retired.length === 0 || this.retired[0].version > oldest) return;
    let count = 0;
    while (count < this.retired.length && this.retired[count].version <= oldest) this.free(this.retired[count++].block);
    this.retired.splice(0, count);
  }

  private take(size: number, tag: HeapTag): number {
    for (let isFirst = true;; isFirst = false) {
      try {
        return this.heap.allocate(size, tag);
      } catch (error) {
        if (!(error instanceof HeapFullError)) throw error;
        this.reclaim();
        // What is freed can lie in pieces between frames, so that it takes many times the size.
        if (!isFirst && !this.onPressure(size)) throw error;
      }
    }
  }

  private free(block: MemoryBlock): void {
    block.isFree = true;
    this.heap.free(block.address, block.sizeBytes, block.tag);
    if (block.tag === "tail") this.tailBytes -= block.sizeBytes;
  }
}
