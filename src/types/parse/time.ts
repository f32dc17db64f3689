/**
 * Parses instants from ASCII:
 *
 *     yyyy[-MM[-dd[(T| )HH[:mm[:ss[.f…]]]]]][Z | ±hh[[:]mm]]       f…: 1 to 9 digits; a zone needs a time or a day
 */
import { NULL_I64 } from "../layout.ts";

/** The finest part in the text. It determines the width of an interval. */
export type Precision = "year" | "month" | "day" | "hour" | "minute" | "second" | "milli" | "micro" | "nano";

/** The result of `parseInstant`, as separate fields to avoid an object for each row. */
export const instant = {
  /** Since 1970, UTC. */
  second: 0,
  /** 0 … 999,999,999 */
  nano: 0,
  precision: "year" as Precision,
  /** A Z or an offset was given. */
  zoned: false,
  /** A blank separates date and time, instead of T. */
  blank: false,
};

const DAYS_BEFORE_MONTH = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const DAYS_IN_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function isLeapYear(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

/** `month` is 1 … 12. */
export function daysInMonth(year: number, month: number): number {
  return month === 2 && isLeapYear(year) ? 29 : DAYS_IN_MONTH[month - 1]!;
}

/** Days since 1970 of a date in the (proleptic) Gregorian calendar. `month` is 1 … 12. */
export function dayOfCivil(year: number, month: number, day: number): number {
  const before = year - 1;
  const leapDays = Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400) - 477;
  return (year - 1970) * 365 + leapDays + DAYS_BEFORE_MONTH[month - 1]! + (month > 2 && isLeapYear(year) ? 1 : 0) +
    day -
    1;
}

/** Two digits at `at`, or -1. */
function pair(bytes: Uint8Array, at: number): number {
  const tens = bytes[at]! - 48, ones = bytes[at + 1]! - 48;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : -1;
}

const MINUS = 45, PLUS = 43, COLON = 58, POINT = 46, UPPER_T = 84, BLANK = 32, UPPER_Z = 90;

/** Parses `bytes[from … to)` into `instant`; false if it is invalid. */
export function parseInstant(bytes: Uint8Array, from: number, to: number): boolean {
  let at = from;
  if (to - at < 4) return false;
  const century = pair(bytes, at), ofCentury = pair(bytes, at + 2);
  if (century < 0 || ofCentury < 0) return false;
  const year = century * 100 + ofCentury;
  at += 4;
  let month = 1, day = 1, hour = 0, minute = 0, second = 0, nano = 0;
  let precision: Precision = "year";
  instant.zoned = false;
  instant.blank = false;
  parts: {
    if (at === to) break parts;
    if (bytes[at] !== MINUS || to - at < 3) return false;
    month = pair(bytes, at + 1);
    if (month < 1 || month > 12) return false;
    at += 3;
    precision = "month";
    if (at === to) break parts;
    if (bytes[at] !== MINUS || to - at < 3) return false;
    day = pair(bytes, at + 1);
    if (day < 1 || day > daysInMonth(year, month)) return false;
    at += 3;
    precision = "day";
    if (at === to || bytes[at] === UPPER_Z) break parts;
    instant.blank = bytes[at] === BLANK;
    if ((bytes[at] !== UPPER_T && !instant.blank) || to - at < 3) return false;
    hour = pair(bytes, at + 1);
    if (hour < 0 || hour > 23) return false;
    at += 3;
    precision = "hour";
    if (at === to || bytes[at] !== COLON) break parts;
    if (to - at < 3) return false;
    minute = pair(bytes, at + 1);
    if (minute < 0 || minute > 59) return false;
    at += 3;
    precision = "minute";
    if (at === to || bytes[at] !== COLON) break parts;
    if (to - at < 3) return false;
    second = pair(bytes, at + 1);
    if (second < 0 || second > 59) return false;
    at += 3;
    precision = "second";
    if (at === to || bytes[at] !== POINT) break parts;
    const start = ++at;
    while (at < to && bytes[at]! >= 48 && bytes[at]! <= 57) nano = nano * 10 + bytes[at++]! - 48;
    const digits = at - start;
    if (digits === 0 || digits > 9) return false;
    for (let i = digits; i < 9; i++) nano *= 10;
    precision = digits <= 3 ? "milli" : digits <= 6 ? "micro" : "nano";
  }
  let offset = 0;
  if (at < to) {
    instant.zoned = true;
    if (bytes[at] === UPPER_Z) {
      at++;
    } else if (bytes[at] === PLUS || bytes[at] === MINUS) {
      const sign = bytes[at] === PLUS ? 1 : -1;
      if (to - at < 3) return false;
      const hours = pair(bytes, at + 1);
      at += 3;
      let minutes = 0;
      if (at < to) {
        if (bytes[at] === COLON) at++;
        if (to - at !== 2) return false;
        minutes = pair(bytes, at);
        at += 2;
      }
      if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return false;
      offset = sign * (hours * 3600 + minutes * 60);
    }
    if (at !== to) return false;
  }
  instant.second = dayOfCivil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
  instant.nano = nano;
  instant.precision = precision;
  return true;
}

/** Since 1970: milliseconds, microseconds, nanoseconds. */
export type TimeUnit = "ms" | "us" | "ns";

/** `instant` in a unit; further digits are dropped. undefined: out of range. */
export function instantAs(unit: TimeUnit): bigint | undefined {
  if (unit === "ms") return BigInt(instant.second * 1000 + Math.floor(instant.nano / 1e6));
  if (unit === "us") {
    const micros = instant.second * 1e6 + Math.floor(instant.nano / 1e3);
    return Number.isSafeInteger(micros)
      ? BigInt(micros)
      : BigInt(instant.second) * 1000000n + BigInt(Math.floor(instant.nano / 1e3));
  }
  const nanos = BigInt(instant.second) * 1000000000n + BigInt(instant.nano);
  return nanos === BigInt.asIntN(64, nanos) && nanos !== NULL_I64 ? nanos : undefined;
}
