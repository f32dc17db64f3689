/** Compares the kernels of simple regular expressions with V8's. */
import assert from "node:assert/strict";
import { randomOf, SEED } from "../../testing.ts";
import { byteRegex, RESULT_BYTES_MAX, TEXT_BYTES_MAX } from "./byte-regex.ts";
import { replacementParts, translateRegex, translateReplacement } from "./java-regex.ts";
import { linearRegex } from "./linear-regex.ts";
import { called } from "./testing-batches.ts";

const PAGES = 4, MEMORY_BYTES = PAGES * 65_536, PAIRS = 1024, OUT = 4096, SCRATCH = 8192, RESULTS = 32_768;
const memory = new WebAssembly.Memory({ initial: PAGES, maximum: PAGES, shared: true });
const u8 = new Uint8Array(memory.buffer), i32 = new Int32Array(memory.buffer);
const encoder = new TextEncoder(), decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const random = randomOf(SEED);

/** What the kernel makes of the texts: undefined for those that it leaves out. Undefined if the expression is not simple. */
function replaced(pattern: string, by: string, texts: (string | null)[]): (string | null | undefined)[] | undefined {
  const translated = translateRegex(pattern, true);
  if ("problem" in translated) return undefined;
  const regex = byteRegex(memory, translated.source, translated.flags, replacementParts(by));
  if (regex === undefined) return undefined;
  // Up to the end of memory.
  let at = MEMORY_BYTES;
  texts.forEach((text, row) => {
    const bytes = text === null ? undefined : encoder.encode(text);
    at -= bytes?.length ?? 0;
    if (bytes !== undefined) u8.set(bytes, at);
    i32.set([bytes === undefined ? 0 : at, bytes?.length ?? -1], PAIRS / 4 + 2 * row);
  });
  u8.set(regex.scratch, SCRATCH);
  const results: (string | null | undefined)[] = [];
  for (let row = 0, put = RESULTS; row < texts.length;) {
    const end = regex.replace(PAIRS, row, texts.length, OUT, put, at - 1, SCRATCH);
    put = i32[SCRATCH / 4]!;
    for (; row < end; row++) {
      const [address, length] = i32.subarray(OUT / 4 + 2 * row);
      results.push(length! < 0 ? null : decoder.decode(u8.slice(address!, address! + length!)));
    }
    if (end < texts.length) results[row++] = undefined;
  }
  return results;
}

function expected(pattern: string, by: string, text: string): string {
  const translated = translateRegex(pattern, true);
  assert("source" in translated);
  const put = translateReplacement(by);
  let made = "", last = 0;
  linearRegex(translated.source, translated.flags, true).each(text, (found, index, names) => {
    made += text.slice(last, index) + put(found, names);
    last = index + found[0]!.length;
  });
  return made + text.slice(last);
}

const SIMPLE = [
  "^https?://(?:www\\.)?([^/]+)/.*$",
  "^(https?)://([^/:]+)(:[0-9]+)?(/[^?#]*)?",
  "[0-9]+",
  "\\s+",
  "^\\s*",
  "[^a-zA-Z0-9]",
  "(?s)^a.*$",
  "^(a|ab)(c|bcd)?(d*)$",
  "(a)|(b)",
  "x?",
  "a{2}b?",
  "^[ab]{2,}c",
  "é",
  "^é?[^a]",
  "^(?<first>\\w+) (?<second>\\w+)",
  "/$",
  "^$",
  "",
  "(\\d)(\\D)",
  "\\.html",
  "^(.)(.)",
  "^(?:(a)?b)?(.*)$",
  "\\S",
];
const NOT_SIMPLE = [
  "(?i)a",
  "^a*a",
  "a*b",
  "(ab)+",
  "a+?",
  "\\bx",
  "a(?=b)",
  "[é]",
  "(?m)^a",
  "\\p{L}",
  "(a|b|c|d|e|f)",
];
const REPLACEMENTS = ["$1", "", "-", "<$0>", "$2$1", "${first}|${second}", "\\$1é", "$9x"];
const TEXTS = [
  "http://www.a.b/c?d#e",
  "https://www./x",
  "http://é😀.b:80/x",
  "http://a.b/\n",
  "http://a.b/\u2028x",
  "http://a.b/€",
  "a",
  "abcd",
  "abbcd",
  "xxaaabx",
  "  \t a1 22 \u00a0b",
  "john smith",
  "é",
  "éa",
  "😀😀",
  "a.html.html/",
  "",
  "\ufeffa",
];

const PARTS = ["a", "b", "ab", "/", "1", "22", " ", "é", "😀", "\n", "\u2028", "\u00a0", ".", "www.", "http://", "-"];
const textOf = (length: number) => Array.from({ length }, () => PARTS[random(PARTS.length)]).join("");

function compare(pattern: string, by: string, texts: (string | null)[]): boolean {
  const found = replaced(pattern, by, texts);
  found?.forEach((text, row) => {
    const from = texts[row]!;
    if (text !== undefined) {
      assert.equal(
        text,
        from === null ? null : expected(pattern, by, from),
        `${pattern} ${by} ${JSON.stringify(from)}`,
      );
    }
  });
  return found !== undefined;
}

Deno.test("simple expressions replace what V8 finds", () => {
  for (const pattern of SIMPLE) {
    for (const by of REPLACEMENTS) {
      const texts = [...TEXTS, null, ...Array.from({ length: 40 }, () => textOf(random(12)))];
      assert(compare(pattern, by, texts), `${pattern} is simple`);
    }
  }
});

Deno.test("random expressions replace what V8 finds, if they are simple", () => {
  const atoms = ["a", "b", "\\.", ".", "[^/]", "[ab1]", "\\d", "\\s", "\\W", "é", "/", "www", "[^a\\d]"];
  const signs = ["", "", "", "?", "*", "+", "{2}", "{0,1}", "{1,}"];
  let simple = 0;
  for (let round = 0; round < 4_000; round++) {
    const item = (depth: number): string => {
      const kind = random(depth > 1 ? 3 : 5);
      const body = kind < 3
        ? atoms[random(atoms.length)]!
        : `${random(2) ? "(" : "(?:"}${sequence(depth + 1)}${random(3) ? "" : `|${sequence(depth + 1)}`})`;
      return body + (kind < 3 || random(2) ? signs[random(kind < 3 ? signs.length : 4)]! : "");
    };
    const sequence = (depth: number): string => Array.from({ length: 1 + random(3) }, () => item(depth)).join("");
    const pattern = `${random(3) ? "^" : ""}${sequence(0)}${random(2) ? "$" : ""}`;
    const by = REPLACEMENTS[random(REPLACEMENTS.length)]!;
    if (compare(pattern, by, Array.from({ length: 30 }, () => textOf(random(14))))) simple++;
  }
  assert(simple > 1_000, `${simple} are simple`);
});

Deno.test("other expressions have no kernel", () => {
  for (const pattern of NOT_SIMPLE) assert.equal(replaced(pattern, "", [""]), undefined, pattern);
});

Deno.test("a kernel leaves out long texts and results, and characters on which a class depends", () => {
  const long = "a".repeat(TEXT_BYTES_MAX);
  assert.deepEqual(replaced("a", "b", [long, `${long}a`, null, "a"]), [
    long.replaceAll("a", "b"),
    undefined,
    null,
    "b",
  ]);
  assert.deepEqual(replaced("a", "bbbbb", [long, "a"]), [undefined, "bbbbb"]);
  assert(5 * TEXT_BYTES_MAX > RESULT_BYTES_MAX);
  assert.deepEqual(replaced("^a(.*)$", "$1", ["a\u2028x", "aéx", "a€x"]), [undefined, "éx", undefined]);
  assert.deepEqual(replaced("\\s", "_", ["a é", "a b"]), [undefined, "a_b"]);
});

Deno.test("regexp_replace() uses a kernel for many rows, and V8 for what it leaves out", () => {
  const ROWS = 3_000;
  const texts = Array.from(
    { length: ROWS },
    () => random(9) === 0 ? null : textOf(random(50) === 0 ? 700 : random(14)),
  );
  const all = (text: string) => Array.from({ length: ROWS }, () => encoder.encode(text));
  for (const [pattern, by] of [["[0-9]+", "<<$0>>"], ["^(.)(.*)$", "$2"], ["^(.)(.*)$", "$2$1"], ["(a|b)*", "x"]]) {
    const found = called(
      "regexp_replace",
      ["STRING", "STRING", "STRING"],
      [texts.map((text) => text === null ? undefined : encoder.encode(text)), all(pattern), all(by)],
      "STRING",
      { 1: pattern, 2: by },
    );
    found.forEach((bytes, row) => {
      const text = texts[row]!, result = bytes === undefined ? null : decoder.decode(bytes as Uint8Array);
      assert.equal(result, text === null ? null : expected(pattern, by, text), `${pattern} ${by} ${text}`);
    });
  }
});
