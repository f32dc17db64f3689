import assert from "node:assert/strict";
import { SqlError } from "./errors.ts";

Deno.test("SqlError truncates messages that quote long texts", () => {
  const { message, position } = new SqlError(`unknown time zone '${"x".repeat(16_000_000)}'`, 7);
  assert.match(message, /^unknown time zone 'x{4000}x*…$/);
  assert.ok(message.length < 5_000);
  assert.equal(position, 7);
  assert.equal(new SqlError("there is no table t", 0).message, "there is no table t");
});
