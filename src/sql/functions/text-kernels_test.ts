import assert from "node:assert/strict";
import { randomOf, SEED } from "../../testing.ts";
import { TESTED_BYTES_MAX, textKernels } from "./text-kernels.ts";

const MEMORY_BYTES = 4 * 65_536, PAIRS = 1024, OUT = 16_384;
const memory = new WebAssembly.Memory({ initial: 4, maximum: 4, shared: true });
const kernels = textKernels(memory), u8 = new Uint8Array(memory.buffer), i32 = new Int32Array(memory.buffer);
const encoder = new TextEncoder();

/** Puts the texts before `end`, one after the other, and their pairs. Undefined is NULL. */
function put(texts: readonly (string | undefined)[], end: number): void {
  const encoded = texts.map((text) => text === undefined ? undefined : encoder.encode(text));
  let at = end - encoded.reduce((sum, bytes) => sum + (bytes?.length ?? 0), 0);
  encoded.forEach((bytes, row) => {
    i32.set([bytes === undefined ? 0 : at, bytes?.length ?? -1], PAIRS / 4 + 2 * row);
    if (bytes === undefined) return;
    u8.set(bytes, at);
    at += bytes.length;
  });
}

Deno.test("contains() finds parts of any length at any place, up to the end of memory", () => {
  const random = randomOf(SEED), ends = [MEMORY_BYTES, MEMORY_BYTES - 1, MEMORY_BYTES - 40];
  const letters = ["a", "b", "A", "[", "{", "é"];
  const textOf = (length: number) => Array.from({ length }, () => letters[random(letters.length)]).join("");
  const isIn = (text: string, part: string, ignoresCase: boolean) =>
    ignoresCase ? text.replaceAll("A", "a").includes(part.replaceAll("A", "a")) : text.includes(part);
  for (let round = 0; round < 2000; round++) {
    const texts = Array.from({ length: 5 }, () => random(8) === 0 ? undefined : textOf(random(60)));
    const part = textOf(1 + random(round % 3 === 0 ? 20 : 3)), bytes = encoder.encode(part);
    put(texts, ends[round % ends.length]);
    u8.set(bytes, OUT + 64);
    for (const ignoresCase of [false, true]) {
      const end = kernels.contains(PAIRS, 1, texts.length, OUT, OUT + 64, bytes.length, Number(ignoresCase));
      assert.equal(end, texts.length);
      texts.forEach((text, row) => {
        if (row === 0) return;
        const expected = text !== undefined && isIn(text, part, ignoresCase) ? 1 : 0;
        assert.equal(u8[OUT + row], expected, `${text} ${part} ${ignoresCase}`);
      });
    }
  }
});

Deno.test("contains() stops at a text that would take long", () => {
  put(["xab", "ab".repeat(TESTED_BYTES_MAX / 2), "ab".repeat(TESTED_BYTES_MAX / 2) + "a", "ab"], MEMORY_BYTES);
  u8.set(encoder.encode("ab"), OUT + 64);
  u8.fill(9, OUT, OUT + 4);
  assert.equal(kernels.contains(PAIRS, 0, 4, OUT, OUT + 64, 2, 0), 2);
  assert.deepEqual([...u8.subarray(OUT, OUT + 4)], [1, 1, 9, 9]);
});

Deno.test("length() counts characters, and those beyond U+FFFF once or twice", () => {
  const random = randomOf(SEED), letters = ["a", "é", "€", "\u0800", "\uffff", "😀", "\u{10ffff}"];
  for (let round = 0; round < 500; round++) {
    const texts = Array.from(
      { length: 5 },
      () =>
        random(8) === 0
          ? undefined
          : Array.from({ length: random(50) }, () => letters[random(letters.length)]).join(""),
    );
    put(texts, MEMORY_BYTES);
    for (const beyond of [1, 2]) {
      kernels.length(PAIRS, 0, texts.length, OUT, beyond);
      const lengths = texts.map((text) => text === undefined ? -1 : beyond === 2 ? text.length : [...text].length);
      assert.deepEqual([...i32.subarray(OUT / 4, OUT / 4 + texts.length)], lengths);
    }
  }
});
