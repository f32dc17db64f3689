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
import {
  type ChooseOffsets,
  type ChunkBound,
  type ChunkOffsets,
  PASSING_RANGES_MAX,
  type PassingIntegers,
  type RowCondition,
  type RowRange,
  type TestedColumn,
  type VectorCounts,
} from "../contract.ts";
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
  PLAIN_CHUNK,
  POWERS,
  POWERS_AT,
  RANGES_AT,
  SPARE_MASK,
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

/** The values of a chunk of integers in the shared memory, not encoded. */
export interface PlainIntegers {
  readonly address: number;
  readonly rowCount: number;
}

/** Calls `use` with a column's chunk: its stored bytes, its integers, or undefined if the column was added later. */
export type OpenChunk<Tested extends TestedColumn> = (
  tested: Tested,
  use: (chunk: Uint8Array | PlainIntegers | undefined) => void,
) => void;

/** Of `ChunkCodec.formOf`. */
const WITH_EXCEPTIONS = 65_536;
/** Codes of vectors of floats with greater bases are not compared with the integers of conditions. */
const BASE_MAX = 2 ** 45;
const INTEGER_FORM = { scale: "integer", power: 1 } as const;
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
   * The rows of a chunk in the shared memory that are within all bounds of their chunks, and perhaps some others (`selection.ts`). Writes them in
   * ascending order to `rows` (i32), at most `rowsMax`, and returns their number.
   */
  selectRows(
    bounds: readonly ChunkBound[],
    range: RowRange,
    open: OpenChunk<ChunkBound>,
    rows: number,
    rowsMax: number,
  ): number {
    const { kernels, scratch } = this,
      from = Math.floor(range.from / VECTOR_ROWS),
      to = Math.ceil(range.to / VECTOR_ROWS);
    this.outcomes().fill(0);
    bounds.forEach((bound, k) => {
      const masks = scratch + (k === 0 ? MASKS : OTHER_MASKS);
      open(bound, (bytes) => this.select(this.testedChunk(bytes, bound), bound, from, to, masks));
      if (k === 0) return;
      const offset = from * MASK_BYTES;
      kernels.intersect(scratch + MASKS + offset, scratch + OTHER_MASKS + offset, to - from);
    });
    return kernels.listRows(scratch + MASKS, range.from, range.to, rows, rowsMax);
  }

  /**
   * Marks the rows of a chunk in the shared memory that pass all conditions on their chunks in `masks`, of which those of rows outside of the range are
   * undefined, and returns their number. Undefined if the values of too many vectors would have to be decoded.
   */
  maskRows(
    conditions: readonly RowCondition[],
    range: RowRange,
    open: OpenChunk<RowCondition>,
    masks: number,
  ): number | undefined {
    const { kernels, scratch } = this, others = scratch + OTHER_MASKS;
    const from = Math.floor(range.from / VECTOR_ROWS), to = Math.ceil(range.to / VECTOR_ROWS), at = from * MASK_BYTES;
    this.outcomes().fill(0);
    const ordered = conditions.length === 1 ? conditions : conditions.toSorted((a, b) => a.share - b.share);
    let left = range.to - range.from;
    for (const [k, condition] of ordered.entries()) {
      const isFirst = k === 0, into = isFirst ? masks : others;
      let isMarked = false;
      open(condition, (bytes) => {
        const chunk = this.testedChunk(bytes, condition);
        isMarked = chunk === undefined || chunk.kind === INTEGERS
          ? this.maskIntegers(chunk, condition, from, to, into, isFirst ? 0 : masks)
          : this.maskFloats(chunk, condition, from, to, into);
      });
      if (!isMarked) return undefined;
      if (!isFirst) kernels.intersect(masks + at, others + at, to - from);
      const passed = kernels.countRows(masks, range.from, range.to);
      condition.share = passed / left;
      left = passed;
      if (left === 0) break;
    }
    return left;
  }

  /** The chunk of a condition. Plain integers are vectors of a chunk that is made for them, in this codec's memory. */
  private testedChunk(
    chunk: Uint8Array | PlainIntegers | undefined,
    { integerBytes }: TestedColumn,
  ): StoredChunk | undefined {
    if (chunk === undefined || chunk instanceof Uint8Array) return chunk && this.opened(chunk);
    assert(integerBytes !== undefined, "only integers are tested as they are");
    const { heap: { u8, i32 }, scratch } = this, { rowCount } = chunk, at = scratch + PLAIN_CHUNK;
    const vectors = Math.ceil(rowCount / VECTOR_ROWS);
    u8.fill(0, at, at + HEADER_BYTES + vectors * VECTOR_HEADER_BYTES);
    i32[at / 4] = MAGIC;
    u8[at + CHUNK_AT.width] = integerBytes;
    u8[at + CHUNK_AT.kind] = INTEGERS;
    i32[(at + CHUNK_AT.rowCount) / 4] = rowCount;
    for (let k = 0; k < vectors; k++) {
      const header = headerOf(at, k);
      u8[header + AT.encoding] = RAW;
      // Wraps around: values may be anywhere.
      i32[(header + AT.data) / 4] = chunk.address + k * VECTOR_ROWS * integerBytes - at;
    }
    return this.opened(u8.subarray(at, at + HEADER_BYTES + vectors * VECTOR_HEADER_BYTES));
  }

  /** Writes the numbers of the rows of a range that are marked, of which there are `count`, in ascending order to `rows` (i32). */
  listRows(masks: number, { from, to }: RowRange, rows: number, count: number): void {
    const listed = this.kernels.listRows(masks, from, to, rows, count);
    assert(listed === count, "as many rows are listed as are marked");
  }

  /**
   * Marks the rows of vectors `from` … `to`-1 that pass, of those with rows in the masks `within` if it is not 0. `chunk`: undefined if all rows are NULL, or
   * 0 if the type has none. False if the values of too many vectors would have to be decoded.
   */
  private maskIntegers(
    chunk: StoredChunk | undefined,
    condition: RowCondition,
    from: number,
    to: number,
    masks: number,
    within: number,
  ): boolean {
    const outcomes = this.outcomes(), passing = condition.passingOf(INTEGER_FORM);
    if (chunk === undefined) {
      this.heap.u8.fill(passing.areOthers ? 0xff : 0, masks + from * MASK_BYTES, masks + to * MASK_BYTES);
      outcomes[passing.areOthers ? OUTCOME.whole : OUTCOME.skipped] += to - from;
      return true;
    }
    // Whatever the rows of other conditions are, so that the way does not depend on their order.
    const sloped: number[] = [];
    for (let k = from; k < to && chunk.width === 8; k++) if (this.isSloped(chunk, k)) sloped.push(k);
    if (sloped.length > (to - from) * DECODED_SHARE_MAX) return false;
    this.selectIntegers(chunk, passing, from, to, masks, within);
    for (const vector of sloped) this.maskValues(chunk, condition, vector, masks);
    return true;
  }

  private selectIntegers(
    { address }: StoredChunk,
    { ranges, areOthers }: PassingIntegers,
    from: number,
    to: number,
    masks: number,
    within = 0,
    counts = this.scratch + OUTCOMES_AT,
  ): void {
    const { kernels, scratch, heap: { i64 } } = this, at = scratch + RANGES_AT;
    assert(ranges.length <= PASSING_RANGES_MAX, "a condition has few ranges");
    ranges.forEach(({ low, high }, k) => {
      i64[at / 8 + 2 * k] = low;
      i64[at / 8 + 2 * k + 1] = high;
    });
    const end = at + 16 * ranges.length, spare = scratch + SPARE_MASK;
    kernels.selectIntegers(address!, from, to, at, end, areOthers ? 1 : 0, within, masks, counts, spare);
  }

  private isSloped({ address }: StoredChunk, vector: number): boolean {
    const { u8, i64 } = this.heap, at = headerOf(address!, vector);
    return u8[at + AT.encoding] === FRAME && i64[(at + AT.slope) / 8] !== 0n;
  }

  /** Marks the rows of a vector that pass by their values. */
  private maskValues(chunk: StoredChunk, condition: RowCondition, vector: number, masks: number): void {
    const values = this.scratch + VALUES, mask = masks + vector * MASK_BYTES;
    this.decodeVector(chunk, vector, values);
    this.heap.u8.fill(0, mask, mask + MASK_BYTES);
    condition.test(values, Math.min(VECTOR_ROWS, chunk.rowCount - vector * VECTOR_ROWS), mask);
  }

  /** As `maskIntegers`. */
  private maskFloats(chunk: StoredChunk, condition: RowCondition, from: number, to: number, masks: number): boolean {
    const { scratch, heap: { u8 } } = this, { address } = chunk, outcomes = this.outcomes();
    assert(address !== undefined, "chunks in the shared memory");
    let decoded = 0;
    for (let k = from; k < to; k++) if (this.formOf(address, k) === undefined) decoded++;
    if (decoded > (to - from) * DECODED_SHARE_MAX) return false;
    for (let k = from; k < to;) {
      const form = this.formOf(address, k);
      if (form === undefined) {
        this.maskValues(chunk, condition, k, masks);
        outcomes[OUTCOME.withoutCodes]++;
        k++;
        continue;
      }
      let end = k + 1;
      while (end < to && this.formOf(address, end) === form) end++;
      const passing = condition.passingOf(scaleOf(form)), hasExceptions = form >= WITH_EXCEPTIONS;
      if (passing.ranges.length === 0) u8.fill(0, masks + k * MASK_BYTES, masks + end * MASK_BYTES);
      else {
        // Outcomes of the codes alone are not counted.
        const into = scratch + (hasExceptions ? INTEGERS_AT : OUTCOMES_AT);
        this.selectIntegers(chunk, passing, k, end, masks, 0, into);
      }
      if (hasExceptions) {
        this.maskExceptions(chunk, condition, k, end, masks);
        outcomes[OUTCOME.withExceptions] += end - k;
      } else if (passing.ranges.length === 0) outcomes[OUTCOME.skipped] += end - k;
      k = end;
    }
    return true;
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

  /** A number for the scale of the codes of a vector of floats, and whether it has exceptions; undefined if values are no codes of small integers. */
  private formOf(chunk: number, vector: number): number | undefined {
    const { u8, i32 } = this.heap, at = headerOf(chunk, vector), encoding = u8[at + AT.encoding];
    if (encoding === RAW) return undefined;
    if (encoding !== CONSTANT && Math.abs(i32[(at + AT.base + 4) / 4] * 2 ** 32) >= BASE_MAX) return undefined;
    const scale = encoding === DECIMAL || encoding === PRODUCT ? encoding * 256 + u8[at + AT.places] : 0;
    return (i32[(at + AT.exceptions) / 4] & 0xffff) > 0 ? scale + WITH_EXCEPTIONS : scale;
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
    chunk: StoredChunk | undefined,
    { low, high }: ChunkBound,
    from: number,
    to: number,
    masks: number,
  ): void {
    const { kernels, scratch } = this, counts = scratch + OUTCOMES_AT;
    assert(chunk?.address !== undefined, "chunks that are selected from are in the shared memory");
    if (chunk.kind === INTEGERS) {
      return this.selectIntegers(chunk, passingBetween(low, high, chunk.width), from, to, masks);
    }
    const least = low === undefined ? -Infinity : Number(low), greatest = high === undefined ? Infinity : Number(high);
    kernels.selectDecimals(chunk.address, from, to, least, greatest, masks, counts, scratch + POWERS_AT);
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
    assert(bytes.buffer === u8.buffer, "chunks in the shared memory");
    const type = { isFloat: u8[chunk + CHUNK_AT.kind] === FLOATS, isNullable: u8[chunk + CHUNK_AT.width] >= 4 };
    const offsets = offsetsOf(heap, chunk, rows, type, powerOf, ranges, missingMax);
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

/** Integers of `width` bytes between two bounds, and perhaps their neighbours. */
function passingBetween(
  lowBound: number | bigint | undefined,
  highBound: number | bigint | undefined,
  width: number,
): PassingIntegers {
  const low = integerOf(lowBound, MIN64), high = integerOf(highBound, MAX64);
  if (low > high) return { ranges: [], areOthers: false };
  // Types of less than 4 bytes have no NULL.
  if (width >= 4 || low > 0n || high < 0n) return { ranges: [{ low, high }], areOthers: false };
  const outside = [{ low: MIN64, high: low - 1n }, { low: high + 1n, high: MAX64 }];
  return { ranges: outside.filter(({ low, high }) => low >= MIN64 && high <= MAX64 && low <= high), areOthers: true };
}
