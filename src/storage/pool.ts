/**
 * Frames of stored column chunks in shared memory, for all threads. The directory is a hash table in shared memory that maps
 * (data file, extent) to a frame. One lock guards it and is held for some hundred nanoseconds each morsel; files are read
 * outside of it.
 *
 * A frame is on probation until its second use. A clock over the directory's slots, whose order is unrelated to that of scans,
 * selects the frames to evict. While frames on probation take more than a quarter of the pool, only they are evicted, so a scan of
 * any length replaces only that quarter.
 *
 * A frame has the decoded values of a chunk, which kernels read without further work, as long as there is room. Beyond, it has the chunk
 * as it is stored, a third or a fourth of that, and each scan decodes it to a window of its thread.
 */
import { assert, VERIFY } from "../assert.ts";
import { CorruptFileError } from "../errors.ts";
import type { Pool } from "../engine/contract.ts";
import { align, crc32 } from "./bytes.ts";
import { relocateTexts } from "./chunks.ts";
import type {
  ChunkBound,
  ColumnChunk,
  FoundRows,
  PostedSegments,
  RowRange,
  ScanSource,
  SegmentList,
} from "./contract.ts";
import { dataFilePath, EXTENT_ALIGN } from "./datafile.ts";
import {
  CODEC_BYTES,
  Codecs,
  hasCodeRanges,
  hasOffsets,
  hasPostings,
  hasSummaries,
  isEncoded,
  memoryBytes,
} from "./encoding/codecs.ts";
import { codesPart, DamagedPostingsError, findRows, presentCodes, type ReadExtent } from "./encoding/postings.ts";
import { areIntact, summariesBytes } from "./encoding/summaries.ts";
import { type File, type Files, readFully, realFiles } from "./files.ts";
import { HeapFullError, SHARED_WORD, type SharedHeap } from "./heap.ts";
import { latch, tryLatch, unlatch } from "./latch.ts";
import { WINDOW_BYTES, Windows } from "./windows.ts";
import { PagedSegments, type PageFrames, type PageLocation, PageReader } from "./paged-segments.ts";
import type { Extent } from "./extent.ts";

// Words of a directory slot.
const FILE = 0; // id + 1, or 0 empty, or -1 removed
const EXTENT = 1;
const ADDRESS = 2;
const SIZE = 3; // bytes of the block
const STATE = 4; // LOADING, READY, FAILED
const PINS = 5;
const USES = 6; // 0 on probation, up to USES_MAX
const FORM = 7; // DECODED, PACKABLE, PACKED or SUMMARIES; an extent may have a frame of its values, a packed one and one of its summaries
const SLOT_WORDS = 8;

/** So many times values are gathered from an extent before it gets a frame, which costs more than reading it. */
const GATHERED_BEFORE = 2;
const GATHERED_EXTENTS_MAX = 65_536;
/** A thread keeps a buffer of this size for reading. */
const BUFFER_BYTES_MAX = 1 << 20;
const LOADING = 1, READY = 2, FAILED = 3;
const USES_MAX = 3;
/** The values of a chunk; the same, of a chunk that can be kept packed; the bytes of its extent; of these, the summaries of its vectors. */
const DECODED = 0, PACKED = 1, PACKABLE = 2, SUMMARIES = 3;
/**
 * Of so many evictions for a packed frame, one takes any frame of values that could be packed instead of one on probation. So a set of
 * chunks that is read again and again ends up in the pool if it fits when packed.
 */
const EVICTIONS_PER_VALUES = 4;
/** It looks at so many slots. There are some 40 for each frame of usual columns. */
const SLOTS_SEARCHED = 2048;
/** A chunk that is kept packed gets a frame of values when so much of the pool is free. */
const UNPACKED_BELOW = 7 / 8;
/** A removed file occupies disk space as long as it is open. */
const FILES_OPEN_MAX = 64;

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

/** Formats an empty pool. The thread that made the heap calls this once. */
export function formatPool(heap: SharedHeap, poolSizeBytes: number): void {
  let capacity = 1024;
  while (capacity < poolSizeBytes / 8192) capacity *= 2;
  const bytes = capacity * SLOT_WORDS * 4;
  const address = heap.allocate(bytes, "pool");
  heap.u8.fill(0, address, address + bytes);
  heap.i32[SHARED_WORD.poolDirectory] = address / 4;
  const state = SHARED_WORD.poolState;
  heap.i32.fill(0, state, state + PACKED_KIB + 1);
  heap.i32[state + CAPACITY] = capacity;
  heap.i32[state + LIMIT_KIB] = Math.floor(poolSizeBytes / 1024);
}

/** A part of an extent, from byte `at` on. */
interface Part {
  at: number;
  sizeBytes: number;
  isIntact: (stored: Uint8Array) => boolean;
}

/** The processing of an extent after it has been read. */
interface Loading {
  /** The part of the extent that is read, if it is not all. */
  part?: (file: File) => Part;
  /** Decodes the extent into the frame. Without it the frame has the bytes of the extent. */
  decode?: (stored: Uint8Array, address: number) => void;
  /** Changes the frame. */
  prepare?: (address: number) => void;
}

/** Pinned slots, and the number of pins of each. */
type Held = Map<number, number>;

/**
 * Called by a query that reads no file. "frame": one is not in memory; "lookup": postings are read from their file; "busy": another thread
 * holds the lock for long.
 */
export type OnMiss = (why: "frame" | "lookup" | "busy") => never;

/** The pins of one query. If the query fails, all remaining ones are released together. */
export class PoolLease implements Pool {
  private readonly held: Held = new Map();
  /** Addresses of windows. */
  private readonly windows = new Set<number>();

  /** Without `onMiss`, frames are read, after waiting for the lock. */
  constructor(private readonly pool: SharedPool, private readonly onMiss?: OnMiss) {}

  pin(source: ScanSource, segment: number, column: number, rows?: RowRange): number {
    const window = rows && this.pool.unpack(source, segment, column, rows, this.onMiss);
    if (window === undefined) return this.pool.pinFor(this.held, source, segment, column, this.onMiss);
    this.windows.add(window);
    return window;
  }

  /** Windows of this thread that are in use. */
  get windowCount(): number {
    return this.windows.size;
  }

  unpin(source: ScanSource, segment: number, column: number, address = 0): void {
    if (this.windows.delete(address)) this.pool.returnWindow(address);
    else this.pool.unpinFor(this.held, source, segment, column);
  }

  gather(
    source: ScanSource,
    segment: number,
    column: number,
    rows: Int32Array,
    count: number,
    address: number,
  ): boolean {
    return this.onMiss === undefined && this.pool.gather(source, segment, column, rows, count, address);
  }

  summaries(source: ScanSource, segment: number, column: number, into: Uint8Array): boolean {
    return this.pool.summaries(source, segment, column, into, this.onMiss);
  }

  selectRows(
    source: ScanSource,
    segment: number,
    bounds: readonly ChunkBound[],
    range: RowRange,
    rows: number,
    rowsMax: number,
  ): number | undefined {
    return this.pool.selectRows(source, segment, bounds, range, rows, rowsMax, this.onMiss);
  }

  gatherRows(
    source: ScanSource,
    segment: number,
    column: number,
    rows: number,
    count: number,
    values: number,
  ): boolean {
    return this.pool.gatherRows(source, segment, column, rows, count, values, this.onMiss);
  }

  isIndexed(source: ScanSource, segment: number, column: number): boolean {
    return this.pool.isIndexed(source, segment, column);
  }

  present(source: ScanSource, segment: number, column: number, codes: readonly number[]): number[] | undefined {
    if (this.onMiss !== undefined && this.isIndexed(source, segment, column)) this.onMiss("lookup");
    return this.pool.present(source, segment, column, codes);
  }

  find(
    source: ScanSource,
    segment: number,
    column: number,
    codes: readonly number[],
    rowsMax: number,
  ): FoundRows | undefined {
    if (this.onMiss !== undefined && this.isIndexed(source, segment, column)) this.onMiss("lookup");
    return this.pool.find(source, segment, column, codes, rowsMax);
  }

  release(): void {
    this.pool.releaseAll(this.held);
    for (const window of this.windows) this.pool.returnWindow(window);
    this.windows.clear();
  }
}

/** Reads parts of an extent. What is missing at the end of the file stays as it was, and fails its checksum. */
function readerOf(file: File, { offset }: Extent): ReadExtent {
  return (into, at) => void readFully(file, into, offset + at);
}

/** Codes are read without the postings behind them. Undefined for chunks without postings. */
function codesPartOf(chunk: ColumnChunk): Loading["part"] {
  if (!hasPostings(chunk)) return undefined;
  return (file) => {
    const { sizeBytes, crc } = codesPart(readerOf(file, chunk), chunk.sizeBytes);
    return { at: 0, sizeBytes, isIntact: (stored) => crc32(stored) === crc };
  };
}

/** Decoding texts takes far longer than reading them. */
function canBePacked(chunk: ColumnChunk): boolean {
  if (!isEncoded(chunk) || chunk.entryBytes !== undefined || chunk.valueBytes > WINDOW_BYTES) return false;
  return hasPostings(chunk) || 2 * blockBytesOf(chunk.sizeBytes) <= chunk.valueBytes;
}

/** A chunk has one frame of its values. */
function isSameForm(a: number, b: number): boolean {
  return a === b || (a === PACKABLE && b === DECODED) || (a === DECODED && b === PACKABLE);
}

function blockBytesOf(sizeBytes: number): number {
  return align(sizeBytes, 4096);
}

export class SharedPool implements Pool, PageFrames {
  /** Reads pages of tables in this thread. */
  readonly pages: PageReader;
  private readonly i32: Int32Array;
  private readonly directory: number;
  private readonly mask: number;
  /** By id. */
  private readonly handles = new Map<number, File>();
  private codecsOfThread: Codecs | undefined;
  private buffer = new Uint8Array(0);
  /** How often this thread has gathered from extents without a frame. */
  private readonly gathered = new Map<number, number>();
  /** Pins that belong to no query. */
  private readonly held: Held = new Map();
  /** Pins of packed frames that are being decoded. */
  private readonly decoding: Held = new Map();
  /** Pins of summaries that are being copied. */
  private readonly copying: Held = new Map();
  private readonly windows: Windows;

  constructor(private readonly heap: SharedHeap, private readonly files: Files = realFiles) {
    this.i32 = heap.i32;
    this.directory = heap.i32[SHARED_WORD.poolDirectory];
    assert(this.directory !== 0, "the pool was laid out");
    this.mask = this.state(CAPACITY) - 1;
    this.pages = new PageReader(heap, this);
    this.windows = new Windows(() => this.allocate(WINDOW_BYTES));
  }

  /** A list that was posted to this thread. */
  segments(posted: PostedSegments): SegmentList {
    return PagedSegments.ofPosted(this.pages, posted);
  }

  lease(onMiss?: OnMiss): PoolLease {
    return new PoolLease(this, onMiss);
  }

  pin(source: ScanSource, segment: number, column: number): number {
    return this.pinFor(this.held, source, segment, column);
  }

  unpin(source: ScanSource, segment: number, column: number): void {
    this.unpinFor(this.held, source, segment, column);
  }

  pinFor(held: Held, source: ScanSource, segment: number, column: number, onMiss?: OnMiss): number {
    const { rowCount, chunks } = source.segments.at(segment)!;
    const chunk = chunks[column];
    assert(chunk !== undefined, "a column added later has no chunk to pin");
    if (chunk.address !== 0) return chunk.address;
    return this.pinExtent(held, source.directory, chunk, memoryBytes(chunk), onMiss, {
      part: codesPartOf(chunk),
      decode: isEncoded(chunk)
        ? (stored, address) => this.codecs().decode(chunk, stored, address, rowCount)
        : undefined,
      prepare: (address) => {
        if (hasOffsets(chunk)) relocateTexts(this.heap, address, rowCount, address + chunk.valueBytes);
      },
    }, canBePacked(chunk) ? PACKABLE : DECODED);
  }

  /**
   * Decodes rows of a chunk to a window of this thread, if the pool has it packed, or has no room for its values. Returns the address of
   * row 0, or undefined if the chunk should be pinned. Pass the address to `returnWindow`.
   */
  unpack(
    source: ScanSource,
    segment: number,
    column: number,
    rows: RowRange,
    onMiss?: OnMiss,
  ): number | undefined {
    const chunk = source.segments.at(segment)!.chunks[column];
    if (chunk === undefined || chunk.address !== 0 || !canBePacked(chunk)) return undefined;
    // Without the lock this may miss a frame, or find one that is being removed. Both ways give the same values.
    if (this.slotOf(chunk.file, chunk.offset / EXTENT_ALIGN) >= 0) return undefined;
    const window = this.windowFor(chunk, onMiss);
    if (window === undefined) return undefined;
    try {
      this.withPacked(source.directory, chunk, (stored) => {
        if (VERIFY) this.heap.u8.fill(0x7b, window, window + chunk.valueBytes); // other rows are not to be read
        this.codecs().decodeRange(chunk, stored, window, rows);
      }, onMiss);
      return window;
    } catch (error) {
      this.returnWindow(window);
      throw error;
    }
  }

  /** Calls `use` with a chunk as it is stored, without postings, in a packed frame. */
  private withPacked(
    directory: string,
    chunk: ColumnChunk,
    use: (stored: Uint8Array) => void,
    onMiss?: OnMiss,
  ): void {
    let { sizeBytes } = chunk;
    if (hasPostings(chunk) && onMiss === undefined && !this.isPacked(chunk)) {
      const path = dataFilePath(directory, chunk.file), file = this.open(chunk.file, path);
      sizeBytes = this.checked(path, chunk, () => codesPart(readerOf(file, chunk), chunk.sizeBytes)).sizeBytes;
    }
    const loading = { part: codesPartOf(chunk) };
    const address = this.pinExtent(this.decoding, directory, chunk, sizeBytes, onMiss, loading, PACKED);
    try {
      use(this.heap.u8.subarray(address, address + sizeBytes));
    } finally {
      this.unpinExtent(this.decoding, chunk);
    }
  }

  /** Without the lock this may miss a frame, or find one that is being removed. */
  private isPacked({ file, offset }: Extent): boolean {
    return this.slotOf(file, offset / EXTENT_ALIGN, PACKED) >= 0;
  }

  /** Undefined if the values get a frame. */
  private windowFor(chunk: ColumnChunk, onMiss?: OnMiss): number | undefined {
    if (onMiss === undefined) this.lock();
    else if (!tryLatch(this.i32, SHARED_WORD.poolLock)) return onMiss("busy");
    try {
      const slot = this.slotOf(chunk.file, chunk.offset / EXTENT_ALIGN, PACKED);
      const usedKib = this.state(USED_KIB) + blockBytesOf(chunk.valueBytes) / 1024;
      const hasRoom = usedKib <= this.state(LIMIT_KIB) * (slot < 0 ? 1 : UNPACKED_BELOW);
      if (!hasRoom) return this.windows.take(this.state(LIMIT_KIB) * 1024);
      if (slot >= 0) this.putOnProbation(slot);
      return undefined;
    } finally {
      this.unlock();
    }
  }

  returnWindow(address: number): void {
    this.windows.giveBack(address);
  }

  /** As of `PoolLease`. */
  summaries(source: ScanSource, segment: number, column: number, into: Uint8Array, onMiss?: OnMiss): boolean {
    const { rowCount, chunks } = source.segments.at(segment)!, chunk = chunks[column];
    if (chunk === undefined || chunk.address !== 0 || !hasSummaries(chunk)) return false;
    const sizeBytes = summariesBytes(rowCount);
    const part = () => ({ at: chunk.sizeBytes - sizeBytes, sizeBytes, isIntact: areIntact });
    const address = this.pinExtent(this.copying, source.directory, chunk, sizeBytes, onMiss, { part }, SUMMARIES);
    into.set(this.heap.u8.subarray(address, address + sizeBytes));
    this.unpinExtent(this.copying, chunk);
    return true;
  }

  /** As of `PoolLease`. */
  selectRows(
    source: ScanSource,
    segment: number,
    bounds: readonly ChunkBound[],
    range: RowRange,
    rows: number,
    rowsMax: number,
    onMiss?: OnMiss,
  ): number | undefined {
    const { chunks } = source.segments.at(segment)!;
    const packed = bounds.filter(({ column }) => {
      const chunk = chunks[column];
      return chunk !== undefined && chunk.address === 0 && canBePacked(chunk) && hasCodeRanges(chunk);
    });
    if (packed.length === 0) return undefined;
    const open = ({ column }: ChunkBound, select: (stored: Uint8Array) => void) =>
      this.withPacked(source.directory, chunks[column]!, select, onMiss);
    return this.codecs().selectRows(packed, range, open, rows, rowsMax);
  }

  /** As of `PoolLease`. */
  gatherRows(
    source: ScanSource,
    segment: number,
    column: number,
    rows: number,
    count: number,
    values: number,
    onMiss?: OnMiss,
  ): boolean {
    const chunk = source.segments.at(segment)!.chunks[column];
    if (chunk === undefined || chunk.address !== 0 || !canBePacked(chunk)) return false;
    // Without the lock this may miss a frame, or find one that is being removed. Both ways give the same values.
    if (this.slotOf(chunk.file, chunk.offset / EXTENT_ALIGN) >= 0) return false;
    const gather = (stored: Uint8Array) => this.codecs().gatherRows(stored, rows, count, values);
    this.withPacked(source.directory, chunk, gather, onMiss);
    return true;
  }

  gather(
    source: ScanSource,
    segment: number,
    column: number,
    rows: Int32Array,
    count: number,
    address: number,
  ): boolean {
    const chunk = source.segments.at(segment)!.chunks[column];
    if (chunk === undefined || chunk.address !== 0 || !isEncoded(chunk) || chunk.entryBytes !== undefined) return false;
    const { file } = chunk, extent = chunk.offset / EXTENT_ALIGN;
    this.lock();
    const isPresent = this.slotOf(file, extent) >= 0, isPacked = this.isPacked(chunk);
    if (!isPresent && !isPacked) this.addState(MISSES, 1);
    this.unlock();
    if (isPresent) return false;
    if (isPacked) {
      this.withPacked(
        source.directory,
        chunk,
        (stored) => this.codecs().decodeRows(stored, rows, count, address),
      );
      return true;
    }
    if (this.isFrequent(file, extent)) return false;
    const path = dataFilePath(source.directory, file);
    const stored = this.readStored(path, chunk, codesPartOf(chunk), (sizeBytes) => this.bufferFor(sizeBytes));
    this.codecs().decodeRows(stored, rows, count, address);
    return true;
  }

  /** True if this thread has gathered from the extent so often that the next use should keep it. */
  private isFrequent(file: number, extent: number): boolean {
    const key = file * 2 ** 32 + extent, count = (this.gathered.get(key) ?? 0) + 1;
    if (count > GATHERED_BEFORE) this.gathered.delete(key);
    else {
      if (this.gathered.size >= GATHERED_EXTENTS_MAX) this.gathered.clear();
      this.gathered.set(key, count);
    }
    return count > GATHERED_BEFORE;
  }

  isIndexed(source: ScanSource, segment: number, column: number): boolean {
    const chunk = source.segments.at(segment)!.chunks[column];
    return chunk !== undefined && chunk.address === 0 && hasPostings(chunk);
  }

  /** Postings are read from the file, and not kept: two short reads of the page cache cost a few microseconds. */
  find(
    source: ScanSource,
    segment: number,
    column: number,
    codes: readonly number[],
    rowsMax: number,
  ): FoundRows | undefined {
    return this.withPostings(
      source,
      segment,
      column,
      (read, sizeBytes) => findRows(read, sizeBytes, codes, rowsMax),
    );
  }

  present(source: ScanSource, segment: number, column: number, codes: readonly number[]): number[] | undefined {
    return this.withPostings(source, segment, column, (read, sizeBytes) => presentCodes(read, sizeBytes, codes));
  }

  private withPostings<T>(
    source: ScanSource,
    segment: number,
    column: number,
    use: (read: ReadExtent, sizeBytes: number) => T,
  ): T | undefined {
    if (!this.isIndexed(source, segment, column)) return undefined;
    const chunk = source.segments.at(segment)!.chunks[column]!;
    const path = dataFilePath(source.directory, chunk.file);
    return this.checked(path, chunk, () => use(readerOf(this.open(chunk.file, path), chunk), chunk.sizeBytes));
  }

  private checked<T>(path: string, { offset }: Extent, use: () => T): T {
    try {
      return use();
    } catch (error) {
      if (!(error instanceof DamagedPostingsError)) throw error;
      throw new CorruptFileError(path, `the extent at byte ${offset} is damaged`);
    }
  }

  unpinFor(held: Held, source: ScanSource, segment: number, column: number): void {
    const chunk = source.segments.at(segment)!.chunks[column];
    if (chunk !== undefined && chunk.address === 0) this.unpinExtent(held, chunk);
  }

  withPage<T>(directory: string, page: PageLocation, use: (address: number) => T): T {
    const address = this.pinExtent(this.held, directory, page, page.sizeBytes);
    try {
      return use(address);
    } finally {
      this.unpinExtent(this.held, page);
    }
  }

  /**
   * Address of an extent in memory, which is read on a miss. `sizeInMemory`: its bytes there. `form`: what the frame has.
   */
  private pinExtent(
    held: Held,
    directory: string,
    from: Extent,
    sizeInMemory: number,
    onMiss?: OnMiss,
    loading: Loading = {},
    form = DECODED,
  ): number {
    const { file } = from, extent = from.offset / EXTENT_ALIGN;
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
        this.fill(slot, dataFilePath(directory, file), from, loading);
      } catch (error) {
        this.settle(slot, FAILED);
        this.dropPin(slot);
        throw error;
      }
      this.settle(slot, READY);
      return this.hold(held, slot);
    }
  }

  private unpinExtent(held: Held, { file, offset }: Extent): void {
    const slot = this.heldSlotOf(held, file, offset / EXTENT_ALIGN);
    const count = held.get(slot) ?? 0;
    assert(count > 0, "unpin follows pin");
    if (count === 1) held.delete(slot);
    else held.set(slot, count - 1);
    this.dropPin(slot);
  }

  releaseAll(held: Held): void {
    for (const [slot, count] of held) for (let k = 0; k < count; k++) this.dropPin(slot);
    held.clear();
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

  setLimit(poolSizeBytes: number): void {
    this.lock();
    this.i32[SHARED_WORD.poolState + LIMIT_KIB] = Math.floor(poolSizeBytes / 1024);
    while (this.state(USED_KIB) > this.state(LIMIT_KIB) && this.takeOne() > 0);
    this.unlock();
  }

  stats(): {
    usedBytes: number;
    limitBytes: number;
    frames: number;
    hits: number;
    misses: number;
    evictions: number;
    pins: number;
    packedBytes: number;
  } {
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

  close(): void {
    this.releaseAll(this.held);
    for (const file of this.handles.values()) file.close();
    this.handles.clear();
    if (this.codecsOfThread !== undefined) this.heap.freeExact(this.codecsOfThread.scratch, CODEC_BYTES, "pool");
    this.codecsOfThread = undefined;
    for (const window of this.windows.drain()) this.heap.freeExact(window, WINDOW_BYTES, "pool");
  }

  private hold(held: Held, slot: number): number {
    held.set(slot, (held.get(slot) ?? 0) + 1);
    return this.i32[slot + ADDRESS] >>> 0;
  }

  private fill(slot: number, path: string, extent: Extent, { part, decode, prepare }: Loading): void {
    const address = this.i32[slot + ADDRESS] >>> 0, isEncoded = decode !== undefined;
    const stored = this.readStored(
      path,
      extent,
      part,
      (sizeBytes) => isEncoded ? this.bufferFor(sizeBytes) : this.heap.u8.subarray(address, address + sizeBytes),
    );
    if (isEncoded) decode(stored, address);
    prepare?.(address);
  }

  /** Reads an extent, or a part of it, into memory from `into`, and checks it. */
  private readStored(
    path: string,
    extent: Extent,
    part: Loading["part"],
    into: (sizeBytes: number) => Uint8Array,
  ): Uint8Array {
    const { file, offset } = extent;
    const { at, sizeBytes, isIntact }: Part = part === undefined
      ? { at: 0, sizeBytes: extent.sizeBytes, isIntact: (stored) => crc32(stored) === extent.crc }
      : this.checked(path, extent, () => part(this.open(file, path)));
    const stored = into(sizeBytes), got = readFully(this.open(file, path), stored, offset + at);
    if (got < sizeBytes) throw new CorruptFileError(path, `it ends within the extent at byte ${offset}`);
    if (!isIntact(stored)) throw new CorruptFileError(path, `the extent at byte ${offset} is damaged`);
    return stored;
  }

  /** Memory for an extent that is read and then decoded. Valid until the next call. */
  private bufferFor(sizeBytes: number): Uint8Array {
    if (sizeBytes > BUFFER_BYTES_MAX) return new Uint8Array(sizeBytes);
    if (this.buffer.length < sizeBytes) this.buffer = new Uint8Array(align(sizeBytes, 65_536));
    return this.buffer.subarray(0, sizeBytes);
  }

  private codecs(): Codecs {
    if (this.codecsOfThread === undefined) {
      this.lock();
      try {
        this.codecsOfThread = new Codecs(this.heap, this.allocate(CODEC_BYTES));
      } finally {
        this.unlock();
      }
    }
    return this.codecsOfThread;
  }

  private open(id: number, path: string): File {
    let handle = this.handles.get(id);
    if (handle === undefined) {
      if (this.handles.size >= FILES_OPEN_MAX) {
        const [oldest, file] = this.handles.entries().next().value!;
        file.close();
        this.handles.delete(oldest);
      }
      this.handles.set(id, handle = this.files.open(path, "read"));
    }
    return handle;
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
      const address = this.allocate(sizeBytes);
      let k = this.hash(id, extent);
      while (this.i32[this.directory + k * SLOT_WORDS + FILE] > 0) k = (k + 1) & this.mask;
      const slot = this.directory + k * SLOT_WORDS;
      if (this.i32[slot + FILE] === 0) this.addState(FILLED, 1);
      this.i32[slot + FILE] = id + 1;
      this.i32[slot + EXTENT] = extent;
      this.i32[slot + ADDRESS] = address;
      this.i32[slot + SIZE] = blockBytes;
      this.addPin(slot, 1);
      this.i32[slot + USES] = 0;
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

  private allocate(sizeBytes: number): number {
    for (;;) {
      try {
        return this.heap.allocateExact(sizeBytes, "pool");
      } catch (error) {
        if (!(error instanceof HeapFullError) || this.takeOne() === 0) throw error;
      }
    }
  }

  private noteUse(slot: number): void {
    if (this.i32[slot + USES] === 0) this.addState(PROBATION_KIB, -this.i32[slot + SIZE] / 1024);
    if (this.i32[slot + USES] < USES_MAX) this.i32[slot + USES]++;
  }

  private putOnProbation(slot: number): void {
    if (this.i32[slot + USES] !== 0) this.addState(PROBATION_KIB, this.i32[slot + SIZE] / 1024);
    this.i32[slot + USES] = 0;
  }

  private takeOneFor(form: number): number {
    const takesValues = form === PACKED && this.state(EVICTIONS) % EVICTIONS_PER_VALUES === 0;
    return takesValues && this.takeValues() || this.takeOne();
  }

  /** Evicts a frame of values that could be packed. Returns its size in bytes, or 0 if none is found soon. */
  private takeValues(): number {
    for (let step = 0, k = this.state(HAND); step < SLOTS_SEARCHED; step++, k = (k + 1) & this.mask) {
      const slot = this.directory + k * SLOT_WORDS;
      if (this.i32[slot + FILE] <= 0 || this.i32[slot + PINS] > 0 || this.i32[slot + FORM] !== PACKABLE) continue;
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
        if (step < slots && this.state(PROBATION_KIB) * 4 > this.state(LIMIT_KIB)) continue;
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
    this.heap.freeExact(this.i32[slot + ADDRESS] >>> 0, bytes, "pool");
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
    let h = Math.imul(id, 0x9e3779b1) ^ Math.imul(extent, 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 15), 0xc2b2ae35);
    return (h ^ (h >>> 13)) & this.mask;
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
