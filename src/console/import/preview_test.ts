import assert from "node:assert/strict";
import { previewOf, tableNameOf } from "./preview.ts";

Deno.test("the first lines of a file are split as CSV", () => {
  const { lines } = previewOf('ts,name\r\n2026-01-01,"a, ""b"""\r\n,\r\n');
  assert.deepEqual(lines, [["ts", "name"], ["2026-01-01", 'a, "b"'], ["", ""]]);
  assert.deepEqual(previewOf("a|b\n1|2").lines, [["a", "b"], ["1", "2"]]);
  assert.equal(previewOf("x\n".repeat(100)).lines.length, 6);
  assert.deepEqual(previewOf("").lines, []);
});

Deno.test("a table gets the name of its file", () => {
  assert.equal(tableNameOf("My trades (2026).csv"), "My_trades_2026");
  assert.equal(tableNameOf("…"), "imported");
});
