/** Writers for types with parameters and for wide values; see `types.ts` for the contract. */
import { LONG_TEXT_BYTES, pollQuery } from "../../engine/long-texts.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import { type ArrayMarks, encodeArray, hasElements, PG_MARKS, writeArray } from "../../types/array-text.ts";
import { copyAscii } from "../../types/format/mod.ts";
import {
  arrayDimensions,
  decimalOf,
  formatDecimal,
  formatGeohash,
  formatLong256,
  geohashBits,
} from "../../types/wide.ts";
import type { ByteSink } from "./sink.ts";
import type { TypeForms, ValueForm, ValueWriter, WriterFactory } from "./forms.ts";

const NULL = -1;

type Read = (heap: SharedHeap, index: number) => bigint | undefined;

/**
 * A signed integer of `words` i64 words at row `index`, lowest word first; undefined for null (every word is the
 * smallest i64).
 */
const wide = (words: number, signed: boolean): Read => (heap, index) => {
  let value = 0n, isNull = true;
  for (let k = words - 1; k >= 0; k--) {
    const word = heap.i64[index * words + k];
    if (word !== -9223372036854775808n) isNull = false;
    value = (value << 64n) | BigInt.asUintN(64, word);
  }
  if (isNull) return undefined;
  return signed ? BigInt.asIntN(64 * words, value) : value;
};

/** Writes a value as ASCII text. */
const printed =
  (widthBytes: number, read: Read, print: (value: bigint) => string) =>
  (heap: SharedHeap, sink: ByteSink): ValueWriter => {
    let base = 0;
    return {
      bind: (vector) => base = vector.address / widthBytes,
      write: (row, at) => {
        const value = read(heap, base + row);
        return value === undefined ? NULL : copyAscii(print(value), sink.bytes, at);
      },
    };
  };

/** Writes the bytes of a row of text layout, as `put` converts them. */
const bytesPrinted = (put: (bytes: Uint8Array, sink: ByteSink, at: number) => number) =>
(
  heap: SharedHeap,
  sink: ByteSink,
): ValueWriter => {
  let base = 0;
  return {
    bind: (vector) => base = vector.address >>> 2,
    write: (row, at) => {
      const length = heap.i32[base + 2 * row + 1];
      if (length < 0) return NULL;
      const address = heap.u32[base + 2 * row];
      return put(heap.u8.subarray(address, address + length), sink, at);
    },
  };
};

function putBytes(bytes: Uint8Array, sink: ByteSink, at: number): number {
  sink.ensure(at + bytes.length).set(bytes, at);
  return at + bytes.length;
}

/** `\x00ff`, in steps with polls. */
function putHex(bytes: Uint8Array, sink: ByteSink, at: number): number {
  const target = sink.ensure(at + 2 + 2 * bytes.length);
  at = copyAscii("\\x", target, at);
  for (let from = 0; from < bytes.length; from += LONG_TEXT_BYTES) {
    at = copyAscii(bytes.subarray(from, from + LONG_TEXT_BYTES).toHex(), target, at);
    pollQuery();
  }
  return at;
}

/**
 * `[1.0,null]`, or with other brackets. Arrays can have millions of elements, so they are written in place, and the
 * query is polled.
 */
const arrayPrinted = (marks?: ArrayMarks) => (heap: SharedHeap, sink: ByteSink): ValueWriter => {
  let base = 0;
  const reserve = (sizeBytes: number) => {
    pollQuery();
    return sink.ensure(sizeBytes);
  };
  return {
    bind: (vector) => base = vector.address >>> 2,
    write: (row, at) => {
      const length = heap.i32[base + 2 * row + 1];
      if (length < 0) return NULL;
      const address = heap.u32[base + 2 * row];
      return writeArray(heap.u8.subarray(address, address + length), reserve, at, marks);
    },
  };
};

/** PostgreSQL's binary form of an array without elements has no dimensions of its own. */
const NO_ELEMENTS = encodeArray([0], new Float64Array(0));

const FLOAT8_OID = 701;
const ELEMENTS_A_POLL = LONG_TEXT_BYTES / 8;

/**
 * Number of dimensions, a flag for nulls, the element type, each dimension's length and lower bound, the elements with
 * their sizes.
 */
function putPgArray(array: Uint8Array, sink: ByteSink, at: number): number {
  const bytes = hasElements(array) ? array : NO_ELEMENTS;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const dimensions = view.getUint32(0, true);
  const lengths = Array.from({ length: dimensions }, (_, k) => view.getUint32(4 + 4 * k, true));
  const count = lengths.reduce((product, length) => product * length, 1), first = 4 + 4 * dimensions;
  const valueAt = (k: number) => {
    if (k % ELEMENTS_A_POLL === 0) pollQuery();
    return view.getFloat64(first + 8 * k, true);
  };
  let nulls = 0;
  for (let k = 0; k < count; k++) if (Number.isNaN(valueAt(k))) nulls++;
  const target = sink.ensure(at + 12 + 8 * dimensions + 12 * count - 8 * nulls);
  const out = new DataView(target.buffer);
  out.setInt32(at, dimensions);
  out.setInt32(at + 4, nulls > 0 ? 1 : 0);
  out.setInt32(at + 8, FLOAT8_OID);
  at += 12;
  for (const length of lengths) {
    out.setInt32(at, length);
    out.setInt32(at + 4, 1);
    at += 8;
  }
  for (let k = 0; k < count; k++) {
    const value = valueAt(k);
    out.setInt32(at, Number.isNaN(value) ? -1 : 8);
    at += 4;
    if (Number.isNaN(value)) continue;
    out.setFloat64(at, value);
    at += 8;
  }
  return at;
}

/** Digits in base 10,000: count, weight of the first, sign, scale, digits; all i16. */
function pgNumeric(scaled: bigint, scale: number): Uint8Array {
  const aligned = (scaled < 0n ? -scaled : scaled) * 10n ** BigInt((4 - scale % 4) % 4);
  const fractionDigits = Math.ceil(scale / 4);
  const digits: number[] = [];
  for (let rest = aligned; rest > 0n; rest /= 10_000n) digits.unshift(Number(rest % 10_000n));
  const weight = digits.length - fractionDigits - 1;
  while (digits.length > 0 && digits[digits.length - 1] === 0) digits.pop();
  const out = new DataView(new ArrayBuffer(8 + 2 * digits.length));
  out.setInt16(0, digits.length);
  out.setInt16(2, digits.length === 0 ? 0 : weight);
  out.setUint16(4, scaled < 0n ? 0x4000 : 0);
  out.setInt16(6, scale);
  digits.forEach((digit, k) => out.setInt16(8 + 2 * k, digit));
  return new Uint8Array(out.buffer);
}

const numericBinary =
  (widthBytes: number, read: Read, scale: number) => (heap: SharedHeap, sink: ByteSink): ValueWriter => {
    let base = 0;
    return {
      bind: (vector) => base = vector.address / widthBytes,
      write: (row, at) => {
        const value = read(heap, base + row);
        if (value === undefined) return NULL;
        const out = pgNumeric(value, scale);
        sink.bytes.set(out, at);
        return at + out.length;
      },
    };
  };

/** The row kernel writes none of these. */
const written = (writer: WriterFactory): ValueForm => ({ operation: "other", writer });

const bare = { jsonQuoted: false, jsonNull: "null", csvQuoted: false, csvNull: "" };
const long256 = written(printed(32, wide(4, false), formatLong256));

export const LONG256_FORMS: TypeForms = {
  ...bare,
  jsonQuoted: true,
  jsonNull: '""',
  text: long256,
  pgBinary: long256,
  maxBytes: 66,
};

/** JSON and CSV do not show the bytes. */
export const BINARY_FORMS: TypeForms = {
  ...bare,
  jsonNull: "[]",
  text: written(() => ({ bind: () => {}, write: () => NULL })),
  pgText: written(bytesPrinted(putHex)),
  pgBinary: written(bytesPrinted(putBytes)),
  maxBytes: 8,
};

/** Forms of types with parameters; undefined for all others. */
export function parametrisedForms(tag: string): TypeForms | undefined {
  const decimal = decimalOf(tag);
  if (decimal) {
    const words = decimal.precision <= 18 ? 1 : decimal.precision <= 38 ? 2 : 4;
    const read = wide(words, true);
    const text = written(printed(8 * words, read, (value) => formatDecimal(value, decimal.scale)));
    return {
      ...bare,
      jsonQuoted: true,
      csvQuoted: true,
      csvNull: "null",
      text,
      pgBinary: written(numericBinary(8 * words, read, decimal.scale)),
      maxBytes: 96,
    };
  }
  const bits = geohashBits(tag);
  if (bits !== undefined) {
    const text = written(printed(8, wide(1, true), (value) => formatGeohash(value, bits)));
    return { ...bare, jsonQuoted: true, csvQuoted: true, csvNull: "null", text, pgBinary: text, maxBytes: 64 };
  }
  if (arrayDimensions(tag) > 0) {
    const text = written(arrayPrinted());
    return {
      ...bare,
      csvQuoted: true,
      csvNull: '"null"',
      text,
      pgText: written(arrayPrinted(PG_MARKS)),
      pgBinary: written(bytesPrinted(putPgArray)),
      maxBytes: 8,
    };
  }
  return undefined;
}
