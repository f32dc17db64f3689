/** Random values and sequences: another value in every row. The seed is the query's, so long_sequence(n, a, b) repeats itself. */
import type { BatchColumn, BatchFunction, BatchOut, FunctionContext, FunctionEntry } from "./entry.ts";

const NULL_INT = -2147483648;
const NULL_LONG = -9223372036854775808n;

function generator(
  name: string,
  args: [name: string, type: string][],
  returns: string,
  summary: string,
  row: (out: BatchOut, row: number, context: FunctionContext, args: BatchColumn[]) => void,
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
      for (let i = 0; i < rowCount; i++) {
        row(out, i, context, columns);
        if ((i & 4095) === 4095) context.poll();
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
/** low … high */
const between = (context: FunctionContext, low: bigint, high: bigint) =>
  low + BigInt.asUintN(64, long(context)) % (high - low + 1n);
/** One row in `rate + 1` is null; 0: none. */
export const isNull = (context: FunctionContext, rate: number) => rate > 0 && context.random() % (rate + 1) === 0;

/** Bounds come as constants or columns. */
const at = (column: BatchColumn, row: number) => column.values[row];

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
function letters(context: FunctionContext, low: number, high: number): string {
  const length = low + below(context, high - low + 1);
  let text = "";
  for (let i = 0; i < length; i++) text += LETTERS[context.random() % 26];
  return text;
}

const checkRange: FunctionEntry["check"] = ([low, high, rate]) =>
  low !== undefined && high !== undefined && low !== null && high !== null && low >= high
    ? { message: "the lower bound is not below the upper one" }
    : typeof rate === "number" && rate < 0
    ? { message: "the rate of nulls is negative", argument: 2 }
    : undefined;

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
    (out, row, context, [low, high]) =>
      out.values[row] = at(low, row) + below(context, at(high, row) - at(low, row) + 1),
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
    (out, row, context, [low, high]) =>
      out.values[row] = at(low, row) + below(context, at(high, row) - at(low, row) + 1),
    { check: checkRange },
  ),
  generator("rnd_int", [], "INT", "Any INT but null.", (out, row, context) => {
    const value = context.random() | 0;
    out.values[row] = value === NULL_INT ? 0 : value;
  }),
  generator(
    "rnd_int",
    [["low", "INT"], ["high", "INT"], ["nullRate", "INT"]],
    "INT",
    "An INT from low to high; with a rate n above 0, one row in n + 1 is null.",
    (out, row, context, [low, high, rate]) => {
      out.values[row] = isNull(context, at(rate, row))
        ? NULL_INT
        : at(low, row) + below(context, at(high, row) - at(low, row) + 1);
    },
    { check: checkRange },
  ),
  generator("rnd_long", [], "LONG", "Any LONG but null.", (out, row, context) => {
    const value = long(context);
    out.values[row] = value === NULL_LONG ? 0n : value;
  }),
  generator(
    "rnd_long",
    [["low", "LONG"], ["high", "LONG"], ["nullRate", "INT"]],
    "LONG",
    "A LONG from low to high; with a rate n above 0, one row in n + 1 is null.",
    (out, row, context, [low, high, rate]) => {
      out.values[row] = isNull(context, at(rate, row)) ? NULL_LONG : between(context, at(low, row), at(high, row));
    },
    { check: checkRange },
  ),
  generator("rnd_float", [], "FLOAT", "A FLOAT from 0 to 1.", (out, row, context) => out.values[row] = unit(context)),
  generator(
    "rnd_float",
    [["nullRate", "INT"]],
    "FLOAT",
    "A FLOAT from 0 to 1, or null.",
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
    "A DOUBLE from 0 to 1, or null.",
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
    [["low", "DATE"], ["high", "DATE"], ["nullRate", "INT"]],
    "DATE",
    "A DATE from low to high, or null.",
    (out, row, context, [low, high, rate]) => {
      out.values[row] = isNull(context, at(rate, row)) ? NULL_LONG : between(context, at(low, row), at(high, row));
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
      "A time from low to high, or null.",
      (out, row, context, [low, high, rate]) => {
        out.values[row] = isNull(context, at(rate, row)) ? NULL_LONG : between(context, at(low, row), at(high, row));
      },
      { check: checkRange },
    )
  ),
  generator("rnd_uuid4", [], "UUID", "A random UUID of version 4.", (out, row, context) => uuid(out, row, context)),
  generator(
    "rnd_uuid4",
    [["nullRate", "INT"]],
    "UUID",
    "A random UUID of version 4, or null.",
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

for (const [name, returns] of [["rnd_str", "STRING"], ["rnd_varchar", "VARCHAR"], ["rnd_symbol", "SYMBOL_TEXT"]]) {
  entries.push(
    generator(
      name,
      [["low", "INT"], ["high", "INT"], ["nullRate", "INT"]],
      returns,
      "Capital letters, low to high of them, or null.",
      (out, row, context, [low, high, rate]) => {
        out.setText(row, isNull(context, at(rate, row)) ? undefined : letters(context, at(low, row), at(high, row)));
      },
      { check: checkRange },
    ),
    // A fixed number of different texts, made when the query starts.
    generator(
      name,
      [["count", "INT"], ["low", "INT"], ["high", "INT"], ["nullRate", "INT"]],
      returns,
      "One of count texts of low to high capital letters, or null.",
      (out, row, context, [count, low, high, rate]) => {
        let texts = context.state.get("texts") as string[] | undefined;
        if (texts === undefined) {
          const size = Math.max(1, Math.min(at(count, row), 1_000_000));
          context.state.set(
            "texts",
            texts = Array.from({ length: size }, () => letters(context, at(low, row), at(high, row))),
          );
        }
        out.setText(row, isNull(context, at(rate, row)) ? undefined : texts[below(context, texts.length)]);
      },
    ),
    {
      name,
      args: [{ name: "text", type: "text", variadic: true }],
      returns,
      nulls: "custom",
      volatility: "volatile",
      summary: "One of the texts.",
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

/** The start, and each row's step added for the next one. The sum lives as long as the query. */
function sequence(): BatchFunction {
  return ([starts, steps], out, rowCount, context) => {
    let next = (context.state.get("next") as bigint | undefined) ?? starts.values[0];
    for (let row = 0; row < rowCount; row++) {
      out.values[row] = next;
      if (next !== NULL_LONG) next += steps.values[row];
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
    summary: "A time for each row: the start, then always the row's step later, in the time's unit.",
    examples: type === "TIMESTAMP"
      ? [{
        sql: "SELECT timestamp_sequence('2024-01-01', 1) FROM long_sequence(1)",
        gives: "2024-01-01T00:00:00.000000Z",
      }]
      : [],
    batch: sequence(),
  });
}

/** Sources of rows: the binder makes nodes of them. */
function source(name: string, args: FunctionEntry["args"], summary: string, sql: string): FunctionEntry {
  return {
    name,
    args,
    returns: "NULL",
    nulls: "custom",
    volatility: "volatile",
    summary,
    examples: [{ sql }],
    table: true,
  };
}
const optional = (name: string, type: string) => ({ name, type, optional: true, constant: true });
const required = (name: string, type: string) => ({ name, type, constant: true });
entries.push(
  source(
    "long_sequence",
    [required("count", "LONG"), optional("seed1", "LONG"), optional("seed2", "LONG")],
    "So many rows: x from 1. Two seeds make random functions repeat themselves.",
    "SELECT * FROM long_sequence(3)",
  ),
  source(
    "generate_series",
    [required("start", "any"), required("end", "any"), optional("step", "any")],
    "The numbers or times from start to end, both included.",
    "SELECT * FROM generate_series(1, 3)",
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
  source("wal_tables", [], "A row for each table with a write-ahead log.", "SELECT name FROM wal_tables()"),
  source("keywords", [], "A row for each keyword.", "SELECT keyword FROM keywords()"),
  source("functions", [], "A row for each function.", "SELECT name FROM functions()"),
);

export const generatorFunctions = entries;
