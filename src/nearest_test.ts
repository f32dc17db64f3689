import assert from "node:assert/strict";
import { didYouMean, nearest } from "./nearest.ts";

const cases: [text: string, known: string[], found: string | undefined][] = [
  ["pricee", ["amount", "price"], "price"],
  ["PRIC", ["amount", "price"], "price"],
  ["pirce", ["price"], "price"],
  ["selekt", ["SELECT", "SET"], "SELECT"],
  ["coutn", ["cot", "count", "acos"], "count"],
  ["cont", ["cot", "count", "cos"], "count"],
  ["ad", ["ADD", "ALTER"], "ADD"],
  // Short names are not similar just because they are short.
  ["x", ["ts", "v"], undefined],
  ["ab", ["ts"], undefined],
  ["zzzzzz", ["http.enabled"], undefined],
  ["", ["a"], undefined],
];
for (const [text, known, found] of cases) {
  Deno.test(`nearest() of ${text} is ${found}`, () => assert.equal(nearest(text, known), found));
}

Deno.test("didYouMean() adds a suggestion or nothing", () => {
  assert.equal(didYouMean("pricee", ["price"]), "; did you mean price?");
  assert.equal(didYouMean("pricee", ["amount"]), "");
});
