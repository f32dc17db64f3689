/** Functions that require OVER. The window operator knows them by name; aggregates are allowed with OVER too. */
import type { FunctionEntry } from "./entry.ts";

function ranking(name: string, returns: string, summary: string): FunctionEntry {
  return {
    name,
    args: [],
    returns,
    nulls: "custom",
    volatility: "immutable",
    summary,
    examples: [{
      sql: `SELECT ${name}() OVER (ORDER BY x) FROM long_sequence(1)`,
      gives: name === "percent_rank" ? 0 : 1,
    }],
    window: true,
  };
}

const entries: FunctionEntry[] = [
  ranking("row_number", "LONG", "The number of the row in its partition, from 1."),
  ranking(
    "rank",
    "LONG",
    "The rank of the row: the number of the first of its peers. Equal rows share a rank, followed by a gap.",
  ),
  ranking("dense_rank", "LONG", "The rank of the row without gaps: the number of its group of peers."),
  ranking("percent_rank", "DOUBLE", "(rank - 1) / (rows - 1); 0 for a single row."),
  ranking("cume_dist", "DOUBLE", "The share of the partition's rows up to the last peer of the row."),
  {
    name: "ntile",
    args: [{ name: "count", type: "LONG", constant: true }],
    returns: "LONG",
    nulls: "custom",
    volatility: "immutable",
    summary:
      "The number of the row's part, from 1, if the partition is divided into `count` parts. If it does not divide evenly, the first parts have one row more.",
    examples: [{ sql: "SELECT ntile(4) OVER (ORDER BY x) FROM long_sequence(1)", gives: 1 }],
    window: true,
    check: ([count]) => positiveFault("ntile", count, 0),
  },
];

/** Reports a constant that is no number from 1. */
function positiveFault(
  name: string,
  value: unknown,
  argument: number,
): { argument: number; message: string } | undefined {
  if (value === undefined || (value !== null && Number(value) >= 1)) return undefined;
  return { argument, message: `${name}: expected a number from 1: found ${value ?? "null"}` };
}

/** INT and narrower types become LONG, and FLOAT becomes DOUBLE, by implicit casts. */
const VALUES = [
  "LONG",
  "DOUBLE",
  "DATE",
  "TIMESTAMP",
  "TIMESTAMP_NS",
  "SYMBOL",
  "STRING",
  "VARCHAR",
  "SYMBOL_TEXT",
  "BOOLEAN",
  "CHAR",
  "UUID",
  "IPv4",
];
for (const type of VALUES) {
  for (
    const [name, summary] of [["lag", "The value a number of rows earlier (default 1)."], [
      "lead",
      "The value a number of rows later (default 1).",
    ]]
  ) {
    entries.push({
      name,
      args: [{ name: "value", type }, { name: "offset", type: "LONG", constant: true, optional: true }, {
        name: "default",
        type: type === "SYMBOL" ? "SYMBOL" : type,
        optional: true,
      }],
      returns: type,
      nulls: "custom",
      volatility: "immutable",
      summary,
      examples: type === "LONG"
        ? [{ sql: `SELECT ${name}(x) OVER (ORDER BY x) FROM long_sequence(1)`, gives: null }]
        : [],
      window: true,
      check: ([, offset]) =>
        (typeof offset === "number" || typeof offset === "bigint") && offset < 0
          ? { argument: 1, message: `${name}: the offset must not be negative: found ${offset}` }
          : undefined,
    });
  }
  entries.push({
    name: "nth_value",
    args: [{ name: "value", type }, { name: "n", type: "LONG", constant: true }],
    returns: type,
    nulls: "custom",
    volatility: "immutable",
    summary: "The value of the frame's row n, from 1. Null if the frame has fewer rows.",
    examples: type === "LONG"
      ? [{ sql: "SELECT nth_value(x, 2) OVER (ORDER BY x) FROM long_sequence(1)", gives: null }]
      : [],
    window: true,
    check: ([, n]) => positiveFault("nth_value", n, 1),
  });
  for (
    const [name, summary] of [["first_value", "The value of the frame's first row."], [
      "last_value",
      "The value of the frame's last row.",
    ]]
  ) {
    entries.push({
      name,
      args: [{ name: "value", type }],
      returns: type,
      nulls: "custom",
      volatility: "immutable",
      summary,
      examples: [],
      window: true,
    });
  }
}

const UNITS = /^(?:microsecond|millisecond|second|minute|hour|day|week)s?$/;

/** Checks `n` for the kind of exponential average. */
function averageProblem(kind: unknown, n: unknown): { argument: number; message: string } | undefined {
  const word = String(kind).toLowerCase(), number = Number(n);
  if (word !== "alpha" && word !== "period" && !UNITS.test(word)) {
    return {
      argument: 1,
      message: `avg: unknown kind of average '${kind}': expected alpha, period or a unit of time`,
    };
  }
  if (!(number > 0)) return { argument: 2, message: `avg: expected a positive number: found ${n}` };
  return word === "alpha" && number > 1 ? { argument: 2, message: `avg: ${n} is above 1` } : undefined;
}

entries.push({
  name: "avg",
  args: [
    { name: "value", type: "DOUBLE" },
    { name: "kind", type: "text", constant: true },
    { name: "n", type: "DOUBLE", constant: true },
    { name: "volume", type: "DOUBLE", optional: true },
  ],
  returns: "DOUBLE",
  nulls: "custom",
  volatility: "immutable",
  summary:
    "The exponential average up to the row: with factor n ('alpha'), over n rows ('period') or over n units of time " +
    "('second', 'minute' …), optionally weighted by a volume.",
  examples: [{ sql: "SELECT avg(x, 'alpha', 0.5) OVER (ORDER BY x) FROM long_sequence(1)", gives: 1 }],
  window: true,
  check: ([, kind, n]) => averageProblem(kind, n),
});

export const windowFunctions = entries;
