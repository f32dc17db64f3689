/**
 * Formats times as ASCII into `bytes` at `at`, at most 36 bytes, and returns the end. Instants are passed as two words, low and high, to avoid a BigInt
 * for each row. Neighbouring rows are mostly of the same day, so the text of the last day is cached.
 */
import { formatPadded, formatPair } from "./numbers.ts";

const MINUS = 45, POINT = 46, COLON = 58, UPPER_T = 84, UPPER_Z = 90;

let dayKept = NaN;
let dayKeptLength = 0;
const dayKeptBytes = new Uint8Array(20);

/**
 * Year, month (1 … 12) and day (1 … 31) of a day count since 1970.
 * Source: Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
 */
export function civilOfDay(day: number): { year: number; month: number; day: number } {
  const shifted = day + 719468;
  const era = Math.floor(shifted / 146097);
  const dayOfEra = shifted - era * 146097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36524) - Math.floor(dayOfEra / 146096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1,
  };
}

function keepDay(day: number): void {
  const civil = civilOfDay(day);
  let at = 0;
  if (civil.year < 0) dayKeptBytes[at++] = MINUS;
  const year = Math.abs(civil.year);
  at = formatPadded(year, Math.max(4, String(year).length), dayKeptBytes, at);
  dayKeptBytes[at++] = MINUS;
  at = formatPair(civil.month, dayKeptBytes, at);
  dayKeptBytes[at++] = MINUS;
  at = formatPair(civil.day, dayKeptBytes, at);
  dayKeptBytes[at++] = UPPER_T;
  dayKept = day;
  dayKeptLength = at;
}

/** yyyy-MM-ddTHH:mm:ss */
function formatSecond(day: number, ofDay: number, bytes: Uint8Array, at: number): number {
  if (day !== dayKept) keepDay(day);
  for (let i = 0; i < dayKeptLength; i++) bytes[at + i] = dayKeptBytes[i]!;
  at += dayKeptLength;
  const hour = (ofDay / 3600) | 0;
  const ofHour = ofDay - hour * 3600;
  const minute = (ofHour / 60) | 0;
  formatPair(hour, bytes, at);
  bytes[at + 2] = COLON;
  formatPair(minute, bytes, at + 3);
  bytes[at + 5] = COLON;
  formatPair(ofHour - minute * 60, bytes, at + 6);
  return at + 8;
}

/** Of high words from -EXACT_HIGH to below it the seconds are exact as doubles, for each unit. */
const EXACT_HIGH = 1 << 21;

/** True if `splitInstant` has no exact result: milliseconds of years to 292 million. */
export function isFar(high: number, unitsASecond: number): boolean {
  return unitsASecond === 1000 && (high < -EXACT_HIGH || high >= EXACT_HIGH);
}

/** The last result of `splitInstant`: whole seconds, and `unitsASecond`ths from 0 on. */
export const splitParts = { second: 0, rest: 0 };

/**
 * Splits an instant that is not far into `splitParts`. The double may be off, but its remainder modulo 2^32 is exact.
 */
export function splitInstant(low: number, high: number, unitsASecond: number): void {
  let second = Math.floor((high * 4294967296 + (low >>> 0)) / unitsASecond);
  let rest = (low - Math.imul(second, unitsASecond)) | 0;
  if (rest < 0) {
    rest += unitsASecond;
    second--;
  } else if (rest >= unitsASecond) {
    rest -= unitsASecond;
    second++;
  }
  splitParts.second = second;
  splitParts.rest = rest;
}

function formatInstant(
  low: number,
  high: number,
  unitsASecond: number,
  digits: number,
  bytes: Uint8Array,
  at: number,
): number {
  if (isFar(high, unitsASecond)) {
    return formatFarInstant(BigInt(high) << 32n | BigInt(low >>> 0), unitsASecond, digits, bytes, at);
  }
  splitInstant(low, high, unitsASecond);
  const { second, rest } = splitParts, day = Math.floor(second / 86400);
  return formatFraction(rest, digits, bytes, formatSecond(day, second - day * 86400, bytes, at));
}

/** Of years to 292 million. */
function formatFarInstant(
  instant: bigint,
  unitsASecond: number,
  digits: number,
  bytes: Uint8Array,
  at: number,
): number {
  const unitsADay = 86400n * BigInt(unitsASecond), ofDay = Number(((instant % unitsADay) + unitsADay) % unitsADay);
  const second = Math.floor(ofDay / unitsASecond), rest = ofDay - second * unitsASecond;
  const day = Number((instant - BigInt(ofDay)) / unitsADay);
  return formatFraction(rest, digits, bytes, formatSecond(day, second, bytes, at));
}

function formatFraction(value: number, digits: number, bytes: Uint8Array, at: number): number {
  bytes[at++] = POINT;
  at = formatPadded(value, digits, bytes, at);
  bytes[at++] = UPPER_Z;
  return at;
}

/** DATE: 2024-03-01T10:20:30.123Z */
export function formatDate(low: number, high: number, bytes: Uint8Array, at: number): number {
  return formatInstant(low, high, 1000, 3, bytes, at);
}

/** TIMESTAMP: 2024-03-01T10:20:30.123456Z */
export function formatTimestampMicros(low: number, high: number, bytes: Uint8Array, at: number): number {
  return formatInstant(low, high, 1000000, 6, bytes, at);
}

/** TIMESTAMP_NS: 2024-03-01T10:20:30.123456789Z */
export function formatNanos(low: number, high: number, bytes: Uint8Array, at: number): number {
  return formatInstant(low, high, 1000000000, 9, bytes, at);
}
