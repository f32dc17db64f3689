/** Parts of times: year, hour, extract … All are emitted. */
import { bind, i32, i64, type IrNode, select } from "../../engine/compiler/ir.ts";
import { civil, dayOfMonthStart, floorDiv64, floorMod64, isLeap, weekday } from "./calendar-nodes.ts";
import type { FunctionEntry } from "./entry.ts";

const UNITS_A_SECOND: Record<string, bigint> = { DATE: 1000n, TIMESTAMP: 1000000n, TIMESTAMP_NS: 1000000000n };

interface Part {
  name: string;
  /** Alternative names in extract. */
  units: string[];
  summary: string;
  returns?: "INT" | "LONG" | "BOOLEAN";
  emit: (time: IrNode, unitsASecond: bigint) => IrNode;
  example: unknown;
  /** Only available in extract. */
  hidden?: boolean;
}

const c = i32.const;
const day = (t: IrNode, u: bigint) => i32.wrap(floorDiv64(t, 86400n * u));
const ofDay = (t: IrNode, u: bigint, seconds: bigint, modulo: number) =>
  i32.remS(i32.wrap(i64.divS(floorMod64(t, 86400n * u), i64.const(seconds * u))), c(modulo));
/** The fraction of the second, in units of 1/`scale` seconds. */
const fraction = (t: IrNode, u: bigint, scale: bigint) =>
  u < scale
    ? i32.mul(i32.wrap(floorMod64(t, u)), c(Number(scale / u)))
    : i32.wrap(i64.divS(floorMod64(t, u), i64.const(u / scale)));
const group = (t: IrNode, u: bigint, scale: bigint) => i32.remS(fraction(t, u, scale), c(1000));
const year = (t: IrNode, u: bigint) => civil(day(t, u), (date) => date.year);
const dayOfYear = (t: IrNode, u: bigint) =>
  bind(day(t, u), (d) => civil(d, (date) => i32.add(i32.sub(d, dayOfMonthStart(date.year, c(1))), c(1))));
/** The Thursday of a week is in the week's year. */
const thursday = (t: IrNode, u: bigint) => bind(day(t, u), (d) => i32.add(i32.sub(d, weekday(d)), c(3)));
const upwards = (y: IrNode, by: number) =>
  bind(
    y,
    (value) =>
      select(i32.gtS(value, c(0)), i32.divS(i32.add(value, c(by - 1)), c(by)), i32.sub(i32.divS(value, c(by)), c(1))),
  );

const PARTS: Part[] = [
  { name: "year", units: ["year", "years"], summary: "The year.", emit: year, example: 2024 },
  {
    name: "month",
    units: ["month", "months"],
    summary: "The month, 1 to 12.",
    emit: (t, u) => civil(day(t, u), (date) => date.month),
    example: 2,
  },
  {
    name: "day",
    units: ["day", "days"],
    summary: "The day of the month.",
    emit: (t, u) => civil(day(t, u), (date) => date.day),
    example: 29,
  },
  {
    name: "hour",
    units: ["hour", "hours"],
    summary: "The hour, 0 to 23.",
    emit: (t, u) => ofDay(t, u, 3600n, 24),
    example: 12,
  },
  {
    name: "minute",
    units: ["minute", "minutes"],
    summary: "The minute of the hour.",
    emit: (t, u) => ofDay(t, u, 60n, 60),
    example: 34,
  },
  {
    name: "second",
    units: ["second", "seconds"],
    summary: "The second of the minute.",
    emit: (t, u) => ofDay(t, u, 1n, 60),
    example: 56,
  },
  {
    name: "millis",
    units: [],
    summary: "The milliseconds of the second.",
    emit: (t, u) => group(t, u, 1000n),
    example: 789,
  },
  {
    name: "micros",
    units: [],
    summary: "The microseconds of the millisecond.",
    emit: (t, u) => (u < 1000000n ? c(0) : group(t, u, 1000000n)),
    example: 123,
  },
  {
    name: "nanos",
    units: [],
    summary: "The nanoseconds of the microsecond.",
    emit: (t, u) => (u < 1000000000n ? c(0) : group(t, u, 1000000000n)),
    example: 0,
  },
  {
    name: "day_of_week",
    units: ["isodow"],
    summary: "The day of the week, Monday 1 to Sunday 7.",
    emit: (t, u) => i32.add(weekday(day(t, u)), c(1)),
    example: 4,
  },
  {
    name: "day_of_week_sunday_first",
    units: [],
    summary: "The day of the week, Sunday 1 to Saturday 7.",
    emit: (t, u) => i32.add(i32.remS(i32.add(weekday(day(t, u)), c(1)), c(7)), c(1)),
    example: 5,
  },
  {
    name: "week_of_year",
    units: ["week"],
    summary: "The ISO week.",
    emit: (t, u) =>
      bind(
        thursday(t, u),
        (d) => civil(d, (date) => i32.add(i32.divS(i32.sub(d, dayOfMonthStart(date.year, c(1))), c(7)), c(1))),
      ),
    example: 9,
  },
  {
    name: "days_in_month",
    units: [],
    summary: "The days of its month.",
    emit: (t, u) =>
      civil(day(t, u), (date) =>
        bind(date.month, (month) =>
          select(
            i32.eq(month, c(2)),
            i32.add(c(28), isLeap(date.year)),
            i32.sub(
              c(31),
              i32.or(
                i32.or(i32.eq(month, c(4)), i32.eq(month, c(6))),
                i32.or(i32.eq(month, c(9)), i32.eq(month, c(11))),
              ),
            ),
          ))),
    example: 29,
  },
  {
    name: "is_end_of_month",
    units: [],
    summary: "True on the last day of a month.",
    returns: "BOOLEAN",
    emit: (t, u) => civil(i32.add(day(t, u), c(1)), (next) => i32.eq(next.day, c(1))),
    example: true,
  },
  {
    name: "is_leap_year",
    units: [],
    summary: "True if its year is a leap year.",
    returns: "BOOLEAN",
    emit: (t, u) => isLeap(year(t, u)),
    example: true,
  },
  {
    name: "extract_quarter",
    units: ["quarter"],
    hidden: true,
    summary: "The quarter.",
    emit: (t, u) => civil(day(t, u), (date) => i32.divS(i32.add(date.month, c(2)), c(3))),
    example: 1,
  },
  { name: "extract_doy", units: ["doy"], hidden: true, summary: "The day of the year.", emit: dayOfYear, example: 60 },
  {
    name: "extract_dow",
    units: ["dow"],
    hidden: true,
    summary: "The day of the week, Sunday 0.",
    emit: (t, u) => i32.remS(i32.add(weekday(day(t, u)), c(1)), c(7)),
    example: 4,
  },
  {
    name: "extract_isoyear",
    units: ["isoyear"],
    hidden: true,
    summary: "The year of the ISO week.",
    emit: (t, u) => civil(thursday(t, u), (date) => date.year),
    example: 2024,
  },
  {
    name: "extract_decade",
    units: ["decade", "decades"],
    hidden: true,
    summary: "The year divided by ten.",
    emit: (t, u) => i32.divS(year(t, u), c(10)),
    example: 202,
  },
  {
    name: "extract_century",
    units: ["century", "centuries"],
    hidden: true,
    summary: "The century; 2001 is the first year of the 21st.",
    emit: (t, u) => upwards(year(t, u), 100),
    example: 21,
  },
  {
    name: "extract_millennium",
    units: ["millennium", "millenniums", "millennia"],
    hidden: true,
    summary: "The millennium; 2001 is the first year of the 3rd.",
    emit: (t, u) => upwards(year(t, u), 1000),
    example: 3,
  },
  {
    name: "extract_epoch",
    units: ["epoch"],
    hidden: true,
    returns: "LONG",
    summary: "Seconds since 1970, truncated.",
    emit: (t, u) => i64.divS(t, i64.const(u)),
    example: 1709210096,
  },
  {
    name: "extract_milliseconds",
    units: ["millisecond", "milliseconds"],
    hidden: true,
    summary: "The fraction of the second in milliseconds.",
    emit: (t, u) => fraction(t, u, 1000n),
    example: 789,
  },
  {
    name: "extract_microseconds",
    units: ["microsecond", "microseconds"],
    hidden: true,
    summary: "The fraction of the second in microseconds.",
    emit: (t, u) => fraction(t, u, 1000000n),
    example: 789123,
  },
  {
    name: "extract_nanoseconds",
    units: ["nanosecond", "nanoseconds"],
    hidden: true,
    summary: "The fraction of the second in nanoseconds.",
    emit: (t, u) => fraction(t, u, 1000000000n),
    example: 789123000,
  },
];

const entries: FunctionEntry[] = PARTS.map((part) => ({
  name: part.name,
  args: [{ name: "time", type: "time" }],
  returns: part.returns ?? "INT",
  nulls: "propagate",
  volatility: "immutable",
  summary: part.summary,
  examples: [{
    sql: `${part.hidden ? `extract(${part.units[0]} from ` : `${part.name}(`}'2024-02-29T12:34:56.789123Z'::timestamp)`,
    gives: part.example,
  }],
  emit: ([time], [type]) => part.emit(time, UNITS_A_SECOND[type]),
}));

const BY_UNIT = new Map(PARTS.flatMap((part) => part.units.map((unit) => [unit, part])));

/** Rewritten to the entry of its unit. */
entries.push({
  name: "extract",
  args: [{ name: "unit", type: "text", constant: true }, { name: "time", type: "time" }],
  returns: "INT",
  nulls: "propagate",
  volatility: "immutable",
  summary: `A part of a time: ${[...BY_UNIT.keys()].filter((unit) => !unit.endsWith("s")).join(", ")}.`,
  examples: [{ sql: "extract(hour from '2024-02-29T12:34:56.789123Z'::timestamp)", gives: 12 }],
  check: (
    [unit],
  ) => (BY_UNIT.has(String(unit).toLowerCase())
    ? undefined
    : { argument: 0, message: `extract: unknown part of a time '${unit}'` }),
  rewrite: ([unit]) => ({ name: BY_UNIT.get(String(unit).toLowerCase())!.name, args: [1] }),
});

export const timePartFunctions = entries;
