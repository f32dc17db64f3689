/**
 * Date patterns over bytes: texts of consecutive rows mostly differ in their digits, which are at the same places. Both classes do what
 * `formatPattern` and `parsePattern` do, without strings.
 */
import { dayOfCivil, daysInMonth } from "../parse/time.ts";
import { formatPadded, formatPair } from "./numbers.ts";
import { type Compiled, compiled, formatToken, momentOf, parsedPattern, type Token, WHOLE } from "./pattern.ts";
import { civilOfDay } from "./time.ts";

const encoder = new TextEncoder();
/** Tokens that have the same width in all texts of years with four digits: of the date, of its minutes, and of the rest. */
const OF_DATE: readonly string[] = ["yyyy", "MM", "dd"];
const OF_DAY: readonly string[] = ["HH", "kk", "KK", "hh", "a", "mm"];
const OF_MINUTE: readonly string[] = ["ss", "SSS", "UUU", "NNN", "U+", "N+"];
/** Of time zones, which are mostly a Z, and written as one. */
const ZONES = "zZx";
const YEAR_MAX = 9999;
/** The others that differ within a day. */
const NARROW: ReadonlySet<string> = new Set([..."HkKhmsSUN"]);
const NO_BYTES = new Uint8Array(0);
const UPPER_A = 0x41, UPPER_P = 0x50;

function nameOf({ letter, count }: Token): string {
  return count === WHOLE ? `${letter}+` : letter.repeat(count);
}

/** A token by its index in one of these lists, and its place in the text. */
interface Part {
  token: number;
  at: number;
}

/** Formats times. It keeps the text of the last one, and replaces the parts that differ within a day. */
export class PatternFormatter {
  /** The text of the last time: its first `length` bytes. */
  bytes: Uint8Array = NO_BYTES;
  length = 0;
  private day = NaN;
  private minute = NaN;
  private readonly partsOfDate: Part[] = [];
  private readonly partsOfDay: Part[] = [];
  private readonly partsOfMinute: Part[] = [];
  private readonly tokens: Compiled;
  /** The parts of the tokens. */
  private readonly parts: (Part | undefined)[];
  private readonly isFixed: boolean;
  private readonly hasFixedDate: boolean;
  /** The text has a year of four digits, and no token of the date with another width. */
  private isDatePut = false;

  constructor(pattern: string, private readonly secondDigits: 3 | 6 | 9) {
    this.tokens = compiled(pattern);
    const names = this.tokens.filter((token) => typeof token === "object").map(nameOf);
    this.isFixed = !names.some((name) => NARROW.has(name));
    this.parts = this.tokens.map((token) => this.isFixed && typeof token === "object" ? this.partOf(token) : undefined);
    const fixed = [...OF_DATE, ...OF_DAY, ...OF_MINUTE];
    this.hasFixedDate = names.every((name) => fixed.includes(name) || ZONES.includes(name[0]!));
  }

  private partOf(token: Token): Part | undefined {
    // The U and N of a DATE are literals.
    if (this.secondDigits === 3 && "UN".includes(token.letter)) return undefined;
    const name = nameOf(token);
    const lists = [[OF_DATE, this.partsOfDate], [OF_DAY, this.partsOfDay], [OF_MINUTE, this.partsOfMinute]] as const;
    for (const [names, parts] of lists) {
      if (!names.includes(name)) continue;
      const part = { token: names.indexOf(name), at: 0 };
      parts.push(part);
      return part;
    }
    return undefined;
  }

  format(second: number, nano: number): void {
    const day = Math.floor(second / 86400);
    const isFixed = this.isFixed && Number.isSafeInteger(second);
    if (!isFixed || (day !== this.day && !this.putDate(day))) {
      this.render(day, second, nano);
      return;
    }
    const ofDay = second - day * 86400, minute = (ofDay / 60) | 0;
    if (minute !== this.minute) this.putMinute(minute);
    const { bytes, partsOfMinute } = this;
    for (let k = 0; k < partsOfMinute.length; k++) {
      const { token, at } = partsOfMinute[k]!;
      switch (token) {
        case 0:
          formatPair(ofDay - minute * 60, bytes, at);
          break;
        case 1:
          formatPadded((nano / 1e6) | 0, 3, bytes, at);
          break;
        case 2:
          formatPadded(((nano / 1e3) | 0) % 1000, 3, bytes, at);
          break;
        case 3:
          formatPadded(nano % 1000, 3, bytes, at);
          break;
        case 4:
          formatPadded((nano / 1e3) | 0, 6, bytes, at);
          break;
        default:
          if (this.secondDigits === 6) formatPadded((nano / 1e3) | 0, 6, bytes, at);
          else formatPadded(nano, 9, bytes, at);
      }
    }
  }

  /** False if the text has to be made anew. */
  private putDate(day: number): boolean {
    if (!this.isDatePut) return false;
    const { bytes } = this, { year, month, day: dayOfMonth } = civilOfDay(day);
    if (year < 0 || year > YEAR_MAX) return false;
    for (const { token, at } of this.partsOfDate) {
      if (token === 0) formatPadded(year, 4, bytes, at);
      else formatPair(token === 1 ? month : dayOfMonth, bytes, at);
    }
    this.day = day;
    return true;
  }

  private putMinute(minute: number): void {
    this.minute = minute;
    const { bytes } = this, hour = (minute / 60) | 0;
    for (const { token, at } of this.partsOfDay) {
      switch (token) {
        case 0:
          formatPair(hour, bytes, at);
          break;
        case 1:
          formatPair(hour === 0 ? 24 : hour, bytes, at);
          break;
        case 2:
          formatPair(hour % 12, bytes, at);
          break;
        case 3:
          formatPair(hour % 12 === 0 ? 12 : hour % 12, bytes, at);
          break;
        case 4:
          bytes[at] = hour < 12 ? UPPER_A : UPPER_P;
          break;
        default:
          formatPair(minute - hour * 60, bytes, at);
      }
    }
  }

  private render(day: number, second: number, nano: number): void {
    const moment = momentOf(second, nano), { tokens, parts } = this;
    this.length = 0;
    for (let k = 0; k < tokens.length; k++) {
      const part = parts[k];
      if (part !== undefined) part.at = this.length;
      this.append(formatToken(tokens[k]!, moment, this.secondDigits));
    }
    this.isDatePut = this.hasFixedDate && moment.year >= 0 && moment.year <= YEAR_MAX;
    this.day = day;
    this.minute = NaN;
  }

  private append(text: string): void {
    const end = this.length + 3 * text.length;
    if (end > this.bytes.length) {
      const grown = new Uint8Array(Math.max(64, 2 * end));
      grown.set(this.bytes);
      this.bytes = grown;
    }
    const { bytes } = this;
    let at = this.length, k = 0;
    for (; k < text.length; k++) {
      const unit = text.charCodeAt(k);
      if (unit > 127) break;
      bytes[at++] = unit;
    }
    if (k < text.length) at += encoder.encodeInto(text.slice(k), bytes.subarray(at)).written;
    this.length = at;
  }
}

/** Fields that a `PatternReader` reads, each once, and their widths. */
const FIELDS: readonly string[] = ["yyyy", "MM", "dd", "HH", "mm", "ss", "SSS", "UUU", "NNN"];
/** No field. */
const NONE = -1;

/** Reads texts of patterns whose fields are numbers with all their digits. */
export class PatternReader {
  private day = 0;
  private year = 1970;
  private month = 1;
  private dayOfMonth = 1;

  /** `places`: of each of `FIELDS`, or `NONE`. `literals`: the bytes at the other places. */
  private constructor(
    private readonly places: readonly number[],
    private readonly literals: Uint8Array,
    private readonly literalPlaces: Uint32Array,
    private readonly length: number,
  ) {}

  /** Undefined if the pattern has other tokens. */
  static of(pattern: string): PatternReader | undefined {
    const places = FIELDS.map(() => NONE), literals: number[] = [], literalPlaces: number[] = [];
    let length = 0;
    for (const token of compiled(pattern)) {
      const isZone = typeof token === "object" && ZONES.includes(token.letter);
      if (typeof token === "string" || isZone) {
        const text = isZone ? "Z" : token as string;
        // Decoders make the first of these characters of invalid bytes, and may drop the second.
        if (/[\ufffd\ufeff]/.test(text) || !text.isWellFormed()) return undefined;
        for (const byte of encoder.encode(text)) {
          literals.push(byte);
          literalPlaces.push(length++);
        }
        continue;
      }
      const field = FIELDS.indexOf(nameOf(token));
      if (field < 0 || places[field] !== NONE) return undefined;
      places[field] = length;
      length += FIELDS[field]!.length;
    }
    return new PatternReader(places, Uint8Array.from(literals), Uint32Array.from(literalPlaces), length);
  }

  /** Parses `bytes[from … to)` into `parsedPattern`. False if only `parsePattern` can tell whether the text is valid. */
  read(bytes: Uint8Array, from: number, to: number): boolean {
    if (to - from !== this.length) return false;
    const { literals, literalPlaces, places } = this;
    for (let k = 0; k < literals.length; k++) {
      if (bytes[from + literalPlaces[k]!] !== literals[k]) return false;
    }
    const century = pairAt(bytes, from, places[0]!, 19), ofCentury = pairAt(bytes, from, after(places[0]!), 70);
    const year = century * 100 + ofCentury;
    const month = pairAt(bytes, from, places[1]!, 1), day = pairAt(bytes, from, places[2]!, 1);
    const hour = pairAt(bytes, from, places[3]!, 0), minute = pairAt(bytes, from, places[4]!, 0);
    const second = pairAt(bytes, from, places[5]!, 0);
    const milli = groupAt(bytes, from, places[6]!), micro = groupAt(bytes, from, places[7]!);
    const nano = groupAt(bytes, from, places[8]!);
    // -1 stands for what is no digit.
    if ((century | ofCentury | month | day | hour | minute | second | milli | micro | nano) < 0) return false;
    if (hour > 23 || minute > 59 || second > 59) return false;
    if (day !== this.dayOfMonth || month !== this.month || year !== this.year) {
      if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return false;
      this.day = dayOfCivil(year, month, day);
      this.year = year;
      this.month = month;
      this.dayOfMonth = day;
    }
    parsedPattern.second = this.day * 86400 + hour * 3600 + minute * 60 + second;
    parsedPattern.nano = milli * 1000000 + micro * 1000 + nano;
    return true;
  }
}

const after = (place: number) => place === NONE ? NONE : place + 2;

/** Two digits: -1 if they are none, `absent` if there is no such field. */
function pairAt(bytes: Uint8Array, from: number, place: number, absent: number): number {
  if (place === NONE) return absent;
  const tens = bytes[from + place]! - 48, ones = bytes[from + place + 1]! - 48;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : -1;
}

/** Three digits, as `pairAt`. */
function groupAt(bytes: Uint8Array, from: number, place: number): number {
  if (place === NONE) return 0;
  const first = bytes[from + place]! - 48, rest = pairAt(bytes, from, place + 1, 0);
  return first >= 0 && first <= 9 && rest >= 0 ? first * 100 + rest : -1;
}
