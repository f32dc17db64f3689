/**
 * Finds values in JSON texts of any length and depth. It reads only what lies before the value and the value itself, so it accepts
 * some texts that a parser of the whole would refuse. It reads bytes, because decoding a text takes longer than finding a value in it.
 */
import type { FunctionContext } from "./entry.ts";
import { Pace } from "./pace.ts";
import { grownBytes } from "./sizes.ts";

/** A step of a path: a field's name or an item's index. */
export type Step = string | number;

const QUOTE = 0x22, BACKSLASH = 0x5c, COMMA = 0x2c, COLON = 0x3a;
const LEFT_BRACE = 0x7b, LEFT_BRACKET = 0x5b, RIGHT_BRACE = 0x7d, RIGHT_BRACKET = 0x5d;
const BLANK = 0x20, LINE_FEED = 0x0a, RETURN = 0x0d, TAB = 0x09;
const PLUS = 0x2b, MINUS = 0x2d, POINT = 0x2e, ZERO = 0x30, LOWER_E = 0x65;
/** Behind the end of a text. */
const NO_BYTE = -1;
/** Integers of so many digits are exact. */
const DIGITS_MAX = 15;
/** Powers of ten up to `DIGITS_MAX`. */
const POWERS = Float64Array.from({ length: DIGITS_MAX + 1 }, (_, k) => 10 ** k);

const encoder = new TextEncoder();
const WORDS = ["true", "false", "null"].map((word) => encoder.encode(word));

const isDigit = (byte: number) => byte >= ZERO && byte <= ZERO + 9;

/** The bytes of a name. Undefined if invalid bytes may be decoded to it, or its parts. */
function bytesOf(name: string): Uint8Array | undefined {
  return name.isWellFormed() && !name.includes("\ufffd") ? encoder.encode(name) : undefined;
}

/** Finds the values at one path. */
export class JsonReader {
  /** The text, from `from` to below `to`. */
  private bytes: Uint8Array = new Uint8Array(0);
  private to = 0;
  /** The address of offset 0. */
  private base = 0;
  /** The value that was found last: offsets in `bytes`. */
  private start = 0;
  private end = 0;
  private readonly pace: Pace;
  /** Closing brackets of the open objects and arrays. */
  private open = new Uint8Array(64);
  private readonly names: readonly (Uint8Array | undefined)[];

  constructor(private readonly context: FunctionContext, private readonly steps: readonly Step[]) {
    this.pace = new Pace(context);
    this.names = steps.map((step) => typeof step === "string" ? bytesOf(step) : undefined);
  }

  /**
   * Finds the value in `bytes[from … to)`; false if there is none. `base`: the address of `bytes[0]`. The other methods read the value.
   */
  find(bytes: Uint8Array, from: number, to: number, base: number): boolean {
    this.bytes = bytes;
    this.to = to;
    this.base = base;
    this.pace.spend(64 + to - from);
    let at = this.skipBlanks(from), inside: number | undefined;
    for (let k = 0; k < this.steps.length; k++) {
      const step = this.steps[k], isField = typeof step === "string";
      if (this.byteAt(at) !== (isField ? LEFT_BRACE : LEFT_BRACKET)) return false;
      at = isField ? this.fieldAt(at + 1, step, this.names[k]) : this.itemAt(at + 1, step);
      if (at < 0) return false;
      inside = isField ? RIGHT_BRACE : RIGHT_BRACKET;
    }
    const end = this.valueEnd(at);
    if (end < 0) return false;
    const next = this.skipBlanks(end), behind = this.byteAt(next);
    this.start = at;
    this.end = end;
    return inside === undefined ? next === to : behind === inside || behind === COMMA;
  }

  /** The value as it is written in the document. */
  raw(): string {
    return this.textOf(this.start, this.end);
  }

  is(word: "true" | "null"): boolean {
    return this.isWord(this.start, WORDS[word === "true" ? 0 : 2]) && this.end - this.start === word.length;
  }

  /** The value if it is a number of up to 15 digits without an exponent, otherwise NaN. */
  number(): number {
    const { bytes, end } = this, isNegative = bytes[this.start] === MINUS;
    let at = this.start + (isNegative ? 1 : 0), value = 0, point = NaN;
    if (end - at > DIGITS_MAX + 1) return NaN;
    const first = at;
    for (; at < end; at++) {
      if (isDigit(bytes[at])) value = value * 10 + bytes[at] - ZERO;
      else if (bytes[at] === POINT && point !== point) point = at;
      else return NaN;
    }
    const hasPoint = point === point;
    if (end - first - (hasPoint ? 1 : 0) > DIGITS_MAX) return NaN;
    if (hasPoint) value /= POWERS[end - point - 1];
    return isNegative ? -value : value;
  }

  /** The number of bytes in a value in quotes without escapes, otherwise -1. */
  plainLength(): number {
    const { bytes, start, end } = this;
    if (bytes[start] !== QUOTE) return -1;
    for (let at = start + 1; at < end - 1; at++) {
      if (bytes[at] === BACKSLASH || bytes[at] < BLANK) return -1;
    }
    return end - start - 2;
  }

  /** The address of what is in the quotes. */
  plainAddress(): number {
    return this.base + this.start + 1;
  }

  private textOf(from: number, to: number): string {
    return this.context.heap.text(this.base + from, to - from);
  }

  private byteAt(at: number): number {
    return at < this.to ? this.bytes[at] : NO_BYTE;
  }

  private skipBlanks(at: number): number {
    const from = at;
    for (;; at++) {
      const byte = this.byteAt(at);
      if (byte > BLANK || (byte !== BLANK && byte !== LINE_FEED && byte !== RETURN && byte !== TAB)) break;
    }
    if (at > from) this.pace.spend(at - from);
    return at;
  }

  /** The end of the text, number or word at `at`, or -1. */
  private scalarEnd(at: number): number {
    const end = this.byteAt(at) === QUOTE ? this.textEnd(at) : this.wordEnd(at);
    this.pace.spend(8 + Math.max(0, end - at));
    return end;
  }

  private textEnd(at: number): number {
    const { bytes, to } = this;
    for (at++; at < to; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) return at + 1;
      if (byte === BACKSLASH) at++;
    }
    return -1;
  }

  private wordEnd(at: number): number {
    const first = this.byteAt(at);
    if (first !== MINUS && !isDigit(first)) {
      const word = WORDS.find((word) => this.isWord(at, word));
      return word === undefined ? -1 : at + word.length;
    }
    const digits = first === MINUS ? at + 1 : at;
    let end = this.digitsEnd(digits);
    if (end === digits) return -1;
    if (this.byteAt(end) === POINT && isDigit(this.byteAt(end + 1))) end = this.digitsEnd(end + 1);
    if ((this.byteAt(end) | 0x20) === LOWER_E) {
      const sign = this.byteAt(end + 1), power = end + (sign === PLUS || sign === MINUS ? 2 : 1);
      if (isDigit(this.byteAt(power))) end = this.digitsEnd(power);
    }
    return end;
  }

  private digitsEnd(at: number): number {
    while (isDigit(this.byteAt(at))) at++;
    return at;
  }

  private isWord(at: number, word: Uint8Array): boolean {
    for (let k = 0; k < word.length; k++) {
      if (this.byteAt(at + k) !== word[k]) return false;
    }
    return true;
  }

  /** The end of the value at `at`, or -1 if it is incomplete. A stack of its own allows deep documents. */
  private valueEnd(at: number): number {
    for (let depth = 0;;) {
      at = this.skipBlanks(at);
      this.pace.spend(4);
      const byte = this.byteAt(at);
      if (byte === LEFT_BRACE || byte === LEFT_BRACKET) {
        this.open = grownBytes(this.open, depth, depth + 1, this.context.memory);
        this.open[depth++] = byte === LEFT_BRACE ? RIGHT_BRACE : RIGHT_BRACKET;
        at++;
      } else if (depth > 0 && byte === this.open[depth - 1]) {
        depth--;
        at++;
      } else if (depth > 0 && (byte === COMMA || byte === COLON)) {
        at++;
      } else {
        at = this.scalarEnd(at);
        if (at < 0) return -1;
      }
      if (depth === 0) return at;
    }
  }

  /** The offset of a field's value, or -1. */
  private fieldAt(at: number, name: string, nameBytes: Uint8Array | undefined): number {
    for (;;) {
      at = this.skipBlanks(at);
      if (this.byteAt(at) !== QUOTE) return -1;
      const nameEnd = this.scalarEnd(at);
      if (nameEnd < 0) return -1;
      const colon = this.skipBlanks(nameEnd);
      if (this.byteAt(colon) !== COLON) return -1;
      const value = this.skipBlanks(colon + 1);
      if (this.isName(at, nameEnd, name, nameBytes)) return value;
      at = this.afterItem(value);
      if (at < 0) return -1;
    }
  }

  /** Tests the name in quotes between `from` and `to`. */
  private isName(from: number, to: number, name: string, nameBytes: Uint8Array | undefined): boolean {
    if (nameBytes !== undefined) {
      const { bytes } = this, length = to - from - 2;
      let k = 0;
      while (k < length && k < nameBytes.length && bytes[from + 1 + k] === nameBytes[k] && isPlain(nameBytes[k])) k++;
      if (k === length) return length === nameBytes.length;
      // A name without an escape is longer, or differs.
      let isEscaped = false;
      for (; k < length && !isEscaped; k++) isEscaped = bytes[from + 1 + k] === BACKSLASH;
      if (!isEscaped) return false;
    }
    return unquoted(this.textOf(from, to)) === name;
  }

  /** The offset of an item, or -1. */
  private itemAt(at: number, index: number): number {
    at = this.skipBlanks(at);
    for (let i = 0; i < index; i++) {
      at = this.afterItem(at);
      if (at < 0) return -1;
      at = this.skipBlanks(at);
    }
    return this.byteAt(at) === RIGHT_BRACKET ? -1 : at;
  }

  /** The offset after the comma that follows the value at `at`, or -1. */
  private afterItem(at: number): number {
    const end = this.valueEnd(at);
    if (end < 0) return -1;
    const comma = this.skipBlanks(end);
    return this.byteAt(comma) === COMMA ? comma + 1 : -1;
  }
}

/** Control characters are not allowed in texts, and backslashes begin escapes. */
const isPlain = (byte: number) => byte >= BLANK && byte !== BACKSLASH;

/** The string that a JSON text in quotes writes; undefined if it is invalid. */
export function unquoted(raw: string): string | undefined {
  try {
    return JSON.parse(raw) as string;
  } catch {
    return undefined;
  }
}
