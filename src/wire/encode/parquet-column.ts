/**
 * Encodes a flat column of a row group from its values in the heap: a dictionary if it at least halves the bytes, and data pages of version 2.
 * Page headers are the library's. It has the same rules, but makes a JavaScript value of each one that it writes.
 */
import type { ColumnChunk, CompressionCodec, Encoding, PageHeader } from "hyparquet";
import { ByteWriter } from "hyparquet-writer";
import { writePageHeader } from "hyparquet-writer/src/datapage.js";
import type { Vector } from "../../engine/contract.ts";
import type { Dictionary } from "../../storage/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import { type Cells, gatherCells } from "./parquet-cells.ts";
import { type Distinct, distinctCells, distinctPlaces, distinctTexts } from "./parquet-distinct.ts";
import { hybrid, hybridRun } from "./parquet-hybrid.ts";
import type { ParquetType, Stored } from "./parquet-types.ts";

export interface PageOptions {
  codec: CompressionCodec;
  compress(bytes: Uint8Array<ArrayBuffer>): Uint8Array;
  pageSizeBytes: number;
}

export type FlatType = ParquetType & { stored: Exclude<Stored, { kind: "other" }> };

export const isFlat = (type: ParquetType): type is FlatType => type.stored.kind !== "other";

/** Its offsets are relative to the first of `parts`. */
export interface EncodedColumn {
  chunk: ColumnChunk;
  parts: Uint8Array[];
}

/** How values are written in pages. */
interface Values {
  encoding: Encoding;
  /** The value after those which fill a page that starts with value `from`. */
  pageEnd(from: number, sizeBytes: number): number;
  bytes(from: number, to: number): Uint8Array<ArrayBuffer>;
}

interface Encoded {
  values: Values;
  dictionary?: { count: number; bytes: Uint8Array<ArrayBuffer> };
}

export function encodeColumn(
  heap: SharedHeap,
  name: string,
  type: FlatType,
  vector: Vector,
  firstRow: number,
  rowCount: number,
  options: PageOptions,
): EncodedColumn {
  const cells = gatherCells(heap, vector, firstRow, rowCount, type);
  const { values, dictionary } = encodedCells(heap, cells, type, vector);
  const pages = new Pages(options);
  if (dictionary !== undefined) pages.dictionary(dictionary.count, dictionary.bytes);
  const dataOffset = pages.sizeBytes;
  for (let row = 0, from = 0; row < rowCount;) {
    const to = Math.min(cells.count, values.pageEnd(from, options.pageSizeBytes));
    const endRow = to === cells.count ? rowCount : rowAfter(cells, row, to - from);
    const levels = type.optional ? levelsOf(cells, row, endRow) : new Uint8Array();
    pages.data(values.encoding, endRow - row, to - from, levels, values.bytes(from, to));
    row = endRow;
    from = to;
  }
  return {
    parts: pages.parts,
    chunk: {
      file_offset: 0n,
      meta_data: {
        type: type.element.type!,
        encodings: dictionary === undefined ? [values.encoding] : ["PLAIN", values.encoding],
        path_in_schema: [name],
        codec: options.codec,
        num_values: BigInt(rowCount),
        total_compressed_size: BigInt(pages.sizeBytes),
        total_uncompressed_size: BigInt(pages.uncompressedBytes),
        data_page_offset: BigInt(dataOffset),
        dictionary_page_offset: dictionary && 0n,
      },
    },
  };
}

class Pages {
  readonly parts: Uint8Array[] = [];
  sizeBytes = 0;
  uncompressedBytes = 0;

  constructor(private readonly options: PageOptions) {}

  dictionary(count: number, bytes: Uint8Array<ArrayBuffer>): void {
    const compressed = this.options.compress(bytes);
    const header: PageHeader = {
      type: "DICTIONARY_PAGE",
      uncompressed_page_size: bytes.length,
      compressed_page_size: compressed.length,
      dictionary_page_header: { num_values: count, encoding: "PLAIN" },
    };
    this.add(header, [compressed]);
  }

  data(
    encoding: Encoding,
    rowCount: number,
    valueCount: number,
    levels: Uint8Array<ArrayBuffer>,
    bytes: Uint8Array<ArrayBuffer>,
  ): void {
    const compressed = this.options.compress(bytes);
    const header: PageHeader = {
      type: "DATA_PAGE_V2",
      uncompressed_page_size: levels.length + bytes.length,
      compressed_page_size: levels.length + compressed.length,
      data_page_header_v2: {
        num_values: rowCount,
        num_nulls: rowCount - valueCount,
        num_rows: rowCount,
        encoding,
        definition_levels_byte_length: levels.length,
        repetition_levels_byte_length: 0,
        is_compressed: true,
      },
    };
    this.add(header, [levels, compressed]);
  }

  private add(header: PageHeader, contents: Uint8Array[]): void {
    const writer = new ByteWriter(64);
    writePageHeader(writer, header);
    const head = writer.getBytes();
    this.parts.push(head, ...contents);
    this.sizeBytes += head.length + header.compressed_page_size;
    this.uncompressedBytes += head.length + header.uncompressed_page_size;
  }
}

/** The row after the one with the last of `count` values from row `row` on. */
function rowAfter({ present }: Cells, row: number, count: number): number {
  if (present === undefined) return row + count;
  while (count > 0) count -= present[row++];
  return row;
}

function levelsOf({ present }: Cells, row: number, endRow: number): Uint8Array<ArrayBuffer> {
  return present === undefined ? hybridRun(1, endRow - row, 1) : hybrid(present, row, endRow, 1);
}

function encodedCells(heap: SharedHeap, cells: Cells, { element, stored }: FlatType, vector: Vector): Encoded {
  const { words, wordsPerCell, count } = cells;
  switch (stored.kind) {
    case "text":
      return stored.isPlain ? { values: plainTexts(heap, words, count) } : encodedTexts(heap, words, count);
    case "symbol":
      return encodedSymbols(heap, words, count, vector.dictionary!);
    case "words":
      if (stored.isReversed) reverseCells(bytesOf(words, count * wordsPerCell), wordsPerCell * 4);
      return encodedNumbers(words, wordsPerCell, count);
    case "number":
      return element.type === "BOOLEAN" ? { values: booleans(words) } : encodedNumbers(words, wordsPerCell, count);
  }
}

const bytesOf = (words: Int32Array<ArrayBuffer>, wordCount: number) => new Uint8Array(words.buffer, 0, wordCount * 4);

function reverseCells(bytes: Uint8Array, width: number): void {
  for (let first = 0; first < bytes.length; first += width) {
    for (let at = first, last = first + width - 1; at < last; at++, last--) {
      const byte = bytes[at];
      bytes[at] = bytes[last];
      bytes[last] = byte;
    }
  }
}

function plainCells(words: Int32Array<ArrayBuffer>, wordsPerCell: number): Values {
  const width = wordsPerCell * 4;
  return {
    encoding: "PLAIN",
    pageEnd: (from, sizeBytes) => from + Math.max(1, Math.floor(sizeBytes / width)),
    bytes: (from, to) => new Uint8Array(words.buffer, from * width, (to - from) * width),
  };
}

/** The bytes of the runs are preceded by their number. */
function booleans(words: Int32Array<ArrayBuffer>): Values {
  return {
    encoding: "RLE",
    pageEnd: (from, sizeBytes) => from + sizeBytes * 8,
    bytes(from, to) {
      const bytes = hybrid(words, from, to, 1, 4);
      new DataView(bytes.buffer).setUint32(0, bytes.length - 4, true);
      return bytes;
    },
  };
}

/** Places in a dictionary, after their width in bits. */
function dictionaryIndexes({ indexes, firsts }: Distinct): Values {
  const bitWidth = bitWidthOf(firsts.length);
  return {
    encoding: "RLE_DICTIONARY",
    pageEnd: (from, sizeBytes) => from + Math.floor(sizeBytes * 8 / Math.max(1, bitWidth)),
    bytes(from, to) {
      const bytes = hybrid(indexes, from, to, bitWidth, 1);
      bytes[0] = bitWidth;
      return bytes;
    },
  };
}

const bitWidthOf = (distinct: number) => 32 - Math.clz32(Math.max(0, distinct - 1));

/** A dictionary must at least halve the bytes, because readers have to look up each value. */
const isWorth = ({ indexes, firsts }: Distinct, dictionaryBytes: number, plainBytes: number) =>
  2 * (dictionaryBytes + indexes.length * bitWidthOf(firsts.length) / 8) < plainBytes;

/** Values of a sample, and the part of them that may be distinct if a dictionary is tried. */
const SAMPLE_COUNT = 1000, SAMPLE_DISTINCT_MAX = 0.9;

/** Cells spread over the column, so that sorted values do not seem to repeat. */
function sampleOf(words: Int32Array, wordsPerCell: number, count: number): Int32Array {
  const size = Math.min(count, SAMPLE_COUNT), sample = new Int32Array(size * wordsPerCell);
  for (let k = 0; k < size; k++) {
    const from = Math.floor(k * count / size) * wordsPerCell;
    for (let word = 0; word < wordsPerCell; word++) sample[k * wordsPerCell + word] = words[from + word];
  }
  return sample;
}

function encodedNumbers(words: Int32Array<ArrayBuffer>, wordsPerCell: number, count: number): Encoded {
  const plain = plainCells(words, wordsPerCell), width = wordsPerCell * 4;
  const sample = sampleOf(words, wordsPerCell, count), sampled = sample.length / wordsPerCell;
  if (distinctCells(sample, wordsPerCell, sampled, sampled * SAMPLE_DISTINCT_MAX) === undefined) {
    return { values: plain };
  }
  const distinct = distinctCells(words, wordsPerCell, count, count / 2);
  if (distinct === undefined || !isWorth(distinct, distinct.firsts.length * width, count * width)) {
    return { values: plain };
  }
  const entries = cellsAt(words, wordsPerCell, distinct.firsts);
  const bytes = bytesOf(entries, entries.length);
  return { values: dictionaryIndexes(distinct), dictionary: { count: distinct.firsts.length, bytes } };
}

function cellsAt(words: Int32Array, wordsPerCell: number, places: Int32Array): Int32Array<ArrayBuffer> {
  const cells = new Int32Array(places.length * wordsPerCell);
  for (let k = 0; k < places.length; k++) {
    for (let word = 0; word < wordsPerCell; word++) {
      cells[k * wordsPerCell + word] = words[places[k] * wordsPerCell + word];
    }
  }
  return cells;
}

const LENGTH_BYTES = 4;

/** Entries of a SYMBOL column's dictionary up to which those of a row group are found by a table of all. */
const SMALL_DICTIONARY = 1 << 16;

function encodedTexts(heap: SharedHeap, pairs: Int32Array, count: number): Encoded {
  const plain = { values: plainTexts(heap, pairs, count) };
  const sample = sampleOf(pairs, 2, count), sampled = sample.length / 2;
  const sampleBytes = textBytes(sample, 0, sampled) - sampled * LENGTH_BYTES;
  const tried = distinctTexts(heap, sample, sampled, sampleBytes * SAMPLE_DISTINCT_MAX);
  if (tried === undefined || tried.firsts.length > sampled * SAMPLE_DISTINCT_MAX) return plain;
  const plainBytes = textBytes(pairs, 0, count), distinct = distinctTexts(heap, pairs, count, plainBytes / 2);
  if (distinct === undefined) return plain;
  return withDictionary(heap, cellsAt(pairs, 2, distinct.firsts), distinct, plainBytes) ?? plain;
}

function encodedSymbols(heap: SharedHeap, codes: Int32Array, count: number, dictionary: Dictionary): Encoded {
  const { i32 } = heap, entries = dictionary.entries >>> 2;
  const distinct = dictionary.count <= SMALL_DICTIONARY
    ? distinctPlaces(codes, count, dictionary.count)
    : distinctCells(codes, 1, count, count);
  if (distinct !== undefined) {
    const places = cellsAt(codes, 1, distinct.firsts);
    let plainBytes = count * LENGTH_BYTES;
    for (let k = 0; k < count; k++) plainBytes += i32[entries + 2 * codes[k] + 1];
    const encoded = withDictionary(heap, pairsOf(i32, entries, places, places.length), distinct, plainBytes);
    if (encoded !== undefined) return encoded;
  }
  return { values: plainTexts(heap, pairsOf(i32, entries, codes, count), count) };
}

/** The pairs at places of a dictionary. */
function pairsOf(i32: Int32Array, entries: number, places: Int32Array, count: number): Int32Array {
  const pairs = new Int32Array(2 * count);
  for (let k = 0; k < count; k++) {
    pairs[2 * k] = i32[entries + 2 * places[k]];
    pairs[2 * k + 1] = i32[entries + 2 * places[k] + 1];
  }
  return pairs;
}

function withDictionary(
  heap: SharedHeap,
  entries: Int32Array,
  distinct: Distinct,
  plainBytes: number,
): Encoded | undefined {
  const count = distinct.firsts.length, dictionaryBytes = textBytes(entries, 0, count);
  if (!isWorth(distinct, dictionaryBytes, plainBytes)) return undefined;
  const bytes = writeTexts(heap, entries, 0, count, dictionaryBytes);
  return { values: dictionaryIndexes(distinct), dictionary: { count, bytes } };
}

function plainTexts(heap: SharedHeap, pairs: Int32Array, count: number): Values {
  return {
    encoding: "PLAIN",
    pageEnd(from, sizeBytes) {
      let to = from, size = 0;
      while (to < count) {
        size += LENGTH_BYTES + pairs[2 * to + 1];
        if (size > sizeBytes && to > from) break;
        to++;
      }
      return to;
    },
    bytes: (from, to) => writeTexts(heap, pairs, from, to, textBytes(pairs, from, to)),
  };
}

/** The bytes that texts take in pages. */
function textBytes(pairs: Int32Array, from: number, to: number): number {
  let size = (to - from) * LENGTH_BYTES;
  for (let k = from; k < to; k++) size += pairs[2 * k + 1];
  return size;
}

/** Below this length a loop over the bytes is faster than making a view for `set`. */
const BULK_LENGTH = 192;

function writeTexts(
  { u8 }: SharedHeap,
  pairs: Int32Array,
  from: number,
  to: number,
  sizeBytes: number,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(sizeBytes);
  let at = 0;
  for (let k = from; k < to; k++) {
    const address = pairs[2 * k] >>> 0, length = pairs[2 * k + 1];
    bytes[at] = length;
    bytes[at + 1] = length >>> 8;
    bytes[at + 2] = length >>> 16;
    bytes[at + 3] = length >>> 24;
    at += LENGTH_BYTES;
    if (length >= BULK_LENGTH) bytes.set(u8.subarray(address, address + length), at);
    else for (let index = 0; index < length; index++) bytes[at + index] = u8[address + index];
    at += length;
  }
  return bytes;
}
