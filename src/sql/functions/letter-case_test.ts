import assert from "node:assert/strict";
import { capitalLetters, smallLetters } from "./letter-case.ts";

Deno.test("LetterCase changes each letter that has a counterpart of as many units", () => {
  const encoder = new TextEncoder(), decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const ways = [
    { letters: smallLetters, change: (letter: string) => letter.toLowerCase() },
    { letters: capitalLetters, change: (letter: string) => letter.toUpperCase() },
  ];
  for (const { letters, change } of ways) {
    for (let first = 0; first < 0x20000; first += 256) {
      if (first >= 0xd800 && first < 0xe000) continue; // surrogates
      const all = Array.from({ length: 256 }, (_, k) => String.fromCodePoint(first + k));
      const bytes = encoder.encode(`x${all.join("")}x`);
      const expected = all.map((letter) => change(letter).length === letter.length ? change(letter) : letter).join("");
      for (let round = 0; round < 2; round++) {
        assert.equal(decoder.decode(letters.changed(bytes, 1, bytes.length - 1)), expected);
      }
    }
  }
  assert.equal(decoder.decode(smallLetters.changed(encoder.encode("ΟΔΟΣ"), 0, 8)), "οδοσ");
});
