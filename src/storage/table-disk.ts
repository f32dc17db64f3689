/**
 * Brings the rows of a table to its data files: flushes chunks that are only in memory, takes in what other threads have encoded, and writes
 * the words of pages and lists.
 */
import { assert, VERIFY } from "../assert.ts";
import type { Chunk, ChunkMaker } from "./chunks.ts";
import type { TableSchema } from "./contract.ts";
import type { DataFiles } from "./datafile.ts";
import type { SymbolTable } from "./dictionary.ts";
import type { ChunkOrder, EncodedChunk } from "./encoders.ts";
import { memoryBytes } from "./encoding/codecs.ts";
import type { SharedHeap } from "./heap.ts";
import { isLive, type Page } from "./page.ts";
import type { PageList } from "./page-list.ts";
import { storedPage } from "./page-words.ts";
import { type HandOver, inSchema, type Segment } from "./segment.ts";
import type { Part, Segments, SplicedSegments } from "./segments.ts";

/** What is flushed of a table. */
export interface FlushedTable {
  segments: Segments;
  detached: ReadonlyMap<bigint, Segments>;
  changed: boolean;
  readonly schema: TableSchema;
  readonly nextColumnId: number;
  /** Undefined if the column was dropped. */
  typeOfColumn(columnId: number): string | undefined;
  isIndexed(columnId: number): boolean;
  dictionary(columnId: number): SymbolTable;
}

export class TableDisk {
  constructor(
    private readonly table: FlushedTable,
    private readonly data: DataFiles,
    private readonly make: ChunkMaker,
    private readonly heap: SharedHeap,
  ) {}

  /**
   * Writes chunks that are only in memory to the data files, about `bytesMax` bytes. `all`: includes the last segment,
   * which stays in memory for further appends unless `keepsTail` is false. `handOver` is asked about each of the others. Returns the
   * number of bytes written or handed over.
   */
  flush(all: boolean, bytesMax = Infinity, keepsTail = true, handOver: HandOver = () => "here"): number {
    const { table } = this, flushed: SplicedSegments[] = [];
    let bytes = 0, start = 0;
    const last = table.segments.length - 1;
    for (const part of table.segments.lists.flatMap((list): readonly Part[] => list.isLive ? list.pages : [list])) {
      for (let k = 0; k < part.count && part.isLive && bytes < bytesMax; k++) {
        const segment = (part as Page).segments[k];
        if (!isLive(segment)) continue;
        const isLast = start + k === last;
        if (isLast && !all) continue;
        const where = isLast ? "here" : handOver(segment);
        if (where === "handed over") bytes += memoryOf(segment) >> 1; // about what it takes on disk
        if (where !== "here") continue;
        this.heap.addCounter("flushedSegments", 1);
        const flushedSegment = this.flushSegment(segment, isLast, keepsTail);
        bytes += flushedSegment.sizeBytes;
        flushed.push({ start: start + k, count: 1, segments: [flushedSegment.segment] });
      }
      start += part.count;
    }
    if (flushed.length > 0) {
      table.segments = table.segments.apply(flushed);
      table.changed = true;
    }
    for (const [start, segments] of table.detached) {
      if (bytes >= bytesMax) break;
      bytes += this.flushDetached(start, segments);
    }
    this.seal(false);
    return bytes;
  }

  /**
   * Writes the pages that are not on disk to the data files. Unless `all`, those that commits go on changing are left out. `all`:
   * all chunks must be stored, and lists of pages are written, too, except for the last one, which most commits change.
   */
  seal(all: boolean): void {
    const newest = this.table.segments.lists.at(-1)?.pages.at(-1);
    const write = (bytes: Uint8Array) => this.data.append([bytes]);
    const sealedPage = (page: Page) => {
      if (!all && (page.isLive || page === newest)) return [page];
      if (VERIFY) this.assertNames(page);
      return [page.sealed(write(storedPage(page)), this.data.readPage)];
    };
    const sealed = (segments: Segments) => {
      const after = segments.mapPages(sealedPage, ({ extent }) => extent === undefined);
      return all
        ? after.mapLists((list, k) =>
          list.extent === undefined && k + 1 < after.lists.length ? [list.sealed(write)] : [list]
        )
        : after;
    };
    this.table.segments = sealed(this.table.segments);
    if (all) this.mapDetached(sealed);
  }

  /** What a page names exists: its columns, and the symbols of its codes. */
  private assertNames({ segments }: Page): void {
    for (const { chunks } of segments) {
      assert(chunks.length <= this.table.nextColumnId, "a page has columns of the table");
      chunks.forEach((chunk, id) => {
        const { max } = chunk?.plain.stats ?? {};
        if (max === undefined || this.table.typeOfColumn(id) !== "SYMBOL") return;
        assert(
          Number(max) < this.table.dictionary(id).count,
          "symbols are in the dictionary before their codes are stored",
        );
      });
    }
  }

  private mapDetached(change: (segments: Segments) => Segments): void {
    let isChanged = false;
    const after = [...this.table.detached].map(([start, segments]) => {
      const changed = change(segments);
      isChanged ||= changed !== segments;
      return [start, changed] as const;
    });
    if (isChanged) this.table.detached = new Map(after);
  }

  private flushSegment(
    segment: Segment,
    isLast: boolean,
    keepsTail: boolean,
  ): { segment: Segment; sizeBytes: number } {
    let sizeBytes = 0;
    // A tail without new rows since the last flush leaves memory.
    const keep = keepsTail && isLast && segment.rowCount < this.make.segmentRowsMax &&
      segment.chunks.some((chunk) => chunk !== undefined && chunk.plain.file < 0);
    const chunks = segment.chunks.map((chunk, id) => {
      if (!isInMemory(chunk)) return chunk;
      if (chunk.plain.file >= 0) return keep ? chunk : outOfMemory(chunk);
      // A tail that stays in memory is stored again with its next rows.
      const isIndexed = !keep && this.table.isIndexed(id);
      const stored = this.make.store(this.typeOf(id), chunk, segment.rowCount, keep, isIndexed, this.data);
      sizeBytes += stored.plain.sizeBytes;
      return stored;
    });
    return { segment: { ...segment, chunks, words: undefined }, sizeBytes };
  }

  /** What other threads need to know to encode the chunks of a segment that are only in memory. */
  chunkOrders({ chunks, rowCount }: Segment): ChunkOrder[] {
    return chunks.flatMap((chunk, columnId) => {
      if (!isInMemory(chunk) || chunk.plain.file >= 0) return [];
      const { address } = chunk.plain;
      return [{ columnId, type: this.typeOf(columnId), address, rowCount, isIndexed: this.table.isIndexed(columnId) }];
    });
  }

  /**
   * Writes the chunks of a segment, which were encoded elsewhere, to the data files, and takes them out of memory. Returns false if the
   * table does not have this very segment any more.
   */
  store(segment: Segment, encoded: readonly EncodedChunk[]): boolean {
    let isFound = false;
    const segments = this.table.segments.mapSegments([segment.uid], (current) => {
      if (current !== segment) return current;
      isFound = true;
      const chunks = segment.chunks.map((chunk) =>
        isInMemory(chunk) && chunk.plain.file >= 0 ? outOfMemory(chunk) : chunk
      );
      for (const form of encoded) {
        const chunk = chunks[form.columnId]!;
        chunks[form.columnId] = this.written(chunk, form, chunk.plain.address);
      }
      return { ...segment, chunks, words: undefined };
    });
    if (!isFound) return false;
    this.table.segments = segments;
    this.table.changed = true;
    this.heap.addCounter("flushedSegments", 1);
    this.seal(false);
    return true;
  }

  /** A chunk in the data files in this form. `address`: of its values. */
  private written(chunk: Chunk, { columnId: _, bytes, crc, ...form }: EncodedChunk, address: number): Chunk {
    const { valueBytes } = chunk.plain;
    const extent = this.data.append([bytes ?? this.heap.u8.subarray(address, address + valueBytes)], crc);
    return this.make.stored(chunk, extent, form, valueBytes, false);
  }

  /** Memory for `loadChunk`. */
  loadedBytes({ plain }: Chunk): number {
    return memoryBytes(plain);
  }

  /** Reads the values of a chunk that is on disk. */
  loadChunk(type: string, chunk: Chunk, rowCount: number, address: number): void {
    this.make.load(type, chunk, rowCount, this.data, address);
  }

  encode(orders: readonly ChunkOrder[]): EncodedChunk[] {
    return this.make.encode(orders);
  }

  /**
   * Writes stored chunks of a segment anew, in another form. `orders`: their values. Returns false if the table does not have one of these
   * chunks any more.
   */
  exchange(segment: Segment, orders: readonly ChunkOrder[], encoded: readonly EncodedChunk[]): boolean {
    const isSame = ({ columnId }: EncodedChunk, { chunks }: Segment) => {
      const before = segment.chunks[columnId]!.plain, now = chunks[columnId]?.plain;
      return now !== undefined && now.file === before.file && now.offset === before.offset && now.address === 0;
    };
    let isFound = false;
    const exchanged = (segments: Segments) =>
      segments.mapSegments([segment.uid], (current) => {
        if (!encoded.every((chunk) => isSame(chunk, current))) return current;
        isFound = true;
        const chunks = current.chunks.slice();
        for (const form of encoded) {
          const { columnId } = form, { address } = orders.find((order) => order.columnId === columnId)!;
          chunks[columnId] = this.written(chunks[columnId]!, form, address);
        }
        return { ...current, chunks, words: undefined };
      });
    this.table.segments = exchanged(this.table.segments);
    if (!isFound) this.mapDetached(exchanged);
    if (isFound) this.table.changed = true;
    return isFound;
  }

  private flushDetached(start: bigint, segments: Segments): number {
    let bytes = 0;
    const flushed = segments.map((segment) => {
      if (!isLive(segment)) return segment;
      const known = inSchema(segment, this.table.schema);
      const chunks = known.chunks.map((chunk, id) => {
        if (!isInMemory(chunk)) return chunk;
        const stored = chunk.plain.file < 0
          ? this.make.store(this.typeOf(id), chunk, known.rowCount, false, this.table.isIndexed(id), this.data)
          : outOfMemory(chunk);
        if (chunk.plain.file < 0) bytes += stored.plain.sizeBytes;
        return stored;
      });
      return { ...known, chunks, words: undefined };
    }, (page) => page.isLive);
    if (flushed !== segments) {
      this.table.detached = new Map(this.table.detached).set(start, flushed);
      this.table.changed = true;
    }
    return bytes;
  }

  /** Bytes of memory that the last segment takes. */
  tailBytes(): number {
    if (this.table.segments.lists.at(-1)?.pages.at(-1)?.isLive !== true) return 0;
    return memoryOf(this.table.segments.at(-1)!);
  }

  /** Replaces the lists of pages of the table and of its detached partitions by others with the same rows. */
  mapLists(change: (list: PageList) => PageList): void {
    const changed = (segments: Segments) => segments.mapLists((list) => [change(list)]);
    this.table.segments = changed(this.table.segments);
    this.mapDetached(changed);
    this.table.changed = true;
  }

  private typeOf(columnId: number): string {
    return this.table.typeOfColumn(columnId)!;
  }
}

function isInMemory(chunk: Chunk | undefined): chunk is Chunk {
  return chunk !== undefined && chunk.plain.address !== 0;
}

/** Bytes of memory that a segment takes. */
export function memoryOf({ chunks }: Segment): number {
  let bytes = 0;
  for (const chunk of chunks) {
    for (const block of [chunk?.values, ...chunk?.texts ?? []]) bytes += block?.sizeBytes ?? 0;
  }
  return bytes;
}

/** The stored chunk without its copy in memory. */
function outOfMemory({ plain }: Chunk): Chunk {
  return { plain: { ...plain, address: 0 }, capacity: 0, texts: [], textBytes: 0 };
}
