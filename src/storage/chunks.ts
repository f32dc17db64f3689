/**
 * Makes chunks. A chunk holds the values of one column in one segment and never changes. The tail's next version shares its
 * memory and is longer; a late row or an update makes new memory.
 */
import { fillNull, LAYOUT_WIDTH, layoutOf } from "../types/mod.ts";
import type { ColumnChunk, ColumnStats, RowRange } from "./contract.ts";
import { relocateTexts } from "./chunk-values.ts";
import type { DataFiles } from "./datafile.ts";
import { CODEC_BYTES, Codecs, hasOffsets, isEncoded, memoryBytes, rawBytes, type Stored } from "./encoding/codecs.ts";
import { atOnce, storedForm } from "./encoding/stored.ts";
import type { ChunkOrder, EncodedChunk } from "./encoders.ts";
import { crc32 } from "./bytes.ts";
import type { Extent } from "./extent.ts";
import type { SharedHeap } from "./heap.ts";
import type { MemoryBlock, WriterMemory } from "./memory.ts";
import { assemble, copyTexts, rowCountOf, type Run, statsOfRuns, textBytesOf } from "./merge.ts";
import { type RowColumn } from "./rows.ts";
import { extendStats, nullStats } from "./stats.ts";

export const SEGMENT_ROWS_MAX = 65_536;
const TEXT_BLOCK_MIN = 4096, TEXT_BLOCK_MAX = 1 << 20;

export interface Chunk {
  /** The published form. `file` is -1 until the chunk is on disk. `address` is 0 if it is not in memory. */
  readonly plain: ColumnChunk;
  readonly values?: MemoryBlock;
  /** Number of rows that `values` has space for. */
  readonly capacity: number;
  /** Blocks that the text pairs point into. */
  readonly texts: readonly MemoryBlock[];
  /** Bytes of text in memory. */
  readonly textBytes: number;
}

function plainOf(address: number, valueBytes: number, stats: ColumnChunk["stats"]): ColumnChunk {
  return { address, file: -1, offset: 0, sizeBytes: 0, crc: 0, valueBytes, stats };
}

export class ChunkMaker {
  private readonly heap: SharedHeap;
  private readonly codecs: Codecs;

  constructor(
    private readonly memory: WriterMemory,
    private readonly encoding: "auto" | "raw",
    readonly segmentRowsMax = SEGMENT_ROWS_MAX,
  ) {
    this.heap = memory.heap;
    this.codecs = new Codecs(this.heap, this.heap.allocateExact(CODEC_BYTES, "other"));
  }

  /**
   * Returns `rowsBefore` rows of `chunk`, then rows [from, to) of `added`. If both are undefined nothing is stored: all
   * null.
   */
  append(
    tag: string,
    chunk: Chunk | undefined,
    rowsBefore: number,
    added: RowColumn | undefined,
    from: number,
    to: number,
    data: DataFiles,
  ): Chunk | undefined {
    if (chunk === undefined && added === undefined) return undefined;
    const layout = layoutOf(tag), width = LAYOUT_WIDTH[layout];
    const rowCount = rowsBefore + to - from;
    let values = chunk?.values, capacity = chunk?.capacity ?? 0;
    let texts = chunk?.texts ?? [], textBytes = chunk?.textBytes ?? 0;
    if (values === undefined || capacity < rowCount) {
      const old = chunk === undefined ? undefined : this.resident(tag, chunk, rowsBefore, data);
      values = this.memory.allocate(rowCount * width, "tail");
      capacity = Math.min(SEGMENT_ROWS_MAX, Math.floor(values.sizeBytes / width));
      if (old === undefined) this.fillNulls(tag, values.address, rowsBefore);
      else {
        this.heap.u8.copyWithin(values.address, old.address, old.address + rowsBefore * width);
        texts = old.texts;
        textBytes = old.textBytes;
        old.release();
      }
    }
    const { address } = values;
    if (added === undefined) this.fillNulls(tag, address + rowsBefore * width, to - from);
    else if (layout === "text") {
      const written = this.writeTexts(address + rowsBefore * 8, added, from, to, texts);
      texts = written.texts;
      textBytes += written.bytes;
    } else this.heap.u8.set(added.values.subarray(from * width, to * width), address + rowsBefore * width);
    const before = chunk?.plain.stats ?? nullStats(tag, rowsBefore);
    const newRows = [{ from: rowsBefore, to: rowCount }];
    const stats = extendStats(this.heap, tag, address, newRows, rowsBefore === 0 ? undefined : before);
    return { plain: plainOf(address, rowCount * width, stats), values, capacity, texts, textBytes };
  }

  /** Returns a chunk made of runs. `inserted`: the rows of those with source 1. */
  assemble(
    tag: string,
    chunk: Chunk | undefined,
    oldRows: number,
    added: RowColumn | undefined,
    runs: readonly Run[],
    inserted: readonly RowRange[],
    data: DataFiles,
  ): Chunk | undefined {
    if (chunk === undefined && added === undefined) return undefined;
    const layout = layoutOf(tag), width = LAYOUT_WIDTH[layout];
    const rowCount = rowCountOf(runs);
    const old = chunk === undefined ? undefined : this.resident(tag, chunk, oldRows, data);
    const values = this.memory.allocate(rowCount * width, "tail");
    let texts = old?.texts ?? [], textBytes = old?.textBytes ?? 0, textsAt = 0;
    if (layout === "text" && added !== undefined) {
      const bytes = runs.reduce(
        (sum, { source, start, count }) => source === 0 ? sum : sum + textBytesOf(added, start, start + count),
        0,
      );
      const reserved = this.reserveTexts(texts, bytes);
      texts = reserved.texts;
      textsAt = reserved.at;
      textBytes += bytes;
    }
    assemble(this.heap, tag, { old: old?.address, added }, runs, values.address, textsAt);
    old?.release();
    const before = chunk?.plain.stats ?? nullStats(tag, oldRows);
    const stats = statsOfRuns(this.heap, tag, values.address, runs, inserted, oldRows, before);
    return this.newChunk(tag, rowCount, stats, values, texts, textBytes);
  }

  /**
   * Memory for the chunks of a merge that another thread does. `textBytes`: of the added rows. New blocks are added to `writes`, also if
   * memory runs out.
   */
  prepare(
    tag: string,
    chunk: Chunk | undefined,
    partRows: readonly number[],
    textBytes: number,
    writes: MemoryBlock[],
  ): {
    loadAt: number;
    values: readonly MemoryBlock[];
    texts: readonly MemoryBlock[];
    textsAt: number;
    textBytes: number;
  } {
    const take = (sizeBytes: number) => {
      const block = this.memory.allocate(sizeBytes, "tail");
      writes.push(block);
      return block;
    };
    const width = LAYOUT_WIDTH[layoutOf(tag)], values = partRows.map((rowCount) => take(rowCount * width));
    let texts = chunk?.texts ?? [], bytes = (chunk?.textBytes ?? 0) + textBytes, loadAt = 0;
    if (chunk !== undefined && chunk.plain.address === 0 && layoutOf(tag) === "text") {
      const block = take(memoryBytes(chunk.plain));
      block.used = block.sizeBytes;
      loadAt = block.address;
      texts = [block];
      bytes += rawBytes(chunk.plain) - chunk.plain.valueBytes;
    }
    const reserved = this.reserveTexts(texts, textBytes);
    if (reserved.texts !== texts) writes.push(reserved.texts.at(-1)!);
    return { loadAt, values, texts: reserved.texts, textsAt: reserved.at, textBytes: bytes };
  }

  discard(blocks: readonly MemoryBlock[]): void {
    for (const block of blocks) this.memory.discard(block);
  }

  /** A chunk whose values have been written to new memory. */
  newChunk(
    tag: string,
    rowCount: number,
    stats: ColumnStats,
    values: MemoryBlock,
    texts: readonly MemoryBlock[],
    textBytes: number,
  ): Chunk {
    const width = LAYOUT_WIDTH[layoutOf(tag)];
    const capacity = Math.min(SEGMENT_ROWS_MAX, Math.floor(values.sizeBytes / width));
    return { plain: plainOf(values.address, rowCount * width, stats), values, capacity, texts, textBytes };
  }

  /** The chunk with row `rows[k]` replaced by row `from + k` of `added`. */
  update(
    tag: string,
    chunk: Chunk | undefined,
    rowCount: number,
    added: RowColumn,
    rows: Uint32Array,
    from: number,
    data: DataFiles,
  ): Chunk {
    const layout = layoutOf(tag), width = LAYOUT_WIDTH[layout];
    const old = chunk === undefined ? undefined : this.resident(tag, chunk, rowCount, data);
    const values = this.memory.allocate(rowCount * width, "tail");
    if (old === undefined) this.fillNulls(tag, values.address, rowCount);
    else this.heap.u8.copyWithin(values.address, old.address, old.address + rowCount * width);
    let texts = old?.texts ?? [], textBytes = old?.textBytes ?? 0;
    const u8 = this.heap.u8;
    for (let k = 0; k < rows.length; k++) {
      const at = values.address + rows[k] * width;
      if (layout === "text") {
        const written = this.writeTexts(at, added, from + k, from + k + 1, texts);
        texts = written.texts;
        textBytes += written.bytes;
      } else for (let b = 0, source = (from + k) * width; b < width; b++) u8[at + b] = added.values[source + b];
    }
    old?.release();
    const stats = extendStats(this.heap, tag, values.address, [{ from: 0, to: rowCount }], undefined);
    return this.newChunk(tag, rowCount, stats, values, texts, textBytes);
  }

  /**
   * Writes a chunk to its table's data file. `keep`: the values also stay in memory. `isIndexed`: codes of symbols are looked up by
   * postings.
   */
  store(tag: string, chunk: Chunk, rowCount: number, keep: boolean, isIndexed: boolean, data: DataFiles): Chunk {
    const { address } = chunk.plain;
    const values = { type: tag, address, rowCount, isIndexed };
    const { parts, ...form } = atOnce(
      storedForm(this.heap, this.encoding === "auto" ? this.codecs : undefined, values),
    );
    return this.stored(chunk, data.append(parts), form, rowCount * LAYOUT_WIDTH[layoutOf(tag)], keep);
  }

  /** The chunk with the extent that it has been written to. `keep`: the values also stay in memory. */
  stored(chunk: Chunk, extent: Extent, form: Omit<Stored, "parts">, valueBytes: number, keep: boolean): Chunk {
    const plain = { ...extent, ...form, address: keep ? chunk.plain.address : 0, valueBytes, stats: chunk.plain.stats };
    return keep ? { ...chunk, plain } : { plain, capacity: 0, texts: [], textBytes: 0 };
  }

  /**
   * The chunk's values in memory, read from the file if necessary. `release` frees what was read only for this call.
   */
  resident(
    tag: string,
    chunk: Chunk,
    rowCount: number,
    data: DataFiles,
  ): { address: number; texts: readonly MemoryBlock[]; textBytes: number; release(): void } {
    const { plain } = chunk, { address, valueBytes } = plain;
    if (address !== 0) return { address, texts: chunk.texts, textBytes: chunk.textBytes, release() {} };
    const block = this.memory.allocate(memoryBytes(plain), "tail");
    this.load(tag, chunk, rowCount, data, block.address);
    if (layoutOf(tag) !== "text") {
      return {
        address: block.address,
        texts: [],
        textBytes: 0,
        release: () => this.memory.discard(block),
      };
    }
    block.used = block.sizeBytes;
    // The texts stay in place, so the block must stay too.
    return { address: block.address, texts: [block], textBytes: rawBytes(plain) - valueBytes, release() {} };
  }

  /** Reads the values of a stored chunk, and its texts after them, into `memoryBytes` of memory. */
  load(tag: string, { plain }: Chunk, rowCount: number, data: DataFiles, address: number): void {
    const { sizeBytes, valueBytes } = plain;
    if (isEncoded(plain)) {
      const stored = new Uint8Array(sizeBytes);
      data.read(plain, stored);
      this.codecs.decode(plain, stored, address, rowCount);
    } else data.read(plain, this.heap.u8.subarray(address, address + sizeBytes));
    if (layoutOf(tag) === "text" && hasOffsets(plain)) {
      relocateTexts(this.heap, address, rowCount, address + valueBytes);
    }
  }

  /** What another thread would make of these chunks. */
  encode(orders: readonly ChunkOrder[]): EncodedChunk[] {
    return orders.map((order) => {
      const { parts, ...form } = atOnce(storedForm(this.heap, this.codecs, order));
      const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
      let at = 0;
      for (const part of parts) {
        bytes.set(part, at);
        at += part.length;
      }
      return { columnId: order.columnId, ...form, bytes, crc: crc32(bytes) };
    });
  }

  /** A copy of the values of a chunk that is on disk, in the form of rows to be added. */
  rowsOf(tag: string, chunk: Chunk, rowCount: number, data: DataFiles): RowColumn {
    const { u8 } = this.heap;
    const valueBytes = rowCount * LAYOUT_WIDTH[layoutOf(tag)];
    const { address, texts, release } = this.resident(tag, chunk, rowCount, data);
    const values = u8.slice(address, address + valueBytes);
    if (layoutOf(tag) !== "text") {
      release();
      return { values };
    }
    const [block] = texts, start = address + valueBytes;
    const heap = u8.slice(start, block.address + block.sizeBytes);
    const pairs = new Int32Array(values.buffer);
    for (let k = 0; k < pairs.length; k += 2) if (pairs[k + 1] > 0) pairs[k] -= start;
    this.memory.discard(block);
    return { values, heap };
  }

  private fillNulls(tag: string, address: number, count: number): void {
    if (count > 0) fillNull(this.heap, tag, address, 0, count);
  }

  /** Copies texts into blocks, and writes their pairs at `address`. */
  private writeTexts(
    address: number,
    added: RowColumn,
    from: number,
    to: number,
    before: readonly MemoryBlock[],
  ): { texts: readonly MemoryBlock[]; bytes: number } {
    const bytes = textBytesOf(added, from, to);
    const { texts, at } = this.reserveTexts(before, bytes);
    copyTexts(this.heap, added, from, to, address, at);
    return { texts, bytes };
  }

  /** Takes space for texts: in the last block of `texts` if it has as much, otherwise in a new one. */
  reserveTexts(texts: readonly MemoryBlock[], bytes: number): { texts: readonly MemoryBlock[]; at: number } {
    let block = texts.at(-1);
    if (bytes > 0 && (block === undefined || block.used + bytes > block.sizeBytes)) {
      const size = Math.min(TEXT_BLOCK_MAX, Math.max(TEXT_BLOCK_MIN, 2 * (block?.sizeBytes ?? 0)));
      block = this.memory.allocate(Math.max(bytes, size), "tail");
      texts = [...texts, block];
    }
    if (block === undefined) return { texts, at: 0 };
    const at = block.address + block.used;
    block.used += bytes;
    return { texts, at };
  }
}
