/**
 * Conversion of stored values to column values: one entry for each pair of a stored form and a type. Pages are first decoded to
 * plain values; a conversion then turns a whole page or dictionary of them into words of the column's layout.
 */
import { decimalOf, formatDecimal } from "../../types/wide.ts";
import { ParquetError } from "./error.ts";

/** Values without nulls: numbers of 1 or 2 bytes, or the i32 words of wider ones. */
export type Values = Int8Array | Int16Array | Int32Array;

export type Conversion =
  /** BOOLEAN: one bit each. */
  | { stored: "bits" }
  /** Values of a fixed size. `bytes` has a buffer of its own. */
  | {
    stored: "fixed";
    sizeBytes: number;
    /** INT32 or INT64, which may be delta-encoded. */
    isInteger: boolean;
    convert(bytes: Uint8Array<ArrayBuffer>, count: number): Values;
  }
  /** Bytes: pairs of address and length, as in text columns. */
  | {
    stored: "bytes";
    /** 0: each value is preceded by its length. */
    sizeBytes: number;
    /** Converts pairs of addresses in `u8` to other values. */
    convert?(u8: Uint8Array, pairs: Int32Array, count: number): Values;
  };

export const BITS: Conversion = { stored: "bits" };
export const TEXT: Conversion = { stored: "bytes", sizeBytes: 0 };
export const fixedBytes = (sizeBytes: number): Conversion => ({ stored: "bytes", sizeBytes });

const wordsOf = (bytes: Uint8Array<ArrayBuffer>) =>
  new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >>> 2);

function fixed(
  sizeBytes: number,
  isInteger: boolean,
  convert: (words: Int32Array, count: number) => Values,
): Conversion {
  return { stored: "fixed", sizeBytes, isInteger, convert: (bytes, count) => convert(wordsOf(bytes), count) };
}

const same = (words: Int32Array) => words;

export const I32 = fixed(4, true, same);
export const I32_TO_I8 = fixed(4, true, (words) => Int8Array.from(words));
export const I32_TO_I16 = fixed(4, true, (words) => Int16Array.from(words));
export const U32_TO_I64 = fixed(4, true, (words, count) => widened(words, count, false));
export const I64 = fixed(8, true, same);
export const F32 = fixed(4, false, same);
export const F64 = fixed(8, false, same);

function widened(words: Int32Array, count: number, isSigned: boolean): Int32Array {
  const out = new Int32Array(count * 2);
  for (let i = 0; i < count; i++) {
    out[i * 2] = words[i];
    out[i * 2 + 1] = isSigned ? words[i] >> 31 : 0;
  }
  return out;
}

/** Days since 1970 to milliseconds. */
export const DAYS = fixed(4, true, (words, count) => {
  const out = new Int32Array(count * 2);
  for (let i = 0; i < count; i++) {
    const milliseconds = words[i] * 86_400_000;
    out[i * 2] = milliseconds;
    out[i * 2 + 1] = Math.floor(milliseconds / 4294967296);
  }
  return out;
});

/** Nanoseconds of the day (64 bits) and the Julian day, to microseconds since 1970. */
export const INT96 = fixed(12, false, (words, count) => {
  const out = new Int32Array(count * 2);
  for (let i = 0; i < count; i++) {
    const nanos = (words[i * 3] >>> 0) + words[i * 3 + 1] * 4294967296;
    const micros = (words[i * 3 + 2] - 2_440_588) * 86_400_000_000 + Math.floor(nanos / 1_000);
    out[i * 2] = micros % 4294967296;
    out[i * 2 + 1] = Math.floor(micros / 4294967296);
  }
  return out;
});

/** Most significant byte first, to words with the lowest first. */
export const UUID = fixed(16, false, (words, count) => {
  const out = new Int32Array(count * 4);
  for (let i = 0; i < count; i++) {
    for (let k = 0; k < 4; k++) {
      const word = words[i * 4 + 3 - k];
      out[i * 4 + k] = (word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);
    }
  }
  return out;
});

/** Least significant byte first, as in a column. */
export const LONG256 = fixed(32, false, same);

/** Two halves in the low and high 16 bits of a word. */
export const F16: Conversion = {
  stored: "fixed",
  sizeBytes: 2,
  isInteger: false,
  convert: (bytes, count) => new Int32Array(floats(halves(bytes, count)).buffer),
};

const floats = (values: Float64Array) => Float32Array.from(values);

function halves(bytes: Uint8Array, count: number): Float64Array {
  const out = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const half = bytes[i * 2] | (bytes[i * 2 + 1] << 8);
    const exponent = (half >>> 10) & 31, fraction = half & 1023, sign = half & 0x8000 ? -1 : 1;
    out[i] = sign *
      (exponent === 0
        ? fraction * 2 ** -24
        : exponent === 31
        ? (fraction === 0 ? Infinity : NaN)
        : (1 + fraction / 1024) * 2 ** (exponent - 15));
  }
  return out;
}

/** An integer in 0 … 2^bits - 1. */
export function geohash(sizeBytes: 4 | 8, bits: number): Conversion {
  return fixed(sizeBytes, true, (words, count) => {
    const out = sizeBytes === 8 ? words : widened(words, count, true);
    const highBits = Math.max(0, bits - 32), lowBits = Math.min(32, bits);
    for (let i = 0; i < count; i++) {
      const low = out[i * 2] >>> 0, high = out[i * 2 + 1] >>> 0;
      if (high >= 2 ** highBits || low >= 2 ** lowBits) throw new ParquetError(`a value has more than ${bits} bits`);
    }
    return out;
  });
}

export type DecimalSource = "i32" | "i64" | "u64" | "bytes" | number;

/** `source`: INT32, INT64, unsigned INT64, BYTE_ARRAY, or the size of FIXED_LEN_BYTE_ARRAY. */
export function decimal(tag: string, source: DecimalSource): Conversion {
  const { precision } = decimalOf(tag)!;
  const width = precision <= 18 ? 2 : precision <= 38 ? 4 : 8;
  const check = digitCheck(tag, precision, width);
  if (source === "bytes") {
    return {
      stored: "bytes",
      sizeBytes: 0,
      convert(u8, pairs, count) {
        const out = new Int32Array(count * width);
        for (let i = 0; i < count; i++) {
          const length = pairs[i * 2 + 1];
          fromBigEndian(u8, pairs[i * 2] >>> 0, length, out, i * width, width, tag);
        }
        return check(out, count);
      },
    };
  }
  if (typeof source === "number") {
    return {
      stored: "fixed",
      sizeBytes: source,
      isInteger: false,
      convert(bytes, count) {
        const out = new Int32Array(count * width);
        for (let i = 0; i < count; i++) fromBigEndian(bytes, i * source, source, out, i * width, width, tag);
        return check(out, count);
      },
    };
  }
  const from = source === "i32" ? 1 : 2;
  return fixed(from * 4, true, (words, count) => {
    const out = new Int32Array(count * width);
    for (let i = 0; i < count; i++) {
      const sign = source === "u64" ? 0 : words[i * from + from - 1] >> 31;
      for (let k = 0; k < width; k++) out[i * width + k] = k < from ? words[i * from + k] : sign;
    }
    return check(out, count);
  });
}

/** Converts two's complement, most significant byte first, to `width` words, lowest first. */
function fromBigEndian(
  bytes: Uint8Array,
  at: number,
  length: number,
  out: Int32Array,
  to: number,
  width: number,
  tag: string,
): void {
  const sign = length > 0 ? (bytes[at] << 24) >> 31 : 0;
  for (let k = 0; k < width; k++) {
    let word = 0;
    for (let b = 0; b < 4; b++) {
      const place = length - 1 - (k * 4 + b);
      word |= (place >= 0 ? bytes[at + place] : sign & 255) << (8 * b);
    }
    out[to + k] = word;
  }
  // Bytes beyond the column's width must repeat the sign.
  for (let k = 0; k < length - width * 4; k++) if (bytes[at + k] !== (sign & 255)) throw tooManyDigits(tag);
  if (length > width * 4 && out[to + width - 1] >> 31 !== sign) throw tooManyDigits(tag);
}

const tooManyDigits = (tag: string) => new ParquetError(`a value has too many digits for ${tag}`);

/** Refuses values with more digits than the type has. */
function digitCheck(tag: string, precision: number, width: number): (out: Int32Array, count: number) => Int32Array {
  const limit = 10n ** BigInt(precision);
  const word = (value: bigint, k: number) => Number(BigInt.asUintN(32, value >> BigInt(32 * k)));
  const limits = Array.from({ length: width }, (_, k) => word(limit, k));
  const negative = Array.from({ length: width }, (_, k) => word(-limit, k));
  return (out, count) => {
    for (let i = 0, top = width - 1; i < count; i++, top += width) {
      const isNegative = out[top] < 0, bound = isNegative ? negative : limits;
      // The highest word that differs from the bound decides.
      let k = width - 1;
      while (k >= 0 && (out[top - width + 1 + k] >>> 0) === bound[k]) k--;
      const isAbove = k >= 0 && (out[top - width + 1 + k] >>> 0) > bound[k];
      if (k < 0 || isAbove !== isNegative) throw tooManyDigits(tag);
    }
    return out;
  };
}

/** Converts numbers to words of DOUBLE, for the elements of arrays. */
export function toDouble(
  conversion: Conversion,
  kind: "i32" | "u32" | "i64" | "u64" | "f16" | "f32" | "f64" | "decimal",
  tag = "",
): Conversion {
  const numbers = (values: ArrayLike<number>) => new Int32Array(Float64Array.from(values).buffer);
  if (conversion.stored === "bytes") {
    return {
      ...conversion,
      convert: (u8, pairs, count) => decimalsToDoubles(conversion.convert!(u8, pairs, count) as Int32Array, count, tag),
    };
  }
  if (conversion.stored === "bits") return conversion;
  return {
    ...conversion,
    convert(bytes: Uint8Array<ArrayBuffer>, count: number): Values {
      const words = wordsOf(bytes);
      switch (kind) {
        case "i32":
          return numbers(words.subarray(0, count));
        case "u32":
          return numbers(new Uint32Array(words.buffer, words.byteOffset, count));
        case "f32":
          return numbers(new Float32Array(words.buffer, words.byteOffset, count));
        case "f16":
          return new Int32Array(halves(bytes, count).buffer);
        case "f64":
          return words;
        case "i64":
        case "u64":
          return numbers(exactNumbers(words, count, kind === "i64"));
        case "decimal":
          return decimalsToDoubles(conversion.convert(bytes, count) as Int32Array, count, tag);
      }
    },
  };
}

/** @throws for an integer that DOUBLE would round. */
function exactNumbers(words: Int32Array, count: number, isSigned: boolean): Float64Array {
  const out = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const low = words[i * 2] >>> 0, high = isSigned ? words[i * 2 + 1] : words[i * 2 + 1] >>> 0;
    const value = high * 4294967296 + low;
    if (!Number.isSafeInteger(value)) {
      const exact = (BigInt(high) << 32n) | BigInt(low);
      if (BigInt(value) !== exact) {
        throw new ParquetError(`a list contains ${exact}, which DOUBLE, the type of array elements, would round`);
      }
    }
    out[i] = value;
  }
  return out;
}

function decimalsToDoubles(words: Int32Array, count: number, tag: string): Int32Array {
  const { scale } = decimalOf(tag)!, width = count === 0 ? 1 : words.length / count;
  const out = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    let value = BigInt(words[i * width + width - 1]);
    for (let k = width - 2; k >= 0; k--) value = (value << 32n) | BigInt(words[i * width + k] >>> 0);
    out[i] = Number(formatDecimal(value, scale));
  }
  return new Int32Array(out.buffer);
}
