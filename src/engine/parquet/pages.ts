/**
 * Reads the pages of a column chunk one by one, in pieces: levels, and values without nulls. Keeps one page at a time, and only one
 * piece of what its runs expand to.
 */
import { layoutOf } from "../../types/mod.ts";
import { LAYOUT_WIDTH } from "../../types/layout.ts";
import type { Workspace } from "../columns.ts";
import { pollLongText, pollQuery } from "../long-texts.ts";
import type { Values } from "./conversion.ts";
import { ParquetError } from "./error.ts";
import { readAt } from "./file.ts";
import type { ColumnExtent } from "./footer.ts";
import {
  checkCrc,
  checkPageHeader,
  decompress,
  Deltas,
  ENCODING,
  joinStreams,
  PAGE,
  type PageHeader,
  readPageHeader,
  Runs,
} from "./page.ts";
import type { ParquetColumn } from "./schema.ts";

const READ_BYTES = 1 << 18;
/** Number of values in a piece, including nulls. */
const PIECE_VALUES = 65_536;

/** A buffer larger than this is not kept for the next column chunk. */
const KEPT_BYTES_MAX = 4 << 20;

/** The buffer into which a column is read. Readers of its chunks, one after the other, use the same, so that there is less garbage. */
export class ReadBuffer {
  private buffer = new ArrayBuffer(0);

  /** Returns `sizeBytes` bytes, which are those returned before. */
  of(sizeBytes: number): Uint8Array<ArrayBuffer> {
    if (this.buffer.byteLength < sizeBytes) this.buffer = new ArrayBuffer(sizeBytes);
    return new Uint8Array(this.buffer, 0, sizeBytes);
  }

  trim(): void {
    if (this.buffer.byteLength > KEPT_BYTES_MAX) this.buffer = new ArrayBuffer(0);
  }

  has(bytes: Uint8Array): boolean {
    return bytes.buffer === this.buffer;
  }
}

export class PageReader {
  /** Bytes of the file from `windowOffset` on, in the read buffer. */
  private window = new Uint8Array(0);
  private windowOffset = 0;
  private offset: number;
  private readonly end: number;
  private valuesLeft: number;
  private readonly repetitionMax: number;
  /** i32 words of a value in memory; values of 1 and 2 bytes take one element. */
  readonly words: number;

  /** The rest of the current page: number of values including nulls, their levels if not all equal, and the values. */
  private pageLeft = 0;
  private repetitionRuns?: Runs;
  private definitionRuns?: Runs;
  private takeValues: (count: number) => Values = () => new Int32Array(0);

  /** The current piece. Levels are undefined if all are the highest (definition) or lowest (repetition). */
  valueCount = 0;
  repetition?: Int32Array<ArrayBuffer>;
  definition?: Int32Array<ArrayBuffer>;
  values: Values = new Int32Array(0);

  private dictionary?: Values;
  /**
   * Blocks with the bytes of texts: of the dictionary, of the current page, and of pages whose rows are in the last
   * batch.
   */
  private dictionaryBlock = 0;
  private pageBlock = 0;
  private oldBlocks: number[] = [];
  /** Bytes charged to the query for arrays outside of the shared memory. */
  private accountedBytes = 0;
  private dictionaryBytes = 0;

  constructor(
    private readonly column: ParquetColumn,
    private readonly extent: ColumnExtent,
    private readonly handle: Deno.FsFile,
    private readonly space: Workspace,
    private readonly readBuffer: ReadBuffer,
  ) {
    this.offset = extent.offset;
    this.end = extent.offset + extent.sizeBytes;
    this.valuesLeft = extent.valueCount;
    this.repetitionMax = column.dimensions.length;
    this.words = this.repetitionMax > 0 ? 2 : Math.max(1, LAYOUT_WIDTH[layoutOf(column.type)] >>> 2);
  }

  /** True if more pieces follow. */
  get hasNext(): boolean {
    return this.valuesLeft > 0;
  }

  /** Moves to the next piece. */
  next(): void {
    pollQuery();
    while (this.pageLeft === 0) {
      if (this.valuesLeft <= 0 || this.offset >= this.end) {
        throw new ParquetError("a column has fewer values than its row group has rows");
      }
      this.nextPage();
    }
    this.nextPiece();
  }

  private nextPiece(): void {
    const count = this.valueCount = Math.min(this.pageLeft, PIECE_VALUES);
    this.pageLeft -= count;
    this.valuesLeft -= count;
    this.repetition = this.repetitionRuns && readLevels(this.repetitionRuns, count, this.repetition);
    this.definition = this.definitionRuns && readLevels(this.definitionRuns, count, this.definition);
    let presentCount = count;
    if (this.definition !== undefined) {
      const { definitionMax } = this.column;
      presentCount = 0;
      for (let i = 0; i < count; i++) if (this.definition[i] === definitionMax) presentCount++;
    }
    this.values = this.takeValues(presentCount);
  }

  /** Releases the values read before. */
  forget(): void {
    for (const block of this.oldBlocks) this.space.free(block);
    this.oldBlocks = [];
  }

  close(): void {
    this.forget();
    if (this.pageBlock !== 0) this.space.free(this.pageBlock);
    if (this.dictionaryBlock !== 0) this.space.free(this.dictionaryBlock);
    this.pageBlock = this.dictionaryBlock = this.dictionaryBytes = 0;
    this.readBuffer.trim();
    this.account(0);
  }

  private bytes(offset: number, length: number): Uint8Array {
    if (offset < this.windowOffset || offset + length > this.windowOffset + this.window.length) {
      const size = Math.min(Math.max(length, READ_BYTES), this.end - offset);
      if (size < length) throw new ParquetError("a column's pages end too early");
      this.window = this.readBuffer.of(size);
      this.windowOffset = offset;
      readAt(this.handle, offset, this.window);
    }
    const at = offset - this.windowOffset;
    return this.window.subarray(at, at + length);
  }

  /** Charges memory to the query, in addition to the dictionary's. */
  private account(sizeBytes: number): void {
    sizeBytes += this.dictionaryBytes;
    this.space.memory.account(sizeBytes - this.accountedBytes, this.space.operator);
    this.accountedBytes = sizeBytes;
  }

  private nextPage(): void {
    const header = this.header();
    checkPageHeader(header, this.end - this.offset - header.headerBytes);
    const { type, valueCount } = header;
    // The size that a page claims is charged before memory is allocated.
    if (type === PAGE.dictionary) this.account(header.sizeBytes + 4 * valueCount * (this.words + 2));
    else if (type !== PAGE.index) this.account(header.sizeBytes);
    const page = this.bytes(this.offset + header.headerBytes, header.compressedSizeBytes);
    this.offset += header.headerBytes + header.compressedSizeBytes;
    checkCrc(header, page);
    if (type === PAGE.dictionary) {
      if (this.dictionary !== undefined) throw new ParquetError("a column has two dictionaries");
      const block = this.pageBlock;
      this.pageBlock = 0;
      this.dictionary = this.plain(decompress(this.extent.codec, page, header.sizeBytes), valueCount);
      this.dictionaryBlock = this.pageBlock;
      this.pageBlock = block;
      this.dictionaryBytes = this.accountedBytes;
    } else if (type === PAGE.data || type === PAGE.dataV2) this.dataPage(header, page);
    else if (type !== PAGE.index) throw new ParquetError(`a page is of unknown type ${type}`);
  }

  private header(): PageHeader {
    const size = Math.min(this.end - this.offset, 256);
    try {
      return readPageHeader(this.bytes(this.offset, size));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      // Statistics of long texts can make the header long.
      return readPageHeader(this.bytes(this.offset, Math.min(this.end - this.offset, READ_BYTES)));
    }
  }

  private dataPage(header: PageHeader, page: Uint8Array): void {
    const { valueCount } = header, { definitionMax } = this.column, { repetitionMax } = this;
    if (valueCount > this.valuesLeft) throw new ParquetError("a column has more values than its row group has rows");
    let repetition: Uint8Array | undefined, definition: Uint8Array | undefined, body: Uint8Array;
    if (header.type === PAGE.data) {
      body = decompress(this.extent.codec, page, header.sizeBytes);
      const levels = (encoding: number) => {
        const [found, rest] = sizedLevels(body, encoding);
        body = rest;
        return found;
      };
      if (repetitionMax > 0) repetition = levels(header.repetitionEncoding);
      if (definitionMax > 0) definition = levels(header.definitionEncoding);
    } else {
      const before = header.repetitionBytes + header.definitionBytes;
      if (repetitionMax > 0) repetition = page.subarray(0, header.repetitionBytes);
      if (definitionMax > 0) definition = page.subarray(header.repetitionBytes, before);
      body = page.subarray(before);
      if (before > header.sizeBytes) throw new ParquetError("a page's levels are longer than the page");
      if (header.isCompressed) body = decompress(this.extent.codec, body, header.sizeBytes - before);
    }
    if (repetition !== undefined) levelsOf(repetition, repetitionMax, valueCount).countOf(repetitionMax);
    const presentCount = definition === undefined
      ? valueCount
      : levelsOf(definition, definitionMax, valueCount).countOf(definitionMax);
    this.repetitionRuns = repetition && levelsOf(repetition, repetitionMax, valueCount);
    this.definitionRuns = definition === undefined || presentCount === valueCount
      ? undefined
      : levelsOf(definition, definitionMax, valueCount);
    if (this.pageBlock !== 0) this.oldBlocks.push(this.pageBlock);
    this.pageBlock = 0;
    this.takeValues = this.valuesOf(header, body, presentCount);
    this.pageLeft = valueCount;
  }

  /** Returns a function that returns the next values of a page, out of `count`. */
  private valuesOf(
    { encoding, sizeBytes, valueCount }: PageHeader,
    bytes: Uint8Array,
    count: number,
  ): (count: number) => Values {
    const { words } = this;
    this.account(sizeBytes + this.expandedBytes(encoding, bytes, valueCount, count));
    if (encoding === ENCODING.dictionary || encoding === ENCODING.plainDictionary) {
      if (count === 0) return () => new Int32Array(0);
      if (this.dictionary === undefined || bytes.length === 0) {
        throw new ParquetError("a page refers to a missing dictionary");
      }
      const indices = new Runs(bytes.subarray(1), bytes[0], count);
      return (count) => this.lookUp(indices, count);
    }
    if (encoding === ENCODING.rle && this.column.conversion.stored === "bits") {
      // The size of the runs precedes them.
      const bits = new Runs(bytes.subarray(4), 1, count);
      return (count) => Int8Array.from(taken(bits, count));
    }
    const deltas = this.deltasOf(encoding, bytes, count);
    if (deltas !== undefined) return deltas;
    const values = this.decode(encoding, bytes, count);
    let at = 0;
    return (count) => values.subarray(at * words, (at += count) * words);
  }

  /** Size of what is made of the bytes of a page: of its largest piece, or of all of a page whose values are not expanded piece by piece. */
  private expandedBytes(encoding: number, bytes: Uint8Array, valueCount: number, count: number): number {
    const { words } = this, pieceCount = Math.min(valueCount, PIECE_VALUES);
    const levels = Number(this.definitionRuns !== undefined) + Number(this.repetitionRuns !== undefined);
    if (encoding !== ENCODING.plain && encoding !== ENCODING.split) {
      const indicesOrDifferences = 3;
      return 4 * pieceCount * (levels + indicesOrDifferences + words);
    }
    const pairs = this.column.conversion.stored === "bytes" ? 2 : 0;
    const copied = encoding === ENCODING.split || this.readBuffer.has(bytes) ? bytes.length : 0;
    return copied + 4 * (pieceCount * levels + count * (pairs + words));
  }

  /** Values of the encodings by differences, or undefined: a page of a few bytes can claim millions of them. */
  private deltasOf(encoding: number, bytes: Uint8Array, count: number): ((count: number) => Values) | undefined {
    const { conversion } = this.column, { stored } = conversion;
    switch (encoding) {
      case ENCODING.delta: {
        if (stored !== "fixed" || !conversion.isInteger) return undefined;
        const numbers = new Deltas(bytes, 0, count);
        return (count) => {
          const words = numbers.read(count);
          if (conversion.sizeBytes === 8) return conversion.convert(bytesOf(words), count);
          const low = new Int32Array(count);
          for (let i = 0; i < count; i++) low[i] = words[i * 2];
          return conversion.convert(bytesOf(low), count);
        };
      }
      case ENCODING.deltaLength: {
        if (stored !== "bytes") return undefined;
        const next = this.deltaLength(bytes, count);
        return (count) => this.fromPairs(next(count), count);
      }
      case ENCODING.deltaText: {
        if (stored !== "bytes" && (stored !== "fixed" || conversion.isInteger)) return undefined;
        const next = this.deltaText(bytes, count);
        if (stored === "bytes") return (count) => this.fromPairs(next(count), count);
        return (count) => conversion.convert(this.joined(next(count), count, conversion.sizeBytes), count);
      }
    }
    return undefined;
  }

  private decode(encoding: number, bytes: Uint8Array, count: number): Values {
    const { conversion } = this.column, { stored } = conversion;
    switch (encoding) {
      case ENCODING.plain:
        return this.plain(bytes, count);
      case ENCODING.split:
        if (stored === "fixed" || (stored === "bytes" && conversion.sizeBytes > 0)) {
          return this.plain(joinStreams(bytes, conversion.sizeBytes, count), count);
        }
        break;
    }
    throw new ParquetError(`unknown encoding ${encoding} for this type`);
  }

  private lookUp(runs: Runs, count: number): Values {
    const { words } = this, dictionary = this.dictionary!;
    const indices = taken(runs, count);
    const entries = dictionary.length / words;
    for (let i = 0; i < count; i++) {
      if (indices[i] >>> 0 >= entries) {
        throw new ParquetError("a page refers to an entry that its dictionary does not have");
      }
    }
    if (dictionary instanceof Int32Array) {
      const out = new Int32Array(count * words);
      if (words === 1) { for (let i = 0; i < count; i++) out[i] = dictionary[indices[i]]; }
      else if (words === 2) {
        for (let i = 0, at = 0; i < count; i++) {
          const from = indices[i] * 2;
          out[at++] = dictionary[from];
          out[at++] = dictionary[from + 1];
        }
      } else {for (let i = 0, at = 0; i < count; i++) {
          for (let k = 0; k < words; k++) out[at++] = dictionary[indices[i] * words + k];
        }}
      return out;
    }
    const out = dictionary instanceof Int8Array ? new Int8Array(count) : new Int16Array(count);
    for (let i = 0; i < count; i++) out[i] = dictionary[indices[i]];
    return out;
  }

  private plain(bytes: Uint8Array, count: number): Values {
    const { conversion } = this.column;
    switch (conversion.stored) {
      case "bits": {
        if (count > bytes.length * 8) throw new ParquetError("a page's values end too early");
        const out = new Int8Array(count);
        for (let i = 0; i < count; i++) out[i] = (bytes[i >>> 3] >>> (i & 7)) & 1;
        return out;
      }
      case "fixed": {
        const size = conversion.sizeBytes * count;
        if (size > bytes.length) throw new ParquetError("a page's values end too early");
        // The read buffer will have other bytes, and a view would need alignment.
        const isCopied = this.readBuffer.has(bytes) || bytes.byteOffset % 4 !== 0;
        return conversion.convert(
          isCopied ? bytes.slice(0, size) : bytes.subarray(0, size) as Uint8Array<ArrayBuffer>,
          count,
        );
      }
      case "bytes": {
        const { sizeBytes } = conversion;
        return this.fromPairs(
          sizeBytes > 0 ? this.equalPairs(bytes, count, sizeBytes) : this.plainText(bytes, count),
          count,
        );
      }
    }
  }

  private fromPairs(pairs: Int32Array, count: number): Values {
    const { conversion } = this.column;
    if (conversion.stored !== "bytes") return pairs;
    const { sizeBytes, convert } = conversion;
    if (sizeBytes > 0) {
      for (let i = 0; i < count; i++) {
        if (pairs[i * 2 + 1] !== sizeBytes) throw new ParquetError("a value of fixed size has a different size");
      }
    }
    return convert === undefined ? pairs : convert(this.space.heap.u8, pairs, count);
  }

  /** Concatenates values of one size. */
  private joined(pairs: Int32Array, count: number, sizeBytes: number): Uint8Array<ArrayBuffer> {
    const { u8 } = this.space.heap, out = new Uint8Array(count * sizeBytes);
    for (let i = 0; i < count; i++) {
      const address = pairs[i * 2] >>> 0;
      if (pairs[i * 2 + 1] !== sizeBytes) throw new ParquetError("a value of fixed size has a different size");
      out.set(u8.subarray(address, address + sizeBytes), i * sizeBytes);
    }
    return out;
  }

  private equalPairs(bytes: Uint8Array, count: number, sizeBytes: number): Int32Array {
    if (sizeBytes * count > bytes.length) throw new ParquetError("a page's values end too early");
    const base = this.textBlock(bytes), pairs = new Int32Array(count * 2);
    for (let i = 0; i < count; i++) {
      pairs[i * 2] = base + i * sizeBytes;
      pairs[i * 2 + 1] = sizeBytes;
    }
    return pairs;
  }

  /** Length (u32) and bytes of each text. The bytes are kept in one block. */
  private plainText(bytes: Uint8Array, count: number): Int32Array {
    const base = this.textBlock(bytes), pairs = new Int32Array(count * 2);
    let at = 0;
    for (let i = 0; i < count; i++) {
      if (at + 4 > bytes.length) throw new ParquetError("a page's texts end too early");
      const length = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
      at += 4;
      if (length < 0 || at + length > bytes.length) throw new ParquetError("a page's texts end too early");
      pairs[i * 2] = base + at;
      pairs[i * 2 + 1] = length;
      at += length;
    }
    return pairs;
  }

  private deltaLength(bytes: Uint8Array, count: number): (count: number) => Int32Array {
    const lengths = new Deltas(bytes, 0, count), texts = bytes.subarray(lengths.end);
    const base = this.textBlock(texts);
    let at = 0;
    return (count) => {
      const words = lengths.read(count), pairs = new Int32Array(count * 2);
      for (let i = 0; i < count; i++) {
        const length = words[i * 2];
        if (length < 0 || at + length > texts.length) throw new ParquetError("a page's texts end too early");
        pairs[i * 2] = base + at;
        pairs[i * 2 + 1] = length;
        at += length;
      }
      return pairs;
    };
  }

  /** Each text begins with a prefix of the previous one. Each piece has a separate block. */
  private deltaText(bytes: Uint8Array, count: number): (count: number) => Int32Array {
    const prefixes = new Deltas(bytes, 0, count), suffixes = new Deltas(bytes, prefixes.end, count);
    let from = suffixes.end, previous = new Uint8Array(0);
    return (count) => {
      const prefixWords = prefixes.read(count), suffixWords = suffixes.read(count);
      let total = 0, before = previous.length;
      for (let i = 0; i < count; i++) {
        const prefix = prefixWords[i * 2], suffix = suffixWords[i * 2];
        if (prefix < 0 || suffix < 0 || prefix > before) throw new ParquetError("a page's texts do not fit together");
        before = prefix + suffix;
        total += before;
        if (total > 0x7fffffff) throw new ParquetError("a page's texts are too long");
      }
      if (this.pageBlock !== 0) this.oldBlocks.push(this.pageBlock);
      this.pageBlock = 0;
      const base = this.pageBlock = this.space.allocate(previous.length + total), { u8 } = this.space.heap;
      u8.set(previous, base);
      const pairs = new Int32Array(count * 2);
      let to = base + previous.length, last = base;
      for (let i = 0; i < count; i++) {
        const prefix = prefixWords[i * 2], suffix = suffixWords[i * 2];
        if (from + suffix > bytes.length) throw new ParquetError("a page's texts end too early");
        pollLongText(prefix + suffix);
        u8.copyWithin(to, last, last + prefix);
        u8.set(bytes.subarray(from, from + suffix), to + prefix);
        pairs[i * 2] = to;
        pairs[i * 2 + 1] = prefix + suffix;
        last = to;
        to += prefix + suffix;
        from += suffix;
      }
      this.space.memory.need(to - last, this.space.operator);
      previous = u8.slice(last, to);
      return pairs;
    };
  }

  private textBlock(bytes: Uint8Array): number {
    this.pageBlock = this.space.allocate(bytes.length);
    this.space.heap.u8.set(bytes, this.pageBlock);
    return this.pageBlock;
  }
}

const bytesOf = (words: Int32Array): Uint8Array<ArrayBuffer> =>
  new Uint8Array(words.buffer as ArrayBuffer, words.byteOffset, words.byteLength);

/** Splits off levels that are preceded by their size (u32). */
function sizedLevels(body: Uint8Array, encoding: number): [levels: Uint8Array, rest: Uint8Array] {
  if (encoding !== ENCODING.rle) throw new ParquetError("its levels have an obsolete encoding");
  if (body.length < 4) throw new ParquetError("a page ends before its levels");
  const size = (body[0] | (body[1] << 8) | (body[2] << 16) | (body[3] << 24)) >>> 0;
  if (size + 4 > body.length) throw new ParquetError("a page ends within its levels");
  return [body.subarray(4, 4 + size), body.subarray(4 + size)];
}

function levelsOf(bytes: Uint8Array, max: number, count: number): Runs {
  return new Runs(bytes, 32 - Math.clz32(max), count);
}

/** Reads levels into `before` if it is large enough. */
function readLevels(runs: Runs, count: number, before?: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const isReused = before !== undefined && before.buffer.byteLength >= 4 * count;
  const levels = isReused ? new Int32Array(before.buffer, 0, count) : new Int32Array(count);
  runs.read(levels, count);
  return levels;
}

function taken(runs: Runs, count: number): Int32Array {
  const values = new Int32Array(count);
  runs.read(values, count);
  return values;
}
