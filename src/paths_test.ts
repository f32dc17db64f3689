import assert from "node:assert/strict";
import { isWithin } from "./paths.ts";

Deno.test("isWithin() compares whole names", () => {
  for (const path of ["/a", "/a/b", "/a/..b", "/a/b/c"]) assert.ok(isWithin("/a", path), path);
  for (const path of ["/", "/ab", "/b", "/a/../b"]) assert.ok(!isWithin("/a", path), path);
  assert.ok(isWithin("/", "/a"));
});
