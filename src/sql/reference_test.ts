import assert from "node:assert/strict";
import { FUNCTIONS } from "./functions/mod.ts";
import { functionsPage, languageReference, syntaxPage, typesPage } from "./reference.ts";
import { STATEMENTS } from "./statements/mod.ts";

Deno.test("functionsPage() lists every callable function with its argument and result types", () => {
  const page = functionsPage();
  const called = FUNCTIONS.filter(({ name, args }) => /^[a-z]/.test(name) && args.length !== 2).map(({ name }) => name);
  const internal =
    /^(cast|nearest|assign|extract|json_extract|decimal)_|_(step|part|months|years|units|from)$|^(keywords|array_of|array_slice|and|or|not|is_null|between|in|neg)$/;
  assert.deepEqual([...new Set(called)].filter((name) => !internal.test(name) && !page.includes(`| \`${name}(`)), []);
  assert.match(page, /\| `sum\(value\)` \| FLOAT \/ DOUBLE → the same \|/);
  assert.match(page, /\| `a \+ b` \| INT \/ LONG \/ FLOAT \/ DOUBLE → the same \| Sum\./);
  for (const line of page.split("\n")) {
    if (line.startsWith("|")) assert.equal(line.replaceAll("\\|", "").split("|").length, 5, line);
  }
});

Deno.test("typesPage() describes columns and casts; syntaxPage() is the grammar without the names of alternatives", () => {
  assert.match(typesPage(), /\n\| TIMESTAMP \| [^|]*\| 8 \| yes \| timestamp \|\n/);
  assert.match(typesPage(), /\n\| LONG \| [^\n]*\bDOUBLE\b[^\n]* \|\n/);
  assert.match(syntaxPage(), /\nlatestOn = "LATEST" "ON" expr "PARTITION" "BY"/);
  assert.doesNotMatch(syntaxPage(), / -- \w+$/m);
  assert.match(syntaxPage(), /\n\| `TRUNCATE TABLE \[IF EXISTS\] table, [^\n]* \| TRUNCATE TABLE \|\n/);
});

Deno.test("languageReference() has each keyword of a statement's reference", () => {
  const { keywords } = languageReference();
  const words = STATEMENTS.flatMap(({ reference }) => reference?.syntax.match(/\b[A-Z][A-Z0-9_]+\b/g) ?? []);
  assert.ok(words.includes("EXPLAIN") && words.includes("ANALYZE"));
  assert.deepEqual(words.filter((word) => !keywords.includes(word.toLowerCase())), []);
});
