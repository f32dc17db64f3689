/**
 * The forms of each column type: as text (JSON, CSV, PostgreSQL's text format) and in PostgreSQL's binary format. There
 * is one entry for each type tag. A type without an entry cannot be a result.
 *
 * The row kernel writes most values, and a writer those that it leaves. A writer is made once for each result column
 * and bound to each batch's vector. It writes the value of a row without quotes and returns the end, or -1 for NULL. Fixed-size values take at most `maxBytes`, which the caller has reserved.
 * Text writers reserve space themselves.
 */
import { LONG_TEXT_BYTES, pollQuery } from "../../engine/long-texts.ts";
import { notSupported } from "../../errors.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import {
  copyAscii,
  formatDate,
  formatDouble,
  formatFloat,
  formatNanos,
  formatTimestampMicros,
} from "../../types/format/mod.ts";
import type { Escape, TypeForms, ValueWriter, WriterFactory } from "./forms.ts";
import type { ByteSink } from "./sink.ts";
import { BINARY_FORMS, LONG256_FORMS, parametrisedForms } from "./wide.ts";

const NULL = -1;
const BLANK = 0x20, LETTER_Z = 0x5a;
const EPOCH_2000_MICROS = 946_684_800_000_000n;

const HEX = [..."0123456789abcdef"].map((digit) => digit.charCodeAt(0));

/** A writer over one typed array of the heap: `shift` is log2 of the bytes for each row. */
function scalar(shift: number, write: (index: number, at: number) => number): ValueWriter {
  let base = 0;
  return {
    // By a shift, because a quotient would be a number on the heap.
    bind: (vector) => base = vector.address >>> shift,
    write: (row, at) => write(base + row, at),
  };
}

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

const isNull64 = (heap: SharedHeap, index: number) =>
  heap.i32[index * 2 + 1] === -2147483648 && heap.i32[index * 2] === 0;

const isFiniteNumber = (value: number) => value - value === 0;

const floatText: WriterFactory = (heap, sink) =>
  scalar(2, (index, at) => {
    const value = heap.f32[index];
    return isFiniteNumber(value) ? formatFloat(value, sink.bytes, at) : NULL;
  });
const doubleText: WriterFactory = (heap, sink) =>
  scalar(3, (index, at) => {
    const value = heap.f64[index];
    return isFiniteNumber(value) ? formatDouble(value, sink.bytes, at) : NULL;
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

/** Truncated to microseconds, as PostgreSQL's type has no more. */
const pgNanos: InstantFormat = (low, high, bytes, at) => pgInstant(formatNanos, 9)(low, high, bytes, at) - 3;

/** Microseconds since 2000. */
function instantBinary(toMicros: (value: bigint) => bigint): WriterFactory {
  return (heap, sink) =>
    scalar(3, (index, at) => {
      if (isNull64(heap, index)) return NULL;
      const micros = toMicros(heap.i64[index]) - EPOCH_2000_MICROS;
      sink.view.setBigInt64(at, BigInt.asIntN(64, micros));
      return at + 8;
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
const textForms: TypeForms = {
  ...quoted,
  text: { operation: "text", writer: text },
  pgBinary: { operation: "text", writer: text },
  maxBytes: 8,
};
const symbolForm = { operation: "symbol", writer: symbol } as const;
const characterForm = { operation: "character", writer: charText } as const;
const addressForm = { operation: "ipv4" } as const;
const intervalForm = { operation: "other", writer: intervalText } as const;

const FORMS: Record<string, TypeForms> = {
  BOOLEAN: {
    ...bare,
    text: { operation: "boolean" },
    pgText: { operation: "booleanLetter" },
    pgBinary: { operation: "bigEndian8" },
    maxBytes: 5,
  },
  BYTE: { ...bare, text: { operation: "int8" }, pgBinary: { operation: "bigEndian16of8" }, maxBytes: 4 },
  SHORT: { ...bare, text: { operation: "int16" }, pgBinary: { operation: "bigEndian16" }, maxBytes: 6 },
  CHAR: { ...bare, jsonQuoted: true, jsonNull: '""', text: characterForm, pgBinary: characterForm, maxBytes: 6 },
  INT: { ...bare, text: { operation: "int32" }, pgBinary: { operation: "bigEndian32" }, maxBytes: 11 },
  LONG: { ...bare, large: true, text: { operation: "int64" }, pgBinary: { operation: "bigEndian64" }, maxBytes: 20 },
  FLOAT: {
    ...bare,
    text: { operation: "float32", writer: floatText },
    pgBinary: { operation: "bigEndianFloat32" },
    maxBytes: 26,
  },
  DOUBLE: {
    ...bare,
    text: { operation: "float64", writer: doubleText },
    pgBinary: { operation: "bigEndianFloat64" },
    maxBytes: 26,
  },
  DATE: {
    ...quoted,
    text: { operation: "millis", writer: instantText(formatDate) },
    pgText: { operation: "pgMillis", writer: instantText(pgInstant(formatDate, 3)) },
    pgBinary: { operation: "other", writer: instantBinary((millis) => millis * 1_000n) },
    maxBytes: 36,
  },
  TIMESTAMP: {
    ...quoted,
    text: { operation: "micros", writer: instantText(formatTimestampMicros) },
    pgText: { operation: "pgMicros", writer: instantText(pgInstant(formatTimestampMicros, 6)) },
    pgBinary: { operation: "bigEndianMicros" },
    maxBytes: 36,
  },
  TIMESTAMP_NS: {
    ...quoted,
    text: { operation: "nanos", writer: instantText(formatNanos) },
    pgText: { operation: "pgNanos", writer: instantText(pgNanos) },
    pgBinary: {
      operation: "other",
      writer: instantBinary((nanos) => (nanos - (((nanos % 1000n) + 1000n) % 1000n)) / 1000n),
    },
    maxBytes: 36,
  },
  SYMBOL: { ...textForms, text: symbolForm, pgBinary: symbolForm },
  SYMBOL_TEXT: textForms,
  STRING: textForms,
  VARCHAR: textForms,
  NULL: textForms,
  UUID: { ...bare, jsonQuoted: true, text: { operation: "uuid" }, pgBinary: { operation: "uuidBytes" }, maxBytes: 36 },
  IPv4: { ...bare, jsonQuoted: true, text: addressForm, pgBinary: addressForm, maxBytes: 15 },
  INTERVAL: { ...quoted, text: intervalForm, pgBinary: intervalForm, maxBytes: 80 },
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
function writeText(
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
