import assert from "node:assert/strict";
import { join } from "node:path";
import { exists, existsSync, isWithin } from "./paths.ts";

Deno.test("isWithin() compares whole names", () => {
  for (const path of ["/a", "/a/b", "/a/..b", "/a/b/c"]) assert.ok(isWithin("/a", path), path);
  for (const path of ["/", "/ab", "/b", "/a/../b"]) assert.ok(!isWithin("/a", path), path);
  assert.ok(isWithin("/", "/a"));
});

Deno.test("exists() fails if it cannot tell", async () => {
  const root = await Deno.makeTempDir(), file = join(root, "file"), circle = join(root, "circle");
  await Deno.writeTextFile(file, "");
  await Deno.symlink("circle", circle);
  for (const [path, expected] of [[root, true], [file, true], [join(root, "none"), false]] as const) {
    assert.equal(await exists(path), expected, path);
    assert.equal(existsSync(path), expected, path);
  }
  for (const path of [join(file, "below"), circle]) {
    await assert.rejects(exists(path), path);
    assert.throws(() => existsSync(path), path);
  }
  await Deno.remove(root, { recursive: true });
});
