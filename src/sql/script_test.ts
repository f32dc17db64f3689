import assert from "node:assert/strict";
import { splitScript } from "./script.ts";

Deno.test("splitScript() splits at semicolons, except in texts and comments", () => {
  assert.deepEqual([...splitScript(" select 1 ; ;-- a ; b\nselect ';' /* ; */ x;\n")], [{ text: "select 1", at: 1 }, {
    text: "select ';' /* ; */ x",
    at: 22,
  }]);
  assert.deepEqual([...splitScript(" -- nothing")], []);
});

Deno.test("splitScript() refuses more than a million statements, at the first one beyond", () => {
  const text = "a;".repeat(1_000_000);
  assert.equal(splitScript(text).length, 1_000_000);
  assert.throws(() => splitScript(`${text};; b`), {
    message: "The text has too many statements: at most 1000000 are allowed",
    position: 2_000_003,
  });
});
