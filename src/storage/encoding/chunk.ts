/**
 * A stored chunk of a column of up to 64 bits a value, encoded. It is divided into vectors of 1,024 values, each with the encoding that
 * suits it, so that a vector can be decoded without the others:
 *
 *     header of the chunk, 32 bytes:
 *        0  u32 magic     4  u8 bytes a value     5  u8 kind (0 integers, 1 floats)     8  u32 rows     16  NULL as stored, 8 bytes
 *     header of each vector, 32 bytes:
 *        0  i64 base           8  i64 slope          16  u32 offset of its data in the chunk
 *       20  u8 encoding       21  u8 bits a code     22  u8 decimal places      24  u16 exceptions    26  u16 nulls    28  u32 span
 *     data of the vectors, each aligned to 16 bytes; 16 zeros; for some layouts, summaries of the vectors (`summaries.ts`)
 *
 * Encodings:
 *
 * - *raw*: the values as they are.
 * - *constant*: all values have the bits of `base`. No data.
 * - *frame* (integers): value `i` is `base + slope * i + code`, codes as bits (`bits.ts`).
 * - *decimal* (floats): the value is `(base + code) / 10^places`, which gives back all its bits, as for decimals that were read from text.
 * - *product* (floats): the value is `(base + code) * (1 / 10^places)`, as `round()` makes them. (A decimal, for users.)
 *
 * In a vector with NULLs or exceptions code 0 is NULL, so it costs nothing in a comparison with a range of codes or in a sum, and the
 * least other code is 1. In other vectors without a slope it is 0 (before format 7: 1). The greatest is `span`. Floats that are no decimals of this kind also have code 0; they follow the codes as exceptions: u16 positions, zeros up to a
 * multiple of 8, and the values.
 *
 * @see Afroozeh, Kuffó and Boncz, "ALP: Adaptive Lossless floating-Point Compression", SIGMOD 2023, for decimals
 * @see Goldstein, Ramakrishnan and Shaft, "Compressing relations and indexes", ICDE 1998, for frames of reference
 */
import { assert } from "../../assert.ts";
import type { Layout } from "../../types/mod.ts";
import type { ChooseOffsets, ChunkBound, ChunkOffsets, RowCondition, RowRange, VectorCounts } from "../contract.ts";
import type { SharedHeap } from "../heap.ts";
import { packedBytes, VECTOR_ROWS } from "./bits.ts";
import { ChunkEncoder, type EncodedChunk } from "./chunk-encoder.ts";
import {
  CODES,
  EXCEPTIONS_MAX,
  FOUND_AT,
  HEADERS,
  INTEGERS_AT,
  LISTED_MAX,
  MASKS,
  OTHER_MASKS,
  OUTCOMES_AT,
  POWERS,
  POWERS_AT,
  VALUES,
  VECTORS_MAX,
} from "./chunk-scratch.ts";
import { type Kernels, kernelsOf } from "./kernels.ts";
import { offsetsOf } from "./offsets.ts";
import { PREFETCHED_VECTORS } from "./prefetch.ts";
import { MASK_BYTES, OUTCOME, OUTCOMES } from "./selection.ts";
import {
  AT,
  CHUNK_AT,
  CONSTANT,
  DECIMAL,
  type DecodeVector,
  exceptionBytes,
  FLOATS,
  FRAME,
  HEADER_BYTES,
  INTEGERS,
  MAGIC,
  PRODUCT,
  RAW,
  VECTOR_HEADER_BYTES,
} from "./vectors.ts";

const MIN64 = -(2n ** 63n), MAX64 = 2n ** 63n - 1n;

/** Calls `select` with the stored bytes of a bound's chunk. */
type OpenChunk = (bound: ChunkBound, select: (bytes: Uint8Array) => void) => void;

/** Of `ChunkCodec.formOf`. */
const WITH_EXCEPTIONS = 65_536;
/** Codes of vectors with greater bases are not compared with the integers of conditions, by kind. */
const BASE_MAX = [2 ** 52, 2 ** 45];
/** Rows are not marked if more vectors of a condition's chunk than this share have no codes that can be compared. */
const DECODED_SHARE_MAX = 1 / 4;

/** Encodes and decodes chunks. Each thread has its own, with `CODEC_BYTES` of the shared memory at `scratch`. */
export class ChunkCodec {
  private readonly kernels: Kernels;
  private readonly encoder: ChunkEncoder;
  /** Of the vectors of the chunk whose offsets were read last. */
  private readonly ranges = new Float64Array(2 * VECTORS_MAX);

  constructor(private readonly heap: SharedHeap, readonly scratch: number) {
    this.kernels = kernelsOf(heap.memory);
    heap.f64.set(POWERS, (scratch + POWERS_AT) / 8);
    this.encoder = new ChunkEncoder(heap, scratch, this.kernels);
  }

  /** See `ChunkEncoder`. */
  encode(
    layout: Layout,
    nullWords: readonly number[],
    address: number,
    valueBytes: number,
    always = false,
  ): EncodedChunk | undefined {
    return this.encoder.encode(layout, nullWords, address, valueBytes, always);
  }

  /** See `ChunkEncoder`. */
  encodeIntegers(values: Int32Array): Uint8Array {
    return this.encoder.encodeIntegers(values);
  }

  /** The inverse of `encodeIntegers`. */
  decodeIntegers(bytes: Uint8Array): Int32Array {
    const at = this.scratch + VALUES, chunk = this.opened(bytes), { rowCount } = chunk;
    const values = new Int32Array(rowCount);
    for (let k = 0, from = 0; from < rowCount; k++, from += VECTOR_ROWS) {
      this.decodeVector(chunk, k, at);
      const count = Math.min(VECTOR_ROWS, rowCount - from);
      values.set(this.heap.i32.subarray(at / 4, at / 4 + count), from);
    }
    return values;
  }

  /**
   * Decodes a chunk that `encode` has made, to values in the shared memory. `rows`: only their vectors, each to its place in the chunk.
   */
  decode(bytes: Uint8Array, address: number, valueBytes: number, rows?: RowRange): void {
    const chunk = this.opened(bytes), { rowCount, width } = chunk;
    assert(rowCount * width === valueBytes, "an encoded chunk has as many rows as its segment");
    const from = Math.floor((rows?.from ?? 0) / VECTOR_ROWS), to = Math.ceil((rows?.to ?? rowCount) / VECTOR_ROWS);
    for (let k = from; k < to; k++) {
      if (chunk.address !== undefined && (k - from) % PREFETCHED_VECTORS === 0) {
        this.kernels.prefetch(chunk.address, k, to);
      }
      this.decodeVector(chunk, k, address + k * VECTOR_ROWS * width);
    }
  }

  /**
   * Writes values `rows[0 … count-1]` of a chunk in the shared memory to `address`, in any order of rows. Those of a vector should be neighbours.
   */
  gatherListed(bytes: Uint8Array, rows: Int32Array, count: number, address: number): void {
    const { heap: { i32 }, scratch } = this, { width } = this.opened(bytes), listed = scratch + MASKS;
    for (let from = 0; from < count; from += LISTED_MAX) {
      const to = Math.min(count, from + LISTED_MAX);
      i32.set(rows.subarray(from, to), listed / 4);
      this.gatherRows(bytes, listed, to - from, address + from * width);
    }
  }

  /**
   * The rows of a chunk in the shared memory that are within all bounds of their chunks, and perhaps some others (`selection.ts`): `open` is
   * called with each bound, and has to call `select` with the bytes of its chunk. Writes them in ascending order to `rows` (i32), at most `rowsMax`, and
   * returns their number.
   */
  selectRows(bounds: readonly ChunkBound[], range: RowRange, open: OpenChunk, rows: number, rowsMax: number): number {
    const { kernels, scratch } = this,
      from = Math.floor(range.from / VECTOR_ROWS),
      to = Math.ceil(range.to / VECTOR_ROWS);
    this.outcomes().fill(0);
    bounds.forEach((bound, k) => {
      const masks = scratch + (k === 0 ? MASKS : OTHER_MASKS);
      open(bound, (bytes) => this.select(this.opened(bytes), bound, from, to, masks));
      if (k === 0) return;
      const offset = from * MASK_BYTES;
      kernels.intersect(scratch + MASKS + offset, scratch + OTHER_MASKS + offset, to - from);
    });
    return kernels.listRows(scratch + MASKS, range.from, range.to, rows, rowsMax);
  }

  /**
   * Marks the rows of a chunk in the shared memory that pass all conditions on their chunks in `masks`, of which those of rows outside of the range are
   * undefined, and returns their number. `open`: as for `selectRows`. Undefined if the values of too many vectors would have to be decoded.
   */
  maskRows(
    conditions: readonly RowCondition[],
    range: RowRange,
    open: (condition: RowCondition, use: (bytes: Uint8Array) => void) => void,
    masks: number,
  ): number | undefined {
    const { kernels, scratch } = this, others = scratch + OTHER_MASKS;
    const from = Math.floor(range.from / VECTOR_ROWS), to = Math.ceil(range.to / VECTOR_ROWS), at = from * MASK_BYTES;
    this.outcomes().fill(0);
    for (const [k, condition] of conditions.entries()) {
      let isMarked = false;
      open(condition, (bytes) => {
        const chunk = this.opened(bytes);
        isMarked = this.decodedShare(chunk, from, to) <= DECODED_SHARE_MAX;
        if (isMarked) this.mask(chunk, condition, from, to, k === 0 ? masks : others);
      });
      if (!isMarked) return undefined;
      if (k > 0) kernels.intersect(masks + at, others + at, to - from);
    }
    return kernels.countRows(masks, range.from, range.to);
  }

  /** Writes the numbers of the rows of a range that are marked, of which there are `count`, in ascending order to `rows` (i32). */
  listRows(masks: number, { from, to }: RowRange, rows: number, count: number): void {
    const listed = this.kernels.listRows(masks, from, to, rows, count);
    assert(listed === count, "as many rows are listed as are marked");
  }

  /** The share of vectors `from` … `to`-1 that `mask` decodes. */
  private decodedShare(chunk: StoredChunk, from: number, to: number): number {
    let count = 0;
    for (let k = from; k < to; k++) if (this.formOf(chunk.address!, k, chunk) === undefined) count++;
    return count / (to - from);
  }

  /** Marks the rows of vectors `from` … `to`-1 that pass. */
  private mask(chunk: StoredChunk, condition: RowCondition, from: number, to: number, masks: number): void {
    const { kernels, scratch, heap: { u8 } } = this, { address, rowCount, width } = chunk;
    assert(address !== undefined && width >= 4, "chunks in the shared memory, of types with a NULL");
    const counts = scratch + OUTCOMES_AT, outcomes = this.outcomes();
    for (let k = from; k < to;) {
      const form = this.formOf(address, k, chunk);
      if (form === undefined) {
        const values = scratch + VALUES, mask = masks + k * MASK_BYTES;
        const count = Math.min(VECTOR_ROWS, rowCount - k * VECTOR_ROWS);
        this.decodeVector(chunk, k, values);
        u8.fill(0, mask, mask + MASK_BYTES);
        condition.test(values, count, mask);
        outcomes[OUTCOME.withoutCodes]++;
        k++;
        continue;
      }
      let end = k + 1;
      while (end < to && this.formOf(address, end, chunk) === form) end++;
      const range = condition.integersOf(scaleOf(form)), hasExceptions = form >= WITH_EXCEPTIONS;
      if (range === undefined) u8.fill(0, masks + k * MASK_BYTES, masks + end * MASK_BYTES);
      else {
        const { low, high } = range;
        // Outcomes of the codes alone are not counted.
        const into = hasExceptions ? scratch + INTEGERS_AT : counts;
        kernels.selectIntegers(address, k, end, BigInt(low), BigInt(high), masks, into);
      }
      if (hasExceptions) {
        this.maskExceptions(chunk, condition, k, end, masks);
        outcomes[OUTCOME.withExceptions] += end - k;
      } else if (range === undefined) outcomes[OUTCOME.skipped] += end - k;
      k = end;
    }
  }

  /** Marks the exceptions of vectors `from` … `to`-1 of floats that pass. */
  private maskExceptions(
    { address, width }: StoredChunk,
    condition: RowCondition,
    from: number,
    to: number,
    masks: number,
  ): void {
    const { kernels, scratch } = this, values = scratch + VALUES, rows = scratch + CODES, bits = scratch + INTEGERS_AT;
    // The memory holds those of this many vectors.
    const step = VECTOR_ROWS / EXCEPTIONS_MAX;
    for (let k = from; k < to; k += step) {
      const count = kernels.listExceptions(address!, k, Math.min(to, k + step), width, values, rows);
      condition.test(values, count, bits);
      kernels.selectListed(masks, rows, bits, count);
    }
  }

  /** A number for the scale of a vector's codes, and whether it has exceptions; undefined if values are no codes of small integers. */
  private formOf(chunk: number, vector: number, { kind }: StoredChunk): number | undefined {
    const { u8, i32 } = this.heap, at = headerOf(chunk, vector), encoding = u8[at + AT.encoding];
    const word = (offset: number) => i32[(at + offset) / 4], counts = word(AT.exceptions);
    const hasExceptions = (counts & 0xffff) > 0;
    if (encoding === RAW) return undefined;
    if (encoding === FRAME && (word(AT.slope) | word(AT.slope + 4)) !== 0) return undefined;
    const isNull = encoding === CONSTANT && (kind === FLOATS || counts >>> 16 > 0);
    if (!isNull && Math.abs(word(AT.base + 4) * 2 ** 32) >= BASE_MAX[kind]) return undefined;
    const scale = encoding === DECIMAL || encoding === PRODUCT ? encoding * 256 + u8[at + AT.places] : 0;
    return hasExceptions ? scale + WITH_EXCEPTIONS : scale;
  }

  /** How many vectors of all bounds the last call of `selectRows` or `maskRows` tested in which way. */
  vectorCounts(): VectorCounts {
    const counts = this.outcomes(), of = (outcome: keyof VectorCounts) => counts[OUTCOME[outcome]];
    return {
      skipped: of("skipped"),
      whole: of("whole"),
      tested: of("tested"),
      withExceptions: of("withExceptions"),
      withoutCodes: of("withoutCodes"),
    };
  }

  private outcomes(): Int32Array {
    const first = (this.scratch + OUTCOMES_AT) / 4;
    return this.heap.i32.subarray(first, first + OUTCOMES);
  }

  private select(
    { kind, width, address }: StoredChunk,
    { low, high }: ChunkBound,
    from: number,
    to: number,
    masks: number,
  ): void {
    const { kernels, scratch } = this, counts = scratch + OUTCOMES_AT;
    assert(address !== undefined, "chunks that are selected from are in the shared memory");
    assert(width >= 4, "shorter types have no NULL, so code 0 may be a value");
    if (kind === INTEGERS) {
      return kernels.selectIntegers(address, from, to, integerOf(low, MIN64), integerOf(high, MAX64), masks, counts);
    }
    const least = low === undefined ? -Infinity : Number(low), greatest = high === undefined ? Infinity : Number(high);
    kernels.selectDecimals(address, from, to, least, greatest, masks, counts, scratch + POWERS_AT);
  }

  /** Writes values `rows[0 … count-1]` of a chunk in the shared memory, i32 there too, to `values`. Those of a vector should be neighbours. */
  gatherRows(bytes: Uint8Array, rows: number, count: number, values: number): void {
    const { kind, width, address } = this.opened(bytes), { kernels, scratch } = this;
    assert(address !== undefined, "chunks that are gathered from are in the shared memory");
    const gather = (kind === FLOATS ? kernels.gatherFloats : kernels.gatherIntegers)[width];
    gather(address, rows, count, values, scratch + VALUES, scratch + CODES, scratch + POWERS_AT);
  }

  /**
   * Writes the offsets of rows of a chunk in the shared memory: of whole vectors, row 0 at `address`. Undefined if more than
   * `missingMax` vectors have none. `choose`: of all rows by default.
   */
  readOffsets(
    bytes: Uint8Array,
    rows: RowRange,
    address: number,
    choose?: ChooseOffsets,
    missingMax = 0,
  ): ChunkOffsets | undefined {
    const { kernels, scratch, heap, ranges } = this, { u8 } = heap, chunk = bytes.byteOffset;
    const isShared = bytes.buffer === u8.buffer, kind = u8[chunk + CHUNK_AT.kind];
    assert(isShared && u8[chunk + CHUNK_AT.width] >= 4, "chunks in the shared memory, of types with a NULL");
    const offsets = offsetsOf(heap, chunk, rows, kind === FLOATS, powerOf, ranges, missingMax);
    if (offsets === undefined) return undefined;
    for (const needed of choose?.(offsets, ranges) ?? [rows]) {
      const from = Math.floor(needed.from / VECTOR_ROWS), to = Math.ceil(needed.to / VECTOR_ROWS);
      kernels.decodeOffsets(chunk, from, to, offsets.least, address + from * VECTOR_ROWS * 4, scratch + CODES);
    }
    return offsets;
  }

  /** The first row of a chunk of ascending 64-bit integers, in the shared memory, that is not below `value`; their number if there is none. */
  firstAt(bytes: Uint8Array, value: bigint): number {
    const { kind, width, address, rowCount } = this.opened(bytes), { kernels, scratch, heap: { i32, i64 } } = this;
    assert(address !== undefined && kind === INTEGERS && width === 8, "times in the shared memory are searched");
    const row = scratch + FOUND_AT, found = row + 8;
    let low = 0, high = rowCount;
    while (low < high) {
      i32[row / 4] = (low + high) >>> 1;
      kernels.gatherIntegers[8](address, row, 1, found, scratch + VALUES, scratch + CODES, scratch + POWERS_AT);
      if (i64[found / 8] < value) low = i32[row / 4] + 1;
      else high = i32[row / 4];
    }
    return low;
  }

  private opened(bytes: Uint8Array): StoredChunk {
    const view = viewOf(bytes);
    assert(view.getUint32(0, true) === MAGIC, "an encoded chunk begins with its magic");
    const width = view.getUint8(CHUNK_AT.width), rowCount = view.getUint32(CHUNK_AT.rowCount, true);
    const kind = view.getUint8(CHUNK_AT.kind);
    const decode = (kind === FLOATS ? this.kernels.decodeFloats : this.kernels.decodeIntegers)[width];
    if (bytes.buffer === this.heap.u8.buffer) {
      return { bytes, view, rowCount, kind, width, decode, address: bytes.byteOffset };
    }
    this.heap.u8.set(bytes.subarray(0, HEADER_BYTES), this.scratch + HEADERS);
    return { bytes, view, rowCount, kind, width, decode };
  }

  private decodeVector(chunk: StoredChunk, vector: number, values: number): void {
    const { bytes, view, rowCount, width, decode, address } = chunk, { scratch, heap: { u8 } } = this;
    const count = Math.min(VECTOR_ROWS, rowCount - vector * VECTOR_ROWS);
    const at = HEADER_BYTES + vector * VECTOR_HEADER_BYTES, data = view.getUint32(at + AT.data, true);
    const codes = scratch + CODES, powers = scratch + POWERS_AT;
    if (address !== undefined) {
      return decode(address + at, address + data, values, count, address + CHUNK_AT.nullValue, codes, powers);
    }
    const headers = scratch + HEADERS, header = headers + HEADER_BYTES, bits = scratch + INTEGERS_AT;
    u8.set(bytes.subarray(at, at + VECTOR_HEADER_BYTES), header);
    u8.set(bytes.subarray(data, data + dataBytes(view, at, count * width, width)), bits);
    decode(header, bits, values, count, headers + CHUNK_AT.nullValue, codes, powers);
  }
}

function powerOf(places: number): number {
  return POWERS[places];
}

function headerOf(chunk: number, vector: number): number {
  return chunk + HEADER_BYTES + vector * VECTOR_HEADER_BYTES;
}

/** Of what `ChunkCodec.formOf` has found. */
function scaleOf(form: number): Pick<ChunkOffsets, "scale" | "power"> {
  const encoding = Math.floor(form % WITH_EXCEPTIONS / 256), power = POWERS[form % 256];
  if (encoding === DECIMAL) return { scale: "quotient", power };
  return encoding === PRODUCT ? { scale: "product", power: 1 / power } : { scale: "integer", power: 1 };
}

/** A chunk that is being decoded. */
interface StoredChunk {
  bytes: Uint8Array;
  view: DataView;
  rowCount: number;
  kind: number;
  width: number;
  decode: DecodeVector;
  /** Undefined if it is not in the shared memory: vectors are copied to it. */
  address?: number;
}

/** Bytes of a vector's data. `at`: of its header. */
function dataBytes(view: DataView, at: number, rawBytes: number, width: number): number {
  const encoding = view.getUint8(at + AT.encoding);
  if (encoding === RAW) return rawBytes;
  if (encoding === CONSTANT) return 0;
  const exceptions = view.getUint16(at + AT.exceptions, true);
  return packedBytes(view.getUint8(at + AT.codeBits)) + (exceptions > 0 ? exceptionBytes(exceptions, width) : 0);
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** A bound of integers, rounded down or towards more values. */
function integerOf(bound: number | bigint | undefined, otherwise: bigint): bigint {
  if (bound === undefined) return otherwise;
  if (typeof bound === "bigint") return bound < MIN64 ? MIN64 : bound > MAX64 ? MAX64 : bound;
  if (Math.abs(bound) < 2 ** 63) return BigInt(Math.floor(bound));
  return bound < 0 ? MIN64 : MAX64;
}
