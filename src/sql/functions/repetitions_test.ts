import assert from "node:assert/strict";
import { hasNestedRepetitions, repetitionsWritten, Unbounded } from "./repetitions.ts";

function randomOf(seed: number): (below: number) => number {
  let state = (seed * 2654435761) >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

const ATOMS = ["a", "b", "[ab]", ".", "\\w", "^", "$", "\\u0061", "[^\\]a]", "\\("];
const QUANTIFIERS = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}?", "{3}", "{2,4}", "{3,}", "+?", "{0}"];

function expression(random: (below: number) => number, depth: number): string {
  const part = () => {
    const inner = depth > 0 && random(3) === 0;
    const atom = inner
      ? `${["(", "(?:", "("][random(3)]}${expression(random, depth - 1)})`
      : ATOMS[random(ATOMS.length)];
    return /^[\^$]$/.test(atom) ? atom : atom + QUANTIFIERS[random(QUANTIFIERS.length)];
  };
  const sequence = () => Array.from({ length: 1 + random(3) }, part).join("");
  return random(4) === 0 ? `${sequence()}|${sequence()}` : sequence();
}

Deno.test("repetitionsWritten() gives the same matches as the original, including groups where it keeps them", () => {
  let kept = 0;
  for (let seed = 1; seed <= 3000; seed++) {
    const random = randomOf(seed);
    const source = expression(random, 2);
    const texts = Array.from(
      { length: 4 },
      () => Array.from({ length: random(8) }, () => "aab("[random(4)]).join(""),
    );
    for (const keepsGroups of [false, true]) {
      let written: string;
      try {
        written = repetitionsWritten(source, keepsGroups, 2);
      } catch (error) {
        assert.ok(error instanceof Unbounded, source);
        continue;
      }
      if (keepsGroups) kept++;
      for (const text of texts) {
        const expected = new RegExp(source).exec(text), found = new RegExp(written).exec(text);
        const title = `/${source}/ as /${written}/ in ${text}`;
        if (keepsGroups) assert.deepEqual(found && [...found], expected && [...expected], title);
        else assert.equal(found !== null, expected !== null, title);
      }
    }
  }
  assert.ok(kept > 1000, `${kept}`);
});

Deno.test("repetitionsWritten() refuses expressions that become too long, and groups whose last iteration is ambiguous", () => {
  assert.throws(() => repetitionsWritten("(?:a{70}){70}", false), /more than 4000 characters/);
  assert.throws(() => repetitionsWritten("(a){1,17}", true), /cannot be captured/);
  assert.equal(repetitionsWritten("(a){2,16}", true), "(a){2,16}");
  assert.equal(repetitionsWritten("(a)+(?<x>b)", false), "(?:a)+(?:b)");
});

Deno.test("hasNestedRepetitions()", () => {
  for (const source of ["(a+)+", "(?:a*b|c)*", "((a{2})b){3,}"]) assert.ok(hasNestedRepetitions(source), source);
  for (const source of ["a+b+", "(a+)?", "(a+){1}", "[a+]+", "(a|b)*\\++"]) {
    assert.ok(!hasNestedRepetitions(source), source);
  }
});
