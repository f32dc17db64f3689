/** Reads chunks of columns for one query. If it fails, its pins are released together. */
import { assert, VERIFY } from "../assert.ts";
import type { FrameCounts, Pool } from "../engine/contract.ts";
import { codesPartOf, readValues } from "./chunk-values.ts";
import type {
  ChooseOffsets,
  ChunkBound,
  ChunkOffsets,
  ColumnChunk,
  FoundRows,
  RowCondition,
  RowRange,
  ScanSource,
  TestedColumn,
  VectorCounts,
} from "./contract.ts";
import {
  type Codecs,
  hasCodeRanges,
  hasPostings,
  hasSummaries,
  isEncoded,
  memoryBytes,
  type OpenChunk,
} from "./encoding/codecs.ts";
import { findRows, HEAD_BYTES_MAX, presentCodes, type ReadExtent, readHead } from "./encoding/postings.ts";
import { areIntact, summariesBytes } from "./encoding/summaries.ts";
import { copyRange, copyRows } from "./encoding/vector-copies.ts";
import type { Extent } from "./extent.ts";
import type { ExtentReader } from "./extent-reader.ts";
import {
  blockBytesOf,
  DECODED,
  type Frame,
  type Frames,
  Held,
  type OnMiss,
  PACKABLE,
  PACKED,
  POSTINGS,
  SUMMARIES,
} from "./frames.ts";
import { HeapFullError, type SharedHeap } from "./heap.ts";
import { WINDOW_BYTES, type Windows } from "./windows.ts";

/** A query that reads at most this share of a chunk's rows decodes their vectors alone. */
const PART_SHARE = 1 / 8;

/** Decoding texts takes far longer than reading them. */
function canBePacked(chunk: ColumnChunk): boolean {
  if (!isEncoded(chunk) || chunk.entryBytes !== undefined || chunk.valueBytes > WINDOW_BYTES) return false;
  return hasPostings(chunk) || 2 * blockBytesOf(chunk.sizeBytes) <= chunk.valueBytes;
}

function chunkOf(source: ScanSource, segment: number, column: number): ColumnChunk | undefined {
  return source.segments.at(segment)!.chunks[column];
}

/** The chunk if it is stored, not in fresh rows or a column that was added later. */
function storedChunkOf(source: ScanSource, segment: number, column: number): ColumnChunk | undefined {
  const chunk = chunkOf(source, segment, column);
  return chunk?.address === 0 ? chunk : undefined;
}

/** The chunk if it is stored in a form that the pool can keep packed. */
function packableChunkOf(source: ScanSource, segment: number, column: number): ColumnChunk | undefined {
  const chunk = storedChunkOf(source, segment, column);
  return chunk !== undefined && canBePacked(chunk) ? chunk : undefined;
}

/** The pool can keep it packed, and the ranges of its codes are known. */
function isComparable(chunk: ColumnChunk): boolean {
  return chunk.address === 0 && canBePacked(chunk) && hasCodeRanges(chunk);
}

/** Stored codes and integers, and columns that were added later, can be tested. Fresh rows are read as they are. */
function isTestable(chunk: ColumnChunk | undefined, { integerBytes }: TestedColumn): boolean {
  if (chunk === undefined) return true;
  return integerBytes === undefined ? isComparable(chunk) : chunk.address === 0;
}

/** Copies the parts of a stored chunk that are needed to a block of the same size. */
type Copy = (stored: Uint8Array, block: Uint8Array) => void;

const copyAll: Copy = (stored, block) => block.set(stored);
const ofRange = (rows: RowRange): Copy => (stored, block) => copyRange(stored, block, rows);
const ofRows = (rows: Int32Array): Copy => (stored, block) => copyRows(stored, block, rows);

/** What the leases of a thread share. */
export interface LeasedPool {
  readonly heap: SharedHeap;
  readonly frames: Frames;
  readonly further?: Frames;
  readonly reader: ExtentReader;
  readonly windows: Windows;
  codecs(): Codecs;
  /** The directory that has the packed frame of an extent, if there is one. */
  packedFramesOf(extent: Extent): Frames;
  /** Address of `WINDOW_BYTES` for the chunk of a further memory that is being used. */
  copyBlock(): number;
  /** True if this thread has gathered from the extent so often that the next use should keep it. */
  isGatheredOften(extent: Extent): boolean;
}

export class PoolLease implements Pool {
  private readonly held = new Held();
  /** Pins of packed frames and of summaries that are being used. */
  private readonly using = new Held();
  private readonly usingSummaries = new Held();
  /** Addresses of windows. */
  private readonly windows = new Set<number>();
  private counts: FrameCounts = { found: 0, read: 0 };

  constructor(private readonly pool: LeasedPool, private readonly onMiss?: OnMiss) {}

  /** Windows of this thread that are in use. */
  get windowCount(): number {
    return this.windows.size;
  }

  takeFrameCounts(): FrameCounts {
    const { counts } = this;
    this.counts = { found: 0, read: 0 };
    return counts;
  }

  pin(source: ScanSource, segment: number, column: number, rows?: RowRange): number {
    const { rowCount, chunks } = source.segments.at(segment)!, chunk = chunks[column];
    assert(chunk !== undefined, "a column added later has no chunk to pin");
    if (chunk.address !== 0) return chunk.address;
    const { frames } = this.pool;
    // Most chunks have a frame. Without the lock this may miss it, or find one that is being removed.
    if (frames.has(chunk)) {
      const address = frames.pinReady(this.held, chunk, DECODED, this.onMiss);
      if (address >= 0) {
        this.counts.found++;
        return address;
      }
    }
    const window = rows && this.unpack(source, chunk, rowCount, rows);
    return window ?? this.pinValues(source, chunk, rowCount);
  }

  unpin(source: ScanSource, segment: number, column: number, address = 0): void {
    if (this.windows.delete(address)) return this.pool.windows.giveBack(address);
    const chunk = storedChunkOf(source, segment, column);
    if (chunk !== undefined) this.pool.frames.unpin(this.held, chunk);
  }

  private pinValues(source: ScanSource, chunk: ColumnChunk, rowCount: number): number {
    const { frames } = this.pool, isPackable = canBePacked(chunk);
    const fill = ({ address }: Frame) => {
      if (!isPackable || !this.pool.packedFramesOf(chunk).has(chunk, PACKED)) {
        return readValues(this.pool, source.directory, chunk, rowCount, address);
      }
      const decode = (stored: Uint8Array) => this.pool.codecs().decode(chunk, stored, address, rowCount);
      this.withPacked(source, chunk, copyAll, decode);
      this.counts.read--; // its packed frame is counted
    };
    return this.pinFrame(frames, this.held, chunk, isPackable ? PACKABLE : DECODED, memoryBytes(chunk), fill).address;
  }

  /** `fill` reads the extent on a miss. */
  private pinFrame(
    frames: Frames,
    held: Held,
    chunk: Extent,
    form: number,
    sizeBytes: number,
    fill: (frame: Frame) => void,
  ): Frame {
    let isFilled = false;
    const found = frames.pin(held, chunk, form, sizeBytes, (frame) => {
      isFilled = true;
      fill(frame);
    }, this.onMiss);
    if (isFilled) this.counts.read++;
    else this.counts.found++;
    return found;
  }

  /**
   * Decodes rows of a chunk to a window of this thread, if the pool has it packed, or has too little memory for its values, or if the rows are few. Returns the
   * address of row 0, or undefined if the chunk's values should get a frame.
   */
  private unpack(source: ScanSource, chunk: ColumnChunk, rowCount: number, rows: RowRange): number | undefined {
    const { frames, windows, heap } = this.pool, { onMiss } = this;
    // Without the lock this may miss a frame, or find one that is being removed. Both ways give the same values.
    if (!canBePacked(chunk) || frames.has(chunk)) return undefined;
    const share = (rows.to - rows.from) / rowCount,
      part = { isPart: share <= PART_SHARE, readBytes: share * chunk.valueBytes };
    if (this.pool.packedFramesOf(chunk).deservesValues(chunk, chunk.valueBytes, part, onMiss)) return undefined;
    const window = windows.take(frames.limitBytes);
    if (window === undefined) return undefined;
    try {
      this.withPacked(source, chunk, ofRange(rows), (stored) => {
        if (VERIFY) heap.u8.fill(0x7b, window, window + chunk.valueBytes); // other rows are not to be read
        this.pool.codecs().decodeRange(chunk, stored, window, rows);
      });
    } catch (error) {
      windows.giveBack(window);
      throw error;
    }
    this.windows.add(window);
    return window;
  }

  /** Reads an encoded chunk without a frame, to this thread's block. */
  private readAlone({ directory }: ScanSource, chunk: ColumnChunk): Uint8Array {
    const block = this.pool.copyBlock(),
      into = (sizeBytes: number) => this.pool.heap.u8.subarray(block, block + sizeBytes);
    return this.pool.reader.read(directory, chunk, codesPartOf(chunk), into);
  }

  /**
   * Calls `use` with a chunk as it is stored, without postings, in a packed frame. If that is in a further memory, `copy` copies what `use` reads to
   * this thread's block.
   */
  private withPacked<T>({ directory }: ScanSource, chunk: ColumnChunk, copy: Copy, use: (stored: Uint8Array) => T): T {
    const { reader, heap } = this.pool, { onMiss } = this, { u8 } = heap, packed = this.pool.packedFramesOf(chunk);
    if (packed === this.pool.frames) {
      // Most chunks have a frame in the heap.
      const address = packed.pinReady(this.using, chunk, PACKED, onMiss);
      if (address >= 0) {
        this.counts.found++;
        try {
          return use(u8.subarray(address, address + Math.min(chunk.sizeBytes, WINDOW_BYTES)));
        } finally {
          packed.unpin(this.using, chunk);
        }
      }
    }
    const part = codesPartOf(chunk);
    let { sizeBytes } = chunk;
    if (part !== undefined && onMiss === undefined && !packed.has(chunk, PACKED)) {
      sizeBytes = reader.using(directory, chunk, part).sizeBytes;
    }
    /** The chunk, if this thread has read it. */
    let read: Uint8Array | undefined;
    const readTo = (address: number) =>
      read = reader.read(directory, chunk, part, (sizeBytes) => u8.subarray(address, address + sizeBytes));
    /** Without a frame. */
    const useAlone = () => {
      this.counts.read++;
      return use(readTo(this.pool.copyBlock()));
    };
    if (
      onMiss === undefined && packed === this.pool.further && !packed.has(chunk, PACKED) && !packed.admits(sizeBytes)
    ) {
      return useAlone();
    }
    let frame: Frame;
    try {
      frame = this.pinFrame(packed, this.using, chunk, PACKED, sizeBytes, (frame) => {
        if (frame.memory === heap) readTo(frame.address);
        else frame.memory.u8.set(readTo(this.pool.copyBlock()), frame.address);
      });
    } catch (error) {
      if (!(error instanceof HeapFullError)) throw error;
      // All frames are being used.
      return useAlone();
    }
    try {
      if (read !== undefined) return use(read);
      const { memory, address } = frame;
      // A frame may be too large by postings. Without these, a chunk fits into the block.
      const stored = memory.u8.subarray(address, address + Math.min(sizeBytes, frame.sizeBytes, WINDOW_BYTES));
      if (memory === heap) return use(stored);
      const block = this.pool.copyBlock(), copied = u8.subarray(block, block + stored.length);
      copy(stored, copied);
      return use(copied);
    } finally {
      packed.unpin(this.using, chunk);
    }
  }

  firstAt(source: ScanSource, segment: number, column: number, value: bigint): number | undefined {
    const chunk = packableChunkOf(source, segment, column);
    if (chunk === undefined || this.pool.frames.has(chunk)) return undefined;
    return this.withPacked(source, chunk, copyAll, (stored) => this.pool.codecs().firstAt(stored, value));
  }

  gather(
    source: ScanSource,
    segment: number,
    column: number,
    rows: Int32Array,
    count: number,
    address: number,
  ): boolean {
    const chunk = storedChunkOf(source, segment, column), { frames } = this.pool;
    if (this.onMiss !== undefined || chunk === undefined) return false;
    if (!isEncoded(chunk) || chunk.entryBytes !== undefined || frames.has(chunk)) return false;
    const pick = (stored: Uint8Array) => this.pool.codecs().gatherListed(stored, rows, count, address);
    const isPackable = canBePacked(chunk), isPacked = isPackable && this.pool.packedFramesOf(chunk).has(chunk, PACKED);
    if (!isPacked) {
      frames.countMiss();
      if (!this.pool.isGatheredOften(chunk)) {
        this.counts.read++;
        pick(this.readAlone(source, chunk));
        return true;
      }
      if (!isPackable) return false;
    }
    this.withPacked(source, chunk, ofRows(rows.subarray(0, count)), pick);
    return true;
  }

  summaries(source: ScanSource, segment: number, column: number, into: Uint8Array): boolean {
    const { rowCount } = source.segments.at(segment)!, chunk = storedChunkOf(source, segment, column);
    if (chunk === undefined || !hasSummaries(chunk)) return false;
    const { frames, reader, heap } = this.pool, sizeBytes = summariesBytes(rowCount);
    const part = () => ({ at: chunk.sizeBytes - sizeBytes, sizeBytes, isIntact: areIntact });
    const fill = ({ address }: Frame) =>
      void reader.read(source.directory, chunk, part, () => heap.u8.subarray(address, address + sizeBytes));
    const { address } = this.pinFrame(frames, this.usingSummaries, chunk, SUMMARIES, sizeBytes, fill);
    into.set(heap.u8.subarray(address, address + sizeBytes));
    frames.unpin(this.usingSummaries, chunk);
    return true;
  }

  selectRows(
    source: ScanSource,
    segment: number,
    bounds: readonly ChunkBound[],
    range: RowRange,
    rows: number,
    rowsMax: number,
  ): number | undefined {
    const { chunks } = source.segments.at(segment)!;
    const known = bounds.filter((bound) => {
      const chunk = chunks[bound.column];
      return chunk !== undefined && isTestable(chunk, bound);
    });
    if (known.length === 0) return undefined;
    return this.pool.codecs().selectRows(known, range, this.opener(source, segment, range), rows, rowsMax);
  }

  maskRows(
    source: ScanSource,
    segment: number,
    conditions: readonly RowCondition[],
    range: RowRange,
    masks: number,
  ): number | undefined {
    const { chunks } = source.segments.at(segment)!;
    if (!conditions.every((condition) => isTestable(chunks[condition.column], condition))) return undefined;
    return this.pool.codecs().maskRows(conditions, range, this.opener(source, segment, range), masks);
  }

  /** Opens chunks of a segment that can be tested. */
  private opener(source: ScanSource, segment: number, range: RowRange): OpenChunk<TestedColumn> {
    const { chunks, rowCount } = source.segments.at(segment)!;
    return ({ column }, use) => {
      const chunk = chunks[column];
      if (chunk === undefined) return use(undefined);
      if (isComparable(chunk)) return void this.withPacked(source, chunk, ofRange(range), use);
      const address = this.pin(source, segment, column, range);
      use({ address, rowCount });
      this.unpin(source, segment, column, address);
    };
  }

  listRows(masks: number, range: RowRange, rows: number, count: number): void {
    this.pool.codecs().listRows(masks, range, rows, count);
  }

  readOffsets(
    source: ScanSource,
    segment: number,
    column: number,
    rows: RowRange,
    address: number,
    choose?: ChooseOffsets,
    missingMax?: number,
  ): ChunkOffsets | undefined {
    const chunk = chunkOf(source, segment, column);
    if (chunk === undefined || !isComparable(chunk)) return undefined;
    const read = (stored: Uint8Array) => this.pool.codecs().readOffsets(stored, rows, address, choose, missingMax);
    return this.withPacked(source, chunk, ofRange(rows), read);
  }

  vectorCounts(): VectorCounts {
    return this.pool.codecs().vectorCounts();
  }

  gatherRows(
    source: ScanSource,
    segment: number,
    column: number,
    rows: number,
    count: number,
    values: number,
  ): boolean {
    const chunk = packableChunkOf(source, segment, column);
    if (chunk === undefined) return false;
    // Without the lock this may miss a frame, or find one that is being removed. Both ways give the same values.
    if (this.pool.frames.has(chunk)) return false;
    const copy = ofRows(this.pool.heap.i32.subarray(rows / 4, rows / 4 + count));
    this.withPacked(source, chunk, copy, (stored) => this.pool.codecs().gatherRows(stored, rows, count, values));
    return true;
  }

  isIndexed(source: ScanSource, segment: number, column: number): boolean {
    const chunk = storedChunkOf(source, segment, column);
    return chunk !== undefined && hasPostings(chunk);
  }

  present(source: ScanSource, segment: number, column: number, codes: readonly number[]): number[] | undefined {
    return this.withPostings(source, segment, column, (head) => presentCodes(head, codes));
  }

  /** Blocks of postings are read from the file, and not kept: a short read of the page cache costs a few microseconds. */
  find(
    source: ScanSource,
    segment: number,
    column: number,
    codes: readonly number[],
    rowsMax: number,
  ): FoundRows | undefined {
    return this.withPostings(source, segment, column, (head, read) => findRows(head, read, codes, rowsMax));
  }

  private withPostings<T>(
    source: ScanSource,
    segment: number,
    column: number,
    use: (head: Uint8Array, read: ReadExtent) => T,
  ): T | undefined {
    if (!this.isIndexed(source, segment, column)) return undefined;
    if (this.onMiss !== undefined) return this.onMiss("lookup");
    const chunk = chunkOf(source, segment, column)!, { frames, heap, reader } = this.pool;
    return reader.using(source.directory, chunk, (read) => {
      let address = frames.pinReady(this.using, chunk, POSTINGS);
      if (address < 0) {
        const head = readHead(read, chunk.sizeBytes);
        try {
          const fill = (frame: Frame) => heap.u8.set(head, frame.address);
          ({ address } = this.pinFrame(frames, this.using, chunk, POSTINGS, head.length, fill));
        } catch (error) {
          if (!(error instanceof HeapFullError)) throw error;
          // All frames are being used.
          return use(head, read);
        }
      }
      try {
        return use(heap.u8.subarray(address, address + HEAD_BYTES_MAX), read);
      } finally {
        frames.unpin(this.using, chunk);
      }
    });
  }

  release(): void {
    this.pool.frames.releaseAll(this.held);
    if (this.windows.size === 0) return;
    for (const window of this.windows) this.pool.windows.giveBack(window);
    this.windows.clear();
  }
}
