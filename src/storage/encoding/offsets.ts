/**
 * The rows of a stored chunk as integers of 32 bits (`ChunkOffsets`), so that sums, extremes and counts need neither their values nor divisions.
 * There are none for chunks with raw vectors, slopes, exceptions, or decimals of several numbers of places. The NULLs of types of less than 4 bytes are zeros.
 */
import type { Code, Module } from "../../wasm/assembler.ts";
import type { ChunkOffsets, RowRange } from "../contract.ts";
import type { SharedHeap } from "../heap.ts";
import { VECTOR_ROWS } from "./bits.ts";
import { prefetchAhead } from "./prefetch.ts";
import {
  AT,
  callUnpack,
  CHUNK_AT,
  CONSTANT,
  type DecodeWhole,
  FRAME,
  HEADER_BYTES,
  PRODUCT,
  pushHeader,
  RAW,
  VECTOR_HEADER_BYTES,
} from "./vectors.ts";

/** Integers beyond are not summed: the sum of a segment has 16 bits more. */
const INTEGER_MAX = 2 ** 45;
const OFFSET_MAX = 2 ** 31 - 1;

/** Writes the offsets of vectors `from` … `to`-1, each of 1,024 rows, from `offsets` on. `codes`: memory for those of a vector. */
export type DecodeOffsets = (
  chunk: number,
  from: number,
  to: number,
  least: number,
  offsets: number,
  codes: number,
) => void;

/**
 * The form of the offsets of rows of a chunk at an address; undefined if more than `missingMax` of their vectors have none. `powerOf`: the power of ten
 * for this many places. Writes the ranges of the vectors (`ChooseOffsets`).
 */
export function offsetsOf(
  { i32, u8 }: SharedHeap,
  chunk: number,
  { from, to }: RowRange,
  { isFloat, isNullable }: { isFloat: boolean; isNullable: boolean },
  powerOf: (places: number) => number,
  ranges: Float64Array,
  missingMax: number,
): ChunkOffsets | undefined {
  const first = Math.floor(from / VECTOR_ROWS), end = Math.ceil(to / VECTOR_ROWS);
  let least = Infinity, greatest = -Infinity, form = -1, hasNulls = false, missing = 0;
  let header = chunk + HEADER_BYTES + first * VECTOR_HEADER_BYTES;
  for (let vector = first; vector < end; vector++, header += VECTOR_HEADER_BYTES) {
    const words = header >>> 2, encoding = u8[header + AT.encoding];
    const counts = i32[words + AT.exceptions / 4], nulls = counts >>> 16, exceptions = counts & 0xffff;
    const isSloped = encoding === FRAME && (i32[words + AT.slope / 4] | i32[words + AT.slope / 4 + 1]) !== 0;
    const own = isFloat ? encoding * 256 + u8[header + AT.places] : -1;
    const base = i32[words + AT.base / 4 + 1] * 2 ** 32 + (i32[words + AT.base / 4] >>> 0);
    const isNull = encoding === CONSTANT && (isFloat || nulls > 0);
    const isOther = !isNull && (base > INTEGER_MAX || base < -INTEGER_MAX || (form >= 0 && own !== form));
    if (encoding === RAW || isSloped || exceptions > 0 || isOther) {
      if (++missing > missingMax) return undefined;
      ranges[2 * vector] = ranges[2 * vector + 1] = NaN;
      continue;
    }
    if (nulls > 0 && isNullable) hasNulls = true;
    if (isNull && isNullable) {
      ranges[2 * vector] = Infinity; // all NULL
      ranges[2 * vector + 1] = -Infinity;
      continue;
    }
    const span = i32[words + AT.span / 4] >>> 0, hasZeros = nulls > 0 && !isNullable;
    let low = nulls > 0 ? base + 1 : base, high = encoding === CONSTANT ? base : base + span;
    if (hasZeros) {
      low = isNull ? 0 : Math.min(low, 0);
      high = isNull ? 0 : Math.max(high, 0);
    }
    ranges[2 * vector] = low;
    ranges[2 * vector + 1] = high;
    if (low < least) least = low;
    if (high > greatest) greatest = high;
    form = own;
  }
  if (least > greatest) least = greatest = 0;
  if (greatest - least > OFFSET_MAX) return undefined;
  const scale = form < 0 ? "integer" : Math.floor(form / 256) === PRODUCT ? "product" : "quotient";
  const power = form < 0 ? 1 : powerOf(form % 256);
  return { scale, power: scale === "product" ? 1 / power : power, least, greatest: greatest - least, hasNulls };
}

/** `frame`: writes codes with a base, and another value for code 0. */
export function addDecodeOffsets(
  module: Module,
  { unpack, frame, whole, prefetch }: {
    unpack: readonly number[];
    frame: number;
    whole: DecodeWhole;
    prefetch: number;
  },
): void {
  // A vector, with the parameters of `DecodeVector`, but that `nullAt` is the base, and `powers` the offset of NULL.
  const vectorOf = module.function(["i32", "i32", "i32", "i32", "i32", "i32", "i32"], []);
  decodeVector(vectorOf.code, unpack, frame, whole);
  const { code } = module.function(["i32", "i32", "i32", "f64", "i32", "i32"], ["i32"], "decodeOffsets");
  const [chunk, vector, to, least, offsets, codes] = [0, 1, 2, 3, 4, 5];
  const header = code.local("i32"), prefetched = code.local("i32"), sum = code.local("i32"), base = code.local("i64");
  const missing = code.local("i32");
  code.get(least).op("i64.trunc_sat_f64_s").set(base);
  // 0, or -1 for NULL.
  code.i32(-1).i64(0n).get(base).op("i64.sub").op("i32.wrap_i64");
  code.get(chunk).memory("i32.load8_u", CHUNK_AT.width).i32(4).op("i32.ge_u").op("select").set(missing);
  code.block((done) =>
    code.loop((again) => {
      code.get(vector).get(to).op("i32.ge_u").brIf(done);
      prefetchAhead(code, prefetch, { chunk, vector, to, prefetched, sum });
      pushHeader(code, chunk, vector);
      code.tee(header).get(chunk).get(header).memory("i32.load", AT.data).op("i32.add").get(offsets).i32(VECTOR_ROWS);
      code.get(header).memory("i64.load", AT.base).get(base).op("i64.sub").op("i32.wrap_i64").get(codes);
      code.get(missing).call(vectorOf.index);
      code.get(offsets).i32(4 * VECTOR_ROWS).op("i32.add").set(offsets);
      code.get(vector).i32(1).op("i32.add").set(vector).br(again);
    })
  );
  code.get(sum);
}

function decodeVector(code: Code, unpack: readonly number[], frame: number, whole: DecodeWhole): void {
  const [header, , values, count, base, codes, missing] = [0, 1, 2, 3, 4, 5, 6];
  code.get(header).memory("i32.load8_u", AT.encoding).i32(CONSTANT).op("i32.eq").if(() => {
    const at = code.local("i32"), value = code.local("i32");
    code.get(missing).get(base).get(header).memory("i32.load16_u", AT.nulls).op("select").set(value);
    code.loop((again) => {
      code.get(values).get(at).op("i32.add").get(value).op("i32x4.splat").memory("v128.store");
      code.get(at).i32(16).op("i32.add").tee(at).i32(4 * VECTOR_ROWS).op("i32.lt_u").brIf(again);
    });
    code.return();
  });
  whole(code);
  callUnpack(code, unpack);
  code.get(values).get(count).get(missing).get(base).get(header).memory("i32.load16_u", AT.nulls).op("select").get(
    base,
  );
  code.get(codes).call(frame);
}
