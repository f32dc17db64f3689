import assert from "node:assert/strict";
import { randomOf, SEED } from "../../testing.ts";
import { PatternFormatter, PatternReader } from "./fixed-pattern.ts";
import { formatPattern, parsedPattern, parsePattern } from "./pattern.ts";

const encoder = new TextEncoder(), decoder = new TextDecoder();
const TOKENS =
  "y yy yyyy Y YYYY w ww M MM MMM MMMM d dd D E EE u H HH k kk K KK h hh a m mm s ss S SSS U UUU N NNN U+ N+ G z Z"
    .split(" ");
/** Dates and times with all their digits. */
const NUMBERS = ["yyyy", "MM", "dd", "HH", "mm", "ss", "SSS", "UUU", "NNN", "Z"];
const LITERALS = ["-", " ", ":", "'T'", "é", "€ ", "''", "."];

Deno.test("PatternFormatter writes what formatPattern() does", () => {
  const random = randomOf(SEED);
  for (let round = 0; round < 2000; round++) {
    const pattern = Array.from({ length: random(8) }, () => {
      const parts = random(3) === 0 ? LITERALS : round % 2 === 0 ? TOKENS : NUMBERS;
      return parts[random(parts.length)];
    }).join("");
    for (const digits of [3, 6, 9] as const) {
      const formatter = new PatternFormatter(pattern, digits);
      let second = (random(4) === 0 ? -1 : 1) * random(4e9) * (random(20) === 0 ? 1e6 : 1);
      for (let row = 0; row < 12; row++) {
        // Also to years of fewer and of more digits.
        second += random(3) === 0 ? random(200_000) : random(9) === 0 ? random(2e11) - 1e11 : random(100);
        const nano = random(10 ** digits) * 10 ** (9 - digits);
        formatter.format(second, nano);
        assert.equal(
          decoder.decode(formatter.bytes.subarray(0, formatter.length)),
          formatPattern(pattern, second, nano, digits),
          `${pattern} ${second}`,
        );
      }
    }
  }
});

Deno.test("PatternReader reads what parsePattern() does, and is not certain of other texts", () => {
  const random = randomOf(SEED);
  let readCount = 0;
  for (let round = 0; round < 3000; round++) {
    const tokens = NUMBERS.filter(() => random(5) !== 0);
    if (random(2) === 0) tokens.sort(() => random(3) - 1);
    const pattern = tokens.map((token) => `${token}${random(2) === 0 ? "" : LITERALS[random(LITERALS.length)]}`).join(
      "",
    );
    const reader = PatternReader.of(pattern);
    assert(reader !== undefined);
    for (let row = 0; row < 8; row++) {
      const written = formatPattern(pattern, random(8e9) - 4e9, random(1e9), 9);
      const at = random(written.length + 1), wrong = "9:/0aZ"[random(6)];
      const text = row < 4 ? written : written.slice(0, at) + wrong + written.slice(at + random(2));
      const bytes = encoder.encode(`12${text}34`);
      const isValid = parsePattern(pattern, text), { second, nano } = parsedPattern;
      const isRead = reader.read(bytes, 2, bytes.length - 2);
      if (row < 4) assert(isRead === isValid, `${pattern} ${text}`);
      if (!isRead) continue;
      readCount++;
      assert(isValid, `${pattern} ${text}`);
      assert.deepEqual({ ...parsedPattern }, { second, nano }, `${pattern} ${text}`);
    }
  }
  assert(readCount > 10_000);
});

const OTHERS = ["yyyy-M-d", "yy", "yyyy yyyy", "hh a", "MMM", "U+", "yyyy \ufffd", "yyyy \ud800"];
Deno.test("PatternReader.of() leaves other patterns to parsePattern()", () => {
  for (const pattern of OTHERS) assert.equal(PatternReader.of(pattern), undefined, pattern);
});
