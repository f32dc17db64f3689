/**
 * One shared memory for everything that kernels touch: the pool's frames, the tails of tables, dictionaries and the
 * working memory of queries. An address is a u32 and valid in every thread.
 *
 * The whole size is reserved at the start (`initial` = `maximum`), so views never go stale; the system provides pages on first
 * touch. Blocks come from a buddy allocator over 4 KiB units. Its state is in the memory itself, guarded by a lock word, so any
 * thread can allocate and free. Freed blocks keep their pages, to avoid repeated first touches. The heap counts such pages, and
 * `workers/memory-release.ts` returns those beyond a limit to the system.
 * Source: Knowlton, "A Fast Storage Allocator", CACM 8(10), 1965.
 */
import { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import { PAGE_BYTES } from "../wasm/assembler.ts";
import { latch, unlatch } from "./latch.ts";

/** An address has 32 bits. */
export const MEMORY_BYTES_MAX = 65_535 * PAGE_BYTES;
const UNIT_SHIFT = 12;
const UNIT_BYTES = 1 << UNIT_SHIFT;
/** 2^0 … 2^19 units: 4 KiB … 2 GiB. */
const ORDER_COUNT = 20;

/** The control block, at address 0. Its words are i32. */
const CONTROL_BYTES = 5 * UNIT_BYTES;
const LOCK = 0;
const USED_UNITS = 1;
const TAG_USED = 2; // 16 words: units in use by tag
const FREE_HEAD = 24; // ORDER_COUNT words: first free unit of each order, or -1
const UNIT_COUNT = 60;
const BASE_UNIT = 61;
/** Units of free blocks that may still have their pages. */
const WARM_UNITS = 62;
/** Blocks that `take` holds for a moment: see `allocate`. */
const GIVING_BACK = 63;
/** From here on, the words of the control block are shared words of other layers: see `SHARED_WORD`. */
const FIRST_RESERVED_WORD = 64;

export const HEAP_TAGS = ["pool", "tail", "dictionary", "query", "batch", "other", "pages", "packed"] as const;
export type HeapTag = (typeof HEAP_TAGS)[number];

export interface BlockRange {
  address: number;
  /** 4 KiB times a power of two. */
  sizeBytes: number;
}

/** A free block, as it was when it was listed. */
export interface FreeBlock extends BlockRange {
  /** The part from its start that may still have its pages. */
  warmBytes: number;
}

/** Thrown when no block is left. Callers evict frames, or report an error that names the operator. */
export class HeapFullError extends Error {
  override readonly name = "HeapFullError";
}

/**
 * Words of the control block that other layers share between threads (i32 indices), in one list so that none overlap.
 */
export const SHARED_WORD = {
  poolLock: FIRST_RESERVED_WORD,
  poolDirectory: FIRST_RESERVED_WORD + 1,
  poolState: FIRST_RESERVED_WORD + 2, // … + 61
  /**
   * Rows processed by compiled kernels since the start: a u64 in two words, so the index is even (use `Atomics.add` on
   * the i64 view).
   */
  kernelRows: 128,
  /** Number of compiled modules, and of cache hits. */
  kernelsCompiled: 130,
  kernelsReused: 131,
  morsels: 132,
  workersBusy: 133,
  /** Always 0: the cancel word of queries that cannot be cancelled. */
  neverCancelled: 134,
  /** Number of parallel sections. */
  sections: 135,
  /** A version of the catalogue that main has, see `pins.ts`: an i64. */
  seenVersion: 136,
  /** Number of commands sent to the writer, which sleeps on this word. */
  writerWake: 138,
  /** Number of frames of the pool that were filled. Main waits on this word for frames that it lacks. */
  framesFilled: 139,
  // What a thread makes for all, see `shareBytes`: address and size of each.
  /** The module of the kernels that encode and decode columns. */
  codecModule: 140,
  /** The kernel that writes the rows of answers. */
  rowKernel: 142,
  /** KiB that queries have on disk. */
  spilledUnits: 150,
  /** Number of partitions and of KiB that queries have written to disk since the start: each an i64. */
  spilledPartsTotal: 152,
  spilledUnitsTotal: 154,
  /** Number of changes of `pinnedVersions`. */
  pinChanges: 156,
  /** KiB of results on the way to their readers, see `ResultRoom`. */
  resultUnits: 157,
  /** The writer's counters: 64 doubles, written only by its thread; see `WRITER_COUNTERS`. Even index. */
  writerCounters: 192,
  /** Jobs for encoding segments: 8 words for each of them; see `jobs.ts`. */
  encodingJobs: 320,
  /** The same for merging late rows. */
  mergeJobs: 384,
  /** An i64 for each pinned version, see `pins.ts`. */
  pinnedVersions: 448,
  /** Scheduler: 64 words for each of 64 query slots, up to the end of the control block. */
  querySlots: 1024,
} as const;

/** Number of jobs for encoding segments. */
export const ENCODING_JOBS = 8;
/** Number of jobs for merging late rows. */
export const MERGE_JOBS = 8;
/** Number of versions that can be pinned at once without keeping more memory than they need. */
export const PIN_SLOTS = 256;

/**
 * The writer's counters since the start, in the order in which they are stored from `SHARED_WORD.writerCounters` on.
 */
const WRITER_COUNTERS = [
  "commits",
  "committedRows",
  "rewrittenSegments",
  "flushedSegments",
  "flushedSegmentsOfHelpers",
  "mergedSegmentsOfHelpers",
  "repackedSegments",
  "logBytes",
  "deadBytes",
  "heldLogBytes",
] as const;
export type WriterCounter = (typeof WRITER_COUNTERS)[number];

/**
 * The writer's histograms: the upper bounds of the buckets. Each has a word for each bucket, one for values above, and
 * one for the sum.
 */
const WRITER_HISTOGRAMS = {
  fsyncSeconds: [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
  commitGroupSize: [1, 2, 5, 10, 20, 50, 100, 200],
} as const;
export type WriterHistogram = keyof typeof WRITER_HISTOGRAMS;

const HISTOGRAM_AT = {
  fsyncSeconds: WRITER_COUNTERS.length,
  commitGroupSize: WRITER_COUNTERS.length + WRITER_HISTOGRAMS.fsyncSeconds.length + 2,
};

const HALF = 2 ** 31;

export class SharedHeap {
  readonly i8: Int8Array;
  readonly u8: Uint8Array;
  readonly i16: Int16Array;
  readonly u16: Uint16Array;
  readonly i32: Int32Array;
  readonly u32: Uint32Array;
  readonly f32: Float32Array;
  readonly f64: Float64Array;
  readonly i64: BigInt64Array;
  readonly u64: BigUint64Array;
  /** The halves of the memory: V8 reads slowly at offsets that are no 32-bit integers. */
  private readonly low: Buffer;
  private readonly high: Buffer;

  /** Wraps a memory that `createHeap` has formatted. Every thread makes its own wrapper of the same memory. */
  constructor(readonly memory: WebAssembly.Memory) {
    const buffer = memory.buffer;
    this.i8 = new Int8Array(buffer);
    this.u8 = new Uint8Array(buffer);
    this.i16 = new Int16Array(buffer);
    this.u16 = new Uint16Array(buffer);
    this.i32 = new Int32Array(buffer);
    this.u32 = new Uint32Array(buffer);
    this.f32 = new Float32Array(buffer);
    this.f64 = new Float64Array(buffer);
    this.i64 = new BigInt64Array(buffer);
    this.u64 = new BigUint64Array(buffer);
    this.low = Buffer.from(buffer, 0, Math.min(HALF, buffer.byteLength));
    this.high = Buffer.from(buffer, this.low.length);
  }

  /** Decodes UTF-8. A `TextDecoder` takes five times as long to read shared memory. */
  text(address: number, sizeBytes: number): string {
    const end = address + sizeBytes;
    if (end <= HALF) return this.low.toString("utf8", address, end);
    if (address >= HALF) return this.high.toString("utf8", address - HALF, end - HALF);
    return Buffer.from(this.u8.subarray(address, end)).toString("utf8");
  }

  /** Returns one of the writer's counters. */
  counter(name: WriterCounter): number {
    return this.f64[SHARED_WORD.writerCounters / 2 + WRITER_COUNTERS.indexOf(name)];
  }

  /** Only for the writer's thread. */
  setCounter(name: WriterCounter, value: number): void {
    this.f64[SHARED_WORD.writerCounters / 2 + WRITER_COUNTERS.indexOf(name)] = value;
  }

  addCounter(name: WriterCounter, count: number): void {
    this.setCounter(name, this.counter(name) + count);
  }

  /** Counts `value` in its bucket. Only for the writer's thread. */
  observe(name: WriterHistogram, value: number): void {
    const words = this.histogramWords(name);
    const bounds: readonly number[] = WRITER_HISTOGRAMS[name];
    let range = 0;
    while (range < bounds.length && value > bounds[range]) range++;
    words[range]++;
    words[bounds.length + 1] += value;
  }

  histogram(name: WriterHistogram): { bounds: readonly number[]; counts: Float64Array; sum: number } {
    const words = this.histogramWords(name);
    const bounds = WRITER_HISTOGRAMS[name];
    return { bounds, counts: words.slice(0, -1), sum: words[bounds.length + 1] };
  }

  private histogramWords(name: WriterHistogram): Float64Array {
    const start = SHARED_WORD.writerCounters / 2 + HISTOGRAM_AT[name];
    return this.f64.subarray(start, start + WRITER_HISTOGRAMS[name].length + 2);
  }

  get buffer(): ArrayBufferLike {
    return this.memory.buffer;
  }

  /**
   * Allocates a block of at least `sizeBytes`, aligned to 4 KiB, with undefined contents. Free it with the same size.
   */
  allocate(sizeBytes: number, tag: HeapTag): number {
    return this.tryAllocate(sizeBytes, tag) ?? this.throwFull(sizeBytes);
  }

  private tryAllocate(sizeBytes: number, tag: HeapTag): number | undefined {
    const order = orderOf(sizeBytes);
    for (;;) {
      const unit = this.allocateUnits(order, tag);
      if (unit >= 0) return this.addressOf(unit);
      // Blocks whose pages go back to the system are free again within milliseconds.
      if (Atomics.load(this.i32, GIVING_BACK) === 0) return undefined;
    }
  }

  private throwFull(sizeBytes: number): never {
    throw new HeapFullError(
      `no free block of ${sizeBytes} bytes: ${this.usedBytes()} of ${this.sizeBytes()} bytes are in use`,
    );
  }

  /** The first unit of a block, or -1. */
  private allocateUnits(order: number, tag: HeapTag): number {
    this.lock();
    try {
      // Prefer addresses below 2^31: V8 accesses typed arrays at higher indexes some fifty times as slowly.
      let have = order;
      while (have < ORDER_COUNT && !this.isLow(this.i32[FREE_HEAD + have])) have++;
      if (have >= ORDER_COUNT) {
        have = order;
        while (have < ORDER_COUNT && this.i32[FREE_HEAD + have] < 0) have++;
      }
      if (have >= ORDER_COUNT) return -1;
      const unit = this.i32[FREE_HEAD + have];
      let warm = this.unlink(unit, have);
      while (have > order) {
        const half = 1 << --have;
        this.link(unit + half, have, Math.max(0, warm - half));
        warm = Math.min(warm, half);
      }
      this.stateOf(unit, order, false);
      this.countUsed(1 << order, tag);
      return unit;
    } finally {
      this.unlock();
    }
  }

  /** `warmBytes`: how much of it, from its start, has pages. */
  free(address: number, sizeBytes: number, tag: HeapTag, warmBytes = SharedHeap.blockBytes(sizeBytes)): void {
    let order = orderOf(sizeBytes);
    let unit = this.unitOf(address), warm = Math.ceil(warmBytes / UNIT_BYTES);
    this.lock();
    try {
      assert(
        this.i8[this.stateAddress(unit)] === order + 1,
        "a block is freed once, with the size it was allocated with",
      );
      this.countUsed(-(1 << order), tag);
      for (; order < ORDER_COUNT - 1; order++) {
        const buddy = unit ^ (1 << order);
        if (buddy >= this.i32[UNIT_COUNT] || this.i8[this.stateAddress(buddy)] !== -(order + 1)) break;
        warm += this.unlink(buddy, order);
        this.i8[this.stateAddress(Math.max(unit, buddy))] = 0;
        unit = Math.min(unit, buddy);
      }
      this.link(unit, order, warm);
    } finally {
      this.unlock();
    }
  }

  /** Free memory that has pages. An estimate: when a block is split, its pages are assumed to be at its start. */
  warmFreeBytes(): number {
    return UNIT_BYTES * this.i32[WARM_UNITS];
  }

  /** Returns the blocks of at least `sizeBytes` that are free now. */
  freeBlocks(sizeBytes: number): FreeBlock[] {
    const blocks: FreeBlock[] = [];
    this.lock();
    for (let order = orderOf(sizeBytes); order < ORDER_COUNT; order++) {
      for (let unit = this.i32[FREE_HEAD + order]; unit >= 0; unit = this.i32[this.addressOf(unit) / 4 + 1]) {
        const address = this.addressOf(unit), warmBytes = UNIT_BYTES * this.i32[address / 4 + 2];
        blocks.push({ address, sizeBytes: UNIT_BYTES * 2 ** order, warmBytes });
      }
    }
    this.unlock();
    return blocks;
  }

  /**
   * Allocates exactly this range, a block or an aligned part of one, if it is still free. Its tag is "other". Call `putBack` within
   * milliseconds: allocations that find no other block wait for it.
   */
  take({ address, sizeBytes }: BlockRange): boolean {
    const order = orderOf(sizeBytes), unit = this.unitOf(address);
    this.lock();
    try {
      let have = order;
      while (have < ORDER_COUNT && this.i8[this.stateAddress(unit & -(1 << have))] !== -(have + 1)) have++;
      if (have === ORDER_COUNT) return false;
      Atomics.add(this.i32, GIVING_BACK, 1);
      let from = unit & -(1 << have), warm = this.unlink(from, have);
      this.i8[this.stateAddress(from)] = 0;
      while (have > order) {
        const half = 1 << --have, low = Math.min(warm, half);
        if (unit >= from + half) {
          this.link(from, have, low);
          from += half;
          warm -= low;
        } else {
          this.link(from + half, have, warm - low);
          warm = low;
        }
      }
      this.stateOf(unit, order, false);
      this.countUsed(1 << order, "other");
      return true;
    } finally {
      this.unlock();
    }
  }

  /** Frees what `take` has allocated. `warmBytes`: how much of it, from its start, has pages. */
  putBack({ address, sizeBytes }: BlockRange, warmBytes: number): void {
    this.free(address, sizeBytes, "other", warmBytes);
    Atomics.sub(this.i32, GIVING_BACK, 1);
  }

  /**
   * Like `allocate`, but keeps only `sizeBytes` rounded up to 4 KiB and returns the rest of the block. Free it with
   * `freeExact`.
   */
  allocateExact(sizeBytes: number, tag: HeapTag): number {
    return this.tryAllocateExact(sizeBytes, tag) ?? this.throwFull(sizeBytes);
  }

  /** The same, but returns undefined if there is no block. */
  tryAllocateExact(sizeBytes: number, tag: HeapTag): number | undefined {
    const address = this.tryAllocate(sizeBytes, tag);
    if (address === undefined) return undefined;
    let order = orderOf(sizeBytes);
    let left = exactUnits(sizeBytes), unit = this.unitOf(address);
    this.lock();
    this.countUsed(left - (1 << order), tag);
    // Halve repeatedly: halves that are needed completely are kept, one is halved again, and those after it are freed.
    while (left < 1 << order) {
      const half = 1 << --order;
      if (left > half) {
        this.stateOf(unit, order, false);
        unit += half;
        left -= half;
      } else this.link(unit + half, order, 0);
    }
    this.stateOf(unit, order, false);
    this.unlock();
    return address;
  }

  freeExact(address: number, sizeBytes: number, tag: HeapTag): void {
    for (let left = exactUnits(sizeBytes); left > 0;) {
      const piece = 1 << (31 - Math.clz32(left));
      this.free(address, piece * UNIT_BYTES, tag);
      address += piece * UNIT_BYTES;
      left -= piece;
    }
  }

  /** The size of the block that `allocate(sizeBytes)` takes. */
  static blockBytes(sizeBytes: number): number {
    return UNIT_BYTES * 2 ** orderOf(sizeBytes);
  }

  usedBytes(tag?: HeapTag): number {
    return UNIT_BYTES * this.i32[tag === undefined ? USED_UNITS : TAG_USED + HEAP_TAGS.indexOf(tag)];
  }

  sizeBytes(): number {
    return UNIT_BYTES * this.i32[UNIT_COUNT];
  }

  /** Lays out an empty heap. */
  format(): void {
    // Without the last one: kernels read some bytes behind the end of a block.
    const unitsInAll = Math.floor(this.buffer.byteLength / UNIT_BYTES) - 1;
    const stateBytes = unitsInAll; // one byte a unit: order + 1 in use, -(order + 1) free, 0 inside a block
    const baseUnit = Math.ceil((CONTROL_BYTES + stateBytes) / UNIT_BYTES);
    this.i32[UNIT_COUNT] = unitsInAll - baseUnit;
    this.i32[BASE_UNIT] = baseUnit;
    for (let order = 0; order < ORDER_COUNT; order++) this.i32[FREE_HEAD + order] = -1;
    for (let unit = 0, left = this.i32[UNIT_COUNT]; left > 0;) {
      let order = Math.min(ORDER_COUNT - 1, 31 - Math.clz32(left));
      while (unit & ((1 << order) - 1)) order--;
      this.link(unit, order, 0);
      unit += 1 << order;
      left -= 1 << order;
    }
  }

  /** True if `unit` is a block that begins in the lower 2 GiB. */
  private isLow(unit: number): boolean {
    return unit >= 0 && this.addressOf(unit) < 0x80000000;
  }

  private unitOf(address: number): number {
    return ((address >>> UNIT_SHIFT) - this.i32[BASE_UNIT]) | 0;
  }

  private countUsed(units: number, tag: HeapTag): void {
    this.i32[USED_UNITS] += units;
    this.i32[TAG_USED + HEAP_TAGS.indexOf(tag)] += units;
  }

  private addressOf(unit: number): number {
    return (unit + this.i32[BASE_UNIT]) * UNIT_BYTES;
  }

  private stateAddress(unit: number): number {
    return CONTROL_BYTES + unit;
  }

  private stateOf(unit: number, order: number, free: boolean): void {
    this.i8[this.stateAddress(unit)] = free ? -(order + 1) : order + 1;
  }

  /**
   * Adds a block to the free list of its order. A free block begins with its previous and next unit in the list, -1 at
   * the ends, and its warm units.
   */
  private link(unit: number, order: number, warm: number): void {
    const word = this.addressOf(unit) / 4;
    const next = this.i32[FREE_HEAD + order];
    this.i32[word] = -1;
    this.i32[word + 1] = next;
    this.i32[word + 2] = warm;
    this.i32[WARM_UNITS] += warm;
    if (next >= 0) this.i32[this.addressOf(next) / 4] = unit;
    this.i32[FREE_HEAD + order] = unit;
    this.stateOf(unit, order, true);
  }

  /**
   * @returns the unit's warm units
   */
  private unlink(unit: number, order: number): number {
    const word = this.addressOf(unit) / 4;
    const previous = this.i32[word], next = this.i32[word + 1];
    if (previous >= 0) this.i32[this.addressOf(previous) / 4 + 1] = next;
    else this.i32[FREE_HEAD + order] = next;
    if (next >= 0) this.i32[this.addressOf(next) / 4] = previous;
    const warm = this.i32[word + 2];
    this.i32[WARM_UNITS] -= warm;
    return warm;
  }

  private lock(): void {
    latch(this.i32, LOCK);
  }

  private unlock(): void {
    unlatch(this.i32, LOCK);
  }
}

function exactUnits(sizeBytes: number): number {
  return Math.max(1, Math.ceil(sizeBytes / UNIT_BYTES));
}

function orderOf(sizeBytes: number): number {
  const units = Math.max(1, Math.ceil(sizeBytes / UNIT_BYTES));
  const order = 32 - Math.clz32(units - 1);
  if (order >= ORDER_COUNT) throw new HeapFullError(`a block of ${sizeBytes} bytes exceeds the maximum block size`);
  return units === 1 ? 0 : order;
}

/** A new heap of `sizeBytes` (rounded down to 64 KiB pages, less than 4 GiB). */
export function createHeap(sizeBytes: number): SharedHeap {
  const pages = Math.floor(Math.min(sizeBytes, MEMORY_BYTES_MAX) / PAGE_BYTES);
  const heap = new SharedHeap(new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }));
  heap.format();
  return heap;
}
