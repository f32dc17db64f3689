/** Settings for tables and columns that lines create, over HTTP and TCP. */
import { bool, decimalType, int, memoryShare, oneOf, size } from "../../config/mod.ts";

export const lineSettings = {
  linePartitionBy: oneOf(
    "line.default.partition.by",
    ["NONE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"],
    "DAY",
    "Partitioning of tables that the line protocol creates.",
    { aliases: ["line.tcp.default.partition.by"] },
  ),
  lineCreatesTables: bool("line.auto.create.new.tables", true, "Creates tables that do not exist."),
  lineCreatesColumns: bool("line.auto.create.new.columns", true, "Creates columns that do not exist."),
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
    /** Maximum size of a line in bytes. */
    sizeMax: size(
      "line.tcp.max.measurement.size",
      "16m",
      "Maximum size of a line, also over HTTP. Longer lines are invalid.",
      {
        min: 1024,
        aliases: ["line.tcp.msg.buffer.size", "line.tcp.max.recv.buffer.size"],
      },
    ),
    newTablesMax: int(
      "line.auto.create.new.tables.max",
      1_000,
      "Maximum number of tables that one request can create.",
      { min: 1 },
    ),
    newColumnsMax: int(
      "line.auto.create.new.columns.max",
      10_000,
      "Maximum number of columns that one request can create.",
      {
        min: 1,
      },
    ),
    memoryBytesMax: size(
      "line.memory.size",
      memoryShare(8, { maxMib: 1024 }),
      "Memory for line-protocol rows that wait for their commit. A request above it waits for the others, or is refused.",
      { min: 2 ** 20, defaultSaid: "an eighth of the machine's memory, at most 1g" },
    ),
  },
};

/** How the listeners treat a bad line. */
export const lineErrorSettings = {
  showsLines: bool(
    "line.log.message.on.error",
    true,
    "Includes the invalid line in the log, in addition to the error.",
  ),
};
