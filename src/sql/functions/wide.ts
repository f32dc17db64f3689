/** Values of more than 64 bits and of types with parameters: nulls, equality and text forms. */
import { Buffer } from "node:buffer";
import { Pace } from "./pace.ts";
import { wordsOf } from "./instant-words.ts";
import { HALF, offsetOf, viewOf, viewsOf } from "./memory-views.ts";
import { writeTexts } from "./text-cast-kernels.ts";
import { layoutOf, LONG_MAX, NULL_I64, typeOf, type Value } from "../../types/mod.ts";
import { arrayText, type ArrayWork, encodeArray, inBrackets, parseArray } from "../../types/array-text.ts";
import { formatValue } from "../../types/format/mod.ts";
import { formatHex } from "../../types/format/numbers.ts";
import { arrayDimensions, geohashBits, parseBinary, parseGeohash, parseLong256 } from "../../types/wide.ts";
import type {
  BatchAggregateState,
  BatchColumn,
  BatchFunction,
  BatchOut,
  FunctionContext,
  FunctionEntry,
} from "./entry.ts";

/** The value of a row as a bigint. */
export function wideValue(column: BatchColumn, row: number): bigint {
  const { values } = column;
  const { width, order } = typeOf(column.type), words = width >>> 3;
  let value = 0n;
  for (let word = words - 1; word >= 0; word--) value = (value << 64n) | BigInt.asUintN(64, values[words * row + word]);
  return order === "unsigned" ? value : BigInt.asIntN(64 * words, value);
}

/** Not of arrays. */
export function textOfWide(column: BatchColumn, row: number): string | undefined {
  if (column.isNull(row)) return undefined;
  return formatValue(wideValue(column, row) as Value, column.type) ?? undefined;
}

const ZERO = "0".charCodeAt(0), LOWER_X = "x".charCodeAt(0), LONG256_WORDS = 8;

/** Does what `formatLong256` does: hexadecimal digits of whole bytes, without leading zero bytes. */
function long256Texts(column: BatchColumn, out: BatchOut, rowCount: number, context: FunctionContext): void {
  const words = wordsOf(column), { low, high } = viewsOf(context.heap.u8);
  for (let row = 0; row < rowCount; row++) {
    if ((row & 4095) === 4095) context.poll();
    if (column.isNull(row)) {
      out.setNull(row);
      continue;
    }
    const first = LONG256_WORDS * row;
    let word = LONG256_WORDS - 1;
    while (word > 0 && words[first + word] === 0) word--;
    const byteCount = 4 * word + Math.max(1, Math.ceil((32 - Math.clz32(words[first + word])) / 8));
    const address = out.placeText(row, 2 + 2 * byteCount), bytes = address < HALF ? low : high;
    const at = address & (HALF - 1);
    bytes[at] = ZERO;
    bytes[at + 1] = LOWER_X;
    formatHex(words, first, byteCount, bytes, at + 2);
  }
}

function arrayWork({ memory, poll }: FunctionContext): ArrayWork {
  return { need: (sizeBytes) => memory.need(sizeBytes), poll };
}

/** Above each LONG. */
const LONG_BOUND = 2 ** 63;
const base = { nulls: "custom", volatility: "immutable" } as const;

/** Compares bits or bytes. Null equals null. */
function equality(whenEqual: boolean): BatchFunction {
  return ([a, b], out, rowCount) => {
    const isText = layoutOf(a.type) === "text";
    for (let row = 0; row < rowCount; row++) {
      const nullA = a.isNull(row), nullB = b.isNull(row);
      let equal = nullA === nullB;
      // Geohashes of different lengths are different, and so are arrays of different dimensions.
      if (equal && !nullA && a.type !== b.type) equal = false;
      else if (equal && !nullA) {
        if (isText) {
          const x = a.bytes(row)!, y = b.bytes(row)!;
          equal = x.length === y.length && x.every((byte, i) => byte === y[i]);
        } else equal = wideValue(a, row) === wideValue(b, row);
      }
      out.values[row] = equal === whenEqual ? 1 : 0;
    }
  };
}

const ORDERS: [name: string, summary: string, holds: (a: bigint, b: bigint) => boolean][] = [
  ["<", "True if the first is less than the second.", (a, b) => a < b],
  ["<=", "True if the first is less than or equal to the second.", (a, b) => a <= b],
  [">", "True if the first is greater than the second.", (a, b) => a > b],
  [">=", "True if the first is greater than or equal to the second.", (a, b) => a >= b],
];

/** Four words for each row, lowest first. */
function setLong256(out: BatchOut, row: number, value: bigint): void {
  for (let word = 0; word < 4; word++) out.values[4 * row + word] = BigInt.asIntN(64, value >> BigInt(64 * word));
}

function setNullLong256(out: BatchOut, row: number): void {
  for (let word = 0; word < 4; word++) out.values[4 * row + word] = NULL_I64;
}

const LONG = (name: string) => ({ name, type: "LONG" });

const long256Functions: FunctionEntry[] = [
  {
    ...base,
    name: "to_uuid",
    args: [LONG("low"), LONG("high")],
    returns: "UUID",
    summary: "The UUID with these halves, the low one first.",
    examples: [{ sql: "to_uuid(1, 0)", gives: "00000000-0000-0000-0000-000000000001" }],
    batch: ([low, high], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        out.values[2 * row] = low.values[row];
        out.values[2 * row + 1] = high.values[row];
      }
    },
  },
  {
    ...base,
    name: "to_long256",
    args: [LONG("l0"), LONG("l1"), LONG("l2"), LONG("l3")],
    returns: "LONG256",
    summary: "A LONG256 of four words, the lowest first.",
    examples: [],
    batch: (words, out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        for (let word = 0; word < 4; word++) out.values[4 * row + word] = words[word].values[row];
      }
    },
  },
  ...["text", "NULL"].map((type): FunctionEntry => ({
    ...base,
    name: "cast_LONG256",
    args: [{ name: "value", type }],
    returns: "LONG256",
    summary: "The LONG256 of a text of 0x and hexadecimal digits. Null for other texts.",
    examples: [],
    batch: ([column], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const text = column.text(row);
        const value = text === undefined ? undefined : parseLong256(text);
        if (value === undefined) setNullLong256(out, row);
        else setLong256(out, row, value);
      }
    },
  })),
  {
    ...base,
    name: "cast_LONG256",
    args: [{ name: "value", type: "BOOLEAN" }],
    returns: "LONG256",
    summary: "1 for true, 0 for false.",
    examples: [],
    batch: ([column], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) setLong256(out, row, BigInt(column.values[row]));
    },
  },
  ...["FLOAT", "DOUBLE"].map((type): FunctionEntry => ({
    ...base,
    name: "cast_LONG256",
    args: [{ name: "value", type }],
    returns: "LONG256",
    summary: "The 64 bits of the value as LONG, without its fraction.",
    examples: [],
    batch: ([column], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const value = column.values[row];
        // The least LONG is NULL.
        if (!(value > -LONG_BOUND)) setNullLong256(out, row);
        else setLong256(out, row, value < LONG_BOUND ? BigInt.asUintN(64, BigInt(Math.trunc(value))) : LONG_MAX);
      }
    },
  })),
  ...["BYTE", "SHORT", "INT", "LONG", "DATE", "TIMESTAMP", "TIMESTAMP_NS"].flatMap((type): FunctionEntry[] => [
    {
      ...base,
      name: "cast_LONG256",
      args: [{ name: "value", type }],
      returns: "LONG256",
      summary: "The 64 bits of the value as LONG256.",
      examples: [],
      batch: ([column], out, rowCount) => {
        const none = typeOf(type).nullable ? typeOf(type).nullValue : undefined;
        for (let row = 0; row < rowCount; row++) {
          const value = column.values[row];
          if (value === none) setNullLong256(out, row);
          else setLong256(out, row, BigInt.asUintN(64, BigInt(value)));
        }
      },
    },
    {
      ...base,
      name: `cast_${type}`,
      args: [{ name: "value", type: "LONG256" }],
      returns: type,
      summary: `The low bits as ${type}.`,
      examples: [],
      batch: ([column], out, rowCount) => {
        for (let row = 0; row < rowCount; row++) {
          if (column.isNull(row)) out.setNull(row);
          else {out.values[row] = typeOf(type).width === 8
              ? column.values[4 * row]
              : Number(BigInt.asIntN(8 * typeOf(type).width, column.values[4 * row]));}
        }
      },
    },
  ]),
];

const WORD_MAX = 1n << 256n;

/** The sum of LONG256s by group, modulo 2^256. */
class Long256Sum implements BatchAggregateState {
  private readonly sums: (bigint | undefined)[] = [];

  update(groups: Int32Array | undefined, [column]: BatchColumn[], rowCount: number): void {
    for (let row = 0; row < rowCount; row++) {
      if (column.isNull(row)) continue;
      const group = groups === undefined ? 0 : groups[row];
      this.sums[group] = ((this.sums[group] ?? 0n) + wideValue(column, row)) % WORD_MAX;
    }
  }

  merge(later: Long256Sum, mapping: Int32Array): void {
    later.sums.forEach((sum, group) => {
      if (sum !== undefined) this.sums[mapping[group]] = ((this.sums[mapping[group]] ?? 0n) + sum) % WORD_MAX;
    });
  }

  finish(out: BatchOut, groupCount: number): void {
    for (let group = 0; group < groupCount; group++) {
      const sum = this.sums[group];
      if (sum === undefined) setNullLong256(out, group);
      else setLong256(out, group, sum);
    }
  }

  sizeBytes(): number {
    return this.sums.length * 64;
  }
}

const long256Sums: FunctionEntry[] = [
  {
    ...base,
    name: "+",
    args: [{ name: "a", type: "LONG256" }, { name: "b", type: "LONG256" }],
    returns: "LONG256",
    summary: "Sum.",
    examples: [],
    batch: ([a, b], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        if (a.isNull(row) || b.isNull(row)) setNullLong256(out, row);
        else setLong256(out, row, (wideValue(a, row) + wideValue(b, row)) % WORD_MAX);
      }
    },
  },
  {
    ...base,
    name: "sum",
    args: [{ name: "value", type: "LONG256" }],
    returns: "LONG256",
    summary: "The sum of the values that are not null. It wraps around on overflow.",
    examples: [],
    aggregate: { kind: "batch", create: () => new Long256Sum() },
  },
];

/** "cast_GEOHASH" and "cast_ARRAY" cast to geohashes and arrays. The result type determines their length. */
const shapedCasts: FunctionEntry[] = [
  {
    ...base,
    name: "cast_GEOHASH",
    args: [{ name: "text", type: "text" }],
    returns: "LONG",
    summary: "The geohash of a text. Null if it has too few or invalid characters.",
    examples: [],
    batch: ([column], out, rowCount) => {
      const bits = geohashBits(out.type)!;
      for (let row = 0; row < rowCount; row++) {
        const text = column.text(row);
        out.values[row] = (text === undefined || text === "" ? undefined : parseGeohash(text, bits)) ?? NULL_I64;
      }
    },
  },
  {
    ...base,
    name: "cast_GEOHASH",
    args: [{ name: "geohash", type: "wide" }],
    returns: "LONG",
    summary: "A geohash truncated to fewer bits.",
    examples: [],
    batch: ([column], out, rowCount) => {
      const lost = BigInt(geohashBits(column.type)! - geohashBits(out.type)!);
      for (let row = 0; row < rowCount; row++) {
        out.values[row] = column.isNull(row) ? NULL_I64 : column.values[row] >> lost;
      }
    },
  },
  {
    ...base,
    name: "cast_GEOHASH",
    args: [{ name: "bits", type: "LONG" }],
    returns: "LONG",
    summary: "The geohash of the low bits of a number. Null for -1.",
    examples: [],
    batch: ([column], out, rowCount) => {
      const bits = geohashBits(out.type)!;
      for (let row = 0; row < rowCount; row++) {
        const value = column.values[row] as bigint;
        out.values[row] = column.isNull(row) || value === -1n ? NULL_I64 : BigInt.asUintN(bits, value);
      }
    },
  },
  {
    ...base,
    name: "cast_ARRAY",
    args: [{ name: "text", type: "text" }],
    returns: "STRING",
    summary: "The array of a text such as {1,2}; null for other texts.",
    examples: [],
    batch: ([column], out, rowCount, context) => {
      const dimensions = arrayDimensions(out.type), work = arrayWork(context);
      for (let row = 0; row < rowCount; row++) {
        const text = column.text(row);
        out.setText(row, text === undefined ? undefined : parseArray(inBrackets(text), dimensions, work));
      }
    },
  },
  {
    ...base,
    name: "cast_ARRAY",
    args: [{ name: "number", type: "DOUBLE" }],
    returns: "STRING",
    summary: "An array of one number.",
    examples: [],
    batch: ([column], out, rowCount) => {
      const shape = Array(arrayDimensions(out.type)).fill(1);
      for (let row = 0; row < rowCount; row++) {
        const value = column.values[row] as number;
        out.setText(row, Number.isNaN(value) ? undefined : encodeArray(shape, Float64Array.of(value)));
      }
    },
  },
  {
    ...base,
    name: "cast_ARRAY",
    args: [{ name: "array", type: "array" }],
    returns: "STRING",
    summary: "The array with more dimensions, of length 1.",
    examples: [],
    batch: ([column], out, rowCount) => {
      const added = arrayDimensions(out.type) - arrayDimensions(column.type);
      for (let row = 0; row < rowCount; row++) {
        const bytes = column.bytes(row);
        if (bytes === undefined) {
          out.setNull(row);
          continue;
        }
        // The number of dimensions, then the length of each, then the elements.
        const made = out.makeText(row, bytes.length + 4 * added);
        made.set(new Uint8Array(Uint32Array.of(arrayDimensions(out.type), ...Array(added).fill(1)).buffer));
        made.set(bytes.subarray(4), 4 + 4 * added);
      }
    },
  },
];

function equalBytes(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

/** The value of each byte in base 64, in both alphabets. 255 marks other bytes. */
const BASE64 = new Uint8Array(256).fill(255);
[..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].forEach((digit, value) =>
  BASE64[digit.charCodeAt(0)] = value
);
BASE64[45] = 62; // -
BASE64[95] = 63; // _
const EQUALS = 61;

/** Decodes up to the first `=`, skipping other characters. `make` allocates the result. */
function fromBase64(
  memory: Uint8Array,
  from: number,
  to: number,
  pace: Pace,
  make: (size: number) => Uint8Array,
): void {
  let digits = 0, end = from;
  for (let until = from; end === until && end < to;) {
    until = Math.min(to, end + BASE64_PIECE);
    pace.spend(16 + until - end);
    for (; end < until && memory[end] !== EQUALS; end++) if (BASE64[memory[end]] !== 255) digits++;
  }
  const bytes = make(Math.floor(digits * 6 / 8));
  let bits = 0, value = 0, at = 0;
  for (let i = from; i < end;) {
    const until = Math.min(end, i + BASE64_PIECE);
    pace.spend(16 + until - i);
    for (; i < until; i++) {
      const digit = BASE64[memory[i]];
      if (digit === 255) continue;
      value = (value << 6 | digit) & 0xffff;
      bits += 6;
      if (bits < 8) continue;
      bits -= 8;
      bytes[at++] = value >> bits;
    }
  }
}

/** Characters that are read between two polls. */
const BASE64_PIECE = 65_536;

const binaryFunctions: FunctionEntry[] = [
  {
    ...base,
    name: "length",
    args: [{ name: "bytes", type: "BINARY" }],
    returns: "LONG",
    summary: "The number of bytes; -1 for null.",
    examples: [],
    batch: ([column], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) out.values[row] = BigInt(column.values[2 * row + 1]);
    },
  },
  ...(["=", "!="] as const).map((name): FunctionEntry => ({
    ...base,
    name,
    args: [{ name: "a", type: "BINARY" }, { name: "b", type: "BINARY" }],
    returns: "BOOLEAN",
    summary: name === "=" ? "True if the bytes are equal." : "True if the bytes differ.",
    examples: [],
    batch: ([a, b], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const isEqual = equalBytes(a.bytes(row), b.bytes(row));
        out.values[row] = isEqual === (name === "=") ? 1 : 0;
      }
    },
  })),
  {
    ...base,
    name: "cast_BINARY",
    args: [{ name: "text", type: "text" }],
    returns: "BINARY",
    summary: "The bytes of PostgreSQL's text form of a bytea. Null for other texts.",
    examples: [],
    batch: ([column], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const text = column.text(row);
        out.setText(row, text === undefined ? undefined : parseBinary(text));
      }
    },
  },
  {
    ...base,
    name: "from_base64",
    args: [{ name: "text", type: "text" }],
    returns: "BINARY",
    summary: "The bytes of a text in base 64.",
    examples: [],
    batch: ([column], out, rowCount, context) => {
      const views = viewsOf(context.heap.u8);
      const pace = new Pace(context);
      for (let row = 0; row < rowCount; row++) {
        const length = column.values[2 * row + 1];
        if (length < 0) {
          out.setNull(row);
          continue;
        }
        const from = offsetOf(column, row);
        fromBase64(viewOf(views, column, row), from, from + length, pace, (size) => out.makeText(row, size));
      }
    },
  },
  {
    ...base,
    name: "base64",
    args: [{ name: "bytes", type: "BINARY" }, { name: "maximum", type: "INT" }],
    returns: "STRING",
    summary: "The first `maximum` bytes, in base 64.",
    examples: [],
    batch: ([column, maxima], out, rowCount, context) => {
      const pace = new Pace(context);
      for (let row = 0; row < rowCount; row++) {
        const bytes = column.bytes(row)?.subarray(0, Math.max(0, maxima.values[row]));
        if (bytes !== undefined) context.memory.need(4 * bytes.length);
        out.setText(row, bytes === undefined ? undefined : Buffer.from(bytes).toString("base64"));
        pace.spend(64 + (bytes?.length ?? 0));
      }
    },
  },
];

const dimensionsOf = (type: string): number | undefined => arrayDimensions(type) || undefined;

const sameTypes: FunctionEntry["check"] = (_, types) =>
  types[0] === types[1] ||
    [geohashBits, dimensionsOf].some((kind) => types.every((type) => kind(type) !== undefined))
    ? undefined
    : { message: `${types[0]} and ${types[1]} cannot be compared` };

export const wideFunctions: FunctionEntry[] = [
  ...long256Functions,
  ...long256Sums,
  ...shapedCasts,
  ...binaryFunctions,
  ...["=", "!="].map((name): FunctionEntry => ({
    ...base,
    name,
    args: [{ name: "a", type: "wide" }, { name: "b", type: "wide" }],
    returns: "BOOLEAN",
    summary: name === "=" ? "True if both are equal. Null equals null." : "True if both differ.",
    examples: [],
    check: sameTypes,
    batch: equality(name === "="),
  })),
  ...ORDERS.map(([name, summary, holds]): FunctionEntry => ({
    ...base,
    name,
    args: [{ name: "a", type: "LONG256" }, { name: "b", type: "LONG256" }],
    returns: "BOOLEAN",
    summary,
    examples: [],
    batch: ([a, b], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const isThere = !a.isNull(row) && !b.isNull(row);
        out.values[row] = isThere && holds(wideValue(a, row), wideValue(b, row)) ? 1 : 0;
      }
    },
  })),
  ...[["STRING", "STRING"], ["VARCHAR", "VARCHAR"]].map(([to, returns]): FunctionEntry => ({
    ...base,
    name: `cast_${to}`,
    args: [{ name: "value", type: "wide" }],
    returns,
    summary: `The value as ${to}.`,
    examples: [],
    check: (_, types) => (types[0] === "BINARY" ? { message: `BINARY has no ${to}` } : undefined),
    batch: ([column], out, rowCount, context) => {
      if (column.type === "LONG256") return long256Texts(column, out, rowCount, context);
      const isArray = arrayDimensions(column.type) > 0, work = arrayWork(context);
      const arrayAt = (row: number) => {
        const array = column.bytes(row);
        return array && arrayText(array, work);
      };
      const one = (row: number) => out.setText(row, isArray ? arrayAt(row) : textOfWide(column, row));
      writeTexts(column, out, rowCount, context, one);
    },
  })),
];
