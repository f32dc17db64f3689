/**
 * Blocks of shared memory that the writer owns. A block lives as long as a chunk of the current state refers to it (`refs`), and
 * then until no reader is pinned to a version that referred to it.
 */
import { HeapFullError, type HeapTag, SharedHeap } from "./heap.ts";
import { VersionsInUse } from "./pins.ts";

export class MemoryBlock {
  /** Number of pages, chunks and dictionaries of the published state that use it. */
  refs = 0;
  /** Bytes handed out, for blocks that are filled bit by bit. */
  used = 0;
  /** The first version that may have it. Undefined if none was published with it: then no reader can know it. */
  since: number | undefined;
  isFree = false;

  constructor(readonly address: number, readonly sizeBytes: number, readonly tag: HeapTag) {}
}

/** A block that versions `since` … `until`-1 had. */
interface Retired {
  readonly block: MemoryBlock;
  readonly since: number;
  readonly until: number;
}

export class WriterMemory {
  /** Blocks allocated since the last publication. */
  private fresh: MemoryBlock[] = [];
  /** What readers may not have seen yet. */
  private readonly retired: Retired[] = [];
  /** What readers need, by a version that is pinned. A long query must not make each call of `reclaim` look at all of it. */
  private readonly needed = new Map<number, Retired[]>();
  private readonly versions: VersionsInUse;
  /** Called when the heap is full; returns true if it freed some memory. */
  onPressure: (sizeBytes: number) => boolean = () => false;
  /** Bytes of tails and of segments that are not stored, retired ones included. */
  tailBytes = 0;

  constructor(readonly heap: SharedHeap) {
    this.versions = new VersionsInUse(heap);
  }

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
    const { since } = block;
    if (since === undefined) return; // `settle` frees it
    this.retired.push({ block, since, until: version });
  }

  /**
   * After a publication or a rollback to the last one: frees the blocks that were allocated in between and are unused. Versions from
   * `version` on may have the others.
   */
  settle(version: number): void {
    for (const block of this.fresh) {
      if (block.refs === 0) this.free(block);
      else block.since = version;
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
    const { versions, retired, needed } = this;
    versions.look();
    for (const [version, group] of needed) {
      if (versions.isPinned(version)) continue;
      needed.delete(version);
      for (const each of group) this.freeUnlessNeeded(each);
    }
    let count = 0;
    while (count < retired.length && retired[count].until <= versions.seen) this.freeUnlessNeeded(retired[count++]);
    retired.splice(0, count);
  }

  /** The oldest version in use at the last call of `reclaim`. */
  get oldestVersion(): number {
    return this.versions.oldest;
  }

  private freeUnlessNeeded(retired: Retired): void {
    const { block, since, until } = retired, version = this.versions.pinnedWithin(since, until);
    if (version === undefined) return this.free(block);
    const group = this.needed.get(version);
    if (group === undefined) this.needed.set(version, [retired]);
    else group.push(retired);
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
