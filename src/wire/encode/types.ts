/**
 * Writers for each column type: as text (JSON, CSV, PostgreSQL's text format) and in PostgreSQL's binary format. There
 * is one entry for each type tag. A type without an entry cannot be a result.
 *
 * A writer is made once for each result column and bound to each batch's vector. It writes the value of a row without
 * quotes and returns the end, or -1 for NULL. Fixed-size values take at most `maxBytes`, which the caller has reserved.
 * Text writers reserve space themselves.
 */
import { LONG_TEXT_BYTES, pollQuery } from "../../engine/mod.ts";
import { notSupported } from "../../errors.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import {
  copyAscii,
  formatDate,
  formatDouble,
  formatFloat,
  formatInt,
  formatIPv4,
  formatLong,
  formatNanos,
  formatTimestampMicros,
  formatUuid,
} from "../../types/format/mod.ts";
import type { Escape, TypeForms, ValueWriter, WriterFactory } from "./forms.ts";
import type { ByteSink } from "./sink.ts";
import { BINARY_FORMS, LONG256_FORMS, parametrisedForms } from "./wide.ts";

const NULL = -1;
const TWO_32 = 4294967296;
/** A 64-bit integer is exact as a double if its high word is in [-SAFE_HIGH, SAFE_HIGH). */
const SAFE_HIGH = 1 << 21;
const BLANK = 0x20, LETTER_Z = 0x5a;
const EPOCH_2000_MICROS = 946_684_800_000_000;

/** A writer over one typed array of the heap: `shift` is log2 of the bytes for each row. */
function scalar(shift: number, write: (index: number, at: number) => number): ValueWriter {
  let base = 0;
  return {
    // By a shift, because a quotient would be a number on the heap.
    bind: (vector) => base = vector.address >>> shift,
    write: (row, at) => write(base + row, at),
  };
}

const booleanText: WriterFactory = (heap, sink) =>
  scalar(0, (index, at) => copyAscii(heap.i8[index] !== 0 ? "true" : "false", sink.bytes, at));
const booleanLetter: WriterFactory = (heap, sink) =>
  scalar(0, (index, at) => {
    sink.bytes[at] = heap.i8[index] !== 0 ? 0x74 : 0x66;
    return at + 1;
  });
const booleanBinary: WriterFactory = (heap, sink) =>
  scalar(0, (index, at) => {
    sink.bytes[at] = heap.i8[index] !== 0 ? 1 : 0;
    return at + 1;
  });

const byteText: WriterFactory = (heap, sink) => scalar(0, (index, at) => formatInt(heap.i8[index], sink.bytes, at));
const byteBinary: WriterFactory = (heap, sink) => scalar(0, (index, at) => writeInt16(heap.i8[index], sink.bytes, at));
const shortText: WriterFactory = (heap, sink) => scalar(1, (index, at) => formatInt(heap.i16[index], sink.bytes, at));
const shortBinary: WriterFactory = (heap, sink) =>
  scalar(1, (index, at) => writeInt16(heap.i16[index], sink.bytes, at));

const charText: WriterFactory = (heap, sink, escape) =>
  scalar(1, (index, at) => {
    const unit = heap.u16[index];
    if (unit === 0) return NULL;
    const bytes = sink.bytes;
    if (unit < 0x80) {
      // CSV never quotes a CHAR, so it is not escaped either.
      if (escape === "json" && MUST_ESCAPE[unit] !== 0) return writeEscape(unit, escape, bytes, at);
      bytes[at] = unit;
      return at + 1;
    }
    if (unit < 0x800) {
      bytes[at] = 0xc0 | (unit >> 6);
      bytes[at + 1] = 0x80 | (unit & 0x3f);
      return at + 2;
    }
    // Half of a surrogate pair has no UTF-8 form.
    const code = unit >= 0xd800 && unit < 0xe000 ? 0xfffd : unit;
    bytes[at] = 0xe0 | (code >> 12);
    bytes[at + 1] = 0x80 | ((code >> 6) & 0x3f);
    bytes[at + 2] = 0x80 | (code & 0x3f);
    return at + 3;
  });

const intText: WriterFactory = (heap, sink) =>
  scalar(2, (index, at) => {
    const value = heap.i32[index];
    return value === -2147483648 ? NULL : formatInt(value, sink.bytes, at);
  });
const intBinary: WriterFactory = (heap, sink) =>
  scalar(2, (index, at) => {
    const value = heap.i32[index];
    return value === -2147483648 ? NULL : writeInt32(value, sink.bytes, at);
  });

const isNull64 = (heap: SharedHeap, index: number) =>
  heap.i32[index * 2 + 1] === -2147483648 && heap.i32[index * 2] === 0;

const longText: WriterFactory = (heap, sink) =>
  scalar(
    3,
    (index, at) =>
      isNull64(heap, index) ? NULL : formatLong(heap.i32[index * 2], heap.i32[index * 2 + 1], sink.bytes, at),
  );
const longBinary: WriterFactory = (heap, sink) =>
  scalar(3, (index, at) => {
    if (isNull64(heap, index)) return NULL;
    writeInt32(heap.i32[index * 2 + 1], sink.bytes, at);
    return writeInt32(heap.i32[index * 2], sink.bytes, at + 4);
  });

const isFiniteNumber = (value: number) => value - value === 0;

const floatText: WriterFactory = (heap, sink) =>
  scalar(2, (index, at) => {
    const value = heap.f32[index];
    return isFiniteNumber(value) ? formatFloat(value, sink.bytes, at) : NULL;
  });
const floatBinary: WriterFactory = (heap, sink) =>
  scalar(2, (index, at) => isFiniteNumber(heap.f32[index]) ? writeInt32(heap.i32[index], sink.bytes, at) : NULL);
const doubleText: WriterFactory = (heap, sink) =>
  scalar(3, (index, at) => {
    const value = heap.f64[index];
    return isFiniteNumber(value) ? formatDouble(value, sink.bytes, at) : NULL;
  });
const doubleBinary: WriterFactory = (heap, sink) =>
  scalar(3, (index, at) => {
    if (!isFiniteNumber(heap.f64[index])) return NULL;
    writeInt32(heap.i32[index * 2 + 1], sink.bytes, at);
    return writeInt32(heap.i32[index * 2], sink.bytes, at + 4);
  });

type InstantFormat = (low: number, high: number, bytes: Uint8Array, at: number) => number;

function instantText(format: InstantFormat): WriterFactory {
  return (heap, sink) =>
    scalar(
      3,
      (index, at) =>
        isNull64(heap, index) ? NULL : format(heap.i32[index * 2], heap.i32[index * 2 + 1], sink.bytes, at),
    );
}

/**
 * `…T10:20:30.123456Z` in PostgreSQL's form, with a blank and without the zone. `digits`: number of fraction digits.
 */
function pgInstant(format: InstantFormat, digits: number): InstantFormat {
  const timeBytes = "T10:20:30.Z".length + digits;
  return (low, high, bytes, at) => {
    const end = format(low, high, bytes, at);
    bytes[end - timeBytes] = BLANK;
    return end - 1;
  };
}

export const pgTimestamp = pgInstant(formatTimestampMicros, 6);

/** Truncated to microseconds, as PostgreSQL's type has no more. */
const pgNanos: InstantFormat = (low, high, bytes, at) => pgInstant(formatNanos, 9)(low, high, bytes, at) - 3;

/** Microseconds since 2000. `isMicros`: the column is in microseconds, so that most values need no BigInt. */
function instantBinary(toMicros: (value: bigint) => bigint, isMicros: boolean): WriterFactory {
  return (heap, sink) =>
    scalar(3, (index, at) => {
      const high = heap.i32[index * 2 + 1];
      if (isMicros && high >= -SAFE_HIGH && high < SAFE_HIGH) {
        const micros = high * TWO_32 + heap.u32[index * 2] - EPOCH_2000_MICROS;
        const upper = Math.floor(micros / TWO_32);
        writeInt32(upper, sink.bytes, at);
        return writeInt32(micros - upper * TWO_32, sink.bytes, at + 4);
      }
      if (isNull64(heap, index)) return NULL;
      const exact = toMicros(heap.i64[index]) - BigInt(EPOCH_2000_MICROS);
      writeInt32(Number(BigInt.asIntN(32, exact >> 32n)), sink.bytes, at);
      return writeInt32(Number(BigInt.asIntN(32, exact)), sink.bytes, at + 4);
    });
}

/** Text pairs: address and length of the bytes. */
const text: WriterFactory = (heap, sink, escape) => {
  let base = 0;
  return {
    bind: (vector) => base = vector.address / 4,
    write(row, at) {
      const pair = base + row * 2;
      const length = heap.i32[pair + 1];
      return length < 0 ? NULL : writeText(heap.u8, heap.u32[pair], length, sink, escape, at);
    },
  };
};

const symbol: WriterFactory = (heap, sink, escape) => {
  let base = 0, entries = 0;
  return {
    bind(vector) {
      base = vector.address / 4;
      entries = (vector.dictionary?.entries ?? 0) / 4;
    },
    write(row, at) {
      const code = heap.i32[base + row];
      if (code < 0) return NULL;
      const pair = entries + code * 2;
      return writeText(heap.u8, heap.u32[pair], heap.i32[pair + 1], sink, escape, at);
    },
  };
};

const HEX = [..."0123456789abcdef"].map((digit) => digit.charCodeAt(0));

const uuidText: WriterFactory = (heap, sink) =>
  scalar(4, (index, at) => {
    if (isNull64(heap, index * 2) && isNull64(heap, index * 2 + 1)) return NULL;
    return formatUuid(heap.i32, index * 4, sink.bytes, at);
  });
const uuidBinary: WriterFactory = (heap, sink) =>
  scalar(4, (index, at) => {
    if (isNull64(heap, index * 2) && isNull64(heap, index * 2 + 1)) return NULL;
    for (let k = 0; k < 16; k++) sink.bytes[at + k] = heap.u8[index * 16 + 15 - k];
    return at + 16;
  });

const ipv4Text: WriterFactory = (heap, sink) =>
  scalar(2, (index, at) => {
    const value = heap.u32[index];
    return value === 0 ? NULL : formatIPv4(value, sink.bytes, at);
  });

/** `('first', 'last')`, in milliseconds. */
const intervalText: WriterFactory = (heap, sink) => {
  const micros = instantText(formatTimestampMicros)(heap, sink, "none");
  const instant = (index: number, at: number) => {
    const end = micros.write(index, at);
    if (end < 0) return NULL;
    sink.bytes[end - 4] = LETTER_Z;
    return end - 3;
  };
  return {
    bind: micros.bind,
    write(row, at) {
      const middle = instant(row * 2, copyAscii("('", sink.bytes, at));
      if (middle < 0) return NULL;
      const end = instant(row * 2 + 1, copyAscii("', '", sink.bytes, middle));
      return end < 0 ? NULL : copyAscii("')", sink.bytes, end);
    },
  };
};

const bare = { jsonQuoted: false, jsonNull: "null", csvQuoted: false, csvNull: "" };
const quoted = { jsonQuoted: true, jsonNull: "null", csvQuoted: true, csvNull: "" };
const textForms: TypeForms = { ...quoted, text, pgBinary: text, maxBytes: 8 };

const FORMS: Record<string, TypeForms> = {
  BOOLEAN: { ...bare, text: booleanText, pgText: booleanLetter, pgBinary: booleanBinary, maxBytes: 5 },
  BYTE: { ...bare, text: byteText, pgBinary: byteBinary, maxBytes: 4 },
  SHORT: { ...bare, text: shortText, pgBinary: shortBinary, maxBytes: 6 },
  CHAR: { ...bare, jsonQuoted: true, jsonNull: '""', text: charText, pgBinary: charText, maxBytes: 6 },
  INT: { ...bare, text: intText, pgBinary: intBinary, maxBytes: 11 },
  LONG: { ...bare, large: true, text: longText, pgBinary: longBinary, maxBytes: 20 },
  FLOAT: { ...bare, text: floatText, pgBinary: floatBinary, maxBytes: 26 },
  DOUBLE: { ...bare, text: doubleText, pgBinary: doubleBinary, maxBytes: 26 },
  DATE: {
    ...quoted,
    text: instantText(formatDate),
    pgText: instantText(pgInstant(formatDate, 3)),
    pgBinary: instantBinary((millis) => millis * 1_000n, false),
    maxBytes: 36,
  },
  TIMESTAMP: {
    ...quoted,
    text: instantText(formatTimestampMicros),
    pgText: instantText(pgInstant(formatTimestampMicros, 6)),
    pgBinary: instantBinary((micros) => micros, true),
    maxBytes: 36,
  },
  TIMESTAMP_NS: {
    ...quoted,
    text: instantText(formatNanos),
    pgText: instantText(pgNanos),
    pgBinary: instantBinary((nanos) => (nanos - (((nanos % 1000n) + 1000n) % 1000n)) / 1000n, false),
    maxBytes: 36,
  },
  SYMBOL: { ...textForms, text: symbol, pgBinary: symbol },
  SYMBOL_TEXT: textForms,
  STRING: textForms,
  VARCHAR: textForms,
  NULL: textForms,
  UUID: { ...bare, jsonQuoted: true, text: uuidText, pgBinary: uuidBinary, maxBytes: 36 },
  IPv4: { ...bare, jsonQuoted: true, text: ipv4Text, pgBinary: ipv4Text, maxBytes: 15 },
  INTERVAL: { ...quoted, text: intervalText, pgBinary: intervalText, maxBytes: 80 },
  LONG256: LONG256_FORMS,
  BINARY: BINARY_FORMS,
};

export function formsOf(type: string): TypeForms {
  const forms = FORMS[type] ?? parametrisedForms(type);
  if (forms === undefined) throw notSupported(`a result column of type ${type}`, 0);
  return forms;
}

// Bytes that must be escaped in JSON text; CSV fields escape the same ones.
const MUST_ESCAPE = new Uint8Array(256);
MUST_ESCAPE.fill(1, 0, 0x20);
MUST_ESCAPE[0x22] = 1;
MUST_ESCAPE[0x5c] = 1;
/** Below this length a loop over the bytes is faster than making a view for `set`. */
const BULK_LENGTH = 192;

/** A long text is written in steps, and the query is polled between them. */
export function writeText(
  memory: Uint8Array,
  address: number,
  length: number,
  sink: ByteSink,
  escape: Escape,
  at: number,
): number {
  if (length <= LONG_TEXT_BYTES) return writeStep(memory, address, length, sink, escape, at);
  sink.ensure(at + length);
  for (let done = 0; done < length; done += LONG_TEXT_BYTES) {
    at = writeStep(memory, address + done, Math.min(LONG_TEXT_BYTES, length - done), sink, escape, at);
    pollQuery();
  }
  return at;
}

function writeStep(
  memory: Uint8Array,
  address: number,
  length: number,
  sink: ByteSink,
  escape: Escape,
  at: number,
): number {
  let bytes = at + length + sink.rowSlack > sink.bytes.length ? sink.ensure(at + length) : sink.bytes;
  const end = address + length;
  if (escape === "none") {
    if (length >= BULK_LENGTH) bytes.set(memory.subarray(address, end), at);
    else for (let index = 0; index < length; index++) bytes[at + index] = memory[address + index];
    return at + length;
  }
  let from = address;
  if (length >= BULK_LENGTH) {
    while (from < end && MUST_ESCAPE[memory[from]] === 0) from++;
    bytes.set(memory.subarray(address, from), at);
    at += from - address;
  }
  while (from < end) {
    const byte = memory[from++];
    if (MUST_ESCAPE[byte] === 0) bytes[at++] = byte;
    else {
      bytes = sink.ensure(at + 6 + end - from);
      at = writeEscape(byte, escape, bytes, at);
    }
  }
  return at;
}

const SHORT_ESCAPES = new Map([[0x08, 0x62], [0x09, 0x74], [0x0a, 0x6e], [0x0c, 0x66], [0x0d, 0x72], [0x5c, 0x5c]]);

function writeEscape(byte: number, escape: Escape, bytes: Uint8Array, at: number): number {
  if (byte === 0x22) {
    bytes[at] = escape === "csv" ? 0x22 : 0x5c;
    bytes[at + 1] = 0x22;
    return at + 2;
  }
  bytes[at] = 0x5c;
  const letter = SHORT_ESCAPES.get(byte);
  if (letter !== undefined) {
    bytes[at + 1] = letter;
    return at + 2;
  }
  bytes[at + 1] = 0x75;
  bytes[at + 2] = 0x30;
  bytes[at + 3] = 0x30;
  bytes[at + 4] = HEX[byte >> 4];
  bytes[at + 5] = HEX[byte & 15];
  return at + 6;
}

function writeInt16(value: number, bytes: Uint8Array, at: number): number {
  bytes[at] = value >> 8;
  bytes[at + 1] = value;
  return at + 2;
}

export function writeInt32(value: number, bytes: Uint8Array, at: number): number {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
  return at + 4;
}
