/**
 * Parses the text after `ts IN`: dates of any precision with modifiers.
 *
 *     text      body [@zone] [#days] [;duration [;period;count]]
 *     body      date, with brackets at any place: 2024-01-[02,05..07]T[09:30,10:00], [2024-01-01,2024-02-01]T10
 *               2024-W01, 2024-W01-6;  $today $yesterday $tomorrow $now, ± durations, a..b, then a time: [$today,$yesterday]T10
 *               item@zone in a list instead of a zone for all
 *     days      workday wd weekend Mon,Friday…
 *     duration  1d30m: from the start, the end not included
 *
 * A date covers its finest given part; with a zone or Z, or with a blank instead of T, it is a single instant.
 */
import { addUnits, floorDivide, nanosOf, UNIT_NANOS } from "../calendar.ts";
import { civilOfDay } from "../format/time.ts";
import { zoneOf } from "../zone.ts";
import { encodeAscii } from "./ascii.ts";
import { dayOfCivil, instant, parseInstant, type Precision } from "./time.ts";
import type { ReadFailure } from "./values.ts";

const DAY = UNIT_NANOS.d!;
/** Maximum number of intervals. A text that expands to more is certainly a mistake. */
const INTERVAL_COUNT_MAX = 100_000;

/** In nanoseconds, `end` exclusive. */
interface Span {
  start: bigint;
  end: bigint;
  kind: Kind;
  /** The zone of an item of a list, which has precedence over that of the text. */
  zone?: string;
}

/**
 * long      longer than a day: names of days select its days
 * days      a range of days: so do they, and a duration applies to each day
 * instants  a range of instants: neither does
 */
type Kind = "short" | "long" | "days" | "instants";

/** A date of a list. `span`: the range of variables that it is instead of a text. */
interface Item {
  text: string;
  zone?: string;
  span?: Span;
}

class Refusal extends Error {}

/** Returns nanoseconds since 1970. */
type Clock = () => bigint;

/** Called with the number of intervals before they are created. */
type Count = (intervals: number) => void;

/**
 * Returns sorted disjoint ranges in the unit of type `tag`, both ends inclusive. Calls `made` before they are created,
 * because a short text can expand to many.
 */
export function parseIntervals(
  text: string,
  tag: string,
  /** Microseconds since 1970; called only for texts with $now and the like. */
  nowMicros: () => bigint,
  made: Count = () => {},
): [low: bigint, high: bigint][] | ReadFailure {
  try {
    const unit = nanosOf(tag);
    let sum = 0;
    const count: Count = (intervals) => {
      sum += intervals;
      if (sum > INTERVAL_COUNT_MAX) throw new Refusal("it expands to too many intervals");
      made(intervals);
    };
    const spans = read(text.trimStart(), () => nowMicros() * 1000n, count).toSorted((
      a,
      b,
    ) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0));
    const ranges: [bigint, bigint][] = [];
    for (const { start, end } of spans) {
      const low = floorDivide(start, unit), high = floorDivide(end - 1n, unit);
      if (high < low) continue;
      const last = ranges.at(-1);
      if (last !== undefined && low <= last[1] + 1n) last[1] = high > last[1] ? high : last[1];
      else ranges.push([low, high]);
    }
    return ranges;
  } catch (error) {
    if (error instanceof Refusal) return { problem: `'${text}' is not an interval: ${error.message}` };
    throw error;
  }
}

function read(text: string, now: Clock, count: Count): Span[] {
  const [head = "", ...tail] = text.split(";");
  if (tail.length > 3 || tail.length === 2) {
    throw new Refusal("expected a duration, optionally followed by a period and a count");
  }
  const mark = topLevel(head, /[@#]/);
  const body = mark < 0 ? head : head.slice(0, mark);
  let zone: string | undefined, days: string | undefined;
  for (const part of mark < 0 ? [] : head.slice(mark).split(/(?=[@#])/)) {
    if (part[0] === "@") zone = part.slice(1).trim();
    else days = part.slice(1).trim();
  }
  let spans = bodySpans(body, now, count);
  if (days !== undefined) spans = onDays(spans, days, count);
  if (tail.length > 0) spans = spans.flatMap((span) => withDuration(span, tail[0]!, count));
  if (tail.length === 3) spans = spans.flatMap((span) => repeat(span, tail[1]!, tail[2]!, count));
  return spans.map((span) => {
    const name = span.zone ?? zone;
    return name === undefined ? span : inZone(span, name);
  });
}

/** Index of the first match outside of brackets, or -1. */
function topLevel(text: string, pattern: RegExp): number {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "[") depth++;
    else if (text[i] === "]") depth--;
    else if (depth === 0 && pattern.test(text[i]!)) return i;
  }
  return -1;
}

function bodySpans(body: string, now: Clock, count: Count): Span[] {
  const variables = VARIABLES.exec(body)?.[0].trimEnd();
  const listed = variables === undefined ? body : `[${variables}]${body.slice(variables.length).trimStart()}`;
  return expand(listed, now, count).map(({ text, zone, span }) => ({ ...span ?? dateSpan(text), zone }));
}

/** Expands the brackets. */
function expand(text: string, now: Clock, count: Count): Item[] {
  const open = text.indexOf("[");
  if (open < 0) {
    if (text.includes("]")) throw new Refusal("a closing bracket has no opening bracket");
    return [{ text }];
  }
  let depth = 0, close = -1;
  const cuts: number[] = [];
  for (let i = open; i < text.length; i++) {
    if (text[i] === "[") depth++;
    else if (text[i] === "]" && --depth === 0) {
      close = i;
      break;
    } else if (text[i] === "," && depth === 1) cuts.push(i);
  }
  if (close < 0) throw new Refusal("a bracket is not closed");
  const prefix = text.slice(0, open), suffixes = expand(text.slice(close + 1), now, count);
  const items: Item[] = [];
  let from = open + 1;
  for (const cut of [...cuts, close]) {
    for (const item of itemsOf(text.slice(from, cut).trim(), now, count)) items.push(item);
    from = cut + 1;
  }
  if (suffixes.length > 1) count(items.length * suffixes.length);
  return items.flatMap((item) => suffixes.flatMap((suffix) => joined(prefix, item, suffix, count)));
}

function joined(prefix: string, item: Item, suffix: Item, count: Count): Item[] {
  if (suffix.span !== undefined) throw new Refusal("a variable or range of dates has to be at the beginning");
  const zone = item.zone ?? suffix.zone;
  // An item with a time keeps it.
  const timed = item.span?.kind === "instants" || /T\d/.test(item.text);
  const rest = timed && suffix.text.startsWith("T") ? "" : suffix.text;
  if (item.span === undefined) return [{ text: prefix + item.text + rest, zone }];
  if (prefix + rest === "") return [{ ...item, zone }];
  if (item.span.kind === "instants") throw new Refusal(`unexpected '${prefix || rest}' beside a range of instants`);
  return daysOf(item.span, count).map(({ start }) => ({ text: prefix + dayText(Number(start / DAY)) + rest, zone }));
}

/** Expands one item of a list: a range, a variable, or an item with brackets. */
function itemsOf(item: string, now: Clock, count: Count): Item[] {
  if (item === "") throw new Refusal("a list has an empty item");
  const mark = topLevel(item, /@/);
  if (mark >= 0) {
    const zone = item.slice(mark + 1).trim();
    return itemsOf(item.slice(0, mark).trim(), now, count).map((part) => ({ ...part, zone }));
  }
  if (item.startsWith("$")) return variableItems(item, now, count);
  const range = /^(\d+)\.\.(\d+)$/.exec(item);
  if (range !== null) {
    const low = Number(range[1]), high = Number(range[2]);
    if (high < low) throw new Refusal(`the range ${item} falls`);
    count(high - low + 1);
    return Array.from(
      { length: high - low + 1 },
      (_, i) => ({ text: String(low + i).padStart(Math.max(2, range[1]!.length), "0") }),
    );
  }
  if (/^\d$/.test(item)) return [{ text: `0${item}` }];
  const dates = /^(\d{4}-\d{2}-\d{2})\.\.(\d{4}-\d{2}-\d{2})$/.exec(item);
  if (dates !== null) {
    const low = dateSpan(dates[1]!).start, high = dateSpan(dates[2]!).end;
    if (high <= low) throw new Refusal(`the range ${item} falls`);
    return [{ text: "", span: { start: low, end: high, kind: "days" } }];
  }
  return expand(item, now, count);
}

function dayText(day: number): string {
  const civil = civilOfDay(day);
  return `${String(civil.year).padStart(4, "0")}-${String(civil.month).padStart(2, "0")}-${
    String(civil.day).padStart(2, "0")
  }`;
}

const PRECISION_UNIT: Record<Precision, string> = {
  year: "y",
  month: "M",
  day: "d",
  hour: "h",
  minute: "m",
  second: "s",
  milli: "T",
  micro: "u",
  nano: "n",
};

function dateSpan(date: string): Span {
  const week = /^(\d{4})-W(\d{2})(?:-0?([1-7]))?(.*)$/.exec(date);
  if (week !== null) {
    const firstThursday = dayOfCivil(Number(week[1]), 1, 4);
    const monday = firstThursday - ((firstThursday + 3) % 7 + 7) % 7;
    const number = Number(week[2]);
    const start = monday + (number - 1) * 7;
    // The last week is the one whose Thursday is in the year.
    if (number < 1 || civilOfDay(start + 3).year !== Number(week[1])) {
      throw new Refusal(`${week[1]} has no week ${week[2]}`);
    }
    if (week[3] === undefined) {
      if (week[4] !== "") throw new Refusal("a time needs a day");
      return { start: BigInt(start) * DAY, end: BigInt(start + 7) * DAY, kind: "long" };
    }
    return dateSpan(dayText(start + Number(week[3]) - 1) + week[4]);
  }
  const bytes = encodeAscii(date);
  if (bytes === undefined || !parseInstant(bytes, 0, date.length)) throw new Refusal(`invalid date '${date}'`);
  const start = BigInt(instant.second) * 1000000000n + BigInt(instant.nano);
  const precision = instant.precision;
  const end = instant.zoned || instant.blank ? start + 1n : addUnits(start, 1, PRECISION_UNIT[precision], 1n)!;
  return { start, end, kind: precision === "year" || precision === "month" ? "long" : "short" };
}

const VARIABLE = String.raw`\$(?:now|today|yesterday|tomorrow)(?:\s*[+-]\s*\d*(?:bd|[a-zA-Z]))*`;
const VARIABLES = new RegExp(String.raw`^\s*${VARIABLE}(?:\s*\.\.\s*(?:${VARIABLE}|[\d-]+(?:T[\d:.]+)?))?\s*`, "i");

/** `$today`, `$now - 1h`, `$today - 7d..$now`. A range is of instants if both ends are, otherwise of whole days. */
function variableItems(text: string, now: Clock, count: Count): Item[] {
  const ends = text.split("..");
  if (ends.length > 2) throw new Refusal("expected a range of two ends");
  const first = variable(ends[0]!.trim(), now);
  if (ends.length === 1) {
    return [{ text: "", span: { ...first, kind: first.kind === "instants" ? "instants" : "days" } }];
  }
  const endText = ends[1]!.trim();
  const last = endText.startsWith("$") ? variable(endText, now) : dateSpan(endText);
  if (last.end <= first.start) throw new Refusal(`the range ${text} falls`);
  if (first.kind === "instants" && (last.kind === "instants" || last.end % DAY !== 0n)) {
    return [{ text: "", span: { start: first.start, end: last.end, kind: "instants" } }];
  }
  const start = floorDivide(first.start, DAY) * DAY, end = floorDivide(last.end - 1n, DAY) * DAY + DAY;
  const range: Span = { start, end, kind: "days" };
  if (!/bd/i.test(endText)) return [{ text: "", span: range }];
  // Counted in working days: the range has no others.
  return daysOf(range, count).filter((day) => weekdayOf(Number(day.start / DAY)) <= 4).map((span) => ({
    text: "",
    span,
  }));
}

function variable(text: string, clock: Clock): Span {
  const match = /^\$(now|today|yesterday|tomorrow)((?:\s*[+-]\s*\d*(?:bd|[a-zA-Z]))*)$/i.exec(text);
  if (match === null) throw new Refusal(`unknown variable '${text}': expected $now, $today, $yesterday or $tomorrow`);
  const name = match[1]!.toLowerCase();
  const now = clock(), today = floorDivide(now, DAY) * DAY;
  let start = name === "now" ? now : name === "today" ? today : name === "yesterday" ? today - DAY : today + DAY;
  for (const [, sign, digits, unit] of match[2]!.matchAll(/([+-])\s*(\d*)(bd|[a-zA-Z])/gi)) {
    const count = (sign === "-" ? -1 : 1) * Number(digits || 1);
    if (Math.abs(count) > DURATION_MAX) throw new Refusal(`${digits} is too large`);
    const moved = unit!.toLowerCase() === "bd" ? addWorkdays(start, count) : addUnits(start, count, unit!, 1n);
    if (moved === undefined) throw new Refusal(`unknown unit of time '${unit}'`);
    start = moved;
  }
  const instant = name === "now" || floorDivide(start, DAY) * DAY !== start;
  return { start, end: start + (instant ? 1n : DAY), kind: instant ? "instants" : "short" };
}

function daysOf(span: Span, count: Count): Span[] {
  const length = Number((span.end - span.start + DAY - 1n) / DAY);
  count(length);
  return Array.from({ length }, (_, i) => {
    const start = span.start + BigInt(i) * DAY;
    return { ...span, start, end: start + DAY, kind: "short" };
  });
}

/** Monday is 0. `day`: since 1970. */
function weekdayOf(day: number): number {
  return ((day + 3) % 7 + 7) % 7;
}

/** Moves a time by days from Monday to Friday. */
function addWorkdays(time: bigint, count: number): bigint {
  const step = count < 0 ? -1 : 1;
  const first = Number(floorDivide(time, DAY));
  let day = first;
  // From a weekend it counts from the working day before it, or from the one after it if it moves back.
  while (count !== 0 && weekdayOf(day) > 4) day -= step;
  day += Math.trunc(count / 5) * 7;
  for (let left = Math.abs(count % 5); left > 0;) {
    day += step;
    if (weekdayOf(day) <= 4) left--;
  }
  return time + BigInt(day - first) * DAY;
}

const DAY_NAMES = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/** Keeps spans that start on the named days; longer spans are first split into days. */
function onDays(spans: Span[], names: string, count: Count): Span[] {
  const wanted = new Set<number>();
  for (const name of names.toLowerCase().split(",").map((part) => part.trim())) {
    if (name === "workday" || name === "wd") [0, 1, 2, 3, 4].forEach((day) => wanted.add(day));
    else if (name === "weekend") [5, 6].forEach((day) => wanted.add(day));
    else {
      const day = DAY_NAMES.findIndex((full) => full === name || full.slice(0, 3) === name);
      if (day < 0) throw new Refusal(`unknown day '${name}'`);
      wanted.add(day);
    }
  }
  const cut = spans.flatMap((span) => (span.kind === "long" || span.kind === "days" ? daysOf(span, count) : [span]));
  return cut.filter(({ start }) => wanted.has(weekdayOf(Number(floorDivide(start, DAY)))));
}

const DURATION_MAX = 2147483647;

function withDuration(span: Span, duration: string, count: Count): Span[] {
  if (span.kind === "instants" && span.end > span.start + 1n) return [span];
  const spans = span.kind === "days" ? daysOf(span, count) : [span];
  return spans.map((part) => ({ ...part, end: addDuration(part.start, duration), kind: "short" }));
}

function addDuration(start: bigint, duration: string): bigint {
  if (!/^(\d+[a-zA-Z])+$/.test(duration)) throw new Refusal(`invalid duration '${duration}'`);
  let end = start;
  for (const [, count, unit] of duration.matchAll(/(\d+)([a-zA-Z])/g)) {
    if (Number(count) > DURATION_MAX) throw new Refusal(`'${count}' is too many`);
    const moved = addUnits(end, Number(count), unit!, 1n);
    if (moved === undefined) throw new Refusal(`unknown unit of time '${unit}'`);
    end = moved;
  }
  return end;
}

function repeat(span: Span, period: string, times: string, count: Count): Span[] {
  const match = /^(-?\d+)([smhdMy])$/.exec(period);
  if (match === null) throw new Refusal(`invalid period '${period}'`);
  if (!/^\d+$/.test(times) || Number(times) > INTERVAL_COUNT_MAX || Number(times) < 1) {
    throw new Refusal(`invalid count '${times}'`);
  }
  count(Number(times));
  // Both ends move step by step. One month after the 31st is the last day of the month, and later months keep that day.
  const spans: Span[] = [];
  let { start, end } = span;
  for (let i = 0; i < Number(times); i++) {
    spans.push({ ...span, start, end, kind: "short" });
    start = addUnits(start, Number(match[1]), match[2]!, 1n)!;
    end = addUnits(end - 1n, Number(match[1]), match[2]!, 1n)! + 1n;
  }
  return spans;
}

function inZone(span: Span, name: string): Span {
  const zone = zoneOf(name);
  if (zone === undefined) throw new Refusal(`unknown time zone '${name}'`);
  const moved = (nanos: bigint) => {
    const second = floorDivide(nanos, 1000000000n);
    return BigInt(zone.toUtc(Number(second))) * 1000000000n + (nanos - second * 1000000000n);
  };
  const start = moved(span.start), end = moved(span.end);
  // Clocks go forward within the span: it would be empty.
  return { ...span, start, end: end > start ? end : start + span.end - span.start };
}
