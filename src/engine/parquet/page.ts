/**
 * Pages of a column chunk: headers, codecs, levels and encodings, down to plain arrays.
 * @see https://parquet.apache.org/docs/file-format/data-pages/encodings/
 */
import { Buffer } from "node:buffer";
import { brotliDecompressSync, crc32, gunzipSync, zstdDecompressSync } from "node:zlib";
import { compressors } from "hyparquet-compressors";
import { CompactReader, TRUE } from "./compact.ts";
import { ParquetError } from "./error.ts";

export const PAGE = { data: 0, index: 1, dictionary: 2, dataV2: 3 } as const;
export const ENCODING = {
  plain: 0,
  plainDictionary: 2,
  rle: 3,
  delta: 5,
  deltaLength: 6,
  deltaText: 7,
  dictionary: 8,
  split: 9,
} as const;

export interface PageHeader {
  type: number;
  sizeBytes: number;
  compressedSizeBytes: number;
  crc?: number;
  /** Number of rows including nulls; for a dictionary, of entries. */
  valueCount: number;
  encoding: number;
  definitionEncoding: number;
  repetitionEncoding: number;
  /** Version 2: levels precede the values and are never compressed. */
  repetitionBytes: number;
  definitionBytes: number;
  isCompressed: boolean;
  headerBytes: number;
}

/** Parses the header at the start of `bytes`. @throws {RangeError} if `bytes` ends within it. */
export function readPageHeader(bytes: Uint8Array): PageHeader {
  const reader = new CompactReader(bytes, "a page header");
  const header: PageHeader = {
    type: -1,
    sizeBytes: -1,
    compressedSizeBytes: -1,
    valueCount: -1,
    encoding: -1,
    definitionEncoding: ENCODING.rle,
    repetitionEncoding: ENCODING.rle,
    repetitionBytes: 0,
    definitionBytes: 0,
    isCompressed: true,
    headerBytes: 0,
  };
  reader.struct((field, type) => {
    if (field === 1) header.type = reader.integer();
    else if (field === 2) header.sizeBytes = reader.integer();
    else if (field === 3) header.compressedSizeBytes = reader.integer();
    else if (field === 4) header.crc = reader.integer() >>> 0;
    else if (field === 5) {
      reader.struct((inner, innerType) => {
        if (inner === 1) header.valueCount = reader.integer();
        else if (inner === 2) header.encoding = reader.integer();
        else if (inner === 3) header.definitionEncoding = reader.integer();
        else if (inner === 4) header.repetitionEncoding = reader.integer();
        else reader.skip(innerType);
      });
    } else if (field === 7) {
      reader.struct((inner, innerType) => {
        if (inner === 1) header.valueCount = reader.integer();
        else if (inner === 2) header.encoding = reader.integer();
        else reader.skip(innerType);
      });
    } else if (field === 8) {
      reader.struct((inner, innerType) => {
        if (inner === 1) header.valueCount = reader.integer();
        else if (inner === 4) header.encoding = reader.integer();
        else if (inner === 5) header.definitionBytes = reader.integer();
        else if (inner === 6) header.repetitionBytes = reader.integer();
        else if (inner === 7) header.isCompressed = innerType === TRUE;
        else reader.skip(innerType);
      });
    } else reader.skip(type);
  });
  header.headerBytes = reader.at;
  return header;
}

const PAGE_SIZE_BYTES_MAX = 1 << 30;

export function checkPageHeader(header: PageHeader, bytesLeft: number): void {
  const { sizeBytes, compressedSizeBytes, valueCount } = header;
  const sizes = sizeBytes >= 0 && compressedSizeBytes >= 0 && sizeBytes <= PAGE_SIZE_BYTES_MAX &&
    compressedSizeBytes <= bytesLeft;
  if (!sizes) throw new ParquetError("a page has an impossible size");
  if (header.type !== PAGE.index && !(valueCount >= 0 && valueCount <= 1 << 28)) {
    throw new ParquetError("a page has an impossible number of values");
  }
  if (
    header.repetitionBytes < 0 || header.definitionBytes < 0 ||
    header.repetitionBytes + header.definitionBytes > compressedSizeBytes
  ) {
    throw new ParquetError("a page's levels are longer than the page");
  }
}

export function checkCrc(header: PageHeader, bytes: Uint8Array): void {
  if (header.crc !== undefined && crc32(bytes) !== header.crc) throw new ParquetError("a page's checksum is wrong");
}

const CHUNK_SLACK = 64, CHUNK_BYTES_MAX = 1 << 20;

export function decompress(codec: string, bytes: Uint8Array, sizeBytes: number): Uint8Array {
  if (codec === "UNCOMPRESSED") return bytes;
  if (sizeBytes === 0) return bytes.subarray(0, 0);
  let out: Uint8Array;
  try {
    // Zlib joins its output from chunks, by default of 16 KiB. With more than the output, one chunk is enough.
    const options = { maxOutputLength: sizeBytes, chunkSize: Math.min(sizeBytes + CHUNK_SLACK, CHUNK_BYTES_MAX) };
    if (codec === "GZIP") out = gunzipSync(bytes, options);
    else if (codec === "ZSTD") out = zstdDecompressSync(bytes, options);
    else if (codec === "BROTLI") out = brotliDecompressSync(bytes, options);
    else {
      const decode = compressors[codec as keyof typeof compressors];
      if (decode === undefined) throw new ParquetError(`unknown codec ${codec}`);
      out = decode(bytes, sizeBytes);
    }
  } catch (error) {
    if (error instanceof ParquetError) throw error;
    throw new ParquetError(`a page cannot be decompressed: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
  if (out.length !== sizeBytes) throw new ParquetError("the size of a page differs from that in its header");
  return out instanceof Buffer ? new Uint8Array(out.buffer, out.byteOffset, out.length) : out;
}

/** Number of bit-packed values in a group. */
const GROUP = 8;

/** Decodes the hybrid of runs and bit-packed groups piece by piece, because a run of a few bytes may claim millions of values. */
export class Runs {
  private at = 0;
  private readonly valueBytes: number;
  /** Remaining values of the current run. */
  private left = 0;
  private isPacked = false;
  private value = 0;
  /** A group that was partly read. */
  private readonly group = new Int32Array(GROUP);
  private groupAt = GROUP;

  constructor(private readonly bytes: Uint8Array, private readonly width: number, private valuesLeft: number) {
    if (width > 32) throw new ParquetError("the values of a run are too wide");
    this.valueBytes = (width + 7) >>> 3;
  }

  /** Reads the next `count` values into the start of `out`. */
  read(out: Int32Array, count: number): void {
    for (let n = 0; n < count;) n += this.some(out, n, count - n);
  }

  /** Counts the values equal to `wanted`; no value may be larger. */
  countOf(wanted: number): number {
    const some = new Int32Array(1024);
    let count = 0;
    const add = (value: number, times: number) => {
      if (value > wanted) throw new ParquetError("a page has impossible levels");
      if (value === wanted) count += times;
    };
    while (this.left > 0 || this.valuesLeft > 0) {
      if (this.left === 0) this.begin();
      if (!this.isPacked) {
        add(this.value, this.left);
        this.left = 0;
      } else {
        const n = this.some(some, 0, some.length);
        for (let k = 0; k < n; k++) add(some[k], 1);
      }
    }
    return count;
  }

  /** Reads up to `count` values of the current run and returns their number. */
  private some(out: Int32Array, from: number, count: number): number {
    if (this.left === 0) this.begin();
    let n = Math.min(this.left, count);
    if (!this.isPacked) out.fill(this.value, from, from + n);
    else if (this.groupAt < GROUP) {
      n = Math.min(n, GROUP - this.groupAt);
      out.set(this.group.subarray(this.groupAt, this.groupAt + n), from);
      this.groupAt += n;
    } else if (n === this.left || n >= GROUP) {
      if (n < this.left) n -= n % GROUP;
      this.unpack(n, out, from);
    } else {
      this.unpack(Math.min(GROUP, this.left), this.group, 0);
      this.groupAt = 0;
      return this.some(out, from, count);
    }
    this.left -= n;
    return n;
  }

  private unpack(count: number, out: Int32Array, from: number): void {
    // Writers may omit the padding of the last group.
    if (this.at + Math.ceil(count * this.width / 8) > this.bytes.length) throw new ParquetError("runs end too early");
    unpack(this.bytes, this.at, this.width, count, out, from);
    this.at += Math.ceil(count / GROUP) * this.width;
  }

  private begin(): void {
    let head = 0;
    for (let shift = 0;; shift += 7) {
      if (this.at >= this.bytes.length || shift > 28) throw new ParquetError("runs end too early");
      const byte = this.bytes[this.at++];
      head += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    this.isPacked = head % 2 === 1;
    this.left = Math.min(this.isPacked ? (head - 1) / 2 * GROUP : head / 2, this.valuesLeft);
    if (this.left === 0) throw new ParquetError("a run is empty");
    this.valuesLeft -= this.left;
    this.groupAt = GROUP;
    if (this.isPacked) return;
    if (this.at + this.valueBytes > this.bytes.length) throw new ParquetError("runs end too early");
    this.value = 0;
    for (let k = 0; k < this.valueBytes; k++) this.value |= this.bytes[this.at++] << (8 * k);
  }
}

/** Unpacks bit-packed values, lowest bits first. */
function unpack(bytes: Uint8Array, at: number, width: number, count: number, out: Int32Array, from: number): void {
  if (width === 0) {
    out.fill(0, from, from + count);
    return;
  }
  if (width === 8) {
    for (let k = 0; k < count; k++) out[from + k] = bytes[at + k];
    return;
  }
  if (width <= 24) {
    const mask = (1 << width) - 1;
    let buffer = 0, held = 0;
    for (let k = 0; k < count; k++) {
      while (held < width) {
        buffer |= bytes[at++] << held;
        held += 8;
      }
      out[from + k] = buffer & mask;
      buffer >>>= width;
      held -= width;
    }
    return;
  }
  for (let k = 0, bit = at * 8; k < count; k++, bit += width) out[from + k] = bitsAt(bytes, bit, width);
}

/** Up to 32 bits from a bit offset; bytes after the end read as 0. */
function bitsAt(bytes: Uint8Array, bit: number, width: number): number {
  if (width === 0) return 0;
  const at = Math.floor(bit / 8), shift = bit & 7;
  let value = (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> shift;
  if (shift > 0 && shift + width > 32) value |= bytes[at + 4] << (32 - shift);
  return width === 32 ? value | 0 : value & ((1 << width) - 1);
}

/** DELTA_BINARY_PACKED: reads numbers in pieces. Blocks of a few bytes can claim any number of them. */
export class Deltas {
  /** Offset after the encoded bytes. */
  readonly end: number;
  private at: number;
  private readonly miniBlocks: number;
  private readonly miniSize: number;
  /** Number of values still to be read. */
  private left: number;
  /** The last value, and the smallest difference of the current block. */
  private low = 0;
  private high = 0;
  private minLow = 0;
  private minHigh = 0;
  private isFirst = true;
  /** Offset of the widths of the current block, the next of its miniblocks, and what is left of the current one. */
  private widths = 0;
  private mini: number;
  private miniLeft = 0;
  private width = 0;
  /** Offset of the next difference, in bits. */
  private bit = 0;

  constructor(private readonly bytes: Uint8Array, from: number, count: number) {
    this.at = from;
    const blockSize = this.varint()[0], miniBlocks = this.varint()[0], total = this.varint()[0];
    if (total < count || blockSize <= 0 || miniBlocks <= 0 || blockSize % miniBlocks !== 0) {
      throw new ParquetError("delta-coded values have an impossible header");
    }
    const miniSize = blockSize / miniBlocks;
    if (miniSize % 8 !== 0) throw new ParquetError("delta-coded values have an impossible header");
    this.mini = this.miniBlocks = miniBlocks;
    this.miniSize = miniSize;
    this.left = total;
    [this.low, this.high] = this.zigzag();
    const first = this.at;
    // Skips the blocks, each of at least some bytes.
    for (let left = total - 1; left > 0;) {
      this.beginBlock();
      for (let m = 0; m < miniBlocks && left > 0; m++, left -= miniSize) this.beginMini(Math.min(miniSize, left));
    }
    this.end = Math.min(this.at, bytes.length);
    this.at = first;
    this.mini = miniBlocks;
    this.miniLeft = 0;
  }

  /** Returns the next numbers as pairs of words (low, high). */
  read(count: number): Int32Array<ArrayBuffer> {
    if (count > this.left) throw new ParquetError("delta-coded values end too early");
    const words = new Int32Array(count * 2);
    let k = 0;
    if (this.isFirst && count > 0) {
      this.isFirst = false;
      words[0] = this.low;
      words[1] = this.high;
      this.left--;
      k = 1;
    }
    while (k < count) {
      if (this.miniLeft === 0) {
        if (this.mini === this.miniBlocks) this.beginBlock();
        this.beginMini(Math.min(this.miniSize, this.left));
      }
      const some = Math.min(this.miniLeft, count - k);
      this.some(words, k, some);
      this.miniLeft -= some;
      this.left -= some;
      k += some;
    }
    return words;
  }

  private some(words: Int32Array, from: number, count: number): void {
    const { bytes, width, minLow, minHigh } = this;
    let { low, high, bit } = this;
    for (let k = from; k < from + count; k++, bit += width) {
      const addLow = bitsAt(bytes, bit, Math.min(32, width)) >>> 0,
        addHigh = width > 32 ? bitsAt(bytes, bit + 32, width - 32) : 0;
      const sum = (low >>> 0) + (minLow >>> 0) + addLow;
      high = (high + minHigh + addHigh + (sum >= 8589934592 ? 2 : sum >= 4294967296 ? 1 : 0)) | 0;
      low = sum | 0;
      words[k * 2] = low;
      words[k * 2 + 1] = high;
    }
    this.low = low;
    this.high = high;
    this.bit = bit;
  }

  private beginBlock(): void {
    [this.minLow, this.minHigh] = this.zigzag();
    this.widths = this.at;
    this.at += this.miniBlocks;
    if (this.at > this.bytes.length) throw new ParquetError("delta-coded values end too early");
    this.mini = 0;
  }

  /** `count`: number of values in the miniblock. */
  private beginMini(count: number): void {
    const width = this.width = this.bytes[this.widths + this.mini++];
    if (width > 64) throw new ParquetError("delta-coded values are too wide");
    if (this.at + Math.ceil(count * width / 8) > this.bytes.length) {
      throw new ParquetError("delta-coded values end too early");
    }
    this.bit = this.at * 8;
    this.miniLeft = count;
    this.at += this.miniSize * width / 8;
  }

  private varint(): [low: number, high: number] {
    let low = 0, high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.at >= this.bytes.length) throw new ParquetError("delta-coded values end too early");
      const byte = this.bytes[this.at++], bits = byte & 0x7f;
      if (shift < 32) low |= bits << shift;
      if (shift > 25) high |= shift < 32 ? bits >>> (32 - shift) : bits << (shift - 32);
      if (byte < 0x80) return [low, high];
    }
    throw new ParquetError("a delta-coded number is too long");
  }

  private zigzag(): [number, number] {
    const [low, high] = this.varint(), sign = -(low & 1);
    return [((low >>> 1) | (high << 31)) ^ sign, (high >>> 1) ^ sign];
  }
}

/** BYTE_STREAM_SPLIT: joins the separate streams of byte 0, 1, … of all values. */
export function joinStreams(bytes: Uint8Array, width: number, count: number): Uint8Array {
  if (count * width > bytes.length) throw new ParquetError("split values end too early");
  const out = new Uint8Array(count * width);
  for (let k = 0; k < width; k++) {
    for (let i = 0, from = k * count; i < count; i++) out[i * width + k] = bytes[from + i];
  }
  return out;
}
