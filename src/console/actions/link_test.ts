import assert from "node:assert/strict";
import { linkedText } from "./link.ts";

Deno.test("a link has a text, and may ask to run it", () => {
  assert.deepEqual(linkedText("?query=select%201"), { text: "select 1", runs: false });
  assert.deepEqual(linkedText("?query=select%201&executeQuery=true"), { text: "select 1", runs: true });
  assert.equal(linkedText(""), undefined);
  assert.equal(linkedText("?query=+"), undefined);
});
