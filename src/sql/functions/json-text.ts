/**
 * Finds values in JSON texts of any length and depth. It reads only what lies before the value and the value itself, so it accepts
 * some texts that a parser of the whole would refuse.
 */
import type { FunctionContext } from "./entry.ts";
import { Pace } from "./pace.ts";
import { grownBytes } from "./sizes.ts";

/** A step of a path: a field's name or an item's index. */
export type Step = string | number;

const QUOTE = 0x22, BACKSLASH = 0x5c, COMMA = 0x2c, COLON = 0x3a;
const LEFT_BRACE = 0x7b, LEFT_BRACKET = 0x5b;
/** The closing bracket for each opening one. */
const CLOSING: Record<number, number> = { [LEFT_BRACE]: 0x7d, [LEFT_BRACKET]: 0x5d };
/** Scalars without texts. Texts are read in a loop, because V8's stack for this expression would overflow. */
const SCALAR = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

const isBlank = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

export class JsonReader {
  private text = "";
  private readonly pace: Pace;
  /** Closing brackets of the open objects and arrays. */
  private open = new Uint8Array(64);

  constructor(private readonly context: FunctionContext) {
    this.pace = new Pace(context);
  }

  /** The text of the value at `steps`, as written in the document; undefined if there is none. */
  find(text: string, steps: readonly Step[]): string | undefined {
    this.text = text;
    this.pace.spend(64 + text.length);
    let at = this.skipBlanks(0), inside: number | undefined;
    for (const step of steps) {
      const opening = typeof step === "string" ? LEFT_BRACE : LEFT_BRACKET;
      if (text.charCodeAt(at) !== opening) return undefined;
      const found = typeof step === "string" ? this.fieldAt(at + 1, step) : this.itemAt(at + 1, step);
      if (found === undefined) return undefined;
      inside = CLOSING[opening];
      at = found;
    }
    const end = this.valueEnd(at);
    if (end < 0) return undefined;
    const next = this.skipBlanks(end), behind = text.charCodeAt(next);
    const isComplete = inside === undefined ? next === text.length : behind === inside || behind === COMMA;
    return isComplete ? text.slice(at, end) : undefined;
  }

  private skipBlanks(at: number): number {
    const from = at;
    while (isBlank(this.text.charCodeAt(at))) at++;
    this.pace.spend(at - from);
    return at;
  }

  /** The end of the text, number or word at `at`, or -1. */
  private scalarEnd(at: number): number {
    const end = this.text.charCodeAt(at) === QUOTE ? this.textEnd(at) : this.wordEnd(at);
    this.pace.spend(8 + Math.max(0, end - at));
    return end;
  }

  private textEnd(at: number): number {
    const { text } = this;
    for (at++; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) return at + 1;
      if (code === BACKSLASH) at++;
    }
    return -1;
  }

  private wordEnd(at: number): number {
    SCALAR.lastIndex = at;
    return SCALAR.test(this.text) ? SCALAR.lastIndex : -1;
  }

  /** The end of the value at `at`, or -1 if it is incomplete. A stack of its own allows deep documents. */
  private valueEnd(at: number): number {
    for (let depth = 0;;) {
      at = this.skipBlanks(at);
      this.pace.spend(4);
      const code = this.text.charCodeAt(at), closing = CLOSING[code];
      if (closing !== undefined) {
        this.open = grownBytes(this.open, depth, depth + 1, this.context.memory);
        this.open[depth++] = closing;
        at++;
      } else if (depth > 0 && code === this.open[depth - 1]) {
        depth--;
        at++;
      } else if (depth > 0 && (code === COMMA || code === COLON)) {
        at++;
      } else {
        at = this.scalarEnd(at);
        if (at < 0) return -1;
      }
      if (depth === 0) return at;
    }
  }

  private fieldAt(at: number, name: string): number | undefined {
    const { text } = this;
    for (;;) {
      at = this.skipBlanks(at);
      if (text.charCodeAt(at) !== QUOTE) return undefined;
      const nameEnd = this.scalarEnd(at);
      if (nameEnd < 0) return undefined;
      const colon = this.skipBlanks(nameEnd);
      if (text.charCodeAt(colon) !== COLON) return undefined;
      const value = this.skipBlanks(colon + 1);
      if (unquoted(text.slice(at, nameEnd)) === name) return value;
      const next = this.afterItem(value);
      if (next === undefined) return undefined;
      at = next;
    }
  }

  private itemAt(at: number, index: number): number | undefined {
    at = this.skipBlanks(at);
    for (let i = 0; i < index; i++) {
      const next = this.afterItem(at);
      if (next === undefined) return undefined;
      at = this.skipBlanks(next);
    }
    return this.text[at] === "]" ? undefined : at;
  }

  /** The offset after the comma that follows the value at `at`. */
  private afterItem(at: number): number | undefined {
    const end = this.valueEnd(at);
    if (end < 0) return undefined;
    const comma = this.skipBlanks(end);
    return this.text.charCodeAt(comma) === COMMA ? comma + 1 : undefined;
  }
}

/** The string that a JSON text in quotes writes; undefined if it is invalid. */
export function unquoted(raw: string): string | undefined {
  try {
    return JSON.parse(raw) as string;
  } catch {
    return undefined;
  }
}
