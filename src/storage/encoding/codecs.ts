/** How chunks of all layouts are stored, and loaded again. */
import { type Layout, LAYOUT_WIDTH } from "../../types/mod.ts";
import type {
  ChooseOffsets,
  ChunkBound,
  ChunkOffsets,
  ColumnChunk,
  RowCondition,
  RowRange,
  VectorCounts,
} from "../contract.ts";
import type { SharedHeap } from "../heap.ts";
import { ChunkCodec, type OpenChunk } from "./chunk.ts";
import { isEncodable, isSummarised } from "./chunk-encoder.ts";
import { CODEC_BYTES } from "./chunk-scratch.ts";
import { HAS_POSTINGS, HAS_SUMMARIES, UNKNOWN_ENCODING } from "./encodings.ts";
import { makePostings, POSTINGS_ROWS_MIN } from "./postings.ts";
import { TextCodec } from "./texts.ts";

export { CODEC_BYTES, type OpenChunk };

/** The stored form of a chunk. */
export interface Stored extends Pick<ColumnChunk, "encodings" | "entryBytes" | "textBytes"> {
  parts: Uint8Array[];
}

type Form = Pick<ColumnChunk, "sizeBytes" | "encodings" | "valueBytes" | "entryBytes" | "textBytes">;

/** False: the file has the same bytes as the memory, except that text pairs have offsets. */
export function isEncoded({ encodings = 0 }: Form): boolean {
  return encodings !== 0;
}

/** Bytes of the values and their texts in memory. */
export function memoryBytes(chunk: Form): number {
  return isEncoded(chunk) ? chunk.valueBytes + (chunk.entryBytes ?? 0) : chunk.sizeBytes;
}

/** Bytes of the values and of the texts of all rows. */
export function rawBytes(chunk: Form): number {
  return isEncoded(chunk) ? chunk.valueBytes + (chunk.textBytes ?? 0) : chunk.sizeBytes;
}

/** The stored codes are followed by their postings. */
export function hasPostings({ encodings = 0 }: Form): boolean {
  return (encodings & HAS_POSTINGS) !== 0;
}

/** The stored values are followed by summaries of their vectors. */
export function hasSummaries({ encodings = 0 }: Form): boolean {
  return (encodings & HAS_SUMMARIES) !== 0;
}

/** The headers of the vectors have the range of the codes. */
export function hasCodeRanges({ encodings = 0 }: Form): boolean {
  return encodings !== 0 && (encodings & UNKNOWN_ENCODING) === 0;
}

/** Chunks of this layout may be encoded. */
export function isPackable(layout: Layout): boolean {
  return layout === "text" || isEncodable(layout);
}

/** The chunk lacks something that it may have had if the present program had stored it. */
export function isStale(layout: Layout, chunk: Form): boolean {
  if (!isEncoded(chunk) || (chunk.encodings! & UNKNOWN_ENCODING) !== 0) return true;
  return isSummarised(layout) && !hasSummaries(chunk);
}

/** A chunk of an indexed column of symbols, which may have had postings. */
export function lacksPostings(chunk: Form, rowCount: number): boolean {
  return rowCount >= POSTINGS_ROWS_MIN && !hasPostings(chunk);
}

/** The texts are not encoded: pairs have offsets, which become addresses when they are loaded. */
export function hasOffsets(chunk: Form): boolean {
  return !isEncoded(chunk) && chunk.valueBytes < chunk.sizeBytes;
}

/** Encodes and decodes chunks. Each thread has its own, with `CODEC_BYTES` of the shared memory at `scratch`. */
export class Codecs {
  private readonly chunks: ChunkCodec;
  private readonly texts: TextCodec;

  constructor(private readonly heap: SharedHeap, readonly scratch: number) {
    this.chunks = new ChunkCodec(heap, scratch);
    this.texts = new TextCodec(heap, this.chunks);
  }

  /**
   * Encodes a chunk in the shared memory, in steps. Undefined if it would not become clearly smaller. Valid until the next use, which may
   * be between two steps. `isIndexed`: with postings where they pay.
   */
  *encodeSteps(
    layout: Layout,
    nullWords: readonly number[],
    address: number,
    rowCount: number,
    isIndexed: boolean,
  ): Generator<void, Stored | undefined> {
    if (layout === "text") return yield* this.texts.encodeSteps(address, rowCount);
    if (layout === "symbol" && isIndexed) {
      const codes = this.chunks.encode(layout, nullWords, address, rowCount * LAYOUT_WIDTH[layout], true);
      const postings = codes && makePostings(this.heap, address, rowCount, codes.bytes);
      if (postings !== undefined) {
        return { parts: [codes!.bytes, postings], encodings: codes!.encodings | HAS_POSTINGS };
      }
    }
    const encoded = this.chunks.encode(layout, nullWords, address, rowCount * LAYOUT_WIDTH[layout]);
    return encoded && { parts: [encoded.bytes], encodings: encoded.encodings };
  }

  /** As `ChunkCodec.gatherListed`. */
  gatherListed(stored: Uint8Array, rows: Int32Array, count: number, address: number): void {
    this.chunks.gatherListed(stored, rows, count, address);
  }

  /** As `ChunkCodec.selectRows`. */
  selectRows(
    bounds: readonly ChunkBound[],
    range: RowRange,
    open: OpenChunk<ChunkBound>,
    rows: number,
    rowsMax: number,
  ): number {
    return this.chunks.selectRows(bounds, range, open, rows, rowsMax);
  }

  /** As `ChunkCodec.maskRows`. */
  maskRows(
    conditions: readonly RowCondition[],
    range: RowRange,
    open: OpenChunk<RowCondition>,
    masks: number,
  ): number | undefined {
    return this.chunks.maskRows(conditions, range, open, masks);
  }

  /** As `ChunkCodec.listRows`. */
  listRows(masks: number, range: RowRange, rows: number, count: number): void {
    this.chunks.listRows(masks, range, rows, count);
  }

  /** As `ChunkCodec.vectorCounts`. */
  vectorCounts(): VectorCounts {
    return this.chunks.vectorCounts();
  }

  /** As `ChunkCodec.readOffsets`. */
  readOffsets(
    stored: Uint8Array,
    rows: RowRange,
    address: number,
    choose?: ChooseOffsets,
    missingMax?: number,
  ): ChunkOffsets | undefined {
    return this.chunks.readOffsets(stored, rows, address, choose, missingMax);
  }

  /** As `ChunkCodec.firstAt`. */
  firstAt(stored: Uint8Array, value: bigint): number {
    return this.chunks.firstAt(stored, value);
  }

  /** As `ChunkCodec.gatherRows`. */
  gatherRows(stored: Uint8Array, rows: number, count: number, values: number): void {
    this.chunks.gatherRows(stored, rows, count, values);
  }

  /** Decodes the vectors of rows `from` … `to`-1 of an encoded chunk that has no texts. Row 0 is at `address`. */
  decodeRange(chunk: Form, stored: Uint8Array, address: number, rows: RowRange): void {
    this.chunks.decode(stored, address, chunk.valueBytes, rows);
  }

  /** Decodes a chunk to `memoryBytes(chunk)` at `address`. */
  decode(chunk: Form, stored: Uint8Array, address: number, rowCount: number): void {
    if (chunk.entryBytes === undefined) this.chunks.decode(stored, address, chunk.valueBytes);
    else this.texts.decode(stored, address, rowCount);
  }
}
