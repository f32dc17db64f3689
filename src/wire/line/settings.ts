/** What lines may create, over HTTP and TCP. */
import { bool, decimalType, int, oneOf, size } from "../../config/mod.ts";

export const lineSettings = {
  linePartitionBy: oneOf(
    "line.default.partition.by",
    ["NONE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"],
    "DAY",
    "Partitioning of tables that the line protocol makes.",
    { aliases: ["line.tcp.default.partition.by"] },
  ),
  lineCreatesTables: bool("line.auto.create.new.tables", true, "Makes tables that do not exist."),
  lineCreatesColumns: bool("line.auto.create.new.columns", true, "Makes columns that do not exist."),
  lineTypes: {
    float: oneOf("line.float.default.column.type", ["DOUBLE", "FLOAT"], "DOUBLE", "Type of new columns for numbers."),
    integer: oneOf(
      "line.integer.default.column.type",
      ["LONG", "INT", "SHORT", "BYTE"],
      "LONG",
      "Type of new columns for whole numbers.",
    ),
    decimal: decimalType("line.decimal.default.column.type", "DECIMAL(38,18)", "Type of new columns for decimals."),
  },
  lineLimits: {
    /** Bytes of a line. */
    sizeMax: size("line.tcp.max.measurement.size", "16m", "Longest line, over HTTP too. A longer one is at fault.", {
      min: 1024,
      aliases: ["line.tcp.msg.buffer.size", "line.tcp.max.recv.buffer.size"],
    }),
    newTablesMax: int("line.auto.create.new.tables.max", 1_000, "Most tables that one request can make.", { min: 1 }),
    newColumnsMax: int("line.auto.create.new.columns.max", 10_000, "Most columns that one request can make.", {
      min: 1,
    }),
    memoryBytesMax: size(
      "line.memory.size",
      "1g",
      "Rows of line-protocol requests that wait for their commit. A request above it waits for the others, or is refused.",
      { min: 2 ** 20 },
    ),
  },
};

/** How the listeners treat a bad line. */
export const lineErrorSettings = {
  showsLines: bool(
    "line.log.message.on.error",
    true,
    "Shows the line at fault in the log, and not only what is wrong with it.",
  ),
};
