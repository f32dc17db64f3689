import assert from "node:assert/strict";
import { findNamed, hiddenCharacterFault, sameName } from "./names.ts";

const COMPOSED = "caf\u00e9", DECOMPOSED = "cafe\u0301";

Deno.test("sameName() ignores case and Unicode form", () => {
  assert.ok(sameName(COMPOSED, DECOMPOSED));
  assert.ok(sameName(COMPOSED.toUpperCase(), DECOMPOSED));
  assert.ok(!sameName(COMPOSED, "cafe"));
});

Deno.test("findNamed() prefers the exact spelling", () => {
  const both = [{ name: COMPOSED }, { name: DECOMPOSED }];
  assert.deepEqual(both.map(({ name }) => findNamed(both, name)?.name), [COMPOSED, DECOMPOSED]);
  assert.equal(findNamed([{ name: DECOMPOSED }], COMPOSED)?.name, DECOMPOSED);
});

Deno.test("hiddenCharacterFault() reports control, format and unpaired surrogate characters, but no visible ones", () => {
  for (const hidden of ["\u202e", "\u200b", "\u0085", "\u2028", "\u2066", "\ufeff", "\ud800", "\u{e0001}"]) {
    assert.match(hiddenCharacterFault(`a${hidden}b`)!, /U\+[0-9A-F]{4,}, found at 1$/);
  }
  for (const seen of ["a b", COMPOSED, DECOMPOSED, "名前", "имя", "😀", "a\u00a0b"]) {
    assert.equal(hiddenCharacterFault(seen), undefined);
  }
});
