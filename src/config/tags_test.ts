import assert from "node:assert/strict";
import { join } from "node:path";
import { checkTag, DEFAULT_TAG, openRoot, runningServer, Tags } from "./mod.ts";

Deno.test("Tags: a tag identifies the root of its last server; the default tag identifies none", () => {
  const directory = join(Deno.makeTempDirSync(), "tags");
  const tags = new Tags(directory);
  assert.equal(tags.root("a"), undefined);
  tags.keep("a", "/data/1");
  tags.keep("b", "/data/2");
  tags.keep("a", "/data/3");
  tags.keep(DEFAULT_TAG, "/data/4");
  assert.deepEqual(["a", "b", DEFAULT_TAG].map((tag) => tags.root(tag)), ["/data/3", "/data/2", undefined]);
  Deno.removeSync(join(directory, ".."), { recursive: true });
});

Deno.test("Tags: a directory of another user is not trusted", {
  ignore: Deno.build.os === "windows" || Deno.uid() !== 0,
}, () => {
  const directory = Deno.makeTempDirSync();
  const tags = new Tags(directory);
  tags.keep("a", "/data/1");
  Deno.chownSync(directory, 12345, 12345);
  assert.equal(tags.root("a"), undefined);
  assert.throws(() => tags.keep("a", "/data/2"), /belongs to another user/);
  Deno.removeSync(directory, { recursive: true });
});

Deno.test("checkTag() accepts what may be part of a file name", () => {
  for (const tag of ["a", "West-2_b.c", "0"]) checkTag(tag);
  for (const tag of ["", ".", "..", "a/b", "-x", "a b", "ä", "x".repeat(65)]) {
    assert.throws(() => checkTag(tag), { name: "ConfigError", key: "-t" }, tag);
  }
});

Deno.test("runningServer() returns the process and tag that hold the root", () => {
  const path = join(Deno.makeTempDirSync(), "root");
  const root = openRoot(path, { tag: "west" });
  assert.deepEqual(runningServer(path), { pid: Deno.pid, tag: "west" });
  root.release();
  assert.equal(runningServer(path), undefined);
  Deno.removeSync(join(path, ".."), { recursive: true });
});
