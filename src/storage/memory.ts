/**
 * Blocks of shared memory that the writer owns. A block lives as long as a chunk of the current state lists it (`refs`), and
 * then until no reader is pinned to a version that listed it.
 */
import { HeapFullError, type HeapTag, SHARED_WORD, SharedHeap } from "./heap.ts";

export class MemoryBlock {
  /** Chunks and dictionaries of the published state that use it. */
  refs = 0;
  /** Bytes given out, where a block is filled bit by bit. */
  used = 0;
  /** Was it in use when a version was published? Until then nobody else can know it. */
  published = false;

  constructor(readonly address: number, readonly sizeBytes: number, readonly tag: HeapTag) {}
}

export class WriterMemory {
  /** Allocated since the last publication. */
  private fresh: MemoryBlock[] = [];
  private retired: { version: number; block: MemoryBlock }[] = [];
  /** Asked for room when the heap is full; true when it made some. */
  onPressure: (sizeBytes: number) => boolean = () => false;
  /** Of tails and segments that are not stored, retired ones included. */
  tailBytes = 0;

  constructor(readonly heap: SharedHeap) {}

  allocate(sizeBytes: number, tag: HeapTag): MemoryBlock {
    const size = SharedHeap.blockBytes(Math.max(1, sizeBytes));
    const block = new MemoryBlock(this.take(size, tag), size, tag);
    this.fresh.push(block);
    if (tag === "tail") this.tailBytes += size;
    return block;
  }

  /** For what was never published: frees at once. */
  discard(block: MemoryBlock): void {
    const at = this.fresh.lastIndexOf(block);
    if (at >= 0) this.fresh.splice(at, 1);
    this.free(block);
  }

  /** A block that no chunk of version `version` and later uses. */
  retire(block: MemoryBlock, version: number): void {
    if (!block.published) return; // `settle` frees it
    this.retired.push({ version, block });
  }

  /** After a publication, or after going back to the last one: what was allocated in between and is not used goes at once. */
  settle(): void {
    for (const block of this.fresh) {
      if (block.refs === 0) this.free(block);
      else block.published = true;
    }
    this.fresh = [];
  }

  /** In the middle of a large load: frees what was allocated for it and has been stored meanwhile. `inUse` is what has not. */
  sweep(inUse: ReadonlySet<MemoryBlock>): void {
    const kept: MemoryBlock[] = [];
    for (const block of this.fresh) {
      if (block.refs === 0 && !inUse.has(block)) this.free(block);
      else kept.push(block);
    }
    this.fresh = kept;
  }

  /** Frees what no reader can see any more. */
  reclaim(): void {
    const oldest = Number(Atomics.load(this.heap.i64, SHARED_WORD.oldestVersion / 2));
    if (this.retired.length === 0 || this.retired[0].version > oldest) return;
    let count = 0;
    while (count < this.retired.length && this.retired[count].version <= oldest) this.free(this.retired[count++].block);
    this.retired.splice(0, count);
  }

  private take(size: number, tag: HeapTag): number {
    for (let attempt = 0;; attempt++) {
      try {
        return this.heap.allocate(size, tag);
      } catch (error) {
        if (!(error instanceof HeapFullError) || attempt === 3) throw error;
        this.reclaim();
        if (attempt > 0 && !this.onPressure(size)) throw error;
      }
    }
  }

  private free(block: MemoryBlock): void {
    this.heap.free(block.address, block.sizeBytes, block.tag);
    if (block.tag === "tail") this.tailBytes -= block.sizeBytes;
  }
}
