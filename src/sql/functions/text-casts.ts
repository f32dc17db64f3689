/** Casts from and to text, over whole columns. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import {
  formatDate,
  formatDouble,
  formatFloat,
  formatInt,
  formatIPv4,
  formatLong,
  formatNanos,
  formatTimestampMicros,
  formatUuid,
  formatValue,
  intervalText,
} from "../../types/format/mod.ts";
import { nanosOf } from "../../types/calendar.ts";
import { layoutOf, LONG_MAX, NULL_I32, NULL_I64, typeOf } from "../../types/mod.ts";
import {
  instantAs,
  parseFloating,
  parseInstant,
  parseInteger,
  parseIPv4,
  parseLong,
  parseUuid,
  readValue,
} from "../../types/parse/mod.ts";
import type { BatchColumn, BatchFunction, BatchOut, FunctionContext, FunctionEntry } from "./entry.ts";
import { TEXTS } from "./nodes.ts";
import { Pace } from "./pace.ts";
import { shown } from "./sizes.ts";
import { writeTexts } from "./text-cast-kernels.ts";
import { textOfWide } from "./wide.ts";
import { offsetOf, viewOf, viewsOf } from "./memory-views.ts";

const FROM_TEXT = [...TEXTS, "NULL"];

function entry(
  name: string,
  from: string,
  to: string,
  batch: BatchFunction,
  more: Partial<FunctionEntry> = {},
): FunctionEntry {
  return {
    name,
    args: [{ name: "value", type: from }],
    returns: to,
    nulls: "custom",
    volatility: "immutable",
    summary: `The value as ${to}.`,
    examples: [],
    batch,
    ...more,
  };
}

/** Reads bytes[from … to) into row `row` of a column. Returns false if they are invalid. */
type Reader = (bytes: Uint8Array, from: number, to: number, out: BatchOut, row: number) => boolean;

function integerReader(limit: number): Reader {
  return (bytes, from, to, out, row) => {
    const value = parseInteger(bytes, from, to, limit);
    if (value !== value) return false;
    out.values[row] = value;
    return true;
  };
}

function floatReader(letter: "d" | "f"): Reader {
  return (bytes, from, to, out, row) => {
    const value = parseFloating(bytes, from, to, letter);
    if (value === undefined) return false;
    out.values[row] = value;
    return true;
  };
}

function timeReader(tag: string): Reader {
  const unit = typeOf(tag).timeUnit!;
  return (bytes, from, to, out, row) => {
    if (!parseInstant(bytes, from, to)) return false;
    const value = instantAs(unit);
    if (value === undefined) return false;
    out.values[row] = value;
    return true;
  };
}

function isTrue(bytes: Uint8Array, from: number, to: number): boolean {
  if (to - from === 1) return bytes[from] === 49 || (bytes[from] | 32) === 116;
  return to - from === 4 && (bytes[from] | 32) === 116 && (bytes[from + 1] | 32) === 114 &&
    (bytes[from + 2] | 32) === 117 && (bytes[from + 3] | 32) === 101;
}

const READERS: Record<string, Reader> = {
  BOOLEAN: (bytes, from, to, out, row) => {
    out.values[row] = isTrue(bytes, from, to) ? 1 : 0;
    return true;
  },
  BYTE: integerReader(127),
  SHORT: integerReader(32767),
  INT: integerReader(2147483647),
  LONG: (bytes, from, to, out, row) => {
    const value = parseLong(bytes, from, to);
    if (value === undefined) return false;
    out.values[row] = value;
    return true;
  },
  FLOAT: floatReader("f"),
  DOUBLE: floatReader("d"),
  DATE: timeReader("DATE"),
  TIMESTAMP: timeReader("TIMESTAMP"),
  TIMESTAMP_NS: timeReader("TIMESTAMP_NS"),
  IPv4: (bytes, from, to, out, row) => {
    const value = parseIPv4(bytes, from, to);
    if (value === undefined) return false;
    out.values[row] = value;
    return true;
  },
  UUID: (bytes, from, to, out, row) => {
    const value = parseUuid(bytes, from, to);
    if (value === undefined) return false;
    out.values[2 * row] = BigInt.asIntN(64, value);
    out.values[2 * row + 1] = BigInt.asIntN(64, value >> 64n);
    return true;
  },
};
/** In a cast, integers that are too large for BYTE and SHORT lose their high bits. */
const CAST_READERS: Record<string, Reader> = { ...READERS, BYTE: READERS.INT!, SHORT: READERS.INT! };

function readTexts(reader: Reader, strictAs: string | undefined): BatchFunction {
  return ([column], out, rowCount, context) => {
    const views = viewsOf(context.heap.u8);
    const pairs = column.values;
    const pace = new Pace(context);
    for (let row = 0; row < rowCount; row++) {
      const length = pairs[2 * row + 1];
      if (length < 0) {
        out.setNull(row);
        continue;
      }
      const from = offsetOf(column, row);
      if (!reader(viewOf(views, column, row), from, from + length, out, row)) {
        if (strictAs !== undefined) throw notA(column.text(row) ?? "", strictAs);
        out.setNull(row);
      }
      pace.spend(16 + length);
    }
  };
}

/** A value that cannot be stored. Position 0, because only the row is known here. */
function notA(text: string, tag: string): SqlError {
  return new SqlError(
    `'${shown(text)}' is not ${/^[AEIOU]/.test(tag) ? "an" : "a"} ${typeOf(tag).name}`,
    0,
    SQLSTATE.invalidText,
  );
}

const entries: FunctionEntry[] = [];
const EXAMPLES: Record<string, FunctionEntry["examples"]> = {
  INT: [{ sql: "'12'::int", gives: 12 }, { sql: "'1.5'::int", gives: null }],
  DOUBLE: [{ sql: "'-2e3'::double", gives: -2000 }],
  BOOLEAN: [{ sql: "'t'::boolean", gives: true }],
  TIMESTAMP: [{ sql: "'2020-01-02T03:04'::timestamp", gives: "2020-01-02T03:04:00.000000Z" }, {
    sql: "'2020-13-01'::timestamp",
    gives: null,
  }],
  UUID: [{ sql: "'AABBCCDD-0011-2233-4455-66778899aabb'::uuid", gives: "aabbccdd-0011-2233-4455-66778899aabb" }],
  IPv4: [{ sql: "'1.2.3.4'::ipv4", gives: "1.2.3.4" }],
};
for (const [to, reader] of Object.entries(READERS)) {
  for (const from of FROM_TEXT) {
    const more: Partial<FunctionEntry> = { examples: from === "STRING" ? EXAMPLES[to] ?? [] : [] };
    if (to === "UUID" || to === "IPv4") {
      // An invalid constant is an error, unless it is empty; in a column it is null.
      more.check = ([value]) => {
        const read = typeof value === "string" && value !== "" ? readValue(value, to) : null;
        return read instanceof Object && "problem" in read ? { argument: 0, message: read.problem } : undefined;
      };
    }
    entries.push(entry(`cast_${to}`, from, to, readTexts(CAST_READERS[to]!, undefined), more));
    if (to === "BOOLEAN") continue;
    // When stored in a column, a text of digits is a number in the column's unit, not a year.
    const either: Reader = (...args) => READERS.LONG(...args) || reader(...args);
    const isTime = to === "DATE" || to === "TIMESTAMP" || to === "TIMESTAMP_NS";
    entries.push(entry(`assign_${to}`, from, to, readTexts(isTime ? either : reader, to), { examples: [] }));
  }
}

// CHAR: a digit is a number (for times, of units); anything else is an error.
const ZERO = 48;
const FROM_DIGIT = ["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NS"];
for (const to of FROM_DIGIT) {
  entries.push(entry(`cast_${to}`, "CHAR", to, ([column], out, rowCount) => {
    for (let row = 0; row < rowCount; row++) {
      const unit = column.values[row] & 0xffff;
      if (unit === 0) {
        out.setNull(row);
        continue;
      }
      if (unit < ZERO || unit > ZERO + 9) throw notA(String.fromCharCode(unit), to);
      out.values[row] = layoutOf(to) === "i64" ? BigInt(unit - ZERO) : unit - ZERO;
    }
  }, { fallible: 0 }));
}
entries.push(entry("cast_BOOLEAN", "CHAR", "BOOLEAN", ([column], out, rowCount) => {
  for (let row = 0; row < rowCount; row++) {
    out.values[row] = column.values[row] === 49 || (column.values[row] | 32) === 116 ? 1 : 0;
  }
}));
/** The first character of a text. In a strict cast there must not be another one. */
const firstUnit = (isStrict: boolean): BatchFunction => ([column], out, rowCount) => {
  for (let row = 0; row < rowCount; row++) {
    // Four bytes are enough for the first character.
    const bytes = column.bytes(row), text = bytes === undefined ? "" : decoder.decode(bytes.subarray(0, 4));
    if (isStrict && text.length > 1) throw notA(column.text(row) ?? "", "CHAR");
    out.values[row] = text === "" ? 0 : text.charCodeAt(0);
  }
};
for (const from of FROM_TEXT) {
  entries.push(entry("cast_CHAR", from, "CHAR", firstUnit(false)));
  entries.push(entry("assign_CHAR", from, "CHAR", firstUnit(true), { examples: [] }));
}
for (
  const from of [
    "CHAR",
    "BOOLEAN",
    "BYTE",
    "SHORT",
    "INT",
    "LONG",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NS",
    "IPv4",
    "UUID",
  ]
) {
  entries.push(
    entry(`cast_${from}`, from, from, ([column], out) => out.values.set(column.values.subarray(0, out.values.length)), {
      summary: "The value itself.",
    }),
  );
}
entries.push(entry("cast_INTERVAL", "NULL", "INTERVAL", (_, out, rowCount) => {
  for (let row = 0; row < rowCount; row++) out.setNull(row);
}));

// Storing numbers in narrower columns: fractions are truncated, but values out of range are errors.
const WHOLE_LIMITS: [to: string, low: number, high: number][] = [["BYTE", -128, 127], ["SHORT", -32768, 32767], [
  "INT",
  -2147483647,
  2147483647,
]];
for (const [to, low, high] of WHOLE_LIMITS) {
  for (const from of ["SHORT", "INT", "LONG", "FLOAT", "DOUBLE"]) {
    if (typeOf(from).width <= typeOf(to).width && from !== "FLOAT") continue;
    entries.push(entry(`assign_${to}`, from, to, ([column], out, rowCount) => {
      const none = typeOf(from).nullValue;
      for (let row = 0; row < rowCount; row++) {
        const value = column.values[row];
        if (value === none || value !== value) {
          out.setNull(row);
          continue;
        }
        const whole = Math.trunc(Number(value));
        if (whole < low || whole > high) {
          throw new SqlError(`${value} is out of the range of ${to}`, 0, SQLSTATE.outOfRange);
        }
        out.values[row] = whole;
      }
    }, { summary: `Converts the value for a column of type ${to}. Fails if it does not fit.` }));
  }
}
for (const from of ["FLOAT", "DOUBLE"]) {
  entries.push(entry("assign_LONG", from, "LONG", ([column], out, rowCount) => {
    for (let row = 0; row < rowCount; row++) {
      const value = column.values[row];
      if (!Number.isFinite(value)) out.setNull(row);
      else if (Math.abs(value) >= 9223372036854775808) {
        throw new SqlError(`${value} is out of the range of LONG`, 0, SQLSTATE.outOfRange);
      } else out.values[row] = BigInt(Math.trunc(value));
    }
  }, { summary: "Converts the value for a column of type LONG. Fails if it does not fit." }));
}

for (const from of ["DATE", "TIMESTAMP"]) {
  const nanos = nanosOf(from), last = LONG_MAX / nanos;
  entries.push(entry("assign_TIMESTAMP_NS", from, "TIMESTAMP_NS", ([column], out, rowCount) => {
    for (let row = 0; row < rowCount; row++) {
      const value: bigint = column.values[row];
      if (value === NULL_I64) out.setNull(row);
      else if (value > last || value < -last) {
        throw new SqlError(
          `${formatValue(value, from)} is out of the range of TIMESTAMP_NS`,
          0,
          SQLSTATE.outOfRange,
        );
      } else out.values[row] = value * nanos;
    }
  }, { summary: "Converts the value for a column of type TIMESTAMP_NS. Fails if it does not fit." }));
}

/** Writes row `row` as ASCII at offset 0 and returns the length; -1 for null. */
type Writer = (column: BatchColumn, row: number, bytes: Uint8Array, context: FunctionContext) => number;

const encoder = new TextEncoder();
const TRUE = encoder.encode("true"), FALSE = encoder.encode("false");

function longWriter(format: (low: number, high: number, bytes: Uint8Array, at: number) => number): Writer {
  return (column, row, bytes, context) => {
    const words = context.heap.i32;
    const word = (column.address >>> 2) + 2 * row;
    return words[word] === 0 && words[word + 1] === NULL_I32 ? -1 : format(words[word], words[word + 1], bytes, 0);
  };
}

const WRITERS: Record<string, Writer> = {
  BOOLEAN: (column, row, bytes) => {
    const text = column.values[row] ? TRUE : FALSE;
    bytes.set(text);
    return text.length;
  },
  BYTE: (column, row, bytes) => formatInt(column.values[row], bytes, 0),
  SHORT: (column, row, bytes) => formatInt(column.values[row], bytes, 0),
  INT: (column, row, bytes) => (column.values[row] === NULL_I32 ? -1 : formatInt(column.values[row], bytes, 0)),
  LONG: longWriter(formatLong),
  FLOAT: (column, row, bytes) => (Number.isFinite(column.values[row]) ? formatFloat(column.values[row], bytes, 0) : -1),
  DOUBLE: (
    column,
    row,
    bytes,
  ) => (Number.isFinite(column.values[row]) ? formatDouble(column.values[row], bytes, 0) : -1),
  DATE: longWriter(formatDate),
  TIMESTAMP: longWriter(formatTimestampMicros),
  TIMESTAMP_NS: longWriter(formatNanos),
  IPv4: (column, row, bytes) => (column.values[row] === 0 ? -1 : formatIPv4(column.values[row], bytes, 0)),
  UUID: (column, row, bytes, context) =>
    column.values[2 * row] === NULL_I64 && column.values[2 * row + 1] === NULL_I64
      ? -1
      : formatUuid(context.heap.i32, (column.address >>> 2) + 4 * row, bytes, 0),
  CHAR: (column, row, bytes) => {
    const unit = column.values[row] & 0xffff;
    if (unit === 0) return -1;
    if (unit > 127) return encoder.encodeInto(String.fromCharCode(unit), bytes).written;
    bytes[0] = unit;
    return 1;
  },
  INTERVAL: (column, row, bytes) => {
    const low = column.values[2 * row], high = column.values[2 * row + 1];
    if (low === NULL_I64 && high === NULL_I64) return -1;
    return encoder.encodeInto(intervalText(low, high), bytes).written;
  },
};

const scratch = new Uint8Array(128);
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A row of any type as text, for concat and similar functions. */
export class RowText {
  bytes: Uint8Array = new Uint8Array(128);
  /** -1 for null. */
  length = -1;
  private readonly written = this.bytes;
  private readonly writer: Writer | undefined;

  constructor(private readonly column: BatchColumn, private readonly context: FunctionContext) {
    this.writer = WRITERS[column.type];
  }

  /** Sets the bytes, which are valid until the next call, and their length. */
  read(row: number): void {
    const { column, context, writer } = this;
    if (writer === undefined) return this.set(layoutOf(column.type) === "text" ? column.bytes(row) : this.wide(row));
    this.bytes = this.written;
    this.length = writer(column, row, this.bytes, context);
  }

  set(bytes: Uint8Array | undefined): void {
    this.length = bytes?.length ?? -1;
    if (bytes !== undefined) this.bytes = bytes;
  }

  private wide(row: number): Uint8Array | undefined {
    const text = textOfWide(this.column, row);
    return text === undefined ? undefined : encoder.encode(text);
  }
}

const TEXT_TARGETS: [name: string, returns: string][] = [["STRING", "STRING"], ["VARCHAR", "VARCHAR"], [
  "SYMBOL",
  "SYMBOL_TEXT",
], ["SYMBOL_TEXT", "SYMBOL_TEXT"]];
for (const [to, returns] of TEXT_TARGETS) {
  for (const [from, writer] of Object.entries(WRITERS)) {
    entries.push(entry(`cast_${to}`, from, returns, ([column], out, rowCount, context) => {
      const one = (row: number) => {
        const length = writer(column, row, scratch, context);
        if (length < 0) out.setNull(row);
        else out.setText(row, scratch.subarray(0, length));
      };
      writeTexts(column, out, rowCount, context, one);
    }, { examples: from === "DOUBLE" && to === "STRING" ? [{ sql: "1e10::string", gives: "1.0E10" }] : [] }));
  }
  // A text pair stays unchanged.
  for (const from of ["text", "NULL"]) {
    entries.push({
      ...entry(`cast_${to}`, from, returns, () => {}),
      batch: undefined,
      emit: ([a]) => a,
      ofConstants: ([value]) => value,
    });
  }
}

export const textCasts = entries;
