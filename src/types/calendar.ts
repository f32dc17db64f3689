/** Calendar arithmetic. Instants are counted in units (`unitsADay` of them a day) since 1970 UTC. */
import { civilOfDay } from "./format/time.ts";
import { dayOfCivil, daysInMonth } from "./parse/time.ts";

/** Units of durations as written in SQL, with their length in nanoseconds; M and y have no fixed length. */
export const UNIT_NANOS: Readonly<Record<string, bigint>> = {
  n: 1n,
  u: 1000n,
  U: 1000n,
  T: 1000000n,
  s: 1000000000n,
  m: 60000000000n,
  h: 3600000000000n,
  d: 86400000000000n,
  w: 604800000000000n,
};

/** The time types, with the length of their units in nanoseconds. */
export const TIME_NANOS: Readonly<Record<string, bigint>> = { DATE: 1_000_000n, TIMESTAMP: 1000n, TIMESTAMP_NS: 1n };

/** Length of a time type's unit in nanoseconds. Others count nanoseconds. */
export function nanosOf(tag: string): bigint {
  return TIME_NANOS[tag] ?? 1n;
}

export function floorDivide(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b < 0n ? quotient - 1n : quotient;
}

/** Adds `months`; the day is limited to the length of the month. */
export function addMonths(value: bigint, months: number, unitsADay: bigint): bigint {
  const day = floorDivide(value, unitsADay);
  const civil = civilOfDay(Number(day));
  const index = civil.year * 12 + civil.month - 1 + months;
  const year = Math.floor(index / 12), month = index - year * 12 + 1;
  return value + (BigInt(dayOfCivil(year, month, Math.min(civil.day, daysInMonth(year, month)))) - day) * unitsADay;
}

/** Adds `years`; 29 February becomes 1 March in a year without one. */
export function addYears(value: bigint, years: number, unitsADay: bigint): bigint {
  const day = floorDivide(value, unitsADay);
  const civil = civilOfDay(Number(day));
  const cut = daysInMonth(civil.year + years, civil.month);
  const target = dayOfCivil(civil.year + years, civil.month, Math.min(civil.day, cut)) + (civil.day > cut ? 1 : 0);
  return value + (BigInt(target) - day) * unitsADay;
}

/** Adds `count` units; undefined for an unknown unit. `nanosAUnit` is `nanosOf` the value's type. */
export function addUnits(value: bigint, count: number, unit: string, nanosAUnit: bigint): bigint | undefined {
  const unitsADay = 86400000000000n / nanosAUnit;
  if (unit === "M") return addMonths(value, count, unitsADay);
  if (unit === "y") return addYears(value, count, unitsADay);
  const nanos = UNIT_NANOS[unit];
  return nanos === undefined ? undefined : value + BigInt(count) * nanos / nanosAUnit;
}

/** Parses an offset of buckets, `[+-]HH:mm`, into the unit of a time type. Undefined for other texts. */
export function parseBucketOffset(text: string, type: string): bigint | undefined {
  const match = /^([+-]?)(\d\d):(\d\d)$/.exec(text);
  if (match === null || Number(match[2]) > 23 || Number(match[3]) > 59) return undefined;
  const offset = (BigInt(match[2]!) * 60n + BigInt(match[3]!)) * UNIT_NANOS.m! / nanosOf(type);
  return match[1] === "-" ? -offset : offset;
}
