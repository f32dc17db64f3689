import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { randomOf, SEED } from "../../testing.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";
import { jsonFunctions } from "./json.ts";
import { JsonReader, type Step } from "./json-text.ts";

const NAMES = ["a", "a", "b", "b", "é", "a b", "\\u0061", "a\\n", "a\t", "ab", ""],
  BLANKS = ["", "", "", " ", "\n\t", "\r "];
const SCALARS =
  '1 -1 0 -0 1.5 -0.25 12345678901234567 1e5 1E-2 123456789.123456 . 1. -  +1 01 true false null tru "" "x" "x\\\\" "\\"" "€" "\t" "\\q'
    .split(" ");
const PATHS: Step[][] = [[], ["a"], ["b", "a"], ["a", 1], [0], [2, "b"], ["é"], ["a b"], ["a\n"], ["a\t"], ["x", "y"]];

const random = randomOf(SEED);
const pick = <T>(of: readonly T[]): T => of[random(of.length)];
const blank = () => pick(BLANKS);

function someValue(depth: number): string {
  const kind = depth === 0 ? 2 : random(4);
  if (kind > 1) return `${blank()}${pick(SCALARS)}${blank()}`;
  const items = Array.from({ length: random(4) }, () => {
    const value = someValue(depth - 1);
    return kind === 0 ? value : `${blank()}"${pick(NAMES)}"${blank()}:${value}`;
  });
  return blank() + (kind === 0 ? `[${items.join()}]` : `{${items.join()}}`) + blank();
}

/** Some have a wrong letter. */
function someDocument(): string {
  const text = someValue(3), at = random(text.length + 1);
  return random(3) > 0
    ? text
    : text.slice(0, at) + pick(['"', "}", "]", ",", ":", "{", "\\", "x", ""]) + text.slice(at + random(2));
}

const u8 = new Uint8Array(4096);
const heap = { u8, text: (at: number, size: number) => Buffer.from(u8.subarray(at, at + size)).toString() };
const context = { heap, poll() {}, memory: { need() {} } } as unknown as FunctionContext;

/** Puts a text between others. Returns its end. */
function put(text: string): number {
  u8.fill(0x31);
  return 3 + new TextEncoder().encodeInto(text, u8.subarray(3)).written;
}

Deno.test("JsonReader finds in bytes what is found in the decoded text", () => {
  let foundCount = 0;
  for (let round = 0; round < 30_000; round++) {
    const document = someDocument(), steps = pick(PATHS), reader = new JsonReader(context, steps);
    const found = reader.find(u8, 3, put(document), 0) ? reader.raw() : undefined;
    if (found !== undefined) foundCount++;
    assert.equal(found, new TextReader().find(document, steps), `${JSON.stringify(document)} ${steps}`);
  }
  assert(foundCount > 2000, `${foundCount}`);
});

Deno.test("json_extract() reads plain values as it reads those with escapes", () => {
  const OUTS = { SHORT: Int16Array, INT: Int32Array, LONG: BigInt64Array, FLOAT: Float32Array, DOUBLE: Float64Array };
  const numbers = [
    ...SCALARS,
    "32767",
    "32768",
    "-32768",
    "-32769",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
  ];
  for (let k = 0; k < 500; k++) {
    numbers.push(`${random(2) === 0 ? "-" : ""}${random(10 ** random(10))}${pick(["", "", ".", "e"])}${random(1e6)}`);
  }
  for (const [type, Out] of Object.entries(OUTS)) {
    const { batch } = jsonFunctions.find(({ name }) => name === `json_extract_${type}`)!;
    const extract = (document: string) => {
      const out = new Out(1), values = Int32Array.of(3, put(document) - 3);
      batch!(
        [{ values }, { text: () => "$[0]" }] as unknown as BatchColumn[],
        { values: out } as unknown as BatchOut,
        1,
        context,
      );
      return out[0];
    };
    for (const number of numbers) {
      if (!/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(number)) continue;
      // Numbers may be written as text, which is read in another way.
      assert.equal(extract(`[${number}]`), extract(`["${number}"]`), `${type} ${number}`);
    }
  }
});

/** Reads strings: plainly right, but slow. */
const QUOTE = 0x22, BACKSLASH = 0x5c, COMMA = 0x2c, COLON = 0x3a;
const LEFT_BRACE = 0x7b, LEFT_BRACKET = 0x5b;
/** The closing bracket for each opening one. */
const CLOSING: Record<number, number> = { [LEFT_BRACE]: 0x7d, [LEFT_BRACKET]: 0x5d };
/** Scalars without texts. Texts are read in a loop, because V8's stack for this expression would overflow. */
const SCALAR = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

const isBlank = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

class TextReader {
  private text = "";
  /** Closing brackets of the open objects and arrays. */
  private readonly open: number[] = [];

  /** The text of the value at `steps`, as written in the document; undefined if there is none. */
  find(text: string, steps: readonly Step[]): string | undefined {
    this.text = text;
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
    while (isBlank(this.text.charCodeAt(at))) at++;
    return at;
  }

  /** The end of the text, number or word at `at`, or -1. */
  private scalarEnd(at: number): number {
    const end = this.text.charCodeAt(at) === QUOTE ? this.textEnd(at) : this.wordEnd(at);
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
      const code = this.text.charCodeAt(at), closing = CLOSING[code];
      if (closing !== undefined) {
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
function unquoted(raw: string): string | undefined {
  try {
    return JSON.parse(raw) as string;
  } catch {
    return undefined;
  }
}
