import assert from "node:assert/strict";
import { splitScript } from "./script.ts";

Deno.test("splitScript() splits at semicolons, except in texts and comments", () => {
  assert.deepEqual(splitScript(" select 1 ; ;-- a ; b\nselect ';' /* ; */ x;\n"), [{ text: "select 1", at: 1 }, {
    text: "select ';' /* ; */ x",
    at: 22,
  }]);
  assert.deepEqual(splitScript(" -- nothing"), []);
});
