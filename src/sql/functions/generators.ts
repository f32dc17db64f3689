/**
 * Random values and sequences, different in every row. The query provides the seed, so long_sequence(n, a, b) is
 * reproducible.
 */
import { NULL_I32, NULL_I64, type Value } from "../../types/mod.ts";
import type { BatchColumn, BatchFunction, BatchOut, FunctionContext, FunctionEntry } from "./entry.ts";
import { Pace } from "./pace.ts";
import { fail, TEXT_BYTES_MAX } from "./sizes.ts";

function generator(
  name: string,
  args: [name: string, type: string][],
  returns: string,
  summary: string,
  row: (out: BatchOut, row: number, context: FunctionContext, args: BatchColumn[], pace: Pace) => void,
  more: Partial<FunctionEntry> = {},
): FunctionEntry {
  return {
    name,
    args: args.map(([name, type]) => ({ name, type })),
    returns,
    nulls: "custom",
    volatility: "volatile",
    summary,
    examples: [],
    batch: (columns, out, rowCount, context) => {
      const pace = new Pace(context);
      for (let i = 0; i < rowCount; i++) {
        row(out, i, context, columns, pace);
        pace.spend(16);
      }
    },
    ...more,
  };
}

/** [0, 1) with 53 bits. */
export const unit = (context: FunctionContext) =>
  (context.random() * 2097152 + (context.random() >>> 11)) / 9007199254740992;
export const below = (context: FunctionContext, count: number) => Math.floor(unit(context) * count);
export const long = (context: FunctionContext) =>
  BigInt.asIntN(64, (BigInt(context.random()) << 32n) | BigInt(context.random()));
/** Constant bounds are checked when the call is bound, other bounds row by row. */
const BAD_RANGE = "the lower bound must be below the upper bound";

/** low … high; null if either is null. */
function between(context: FunctionContext, low: bigint, high: bigint): bigint {
  if (low === NULL_I64 || high === NULL_I64) return NULL_I64;
  if (low > high) fail(BAD_RANGE, context);
  return low + BigInt.asUintN(64, long(context)) % (high - low + 1n);
}

/** Like `between`, for small integers; `none` is their null. */
function smallBetween(context: FunctionContext, low: number, high: number, none?: number): number {
  if (low === none || high === none) return none!;
  if (low > high) fail(BAD_RANGE, context);
  return low + below(context, high - low + 1);
}

/** True for one of `rate + 1` rows on average. A rate of 0 means never. */
/** Of each function with the argument `nullRate`. */
export const NULL_RATE = "If `nullRate` is above 0, one row in `nullRate` + 1 is null.";
export const isNull = (context: FunctionContext, rate: number) => rate > 0 && context.random() % (rate + 1) === 0;

/** Bounds are constants or columns. */
const at = (column: BatchColumn, row: number) => column.values[row];

export const lengthBetween = (context: FunctionContext, low: number, high: number) =>
  Math.max(0, low + below(context, high - low + 1));

function fillLetters(bytes: Uint8Array, from: number, length: number, context: FunctionContext, pace: Pace): void {
  for (let i = from; i < from + length; i++) bytes[i] = 65 + context.random() % 26;
  pace.spend(8 * length);
}

/** A concatenation of texts that rows are picked from. */
interface Texts {
  bytes: Uint8Array;
  /** Start of each text, and the end of the last one. */
  starts: Float64Array;
}

/** Letters of texts whose length is not given. */
const SHORT_TEXT = { low: 3, high: 10 };
/** Milliseconds of dates whose range is not given. */
const DATE_END = 10_000_000;
const TEXTS_MAX = 1_000_000;
/** Maximum total length of the texts that rows are picked from. Each query makes them anew. */
const TEXTS_BYTES_MAX = 128 << 20;

type Fault = ReturnType<NonNullable<FunctionEntry["check"]>>;

/** The fault of the arguments for texts of `low` to `high` letters; `at` is the position of `low`. */
function textRangeFault(low: number, high: number, nullRate: number, at: number): Fault {
  if (low > high) return { message: `invalid range of lengths: ${low} is above ${high}` };
  if (high > TEXT_BYTES_MAX) return { argument: at + 1, message: `a text can have at most ${TEXT_BYTES_MAX} letters` };
  return nullRate < 0 ? { argument: at + 2, message: "the rate of nulls must not be negative" } : undefined;
}

function nullFault(constants: readonly (Value | undefined)[]): Fault {
  const argument = constants.indexOf(null);
  return argument < 0 ? undefined : { argument, message: "it is null" };
}

/** The fault of the arguments for `count` texts. */
function textsFault(count: number, high: number): Fault {
  if (!(count >= 1 && count <= TEXTS_MAX)) return { argument: 0, message: `expected 1 to ${TEXTS_MAX} texts` };
  if (count * high <= TEXTS_BYTES_MAX) return undefined;
  const most = Math.floor(TEXTS_BYTES_MAX / count);
  return { argument: 2, message: `${count} texts can have at most ${most} letters each, found ${high}` };
}

function randomTexts(count: number, low: number, high: number, context: FunctionContext, pace: Pace): Texts {
  const fault = textRangeFault(low, high, 0, 1) ?? textsFault(count, high);
  if (fault !== undefined) fail(fault.message, context);
  const sizeBytes = count * Math.max(0, high);
  context.memory.keep(sizeBytes + (count + 1) * Float64Array.BYTES_PER_ELEMENT);
  const bytes = new Uint8Array(sizeBytes), starts = new Float64Array(count + 1);
  for (let k = 0, used = 0; k < count; k++, starts[k] = used) {
    const length = lengthBetween(context, low, high);
    fillLetters(bytes, used, length, context, pace);
    used += length;
    pace.spend(16);
  }
  return { bytes, starts };
}

const checkRange: FunctionEntry["check"] = ([low, high, rate]) =>
  low !== undefined && high !== undefined && low !== null && high !== null && low >= high
    ? { message: BAD_RANGE }
    : typeof rate === "number" && rate < 0
    ? { message: "the rate of nulls must not be negative", argument: 2 }
    : undefined;

const checkTextRange: FunctionEntry["check"] = (constants) => {
  const [low, high, rate] = constants.map((value) => Number(value ?? NaN));
  return nullFault(constants) ?? textRangeFault(low, high, rate, 0);
};

const checkTexts: FunctionEntry["check"] = (constants) => {
  const [count, low, high, rate] = constants.map((value) => Number(value ?? NaN));
  const fault = nullFault(constants) ?? textRangeFault(low, high, rate, 1);
  return fault ?? (constants[0] === undefined ? undefined : textsFault(count, Math.max(0, high || 0)));
};

const entries: FunctionEntry[] = [
  generator(
    "rnd_boolean",
    [],
    "BOOLEAN",
    "True or false.",
    (out, row, context) => out.values[row] = context.random() & 1,
  ),
  generator(
    "rnd_byte",
    [],
    "BYTE",
    "A BYTE from 0 to 127.",
    (out, row, context) => out.values[row] = context.random() & 127,
  ),
  generator(
    "rnd_byte",
    [["low", "INT"], ["high", "INT"]],
    "BYTE",
    "A BYTE from low to high.",
    (out, row, context, [low, high]) => out.values[row] = smallBetween(context, at(low, row), at(high, row)),
    { check: checkRange },
  ),
  generator(
    "rnd_short",
    [],
    "SHORT",
    "Any SHORT.",
    (out, row, context) => out.values[row] = context.random() << 16 >> 16,
  ),
  generator(
    "rnd_short",
    [["low", "INT"], ["high", "INT"]],
    "SHORT",
    "A SHORT from low to high.",
    (out, row, context, [low, high]) => out.values[row] = smallBetween(context, at(low, row), at(high, row)),
    { check: checkRange },
  ),
  generator("rnd_int", [], "INT", "Any INT except null.", (out, row, context) => {
    const value = context.random() | 0;
    out.values[row] = value === NULL_I32 ? 0 : value;
  }),
  generator(
    "rnd_int",
    [["low", "INT"], ["high", "INT"], ["nullRate", "INT"]],
    "INT",
    "An INT from low to high. " + NULL_RATE,
    (out, row, context, [low, high, rate]) => {
      out.values[row] = isNull(context, at(rate, row))
        ? NULL_I32
        : smallBetween(context, at(low, row), at(high, row), NULL_I32);
    },
    { check: checkRange },
  ),
  generator("rnd_long", [], "LONG", "Any LONG except null.", (out, row, context) => {
    const value = long(context);
    out.values[row] = value === NULL_I64 ? 0n : value;
  }),
  generator(
    "rnd_long",
    [["low", "LONG"], ["high", "LONG"], ["nullRate", "INT"]],
    "LONG",
    "A LONG from low to high. " + NULL_RATE,
    (out, row, context, [low, high, rate]) => {
      out.values[row] = isNull(context, at(rate, row)) ? NULL_I64 : between(context, at(low, row), at(high, row));
    },
    { check: checkRange },
  ),
  generator("rnd_float", [], "FLOAT", "A FLOAT from 0 to 1.", (out, row, context) => out.values[row] = unit(context)),
  generator(
    "rnd_float",
    [["nullRate", "INT"]],
    "FLOAT",
    "A FLOAT from 0 to 1. " + NULL_RATE,
    (out, row, context, [rate]) => out.values[row] = isNull(context, at(rate, row)) ? NaN : unit(context),
  ),
  generator(
    "rnd_double",
    [],
    "DOUBLE",
    "A DOUBLE from 0 to 1.",
    (out, row, context) => out.values[row] = unit(context),
  ),
  generator(
    "rnd_double",
    [["nullRate", "INT"]],
    "DOUBLE",
    "A DOUBLE from 0 to 1. " + NULL_RATE,
    (out, row, context, [rate]) => out.values[row] = isNull(context, at(rate, row)) ? NaN : unit(context),
  ),
  generator(
    "rnd_char",
    [],
    "CHAR",
    "A capital letter.",
    (out, row, context) => out.values[row] = 65 + context.random() % 26,
  ),
  generator(
    "rnd_date",
    [],
    "DATE",
    "A DATE of the first 10,000 seconds of 1970.",
    (out, row, context) => out.values[row] = BigInt(below(context, DATE_END)),
  ),
  generator(
    "rnd_date",
    [["low", "DATE"], ["high", "DATE"], ["nullRate", "INT"]],
    "DATE",
    "A DATE from low to high. " + NULL_RATE,
    (out, row, context, [low, high, rate]) => {
      out.values[row] = isNull(context, at(rate, row)) ? NULL_I64 : between(context, at(low, row), at(high, row));
    },
    { check: checkRange },
  ),
  ...[["rnd_timestamp", "TIMESTAMP"], ["rnd_timestamp", "TIMESTAMP_NS"], ["rnd_timestamp_ns", "TIMESTAMP_NS"]].map(([
    name,
    type,
  ]) =>
    generator(
      name,
      [["low", type], ["high", type], ["nullRate", "INT"]],
      type,
      "A time from low to high. " + NULL_RATE,
      (out, row, context, [low, high, rate]) => {
        out.values[row] = isNull(context, at(rate, row)) ? NULL_I64 : between(context, at(low, row), at(high, row));
      },
      { check: checkRange },
    )
  ),
  generator("rnd_uuid4", [], "UUID", "A random UUID of version 4.", (out, row, context) => uuid(out, row, context)),
  generator(
    "rnd_uuid4",
    [["nullRate", "INT"]],
    "UUID",
    "A random UUID of version 4. " + NULL_RATE,
    (out, row, context, [rate]) => {
      if (isNull(context, at(rate, row))) out.setNull(row);
      else uuid(out, row, context);
    },
  ),
  generator(
    "rnd_ipv4",
    [],
    "IPv4",
    "Any address but 0.0.0.0.",
    (out, row, context) => out.values[row] = (context.random() | 0) || 1,
  ),
];

function uuid(out: BatchOut, row: number, context: FunctionContext): void {
  const high = (long(context) & ~0xf000n) | 0x4000n;
  const low = (long(context) & 0x3fffffffffffffffn) | BigInt.asIntN(64, 0x8000000000000000n);
  out.values[2 * row] = low;
  out.values[2 * row + 1] = high;
}

for (const [name, returns] of [["rnd_str", "STRING"], ["rnd_varchar", "VARCHAR"]]) {
  entries.push(
    generator(
      name,
      [],
      returns,
      `A text of ${SHORT_TEXT.low} to ${SHORT_TEXT.high} random capital letters.`,
      (out, row, context, _, pace) => {
        const length = lengthBetween(context, SHORT_TEXT.low, SHORT_TEXT.high);
        fillLetters(out.makeText(row, length), 0, length, context, pace);
      },
    ),
  );
}
for (const [name, returns] of [["rnd_str", "STRING"], ["rnd_varchar", "VARCHAR"], ["rnd_symbol", "SYMBOL_TEXT"]]) {
  entries.push(
    generator(
      name,
      [["low", "INT"], ["high", "INT"], ["nullRate", "INT"]],
      returns,
      "A text of low to high random capital letters. " + NULL_RATE,
      (out, row, context, [low, high, rate], pace) => {
        if (isNull(context, at(rate, row))) return out.setText(row, undefined);
        const fault = textRangeFault(at(low, row), at(high, row), 0, 0);
        if (fault !== undefined) fail(fault.message, context);
        const length = lengthBetween(context, at(low, row), at(high, row));
        fillLetters(out.makeText(row, length), 0, length, context, pace);
      },
      { check: checkTextRange },
    ),
    // A fixed number of different texts, made when the query starts.
    generator(
      name,
      [["count", "INT"], ["low", "INT"], ["high", "INT"], ["nullRate", "INT"]],
      returns,
      "One of `count` texts of low to high capital letters. " + NULL_RATE,
      (out, row, context, [count, low, high, rate], pace) => {
        let texts = context.state.get("texts") as Texts | undefined;
        if (texts === undefined) {
          texts = randomTexts(at(count, row), at(low, row), at(high, row), context, pace);
          context.state.set("texts", texts);
        }
        if (isNull(context, at(rate, row))) return out.setText(row, undefined);
        const k = below(context, texts.starts.length - 1);
        out.setText(row, texts.bytes.subarray(texts.starts[k], texts.starts[k + 1]));
      },
      { check: checkTexts },
    ),
    {
      name,
      args: [{ name: "text", type: "text", variadic: true }],
      returns,
      nulls: "custom",
      volatility: "volatile",
      summary: "One of the given texts.",
      examples: [{ sql: `${name}('only')`, gives: "only" }],
      batch: (columns, out, rowCount, context) => {
        for (let row = 0; row < rowCount; row++) {
          const column = columns[below(context, columns.length)];
          const length = column.values[2 * row + 1];
          if (length < 0) out.setNull(row);
          else out.setView(row, column.values[2 * row] >>> 0, length);
          if ((row & 4095) === 4095) context.poll();
        }
      },
    },
  );
}

/** The running sum of steps, from the start. It lives as long as the query. */
function sequence(): BatchFunction {
  return ([starts, steps], out, rowCount, context) => {
    let next = (context.state.get("next") as bigint | undefined) ?? starts.values[0];
    for (let row = 0; row < rowCount; row++) {
      out.values[row] = next;
      if (next !== NULL_I64) next += steps.values[row];
    }
    context.state.set("next", next);
  };
}
for (
  const [name, type] of [["timestamp_sequence", "TIMESTAMP"], ["timestamp_sequence", "TIMESTAMP_NS"], [
    "timestamp_sequence_ns",
    "TIMESTAMP_NS",
  ]]
) {
  entries.push({
    name,
    args: [{ name: "start", type }, { name: "step", type: "LONG" }],
    returns: type,
    nulls: "custom",
    volatility: "volatile",
    summary: "A time for each row: `start`, advanced by `step` for each row, in the time's unit.",
    examples: type === "TIMESTAMP"
      ? [{
        sql: "SELECT timestamp_sequence('2024-01-01', 1) FROM long_sequence(1)",
        gives: "2024-01-01T00:00:00.000000Z",
      }]
      : [],
    batch: sequence(),
  });
}

/** Table functions, which the binder turns into nodes. `gives`: the first value, if it is always the same. */
function source(
  name: string,
  args: FunctionEntry["args"],
  summary: string,
  sql: string,
  gives?: unknown,
): FunctionEntry {
  return {
    name,
    args,
    returns: "NULL",
    nulls: "custom",
    volatility: "volatile",
    summary,
    examples: [{ sql, gives }],
    table: true,
  };
}
const optional = (name: string, type: string) => ({ name, type, optional: true, constant: true });
const required = (name: string, type: string) => ({ name, type, constant: true });
entries.push(
  source(
    "long_sequence",
    [required("count", "LONG"), optional("seed1", "LONG"), optional("seed2", "LONG")],
    "A given number of rows with x from 1. With two seeds, random functions give the same values in each run.",
    "SELECT * FROM long_sequence(3)",
    1,
  ),
  source(
    "generate_series",
    [required("start", "any"), required("end", "any"), optional("step", "any")],
    "The numbers or times from `start` to `end`, inclusive, in steps of `step`. The default step of numbers is 1; times need one, such as '12h'.",
    "SELECT * FROM generate_series(1, 3)",
    1,
  ),
  source(
    "read_parquet",
    [required("file", "text")],
    "The rows of a Parquet file in the import directory.",
    "SELECT * FROM read_parquet('trades.parquet')",
  ),
  source(
    "parquet_scan",
    [required("file", "text")],
    "The rows of a Parquet file in the import directory.",
    "SELECT * FROM parquet_scan('trades.parquet')",
  ),
  source("tables", [], "A row for each table.", "SELECT table_name FROM tables()"),
  source(
    "table_columns",
    [required("table", "text")],
    "A row for each column of a table.",
    "SELECT * FROM table_columns('trades')",
  ),
  source(
    "table_partitions",
    [required("table", "text")],
    "A row for each partition of a table.",
    "SELECT * FROM table_partitions('trades')",
  ),
  source(
    "table_column_storage",
    [required("table", "text")],
    "A row for each column in each partition of a table: its stored rows, their bytes without encoding and in their files, and their " +
      "encodings. Rows that are not stored yet are in memory and in the log.",
    "SELECT column, rawSize, diskSize, encodings FROM table_column_storage('trades')",
  ),
  source("wal_tables", [], "A row for each table with a write-ahead log.", "SELECT name FROM wal_tables()"),
  source(
    "wal_transactions",
    [required("table", "text")],
    "The last transaction of a table, with its time if it is one since the start. The log is shared by all tables, so earlier ones are not listed.",
    "SELECT * FROM wal_transactions('trades')",
  ),
  source(
    "table_writer_metrics",
    [],
    "Commits and committed rows since the start. -1 means that a figure is not counted; `server_metrics()` has more.",
    "SELECT * FROM table_writer_metrics()",
  ),
  source(
    "files",
    [required("directory", "text")],
    "The files in a directory of the import or export directory (`cairo.sql.copy.root`, `cairo.sql.copy.export.root`) and in those below it.",
    "SELECT path, diskSize FROM files('2024')",
  ),
  source("import_files", [], "The files in the import directory.", "SELECT path, diskSize FROM import_files()"),
  source("export_files", [], "The files in the export directory.", "SELECT path, diskSize FROM export_files()"),
  source(
    "glob",
    [required("pattern", "text")],
    "The files in the import directory whose paths match: * stands for any text in a name, ? for one character, [..] for one of a set, and " +
      "the name ** for any number of directories. The paths are relative to that directory, as read_parquet() takes them.",
    "SELECT path, diskSize FROM glob('2024/**/*.parquet')",
  ),
  source("keywords", [], "A row for each keyword.", "SELECT keyword FROM keywords()"),
  source("functions", [], "A row for each function.", "SELECT name FROM functions()"),
);

export const generatorFunctions = entries;
