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
import { type Layout, LAYOUT_WIDTH } from "../../types/mod.ts";
import { align } from "../bytes.ts";
import type { ChooseOffsets, ChunkBound, ChunkOffsets, RowCondition, RowRange, VectorCounts } from "../contract.ts";
import type { SharedHeap } from "../heap.ts";
import { bitsOf, packedBytes, VECTOR_ROWS } from "./bits.ts";
import { encodingBit, HAS_SUMMARIES } from "./encodings.ts";
import { MASK_BYTES, OUTCOME, OUTCOMES } from "./selection.ts";
import { FOUND, FOUND_BYTES, type Kernels, kernelsOf } from "./kernels.ts";
import { offsetsOf } from "./offsets.ts";
import { PREFETCHED_VECTORS } from "./prefetch.ts";
import { sealSummaries, summariesBytes, SUMMARY_BYTES } from "./summaries.ts";
import {
  AT,
  CHUNK_AT,
  CONSTANT,
  DECIMAL,
  type DecodeVector,
  FRAME,
  HEADER_BYTES,
  POWER_COUNT,
  PRODUCT,
  RAW,
  VECTOR_HEADER_BYTES,
} from "./vectors.ts";

const MAGIC = 0x444b4350; // "PCKD"
const TAIL_BYTES = 16, ALIGN = 16;
const ENCODINGS = ["raw", "constant", "frame", "decimal", "decimal"] as const;
const INTEGERS = 0, FLOATS = 1;
const MIN64 = -(2n ** 63n), MAX64 = 2n ** 63n - 1n;
/** A chunk that shrinks by less is stored without encoding, and loading it decodes nothing. */
const SHRINKS_TO = 0.9;

const KINDS: Partial<Record<Layout, number>> = {
  i8: INTEGERS,
  i16: INTEGERS,
  i32: INTEGERS,
  i64: INTEGERS,
  symbol: INTEGERS,
  f32: FLOATS,
  f64: FLOATS,
};

/** Layouts of the types that are summed, or have extremes, and have a NULL. */
const SUMMARISED: ReadonlySet<Layout> = new Set(["i32", "i64", "f32", "f64"]);

export function isEncodable(layout: Layout): boolean {
  return KINDS[layout] !== undefined;
}

/** Encoded chunks of this layout have summaries. */
export function isSummarised(layout: Layout): boolean {
  return SUMMARISED.has(layout);
}

/** Codes have 32 bits, and code 0 is NULL. */
const SPAN_MAX = 2 ** 32 - 1;
/** Differences of values, as doubles, are exact up to this. */
const DIFFERENCE_MAX = 2n ** 51n;
/** 10^22 is the last power that a double has exactly. More places than 15 find no further values. */
const POWERS = Array.from({ length: POWER_COUNT }, (_, k) => 10 ** k);
/** Vectors of a segment. */
const VECTORS_MAX = 64;
/** A vector with more stays raw: an exception costs as much time as several codes. */
const EXCEPTIONS_MAX = VECTOR_ROWS / 32;
const SAMPLES = 32;
/** The places of floats of 4 bytes are looked for again if the vector before has such that codes take more. */
const RESAMPLED_SPAN = 2 ** 12;

/** `encodings`: bits of `encodings.ts`. */
export interface EncodedChunk {
  bytes: Uint8Array;
  encodings: number;
}

/** Calls `select` with the stored bytes of a bound's chunk. */
type OpenChunk = (bound: ChunkBound, select: (bytes: Uint8Array) => void) => void;

interface Decimals {
  places: number;
  encoding: typeof DECIMAL | typeof PRODUCT;
}

/** Properties that all vectors of a chunk share. */
interface ColumnForm {
  kind: number;
  /** Bytes a value. */
  width: number;
  /** NULL as one number of `width` bytes; for floats its bits. */
  nullBits: bigint;
}

/** A vector's header, but for the offset of its data. */
interface Vector {
  encoding: number;
  base: bigint;
  slope: bigint;
  codeBits: number;
  places: number;
  exceptions: number;
  nulls: number;
  span: number;
}

const PLAIN: Vector = { encoding: RAW, base: 0n, slope: 0n, codeBits: 0, places: 0, exceptions: 0, nulls: 0, span: 0 };

// Memory for one vector, by offset: its codes, its integers (f64) or bits, positions of exceptions, what kernels find, its values if
// they come from elsewhere, the powers of ten, and the headers of a chunk and a vector that are elsewhere.
const CODES = 0;
const INTEGERS_AT = CODES + 4 * VECTOR_ROWS;
const POSITIONS = INTEGERS_AT + 8 * VECTOR_ROWS;
const FOUND_AT = POSITIONS + 2 * EXCEPTIONS_MAX;
const VALUES = FOUND_AT + FOUND_BYTES;
const POWERS_AT = VALUES + 8 * VECTOR_ROWS;
const HEADERS = POWERS_AT + 8 * POWER_COUNT;
/** Of `ChunkCodec.formOf`. */
const WITH_EXCEPTIONS = 65_536;
/** Codes of vectors with greater bases are not compared with the integers of conditions, by kind. */
const BASE_MAX = [2 ** 52, 2 ** 45];
/** Rows are not marked if more vectors of a condition's chunk than this share have no codes that can be compared. */
const DECODED_SHARE_MAX = 1 / 4;
/** Of the rows of a chunk. */
const MASKS = HEADERS + HEADER_BYTES + VECTOR_HEADER_BYTES, OTHER_MASKS = MASKS + VECTORS_MAX * MASK_BYTES;
/** Numbers of rows that the memory of masks has room for. */
const LISTED_MAX = VECTORS_MAX * MASK_BYTES / 4;
/** Of the vectors that were tested last, by `OUTCOME`. */
const OUTCOMES_AT = OTHER_MASKS + VECTORS_MAX * MASK_BYTES;
/** Memory that a codec works in. */
export const CODEC_BYTES = OUTCOMES_AT + 8 * Math.ceil(OUTCOMES / 2);
/** Integers that are not a column: lengths and codes of texts. */
const INTEGERS_FORM: ColumnForm = { kind: INTEGERS, width: 4, nullBits: 0xffff_ffffn };

/** Encodes and decodes chunks. Each thread has its own, with `CODEC_BYTES` of the shared memory at `scratch`. */
export class ChunkCodec {
  private readonly kernels: Kernels;
  private encoded = new Uint8Array(0);
  private view = new DataView(this.encoded.buffer);
  /** Of the vectors of the chunk whose offsets were read last. */
  private readonly ranges = new Float64Array(2 * VECTORS_MAX);
  /** Of the last vector. */
  private decimals: Decimals | undefined;

  constructor(private readonly heap: SharedHeap, readonly scratch: number) {
    this.kernels = kernelsOf(heap.memory);
    heap.f64.set(POWERS, (scratch + POWERS_AT) / 8);
  }

  /**
   * Encodes the values of a chunk in the shared memory. `nullWords`: the type's NULL. Returns undefined if they would not become clearly
   * smaller, unless `always`. The result is valid until the next call.
   */
  encode(
    layout: Layout,
    nullWords: readonly number[],
    address: number,
    valueBytes: number,
    always = false,
  ): EncodedChunk | undefined {
    const kind = KINDS[layout], width = LAYOUT_WIDTH[layout];
    if (kind === undefined || valueBytes === 0) return undefined;
    const form: ColumnForm = { kind, width, nullBits: nullBitsOf(nullWords, width) };
    const rowCount = valueBytes / width, addressOf = (vector: number) => address + vector * VECTOR_ROWS * width;
    const encoded = this.encodeVectors(form, rowCount, addressOf);
    if (!always && encoded.bytes.length >= valueBytes * SHRINKS_TO) return undefined;
    return SUMMARISED.has(layout) ? this.withSummaries(form, rowCount, addressOf, encoded) : encoded;
  }

  /** `encoded`: what the codec has made last. */
  private withSummaries(
    { kind, width, nullBits }: ColumnForm,
    rowCount: number,
    addressOf: (vector: number) => number,
    { bytes: { length: at }, encodings }: EncodedChunk,
  ): EncodedChunk {
    const { kernels, scratch, heap: { u8 } } = this, summaries = scratch + MASKS;
    const nullValue = BigInt.asIntN(8 * width, nullBits);
    const summarise = (kind === FLOATS ? kernels.summariseFloats : kernels.summariseIntegers)[width];
    const end = at + summariesBytes(rowCount);
    for (let k = 0; k * VECTOR_ROWS < rowCount; k++) {
      const count = Math.min(VECTOR_ROWS, rowCount - k * VECTOR_ROWS);
      summarise(addressOf(k), count, nullValue, summaries + k * SUMMARY_BYTES);
    }
    this.encoded.set(u8.subarray(summaries, summaries + Math.ceil(rowCount / VECTOR_ROWS) * SUMMARY_BYTES), at);
    sealSummaries(this.encoded.subarray(at, end));
    return { bytes: this.encoded.subarray(0, end), encodings: encodings | HAS_SUMMARIES };
  }

  /** Encodes integers that are not in the shared memory; -1 is their NULL. */
  encodeIntegers(values: Int32Array): Uint8Array {
    const at = this.scratch + VALUES;
    return this.encodeVectors(INTEGERS_FORM, values.length, (k) => {
      this.heap.i32.set(values.subarray(k * VECTOR_ROWS, (k + 1) * VECTOR_ROWS), at / 4);
      return at;
    }).bytes.slice();
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

  private encodeVectors(form: ColumnForm, rowCount: number, addressOf: (vector: number) => number): EncodedChunk {
    const { kind, width } = form, vectors = Math.ceil(rowCount / VECTOR_ROWS);
    const dataBytes = vectors * ALIGN + rowCount * width;
    this.grow(HEADER_BYTES + vectors * VECTOR_HEADER_BYTES + dataBytes + TAIL_BYTES + summariesBytes(rowCount));
    this.encoded.fill(0, 0, HEADER_BYTES);
    this.view.setUint32(0, MAGIC, true);
    this.view.setUint8(CHUNK_AT.width, width);
    this.view.setUint8(CHUNK_AT.kind, kind);
    this.view.setUint32(CHUNK_AT.rowCount, rowCount, true);
    this.view.setBigInt64(CHUNK_AT.nullValue, form.nullBits, true);
    this.decimals = undefined;
    let at = HEADER_BYTES + vectors * VECTOR_HEADER_BYTES, encodings = 0;
    for (let k = 0; k < vectors; k++) {
      const count = Math.min(VECTOR_ROWS, rowCount - k * VECTOR_ROWS);
      const { vector, sizeBytes } = this.encodeVector(form, addressOf(k), count, at);
      this.writeHeader(HEADER_BYTES + k * VECTOR_HEADER_BYTES, at, vector);
      encodings |= encodingBit(ENCODINGS[vector.encoding]);
      at += sizeBytes;
    }
    this.encoded.fill(0, at, at + TAIL_BYTES);
    at += TAIL_BYTES;
    return { bytes: this.encoded.subarray(0, at), encodings };
  }

  private grow(sizeBytes: number): void {
    if (this.encoded.length >= sizeBytes) return;
    this.encoded = new Uint8Array(align(sizeBytes, 65_536));
    this.view = new DataView(this.encoded.buffer);
  }

  /** Writes a vector's data to the result, from `at` on. */
  private encodeVector(
    form: ColumnForm,
    address: number,
    count: number,
    at: number,
  ): { vector: Vector; sizeBytes: number } {
    const rawBytes = align(count * form.width, ALIGN);
    const vector = this.choose(form, address, count);
    const codesBytes = vector === undefined ? 0 : packedBytes(vector.codeBits);
    const sizeBytes = vector === undefined
      ? rawBytes
      : align(codesBytes + exceptionBytes(vector.exceptions, form.width), ALIGN);
    const { u8 } = this.heap;
    if (vector === undefined || sizeBytes >= rawBytes) {
      this.encoded.fill(0, at + rawBytes - ALIGN, at + rawBytes);
      this.encoded.set(u8.subarray(address, address + count * form.width), at);
      return { vector: PLAIN, sizeBytes: rawBytes };
    }
    if (vector.codeBits > 0) {
      const codes = this.scratch + CODES, bits = this.scratch + INTEGERS_AT;
      u8.fill(0, codes + 4 * count, codes + 4 * VECTOR_ROWS);
      this.kernels.pack(vector.codeBits)(codes, bits);
      this.encoded.set(u8.subarray(bits, bits + codesBytes), at);
    }
    if (vector.exceptions > 0) {
      this.writeExceptions(vector.exceptions, form.width, address, at + codesBytes, at + sizeBytes);
    }
    return { vector, sizeBytes };
  }

  /** Finds the encoding of a vector and makes its codes. Returns undefined if it is to stay raw. */
  private choose(form: ColumnForm, address: number, count: number): Vector | undefined {
    if (form.kind === FLOATS) return this.chooseDecimals(form, address, count);
    return form.width === 8 ? this.chooseWide(form, address, count) : this.chooseNarrow(form, address, count);
  }

  private chooseNarrow({ width, nullBits }: ColumnForm, address: number, count: number): Vector | undefined {
    const { kernels, scratch } = this,
      found = scratch + FOUND_AT,
      nullValue = Number(BigInt.asIntN(8 * width, nullBits));
    kernels.range(width)(address, count, nullValue, found);
    const { min, max, nulls } = this.found();
    if (nulls === count) return { ...PLAIN, encoding: CONSTANT, base: nullBits, nulls };
    if (nulls === 0 && min === max) return { ...PLAIN, encoding: CONSTANT, base: min };
    const base = nulls === 0 ? min : min - 1n, span = Number(max - base);
    if (span > SPAN_MAX) return undefined;
    kernels.codes(width)(address, count, nullValue, Number(base), scratch + CODES);
    return { ...PLAIN, encoding: FRAME, base, span, codeBits: bitsOf(span), nulls };
  }

  private chooseWide({ nullBits }: ColumnForm, address: number, count: number): Vector | undefined {
    const { kernels, scratch } = this, found = scratch + FOUND_AT;
    kernels.rangeWide(address, count, nullBits, found);
    let { min, max } = this.found();
    const { nulls } = this.found();
    if (nulls === count) return { ...PLAIN, encoding: CONSTANT, base: nullBits, nulls };
    if (nulls === 0 && min === max) return { ...PLAIN, encoding: CONSTANT, base: min };
    if (max - min > DIFFERENCE_MAX) return undefined;
    let slope = this.slope(count - nulls);
    if (slope !== 0n) {
      kernels.residualsWide(address, count, nullBits, slope, found);
      const residuals = this.found();
      if (spanBits(residuals.max - residuals.min) < spanBits(max - min)) ({ min, max } = residuals);
      else slope = 0n;
    }
    const reserved = nulls === 0 && slope === 0n ? 0 : 1, span = Number(max - min) + reserved;
    if (span > SPAN_MAX) return undefined;
    const base = BigInt.asIntN(64, min - BigInt(reserved));
    kernels.codesWide(address, count, nullBits, base, slope, scratch + CODES);
    return { ...PLAIN, encoding: FRAME, base, slope, span, codeBits: bitsOf(span), nulls };
  }

  private chooseDecimals({ width, nullBits }: ColumnForm, address: number, count: number): Vector | undefined {
    const { kernels, scratch } = this, found = scratch + FOUND_AT;
    const attempt = ({ places, encoding }: Decimals) =>
      (encoding === DECIMAL ? kernels.decimals : kernels.products)(width)(
        address,
        count,
        nullBits,
        POWERS[places],
        backOf(places, encoding),
        EXCEPTIONS_MAX,
        scratch + INTEGERS_AT,
        scratch + POSITIONS,
        found,
      ) !== 0;
    const extremes = () => {
      const at = (scratch + FOUND_AT) / 8, { f64 } = this.heap;
      return { min: f64[at + FOUND.min / 8]!, max: f64[at + FOUND.max / 8]! };
    };
    let { decimals } = this;
    const isKept = decimals !== undefined && attempt(decimals);
    // Any float of 4 bytes has few places, so those of a vector before may be too many.
    if (!isKept || (width === 4 && extremes().max - extremes().min >= RESAMPLED_SPAN)) {
      const list = this.decimalsOf(width, address, count);
      if (isKept) list.push(decimals!);
      decimals = list.flatMap(({ places, encoding }) =>
        // The samples may have missed values with more places.
        [0, 1, 2].map((more) => ({ places: Math.min(places + more, POWERS.length - 1), encoding }))
      ).find(attempt);
      if (decimals === undefined) return undefined;
      this.decimals = decimals;
    }
    const { min, max } = extremes();
    const { nulls, exceptions } = this.found();
    if (nulls === count) return { ...PLAIN, encoding: CONSTANT, base: nullBits, nulls };
    const reserved = nulls + exceptions === 0 ? 0 : 1;
    const base = min > max ? 0 : min - reserved, span = min > max ? 0 : max - base;
    if (span > SPAN_MAX) return undefined;
    kernels.codesOfDecimals(scratch + INTEGERS_AT, count, base, scratch + CODES);
    return { ...PLAIN, ...decimals, base: BigInt(base), exceptions, nulls, span, codeBits: bitsOf(span) };
  }

  /** The decimals that give back all of some values, or nearly all with fewer places, in the order in which they are tried. */
  private decimalsOf(width: number, address: number, count: number): Decimals[] {
    const values = width === 8 ? this.heap.f64 : this.heap.f32, from = address / width;
    const round = width === 8 ? (value: number) => value : Math.fround;
    const step = Math.max(1, Math.floor(count / SAMPLES));
    let best: Decimals | undefined, fewest = Infinity;
    for (let places = 0; places < POWERS.length; places++) {
      const power = POWERS[places];
      const inverse = backOf(places, PRODUCT);
      let samples = 0, misses = 0, missedProducts = 0;
      for (let k = 0; k < count; k += step) {
        const value = values[from + k];
        if (value - value !== 0) continue; // NULL, or an exception
        samples++;
        const integer = Math.round(value * power);
        if (round(integer / power) !== value) misses++;
        if (round(integer * inverse) !== value) missedProducts++;
      }
      const encoding = missedProducts < misses ? PRODUCT : DECIMAL, least = Math.min(misses, missedProducts);
      if (least === 0) {
        const all: Decimals = { places, encoding };
        // Any float of 4 bytes is a decimal of some 9 places.
        return width === 4 && best !== undefined && places > best.places + 2 ? [best, all] : [all];
      }
      if (least < fewest && least <= samples / 16) {
        fewest = least;
        best = { places, encoding };
      }
    }
    return best === undefined ? [] : [best];
  }

  private found(): { min: bigint; max: bigint; nulls: number; exceptions: number } {
    const { i64, i32 } = this.heap, at = this.scratch + FOUND_AT;
    return {
      min: i64[(at + FOUND.min) / 8],
      max: i64[(at + FOUND.max) / 8],
      nulls: i32[(at + FOUND.nulls) / 4],
      exceptions: i32[(at + FOUND.exceptions) / 4],
    };
  }

  /** Of the line through `known` values, in whole steps. */
  private slope(known: number): bigint {
    const { f64 } = this.heap, sum = (offset: number) => f64[(this.scratch + FOUND_AT + offset) / 8];
    const indexes = sum(FOUND.indexes), spread = known * sum(FOUND.squares) - indexes * indexes;
    if (spread === 0) return 0n;
    return BigInt(Math.round((known * sum(FOUND.products) - indexes * sum(FOUND.differences)) / spread));
  }

  private writeHeader(at: number, offset: number, vector: Vector): void {
    const { view } = this;
    view.setBigInt64(at + AT.base, vector.base, true);
    view.setBigInt64(at + AT.slope, vector.slope, true);
    view.setUint32(at + AT.data, offset, true);
    view.setUint8(at + AT.encoding, vector.encoding);
    view.setUint8(at + AT.codeBits, vector.codeBits);
    view.setUint8(at + AT.places, vector.places);
    view.setUint8(at + 23, 0);
    view.setUint16(at + AT.exceptions, vector.exceptions, true);
    view.setUint16(at + AT.nulls, vector.nulls, true);
    view.setUint32(at + AT.span, vector.span, true);
  }

  private writeExceptions(count: number, width: number, address: number, at: number, end: number): void {
    const { u8 } = this.heap, positions = this.scratch + POSITIONS;
    this.encoded.fill(0, at, end);
    this.encoded.set(u8.subarray(positions, positions + 2 * count), at);
    let out = at + align(2 * count, 8);
    for (let k = 0; k < count; k++, out += width) {
      const from = address + this.view.getUint16(at + 2 * k, true) * width;
      this.encoded.set(u8.subarray(from, from + width), out);
    }
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
    // The memory has room for those of so many vectors.
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

/** The number by which integers are divided (DECIMAL) or multiplied. */
function backOf(places: number, encoding: number): number {
  return encoding === DECIMAL ? POWERS[places] : 1 / POWERS[places];
}

function nullBitsOf(words: readonly number[], width: number): bigint {
  return width === 8 ? (BigInt(words[1]) << 32n) + BigInt(words[0] >>> 0) : BigInt.asUintN(8 * width, BigInt(words[0]));
}

/** Bytes of the positions, aligned to 8, and of the values of exceptions. */
function exceptionBytes(count: number, width: number): number {
  return align(2 * count, 8) + width * count;
}

function spanBits(difference: bigint): number {
  return difference >= SPAN_MAX ? 64 : bitsOf(Number(difference) + 1);
}
