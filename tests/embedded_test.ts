/** What `deno compile` must be told about, held against the tree: a worker that is missing fails only in the executable. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { EMBEDDED } from "../scripts/embedded.ts";
import { fromFileUrl } from "./paths.ts";

const ROOT = fromFileUrl("../");

function* files(directory: string): Generator<string> {
  for (const entry of Deno.readDirSync(join(ROOT, directory))) {
    const path = `${directory}/${entry.name}`;
    if (entry.isDirectory) yield* files(path);
    else yield path;
  }
}

Deno.test("embedded: every worker and every file that the source reads by URL", () => {
  const read = new Set<string>();
  for (const path of ["main.ts", ...files("src")]) {
    if (!/\.ts$/.test(path) || /_test\.ts$/.test(path)) continue;
    const text = Deno.readTextFileSync(join(ROOT, path));
    for (const [, relative] of text.matchAll(/new URL\(\s*"([^"]+)"\s*,\s*import\.meta\.url/g)) {
      read.add(join(path, "..", relative).replaceAll("\\", "/"));
    }
    // Shipped files are read by their name: see src/config/root.ts.
    for (const [, shipped] of text.matchAll(/"((?:conf|import)\/[\w.-]+)"/g)) read.add(shipped);
  }
  assert.deepEqual([...read].sort(), [...EMBEDDED].sort());
});

Deno.test("embedded: all of it exists", () => {
  for (const path of EMBEDDED) assert.ok(Deno.statSync(join(ROOT, path)).isFile, path);
});
