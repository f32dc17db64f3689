/**
 * Date patterns (`yyyy-MM-dd HH:mm:ss.SSSUUUNNNZ`), compiled once, for formatting and parsing.
 *
 *     y yy yyy yyyy  year; the last two or three digits of it     YYYY, ww  ISO year and week     w  week from January 1st
 *     M MM MMM MMMM  month     d dd  day     D  day of the year     E EE  weekday, short and long     u  weekday, Sunday is 1
 *     H HH k kk K KK h hh  hours     a  AM or PM     m mm s ss  minute, second     G  era     z Z x  zone
 *     S SSS U UUU N NNN  groups of the fraction              U+ N+  all of it, down to the type's unit
 *
 * The longest possible token is taken: `yyyyyy` is yyyy and yy. Other characters, and text in single quotes, are literals.
 */
import { dayOfCivil, daysInMonth } from "../parse/time.ts";
import { zoneOf } from "../zone.ts";
import { civilOfDay } from "./time.ts";

const MONTH_NAMES = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const DAY_NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

export interface Token {
  letter: string;
  count: number;
}
/** Tokens and literal texts. */
export type Compiled = readonly (Token | string)[];

/** Possible repetitions of each letter in one token. */
const COUNTS: Record<string, readonly number[]> = {
  ...Object.fromEntries([..."DauGZ"].map((letter) => [letter, [1]])),
  ...Object.fromEntries([..."dEHkKhmsw"].map((letter) => [letter, [2, 1]])),
  ...Object.fromEntries([..."SUN"].map((letter) => [letter, [3, 1]])),
  ...Object.fromEntries([..."zx"].map((letter) => [letter, [3, 2, 1]])),
  y: [4, 3, 2, 1],
  M: [4, 3, 2, 1],
  Y: [4],
};
/** Stands for all fraction digits. */
export const WHOLE = 0;

function compile(pattern: string): Compiled {
  const tokens: (Token | string)[] = [];
  const literal = (text: string) => {
    if (typeof tokens.at(-1) === "string") tokens[tokens.length - 1] += text;
    else tokens.push(text);
  };
  for (let i = 0; i < pattern.length;) {
    const letter = pattern[i]!;
    if (letter === "'") {
      const close = pattern.indexOf("'", i + 1);
      if (close === i + 1) literal("'");
      else literal(pattern.slice(i + 1, close < 0 ? pattern.length : close));
      i = close < 0 ? pattern.length : close + 1;
    } else if ((letter === "U" || letter === "N") && pattern[i + 1] === "+") {
      tokens.push({ letter, count: WHOLE });
      i += 2;
    } else if (letter in COUNTS && COUNTS[letter]!.some((count) => pattern.startsWith(letter.repeat(count), i))) {
      const count = COUNTS[letter]!.find((count) => pattern.startsWith(letter.repeat(count), i))!;
      tokens.push({ letter, count });
      i += count;
    } else {
      literal(letter);
      i++;
    }
  }
  return tokens;
}

const cache = new Map<string, Compiled>();
export function compiled(pattern: string): Compiled {
  let found = cache.get(pattern);
  if (found === undefined) {
    if (cache.size > 1000) cache.clear();
    cache.set(pattern, found = compile(pattern));
  }
  return found;
}

const digits = (value: number, width: number) => String(value).padStart(width, "0");

/** Formats `second` since 1970 and its `nano` by a pattern. With three fraction digits (DATE), U and N are literals. */
export function formatPattern(pattern: string, second: number, nano: number, secondDigits: 3 | 6 | 9): string {
  const moment = momentOf(second, nano);
  let text = "";
  for (const token of compiled(pattern)) text += formatToken(token, moment, secondDigits);
  return text;
}

/** Fields of a time. */
export interface Moment {
  /** Since 1970. */
  day: number;
  /** Seconds since the day's start. */
  ofDay: number;
  year: number;
  month: number;
  dayOfMonth: number;
  nano: number;
}

export function momentOf(second: number, nano: number): Moment {
  const day = Math.floor(second / 86400);
  const { year, month, day: dayOfMonth } = civilOfDay(day);
  return { day, ofDay: second - day * 86400, year, month, dayOfMonth, nano };
}

export function formatToken(token: Token | string, moment: Moment, secondDigits: 3 | 6 | 9): string {
  if (typeof token === "string") return token;
  const { day, ofDay, year, month, dayOfMonth, nano } = moment, hour = Math.floor(ofDay / 3600);
  const { letter, count } = token;
  const padded = (value: number, full = 2) => digits(value, count >= 2 ? Math.max(full, 2) : 1);
  switch (letter) {
    case "y":
      if (count === 2 || count === 3) {
        const size = 10 ** count;
        return digits(((year % size) + size) % size, count);
      }
      return digits(year, count);
    case "Y":
      return digits(isoWeek(day).year, 4);
    case "w":
      return count === 2
        ? digits(isoWeek(day).week, 2)
        : String(Math.floor((day - dayOfCivil(year, 1, 1) + 1) / 7) + 1);
    case "M":
      return count === 3 ? MONTH_NAMES[month - 1]!.slice(0, 3) : count >= 4 ? MONTH_NAMES[month - 1]! : padded(month);
    case "d":
      return padded(dayOfMonth);
    case "D":
      return digits(day - dayOfCivil(year, 1, 1) + 1, count);
    case "E":
    case "u": {
      const weekday = (((day + 3) % 7) + 7) % 7;
      if (letter === "u") return String((weekday + 1) % 7 + 1);
      return count >= 2 ? DAY_NAMES[weekday]! : DAY_NAMES[weekday]!.slice(0, 3);
    }
    case "H":
      return padded(hour);
    case "k":
      return padded(hour === 0 ? 24 : hour);
    case "K":
      return padded(hour % 12);
    case "h":
      return padded(hour % 12 === 0 ? 12 : hour % 12);
    case "a":
      return hour < 12 ? "AM" : "PM";
    case "m":
      return padded(Math.floor(ofDay / 60) % 60);
    case "s":
      return padded(ofDay % 60);
    case "S":
      return padded(Math.floor(nano / 1e6), 3);
    case "U":
    case "N":
      if (secondDigits === 3) return count === WHOLE ? `${letter}+` : letter.repeat(count);
      if (count === WHOLE) return digits(nano, 9).slice(0, letter === "U" ? 6 : secondDigits);
      return padded(Math.floor(nano / (letter === "U" ? 1e3 : 1)) % 1000, 3);
    case "G":
      return year > 0 ? "AD" : "BC";
    default:
      return "Z";
  }
}

/** ISO 8601 week of a day count since 1970. */
export function isoWeek(day: number): { year: number; week: number } {
  const thursday = day - (((day + 3) % 7) + 7) % 7 + 3;
  const year = civilOfDay(thursday).year;
  return { year, week: Math.floor((thursday - dayOfCivil(year, 1, 1)) / 7) + 1 };
}

/** The last result of `parsePattern`. */
export const parsedPattern = { second: 0, nano: 0 };

/** Parses a whole text by a pattern into `parsedPattern`; false if it does not match or is not a valid date. */
export function parsePattern(pattern: string, text: string): boolean {
  let at = 0;
  let year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, nano = 0;
  let half: boolean | undefined,
    twelve = false,
    before = false,
    offset: number | undefined,
    zoneName: string | undefined;
  let weekYear: number | undefined, week: number | undefined, dayOfYear: number | undefined;
  /** Reads exactly `width` digits, or all digits if `width` is undefined. */
  const number = (width: number | undefined): number => {
    let end = at;
    while (
      end < text.length && (width === undefined || end < at + width) && text.charCodeAt(end) >= 48 &&
      text.charCodeAt(end) <= 57
    ) end++;
    if (end === at || (width !== undefined && end < at + width) || end - at > 9) return NaN;
    const value = Number(text.slice(at, end));
    at = end;
    return value;
  };
  /** Reads a group of three fraction digits. Fewer digits are the leading ones, as in .5 */
  const group = (count: number, isNarrow: boolean): number => {
    const from = at, value = number(isNarrow ? 1 : count === 1 ? undefined : count);
    if (isNarrow || count > 1) return value;
    return at - from > 3 ? NaN : value * 10 ** (3 - (at - from));
  };
  const tokens = compiled(pattern);
  for (const [i, token] of tokens.entries()) {
    if (typeof token === "string") {
      if (!text.startsWith(token, at)) return false;
      at += token.length;
      continue;
    }
    const { letter, count } = token;
    // Directly before another field, a single letter stands for a single digit.
    const isNarrow = count === 1 && typeof tokens[i + 1] === "object";
    const width = isNarrow ? 1 : count === 1 ? undefined : count;
    let value = 0;
    switch (letter) {
      case "y":
        value = count === 2 ? 2000 + number(2) : number(width);
        year = count === 1 && value >= 10 && value < 100 ? value + 2000 : value;
        break;
      case "Y":
        value = weekYear = number(width);
        break;
      case "w":
        // Unless the year is a week-based one, only two digits are read.
        value = number(width);
        if (count === 2 || weekYear !== undefined) week = value;
        break;
      case "u":
        value = number(width);
        break;
      case "M":
        if (count >= 3) {
          const rest = text.slice(at).toLowerCase();
          const found = MONTH_NAMES.findIndex((name) => rest.startsWith(name.toLowerCase()));
          const short = found >= 0
            ? found
            : MONTH_NAMES.findIndex((name) => rest.startsWith(name.slice(0, 3).toLowerCase()));
          if (short < 0) return false;
          at += found >= 0 ? MONTH_NAMES[found]!.length : 3;
          value = month = short + 1;
        } else value = month = number(width);
        break;
      case "d":
        value = day = number(width);
        break;
      case "D":
        value = dayOfYear = number(width);
        break;
      case "E": {
        const rest = text.slice(at).toLowerCase();
        const found = DAY_NAMES.find((name) => rest.startsWith(name.toLowerCase())) ??
          DAY_NAMES.map((name) => name.slice(0, 3)).find((name) => rest.startsWith(name.toLowerCase()));
        if (found === undefined) return false;
        at += found.length;
        break;
      }
      case "H":
        value = hour = number(width);
        if (hour > 23) return false;
        break;
      case "k":
        value = hour = number(width);
        if (hour < 1 || hour > 24) return false;
        hour %= 24;
        break;
      case "h":
      case "K":
        value = hour = number(width);
        if (hour > 12 || (letter === "h" && hour < 1)) return false;
        hour %= 12;
        twelve = true;
        break;
      case "a": {
        const mark = text.slice(at, at + 2).toUpperCase();
        if (mark !== "AM" && mark !== "PM") return false;
        half = mark === "PM";
        at += 2;
        break;
      }
      case "m":
        value = minute = number(width);
        if (minute > 59) return false;
        break;
      case "s":
        value = second = number(width);
        if (second > 59) return false;
        break;
      case "S":
        value = group(count, isNarrow);
        nano = nano % 1e6 + value * 1e6;
        break;
      case "U":
      case "N":
        if (count === WHOLE) {
          const from = at, whole = number(undefined);
          value = at - from > (letter === "U" ? 6 : 9) ? NaN : whole * 10 ** (9 - (at - from));
          nano += value;
        } else {
          value = group(count, isNarrow);
          // A group that occurs twice counts once, as it was read last.
          nano = letter === "U" ? nano - nano % 1e6 + nano % 1e3 + value * 1e3 : nano - nano % 1e3 + value;
        }
        break;
      case "G": {
        const era = text.slice(at, at + 2).toUpperCase();
        if (era !== "AD" && era !== "BC") return false;
        before = era === "BC";
        at += 2;
        break;
      }
      default: {
        const zone = /^(?:Z|[+-]\d{2}(?::?\d{2})?|[A-Za-z][A-Za-z_/]*)/.exec(text.slice(at));
        if (zone === null) return false;
        at += zone[0].length;
        const found = zoneOf(zone[0]);
        if (found === undefined) return false;
        zoneName = zone[0];
        offset = 0;
      }
    }
    if (value !== value) return false;
  }
  if (at !== text.length) return false;
  if (twelve && half) hour += 12;
  if (before) year = 1 - year;
  if (nano >= 1e9 || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return false;
  let dayNumber = dayOfCivil(year, month, day);
  if (weekYear !== undefined || week !== undefined) {
    const first = dayOfCivil(weekYear ?? year, 1, 4);
    dayNumber = first - (((first + 3) % 7) + 7) % 7 + ((week ?? 1) - 1) * 7;
  }
  if (weekYear !== undefined && week === 53 && isoWeek(dayNumber).year !== weekYear) return false;
  if (dayOfYear !== undefined) {
    dayNumber = dayOfCivil(year, 1, 1) + dayOfYear - 1;
    if (civilOfDay(dayNumber).year !== year) return false;
  }
  parsedPattern.second = dayNumber * 86400 + hour * 3600 + minute * 60 + second;
  if (offset !== undefined) parsedPattern.second = zoneOf(zoneName!)!.toUtc(parsedPattern.second);
  parsedPattern.nano = nano;
  return true;
}
