import assert from "node:assert/strict";
import { statementAt, statementsOf } from "./statements.ts";

Deno.test("statements are split at semicolons outside of strings, names and comments", () => {
  const text = `select ';' a; -- one; two\nselect ";" /* ; */ from t;\n\n;`;
  assert.deepEqual(statementsOf(text).map((one) => one.text), [
    "select ';' a",
    `-- one; two\nselect ";" /* ; */ from t`,
  ]);
  for (const { text: part, start, end } of statementsOf(text)) assert.equal(text.slice(start, end), part);
});

Deno.test("the statement at the cursor contains or precedes the cursor", () => {
  const text = "  select 1;\nselect 2; ";
  assert.equal(statementAt(text, 0)?.text, "select 1");
  assert.equal(statementAt(text, 10)?.text, "select 1");
  assert.equal(statementAt(text, 13)?.text, "select 2");
  assert.equal(statementAt(text, text.length)?.text, "select 2");
  assert.equal(statementAt("  ", 1), undefined);
});
