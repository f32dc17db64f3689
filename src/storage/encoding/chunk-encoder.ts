/** Encodes chunks, in the format that `chunk.ts` describes: for each vector it finds the encoding that takes the fewest bytes. */
import { type Layout, LAYOUT_WIDTH } from "../../types/mod.ts";
import { align } from "../bytes.ts";
import type { SharedHeap } from "../heap.ts";
import { bitsOf, packedBytes, VECTOR_ROWS } from "./bits.ts";
import { CODES, EXCEPTIONS_MAX, FOUND_AT, INTEGERS_AT, MASKS, POSITIONS, POWERS, VALUES } from "./chunk-scratch.ts";
import { encodingBit, HAS_SUMMARIES } from "./encodings.ts";
import { FOUND, type Kernels } from "./kernels.ts";
import { sealSummaries, summariesBytes, SUMMARY_BYTES } from "./summaries.ts";
import {
  AT,
  CHUNK_AT,
  CONSTANT,
  DECIMAL,
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

const TAIL_BYTES = 16, ALIGN = 16;
const ENCODINGS = ["raw", "constant", "frame", "decimal", "decimal"] as const;
/** A chunk that shrinks by less is stored without encoding, and loading it decodes nothing. */
const SHRINKS_TO = 0.9;
/** Codes have 32 bits, and code 0 is NULL. */
const SPAN_MAX = 2 ** 32 - 1;
/** Differences of values, as doubles, are exact up to this. */
const DIFFERENCE_MAX = 2n ** 51n;
const SAMPLES = 32;
/** The places of floats of 4 bytes are looked for again if the vector before has such that codes take more. */
const RESAMPLED_SPAN = 2 ** 12;

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

/** `encodings`: bits of `encodings.ts`. */
export interface EncodedChunk {
  bytes: Uint8Array;
  encodings: number;
}

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
/** Integers that are not a column: lengths and codes of texts. */
const INTEGERS_FORM: ColumnForm = { kind: INTEGERS, width: 4, nullBits: 0xffff_ffffn };

export class ChunkEncoder {
  private encoded = new Uint8Array(0);
  private view = new DataView(this.encoded.buffer);
  /** Of the last vector. */
  private decimals: Decimals | undefined;

  /** `scratch`: as for `ChunkCodec`, with the powers of ten. */
  constructor(private readonly heap: SharedHeap, private readonly scratch: number, private readonly kernels: Kernels) {}

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
}

/** The number by which integers are divided (DECIMAL) or multiplied. */
function backOf(places: number, encoding: number): number {
  return encoding === DECIMAL ? POWERS[places] : 1 / POWERS[places];
}

function nullBitsOf(words: readonly number[], width: number): bigint {
  return width === 8 ? (BigInt(words[1]) << 32n) + BigInt(words[0] >>> 0) : BigInt.asUintN(8 * width, BigInt(words[0]));
}

function spanBits(difference: bigint): number {
  return difference >= SPAN_MAX ? 64 : bitsOf(Number(difference) + 1);
}
