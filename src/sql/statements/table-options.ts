/** Options of tables that CREATE TABLE and ALTER TABLE share: keys of DEDUP, time to live, parameters. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { sameName } from "../../types/names.ts";
import type { Name } from "../ast.ts";
import { typeMismatch, unknownColumn } from "../binder/context.ts";
import type { PartitionUnit, TableParams } from "../plan.ts";
import type { Setting } from "./parts.ts";

/** The keys as sorted column indexes. `at`: the position for the error of a table without WAL. */
export function dedupKeys(
  written: { keys: readonly Name[]; at: number; wal: boolean },
  columns: readonly { name: string; type: string }[],
  timestamp: number,
): number[] {
  const keys: number[] = [];
  for (const name of written.keys) {
    const index = columns.findIndex((column) => sameName(column.name, name.text));
    if (index < 0) throw unknownColumn(name.text, name.at, columns);
    if (columns[index]!.type.endsWith("[]")) {
      throw typeMismatch(`${name.text} is an array, which cannot be a key`, name.at);
    }
    if (keys.includes(index)) throw new SqlError(`${name.text} is a key twice`, name.at, SQLSTATE.duplicateColumn);
    keys.push(index);
  }
  if (!written.wal) throw new SqlError("DEDUP needs a table with WAL", written.at);
  if (!keys.includes(timestamp)) {
    throw new SqlError("the keys of DEDUP must include the designated timestamp", written.keys[0]!.at);
  }
  return keys.sort((a, b) => a - b);
}

export interface WrittenTtl {
  at: number;
  text: string;
}

/** In hours; in months for units without a fixed length. */
const TTL_UNITS: Record<string, [size: number, calendar: boolean]> = {
  h: [1, false],
  hour: [1, false],
  d: [24, false],
  day: [24, false],
  w: [168, false],
  week: [168, false],
  m: [1, true],
  month: [1, true],
  y: [12, true],
  year: [12, true],
};

/** Returns undefined if the table has no time to live. */
export function parseTtl(ttl: WrittenTtl, partitionBy: PartitionUnit): { count: number; unit: string } | undefined {
  const [, digits = "", blank = "", rest = ""] = /^((?:\d+(?:_\d+)*)?)(\s*)(.*)$/.exec(ttl.text)!;
  const singular = rest.toLowerCase().replace(/s$/, "");
  const unit = TTL_UNITS[rest === "M" ? "m" : singular];
  if (unit === undefined || digits === "") {
    const at = ttl.at + digits.length + blank.length + (rest.startsWith(".") ? 1 : 0);
    throw new SqlError(
      `invalid time to live '${ttl.text}': expected a whole number of HOURS, DAYS, WEEKS, MONTHS or YEARS`,
      at,
      SQLSTATE.invalidParameter,
    );
  }
  const count = Number(digits.replaceAll("_", "")) * unit[0];
  if (count === 0) return undefined;
  if (partitionBy === "NONE") throw new SqlError("TTL needs partitions", ttl.at);
  const partition = TTL_UNITS[partitionBy.toLowerCase()]!;
  const fits = partition[1] ? unit[1] && count % partition[0] === 0 : unit[1] || count % partition[0] === 0;
  if (!fits) {
    throw new SqlError(
      `the time to live must be a multiple of a ${partitionBy.toLowerCase()}`,
      ttl.at,
      SQLSTATE.invalidParameter,
    );
  }
  if (count > TTL_MAX) {
    throw new SqlError(`a time to live of ${ttl.text} is too long`, ttl.at, SQLSTATE.invalidParameter);
  }
  if (unit[1]) return count % 12 === 0 ? { count: count / 12, unit: "YEAR" } : { count, unit: "MONTH" };
  if (count % 168 === 0) return { count: count / 168, unit: "WEEK" };
  return count % 24 === 0 ? { count: count / 24, unit: "DAY" } : { count, unit: "HOUR" };
}

/** In hours or months. */
const TTL_MAX = 2 ** 31 - 1;

/** Microseconds. */
const LAG_UNITS: Record<string, number> = { us: 1, ms: 1_000, s: 1e6, m: 6e7, h: 3.6e9, d: 8.64e10 };

/**
 * @throws {SqlError} for an unknown parameter, at its start or at the end of its value, and for an invalid value.
 */
export function tableParams(settings: readonly Setting[], unknownAt: "at" | "end"): TableParams {
  return Object.assign({}, ...settings.map((setting) => paramOf(setting, unknownAt)));
}

function paramOf(setting: Setting, unknownAt: "at" | "end"): TableParams {
  const { name, at, value } = setting;
  switch (name.toLowerCase()) {
    case "maxuncommittedrows": {
      const maxUncommittedRows = /^\d+$/.test(value) ? Number(value) : -1;
      if (maxUncommittedRows >= 0 && maxUncommittedRows < 2 ** 31) return { maxUncommittedRows };
      throw new SqlError(
        `invalid maxUncommittedRows ${value}: expected a number of rows`,
        at,
        SQLSTATE.invalidParameter,
      );
    }
    case "o3maxlag": {
      const [, digits = "", unit = ""] = /^(\d*)(.*)$/s.exec(value)!;
      const size = LAG_UNITS[unit];
      if (digits !== "" && size !== undefined) return { o3MaxLagMicros: Number(digits) * size };
      throw new SqlError(
        `invalid o3MaxLag ${value}: expected a time with its unit, such as 10s`,
        at + (digits.length || 1),
        SQLSTATE.invalidParameter,
      );
    }
    default:
      throw new SqlError(`there is no setting ${name}`, setting[unknownAt], SQLSTATE.invalidParameter);
  }
}
