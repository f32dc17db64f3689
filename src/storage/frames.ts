/**
 * A directory of frames: a hash table in shared memory that maps (data file, extent) to a frame in one of some memories. One lock guards it and
 * is held for some hundred nanoseconds each morsel; files are read outside of it. The directory is in the first of these memories.
 *
 * A frame is on probation until its second use. A clock over the directory's slots, whose order is unrelated to that of scans,
 * selects the frames to evict. While frames on probation take more than a quarter of the pool, only they are evicted, so a scan of
 * any length replaces only that quarter.
 */
import { assert } from "../assert.ts";
import { align } from "./bytes.ts";
import { EXTENT_ALIGN } from "./datafile.ts";
import type { Extent } from "./extent.ts";
import { HeapFullError, type HeapTag, SHARED_WORD } from "./heap.ts";
import { latch, tryLatch, unlatch } from "./latch.ts";

// Words of a directory slot.
const FILE = 0; // id + 1, or 0 empty, or -1 removed
const EXTENT = 1;
const ADDRESS = 2;
const SIZE = 3; // bytes of the block
const STATE = 4; // LOADING, READY, FAILED
const PINS = 5;
const USES = 6; // 0 on probation, up to USES_MAX
const FORM = 7; // DECODED, PACKABLE, PACKED, SUMMARIES or POSTINGS; an extent may have a frame of its values and one of each other form
const USED_AT = 8; // the pool's clock when its values were used last; of a packed one, as a whole
const MEMORY = 9; // number of the memory that ADDRESS is in
const SLOT_WORDS = 10;

const LOADING = 1, READY = 2, FAILED = 3;
const USES_MAX = 3;
/**
 * What a frame has: the values of a chunk; the bytes of its extent; the values of a chunk that can be kept packed; summaries of its vectors; the head
 * of its postings.
 */
export const DECODED = 0, PACKED = 1, PACKABLE = 2, SUMMARIES = 3, POSTINGS = 4;
/**
 * Of this many evictions for a packed frame, one takes any frame of values that could be packed and is not hot instead of one on probation. So a
 * set of chunks that is read again and again ends up in the pool if it fits when packed.
 */
const EVICTIONS_PER_VALUES = 4;
/** See `admits`. */
const MISSES_PER_FRAME = 8;
/** It looks at this many slots. There are some 40 for each frame of usual columns. */
const SLOTS_SEARCHED = 2048;
/** A chunk that is kept packed gets a frame of values when so much of the pool is free. */
const UNPACKED_BELOW = 7 / 8;
/** A chunk is hot if less than this share of the pool's size was read since its last use. */
const HOT_WITHIN = 1 / 16;
const LONG_AGO = 2 ** 31;
/** One in this many reads of hot chunks makes a frame of values, because that takes several times as long as decoding to a window. */
const HOT_READS_PER_FRAME = 4;

// Words of the pool's state, from `SHARED_WORD.poolState` on.
const CAPACITY = 0; // slots
const USED_KIB = 1;
const PROBATION_KIB = 2;
const LIMIT_KIB = 3;
const HAND = 4;
const FILLED = 5; // slots that are not empty, removed ones included
const HITS = 6;
const MISSES = 7;
const ENTRIES = 8;
const EVICTIONS = 9;
const PINNED = 10;
const PACKED_KIB = 11;
const READ_KIB = 12; // the clock: of all values that were read so far, modulo 2^32
const HOT_READS = 13;

/** A memory of frames: the heap, or a further memory. */
export interface FrameMemory {
  readonly u8: Uint8Array;
  readonly i32: Int32Array;
  /** Address of a block of `sizeBytes` rounded up to 4 KiB; undefined if there is none. */
  tryAllocateExact(sizeBytes: number, tag: HeapTag): number | undefined;
  freeExact(address: number, sizeBytes: number, tag: HeapTag): void;
}

/**
 * Formats an empty directory in a memory. The thread that made the memory calls this once. `slotBytes`: bytes of frames for each slot.
 * `isNew`: nothing was in the memory yet, so that the directory gets its pages when it is used.
 */
export function formatPool(memory: FrameMemory, poolSizeBytes: number, slotBytes = 8192, isNew = false): void {
  let capacity = 1024;
  while (capacity < poolSizeBytes / slotBytes) capacity *= 2;
  const bytes = capacity * SLOT_WORDS * 4;
  const { u8, i32 } = memory, address = memory.tryAllocateExact(bytes, "pool");
  assert(address !== undefined, "the directory is smaller than the pool");
  // A free block begins with words of its allocator.
  u8.fill(0, address, address + (isNew ? Math.min(4096, bytes) : bytes));
  i32[SHARED_WORD.poolDirectory] = address / 4;
  const state = SHARED_WORD.poolState;
  i32.fill(0, state, state + HOT_READS + 1);
  i32[state + CAPACITY] = capacity;
  i32[state + LIMIT_KIB] = Math.floor(poolSizeBytes / 1024);
}

/** A block of one of the memories. */
export interface Frame {
  readonly memory: FrameMemory;
  readonly address: number;
  /** Bytes of the block. */
  readonly sizeBytes: number;
}

/** This many slots stay in a `Held` when they are not pinned any more. */
const HELD_KEPT = 64;

/**
 * Pinned slots of a directory, and the number of pins of each. A query that is run again and again pins the same few slots: these stay, with no pins, as
 * a map is made anew from time to time if entries come and go.
 */
export class Held {
  private readonly counts = new Map<number, number>();
  private pinCount = 0;

  has(slot: number): boolean {
    return this.pinCount > 0 && (this.counts.get(slot) ?? 0) > 0;
  }

  add(slot: number): void {
    this.counts.set(slot, (this.counts.get(slot) ?? 0) + 1);
    this.pinCount++;
  }

  drop(slot: number): void {
    const count = this.counts.get(slot) ?? 0;
    assert(count > 0, "unpin follows pin");
    if (count === 1 && this.counts.size > HELD_KEPT) this.counts.delete(slot);
    else this.counts.set(slot, count - 1);
    this.pinCount--;
  }

  get isEmpty(): boolean {
    return this.pinCount === 0;
  }

  /** Removes all pins, and calls `drop` for each. */
  dropAll(drop: (slot: number) => void): void {
    for (const [slot, count] of this.counts) for (let k = 0; k < count; k++) drop(slot);
    this.counts.clear();
    this.pinCount = 0;
  }
}

/**
 * Called by a query that reads no file. "frame": one is not in memory; "lookup": postings are read from their file; "busy": another thread
 * holds the lock for long.
 */
export type OnMiss = (why: "frame" | "lookup" | "busy") => never;

/** A chunk has one frame of its values. */
function isSameForm(a: number, b: number): boolean {
  return a === b || (a === PACKABLE && b === DECODED) || (a === DECODED && b === PACKABLE);
}

export function blockBytesOf(sizeBytes: number): number {
  return align(sizeBytes, 4096);
}

/** Statistics of the pool. */
export interface PoolStats {
  usedBytes: number;
  limitBytes: number;
  frames: number;
  hits: number;
  misses: number;
  evictions: number;
  pins: number;
  packedBytes: number;
}

/** 32 bits. */
function hashOf(id: number, extent: number): number {
  let h = Math.imul(id, 0x9e3779b1) ^ Math.imul(extent, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 15), 0xc2b2ae35);
  return h ^ (h >>> 13);
}

/** True for a share of all extents, always the same ones. */
export function isOfShare({ file, offset }: Extent, share: number): boolean {
  return hashOf(~file, offset / EXTENT_ALIGN) >>> 0 < share * 2 ** 32;
}

function tagOf(form: number): HeapTag {
  return form === PACKED ? "packed" : "pool";
}

/** One thread's access to a directory. */
export class Frames {
  private readonly i32: Int32Array;
  private readonly directory: number;
  private readonly mask: number;
  /** The directory of the chunks' values. It has the clock. */
  private readonly values: Frames;
  /** The memory in which this thread evicted a frame last. */
  private freedIn = 0;

  /** `memories`: those of the frames. `values`: the directory of the chunks' values, if it is another one. */
  constructor(private readonly memories: readonly FrameMemory[], values?: Frames) {
    const [{ i32 }] = memories;
    this.i32 = i32;
    this.values = values ?? this;
    this.directory = i32[SHARED_WORD.poolDirectory];
    assert(this.directory !== 0, "the pool was laid out");
    this.mask = this.state(CAPACITY) - 1;
  }

  /**
   * A frame, which stays until `unpin`. `form`: what it has. `fill` reads it on a miss, `sizeInMemory` bytes.
   */
  pin(
    held: Held,
    { file, offset }: Extent,
    form: number,
    sizeInMemory: number,
    fill: (frame: Frame) => void,
    onMiss?: OnMiss,
  ): Frame {
    const extent = offset / EXTENT_ALIGN;
    for (;;) {
      if (onMiss === undefined) this.lock();
      else if (!tryLatch(this.i32, SHARED_WORD.poolLock)) return onMiss("busy");
      let slot = this.slotOf(file, extent, form);
      if (onMiss !== undefined && (slot < 0 || this.i32[slot + STATE] !== READY)) {
        this.unlock();
        return onMiss("frame");
      }
      if (slot >= 0) {
        this.addPin(slot, 1);
        const state = this.i32[slot + STATE];
        if (state === READY) {
          this.noteUse(slot);
          this.addState(HITS, 1);
        }
        this.unlock();
        if (state === READY || this.waitFor(slot)) return this.hold(held, slot);
        // The thread that was reading it failed. Read it again here to get the error.
        this.dropPin(slot);
        continue;
      }
      slot = this.insert(file, extent, sizeInMemory, form);
      this.addState(MISSES, 1);
      this.unlock();
      try {
        fill(this.frameAt(slot));
      } catch (error) {
        this.settle(slot, FAILED);
        this.dropPin(slot);
        throw error;
      }
      this.settle(slot, READY);
      return this.hold(held, slot);
    }
  }

  /** The address of a frame that is there, which stays until `unpin`, like `pin` without making objects. Otherwise -1. */
  pinReady(held: Held, { file, offset }: Extent, form: number, onMiss?: OnMiss): number {
    if (onMiss === undefined) this.lock();
    else if (!tryLatch(this.i32, SHARED_WORD.poolLock)) return onMiss("busy");
    const slot = this.slotOf(file, offset / EXTENT_ALIGN, form);
    if (slot < 0 || this.i32[slot + STATE] !== READY) {
      this.unlock();
      return -1;
    }
    this.addPin(slot, 1);
    this.noteUse(slot);
    this.addState(HITS, 1);
    this.unlock();
    held.add(slot);
    return this.i32[slot + ADDRESS] >>> 0;
  }

  unpin(held: Held, { file, offset }: Extent): void {
    const slot = this.heldSlotOf(held, file, offset / EXTENT_ALIGN);
    held.drop(slot);
    this.dropPin(slot);
  }

  releaseAll(held: Held): void {
    if (!held.isEmpty) held.dropAll((slot) => this.dropPin(slot));
  }

  /** Frees memory of the heap for other uses than the pool. Returns false if no frame could be evicted. */
  evict(sizeBytes: number): boolean {
    this.lock();
    try {
      let freed = 0;
      while (freed < sizeBytes) {
        const got = this.takeOne();
        if (got === 0) break;
        freed += got;
      }
      return freed > 0;
    } finally {
      this.unlock();
    }
  }

  /** Memory for other uses than frames, for which frames are evicted. Its tag is "pool". */
  allocate(sizeBytes: number): number {
    this.lock();
    try {
      return this.allocateBlock(sizeBytes, "pool").address;
    } finally {
      this.unlock();
    }
  }

  get limitBytes(): number {
    return this.state(LIMIT_KIB) * 1024;
  }

  /** Without the lock this may miss a frame, or find one that is being removed. */
  has({ file, offset }: Extent, form = DECODED): boolean {
    return this.slotOf(file, offset / EXTENT_ALIGN, form) >= 0;
  }

  countMiss(): void {
    this.lock();
    this.addState(MISSES, 1);
    this.unlock();
  }

  /**
   * True if a chunk that has no frame should get one: if there is free memory, and otherwise one time in this many. If not, counts a miss.
   * Scans of more than the pool can hold would replace frames before they use them again.
   */
  admits(sizeBytes: number): boolean {
    if (this.hasRoom(sizeBytes) || this.state(MISSES) % MISSES_PER_FRAME === 0) return true;
    this.countMiss();
    return false;
  }

  /**
   * True if a chunk that can be kept packed should get a frame of its values: there is free memory, or all of it was read several times within
   * a short while. A query that needs `readBytes` of them, a small part, decodes these each time until the chunk was used often.
   */
  deservesValues(
    { file, offset }: Extent,
    valueBytes: number,
    { isPart, readBytes }: { isPart: boolean; readBytes: number },
    onMiss?: OnMiss,
  ): boolean {
    if (onMiss === undefined) this.lock();
    else if (!tryLatch(this.i32, SHARED_WORD.poolLock)) return onMiss("busy");
    const slot = this.slotOf(file, offset / EXTENT_ALIGN, PACKED);
    const hasRoom = this.values.hasRoom(valueBytes, slot < 0 ? 1 : UNPACKED_BELOW);
    let deserves = hasRoom;
    if (isPart) deserves = hasRoom && slot >= 0 && this.i32[slot + USES] === USES_MAX;
    else if (!hasRoom && slot >= 0 && onMiss === undefined && this.isHot(slot)) { // without `onMiss`, as such a query could not get the frame
      this.addState(HOT_READS, 1);
      deserves = this.state(HOT_READS) % HOT_READS_PER_FRAME === 0;
    }
    // A query that must not read files cannot get the frame either. It is then executed on a query worker, which asks for the frame.
    if (deserves && slot >= 0 && onMiss === undefined) this.putOnProbation(slot);
    else if (!deserves) {
      const clock = this.countRead(Math.ceil(readBytes / 1024));
      if (slot >= 0 && !isPart) this.i32[slot + USED_AT] = clock;
    }
    this.unlock();
    return deserves;
  }

  setLimit(poolSizeBytes: number): void {
    this.lock();
    this.i32[SHARED_WORD.poolState + LIMIT_KIB] = Math.floor(poolSizeBytes / 1024);
    while (this.state(USED_KIB) > this.state(LIMIT_KIB) && this.takeOne() > 0);
    this.unlock();
  }

  stats(): PoolStats {
    return {
      usedBytes: this.state(USED_KIB) * 1024,
      limitBytes: this.state(LIMIT_KIB) * 1024,
      frames: this.state(ENTRIES),
      hits: this.state(HITS),
      misses: this.state(MISSES),
      evictions: this.state(EVICTIONS),
      pins: this.state(PINNED),
      packedBytes: this.state(PACKED_KIB) * 1024,
    };
  }

  private hold(held: Held, slot: number): Frame {
    held.add(slot);
    return this.frameAt(slot);
  }

  private frameAt(slot: number): Frame {
    const { i32 } = this;
    return {
      memory: this.memories[i32[slot + MEMORY]],
      address: i32[slot + ADDRESS] >>> 0,
      sizeBytes: i32[slot + SIZE],
    };
  }

  /** `share`: the part of the pool that may be used. */
  hasRoom(sizeBytes: number, share = 1): boolean {
    return this.state(USED_KIB) + blockBytesOf(sizeBytes) / 1024 <= this.state(LIMIT_KIB) * share;
  }

  /** Moves the clock on, and returns it. Threads of both directories do this. */
  private countRead(kib: number): number {
    const { i32 } = this.values, word = SHARED_WORD.poolState + READ_KIB;
    return (Atomics.add(i32, word, kib) + kib) | 0;
  }

  /** Waits until another thread has read the frame; false if that failed. */
  private waitFor(slot: number): boolean {
    for (;;) {
      const state = Atomics.load(this.i32, slot + STATE);
      if (state !== LOADING) return state === READY;
      Atomics.wait(this.i32, slot + STATE, LOADING, 50);
    }
  }

  private settle(slot: number, state: number): void {
    this.lock();
    Atomics.store(this.i32, slot + STATE, state);
    this.unlock();
    Atomics.notify(this.i32, slot + STATE);
    // All directories count in the first memory, as the clock does.
    const { i32 } = this.values;
    Atomics.add(i32, SHARED_WORD.framesFilled, 1);
    Atomics.notify(i32, SHARED_WORD.framesFilled);
  }

  /** Number of frames that any thread has filled. */
  get filledCount(): number {
    return Atomics.load(this.values.i32, SHARED_WORD.framesFilled);
  }

  /** Resolves when there are others than `filledCount` was, or after a time. */
  async filled(filledCount: number, waitMs: number): Promise<void> {
    const waiting = Atomics.waitAsync(this.values.i32, SHARED_WORD.framesFilled, filledCount, waitMs);
    if (waiting.async) await waiting.value;
  }

  /** Takes no lock, except for frames that could not be read. */
  private dropPin(slot: number): void {
    const hasFailed = this.i32[slot + STATE] === FAILED;
    const left = this.addPin(slot, -1);
    assert(left >= 0, "a frame is unpinned as often as it was pinned");
    if (!hasFailed || left > 0) return;
    this.lock();
    // Another thread may have evicted it since.
    const isSame = this.i32[slot + FILE] > 0 && this.i32[slot + STATE] === FAILED && this.i32[slot + PINS] === 0;
    if (isSame) this.remove(slot);
    this.unlock();
  }

  /** Pins are added under the lock and dropped without it. Returns the number of pins that the frame has then. */
  private addPin(slot: number, by: number): number {
    Atomics.add(this.i32, SHARED_WORD.poolState + PINNED, by);
    return Atomics.add(this.i32, slot + PINS, by) + by;
  }

  /**
   * The slot of a frame that the caller has pinned. It needs no lock: the slot of a pinned frame does not change, and no slot between its
   * first place and this one becomes empty.
   */
  private heldSlotOf(held: Held, id: number, extent: number): number {
    for (let k = this.hash(id, extent);; k = (k + 1) & this.mask) {
      const slot = this.directory + k * SLOT_WORDS;
      const file = Atomics.load(this.i32, slot + FILE);
      if (file === 0) return -1;
      if (file === id + 1 && this.i32[slot + EXTENT] === (extent | 0) && held.has(slot)) return slot;
    }
  }

  // ---- under the lock

  private slotOf(id: number, extent: number, form = DECODED): number {
    for (let k = this.hash(id, extent);; k = (k + 1) & this.mask) {
      const slot = this.directory + k * SLOT_WORDS;
      const file = this.i32[slot + FILE];
      if (file === 0) return -1;
      if (file !== id + 1 || this.i32[slot + EXTENT] !== (extent | 0)) continue;
      if (isSameForm(this.i32[slot + FORM], form) && this.i32[slot + STATE] !== FAILED) return slot;
    }
  }

  /** Makes a slot with a frame that is pinned once and still loading. */
  private insert(id: number, extent: number, sizeBytes: number, form: number): number {
    const blockBytes = blockBytesOf(sizeBytes);
    try {
      while (this.state(USED_KIB) + blockBytes / 1024 > this.state(LIMIT_KIB) && this.takeOneFor(form) > 0);
      while (this.state(ENTRIES) > this.mask * 0.7 && this.takeOne() > 0);
      if (this.state(FILLED) > this.mask * 0.85) this.rebuild();
      const { memory, address } = this.allocateBlock(sizeBytes, tagOf(form));
      let k = this.hash(id, extent);
      while (this.i32[this.directory + k * SLOT_WORDS + FILE] > 0) k = (k + 1) & this.mask;
      const slot = this.directory + k * SLOT_WORDS;
      if (this.i32[slot + FILE] === 0) this.addState(FILLED, 1);
      this.i32[slot + FILE] = id + 1;
      this.i32[slot + EXTENT] = extent;
      this.i32[slot + MEMORY] = memory;
      this.i32[slot + ADDRESS] = address;
      this.i32[slot + SIZE] = blockBytes;
      this.addPin(slot, 1);
      this.i32[slot + USES] = 0;
      this.i32[slot + USED_AT] = this.clock - (form === PACKED ? LONG_AGO : 0);
      this.i32[slot + FORM] = form;
      if (form === PACKED) this.addState(PACKED_KIB, blockBytes / 1024);
      Atomics.store(this.i32, slot + STATE, LOADING);
      this.addState(USED_KIB, blockBytes / 1024);
      this.addState(PROBATION_KIB, blockBytes / 1024);
      this.addState(ENTRIES, 1);
      return slot;
    } catch (error) {
      this.unlock();
      throw error;
    }
  }

  private allocateBlock(sizeBytes: number, tag: HeapTag): { memory: number; address: number } {
    const { memories } = this;
    for (let first = 0;;) {
      for (let k = 0; k < memories.length; k++) {
        const memory = (first + k) % memories.length, address = memories[memory].tryAllocateExact(sizeBytes, tag);
        if (address !== undefined) return { memory, address };
      }
      if (this.takeOne() === 0) throw new HeapFullError(`no free block of ${sizeBytes} bytes: all frames are in use`);
      first = this.freedIn;
    }
  }

  private noteUse(slot: number): void {
    if (this.i32[slot + USES] === 0) this.addState(PROBATION_KIB, -this.i32[slot + SIZE] / 1024);
    if (this.i32[slot + USES] < USES_MAX) this.i32[slot + USES]++;
    if (this.i32[slot + FORM] === PACKED) return;
    this.i32[slot + USED_AT] = this.countRead(this.i32[slot + SIZE] / 1024);
  }

  private get clock(): number {
    return this.values.state(READ_KIB);
  }

  private isHot(slot: number): boolean {
    return (this.clock - this.i32[slot + USED_AT]) >>> 0 < this.values.state(LIMIT_KIB) * HOT_WITHIN;
  }

  private putOnProbation(slot: number): void {
    if (this.i32[slot + USES] !== 0) this.addState(PROBATION_KIB, this.i32[slot + SIZE] / 1024);
    this.i32[slot + USES] = 0;
  }

  private takeOneFor(form: number): number {
    const takesValues = form === PACKED && this.values === this && this.state(EVICTIONS) % EVICTIONS_PER_VALUES === 0;
    return takesValues && this.takeValues() || this.takeOne();
  }

  /** Evicts a frame of values that could be packed. Returns its size in bytes, or 0 if none is found soon. */
  private takeValues(): number {
    for (let step = 0, k = this.state(HAND); step < SLOTS_SEARCHED; step++, k = (k + 1) & this.mask) {
      const slot = this.directory + k * SLOT_WORDS;
      if (this.i32[slot + FILE] <= 0 || this.i32[slot + PINS] > 0 || this.i32[slot + FORM] !== PACKABLE) continue;
      if (this.isHot(slot)) continue;
      this.i32[SHARED_WORD.poolState + HAND] = (k + 1) & this.mask;
      const bytes = this.i32[slot + SIZE];
      this.remove(slot);
      this.addState(EVICTIONS, 1);
      return bytes;
    }
    return 0;
  }

  /** Evicts one frame. Returns its size in bytes, or 0 when all are pinned. */
  private takeOne(): number {
    if (this.state(ENTRIES) === 0) return 0;
    const slots = this.mask + 1;
    for (let step = 0, hand = this.state(HAND); step < (USES_MAX + 2) * slots; step++) {
      const slot = this.directory + hand * SLOT_WORDS;
      hand = (hand + 1) & this.mask;
      if (this.i32[slot + FILE] <= 0 || this.i32[slot + PINS] > 0) continue;
      if (this.i32[slot + USES] > 0) {
        // Without values, few misses make frames (`admits`), and what is not used again loses its place.
        const hasValues = this.values === this;
        if (hasValues && step < slots && this.state(PROBATION_KIB) * 4 > this.state(LIMIT_KIB)) continue;
        if (--this.i32[slot + USES] === 0) this.addState(PROBATION_KIB, this.i32[slot + SIZE] / 1024);
        continue;
      }
      this.i32[SHARED_WORD.poolState + HAND] = hand;
      const bytes = this.i32[slot + SIZE];
      this.remove(slot);
      this.addState(EVICTIONS, 1);
      return bytes;
    }
    return 0;
  }

  private remove(slot: number): void {
    const bytes = this.i32[slot + SIZE];
    const { memory, address } = this.frameAt(slot);
    memory.freeExact(address, bytes, tagOf(this.i32[slot + FORM]));
    this.freedIn = this.i32[slot + MEMORY];
    if (this.i32[slot + USES] === 0) this.addState(PROBATION_KIB, -bytes / 1024);
    if (this.i32[slot + FORM] === PACKED) this.addState(PACKED_KIB, -bytes / 1024);
    this.addState(USED_KIB, -bytes / 1024);
    this.addState(ENTRIES, -1);
    this.i32[slot + FILE] = -1;
    // Removed slots at the end of a run can become empty again.
    let k = (slot - this.directory) / SLOT_WORDS;
    if (this.i32[this.directory + ((k + 1) & this.mask) * SLOT_WORDS + FILE] !== 0) return;
    while (this.i32[this.directory + k * SLOT_WORDS + FILE] === -1) {
      this.i32[this.directory + k * SLOT_WORDS + FILE] = 0;
      this.addState(FILLED, -1);
      k = (k - 1) & this.mask;
    }
  }

  /**
   * Gets rid of removed slots by removing all unpinned entries. Pinned entries cannot move: their pins refer to the
   * slot.
   */
  private rebuild(): void {
    for (let k = 0; k <= this.mask; k++) {
      const slot = this.directory + k * SLOT_WORDS;
      if (this.i32[slot + FILE] > 0 && this.i32[slot + PINS] === 0) this.remove(slot);
    }
  }

  private hash(id: number, extent: number): number {
    return hashOf(id, extent) & this.mask;
  }

  private state(word: number): number {
    return this.i32[SHARED_WORD.poolState + word];
  }

  private addState(word: number, by: number): void {
    this.i32[SHARED_WORD.poolState + word] += by;
  }

  private lock(): void {
    latch(this.i32, SHARED_WORD.poolLock);
  }

  private unlock(): void {
    unlatch(this.i32, SHARED_WORD.poolLock);
  }
}
