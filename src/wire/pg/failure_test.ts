import assert from "node:assert/strict";
import { SqlError, SQLSTATE, withCaret } from "../../errors.ts";
import { errorFields } from "./failure.ts";

const text = "select '😀', 'x'::byte";
const cases: [title: string, error: SqlError, position: number | undefined][] = [
  ["counts characters from 1", new SqlError("m", 13, SQLSTATE.syntax), 13],
  ["shows the caret, not the dialect's position", new SqlError("m", 0, SQLSTATE.invalidText, { caret: 13 }), 13],
  ["shows no place of what has none", new SqlError("m", 0, SQLSTATE.queryCanceled), undefined],
];
for (const [title, error, position] of cases) {
  Deno.test(`errorFields() ${title}`, () => assert.equal(errorFields(error, text).position, position));
}

Deno.test("withCaret() does not change errors that have a position", () => {
  assert.deepEqual(errorFields(withCaret(new SqlError("m", 0, SQLSTATE.invalidText), 3)).position, 4);
  const placed = new SqlError("m", 5, SQLSTATE.invalidText);
  assert.equal(withCaret(placed, 3), placed);
});
