/** The build of the console from its sources, as the first start from a fresh clone does it. */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { consoleDirectory } from "../scripts/console/mod.ts";
import { isSource, MADE_WITH } from "../scripts/console/sources.ts";
import { filesBelow } from "../scripts/release/packages.ts";
import { fromFileUrl } from "./paths.ts";

const ROOT = fromFileUrl("..");
const SIZE_BYTES_MAX = 400_000;

/** Copies what a build needs into another place. */
function clone(root: string): void {
  const sources = filesBelow(join(ROOT, "src/console")).map((path) => `src/console/${path}`).filter(isSource);
  for (const path of [...sources, ...MADE_WITH, "deno.json"]) {
    Deno.mkdirSync(dirname(join(root, path)), { recursive: true });
    Deno.copyFileSync(join(ROOT, path), join(root, path));
  }
}

const timesOf = (directory: string) =>
  filesBelow(directory).map((path) => `${path} ${Deno.statSync(join(directory, path)).mtime!.getTime()}`).sort();

/** Finds the files as a start does, without the permissions that a build needs, and without a network. */
async function startAgain(root: string): Promise<string> {
  const script = `import { consoleDirectory } from ${
    JSON.stringify(new URL("../scripts/console/mod.ts", import.meta.url))
  };
    console.log(await consoleDirectory(${JSON.stringify(root)}));`;
  const started = new Deno.Command(Deno.execPath(), {
    args: ["run", "--cached-only", "--no-prompt", "--allow-read", "-"],
    cwd: ROOT,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = started.stdin.getWriter();
  await writer.write(new TextEncoder().encode(script));
  await writer.close();
  const { stdout, stderr } = await started.output();
  return new TextDecoder().decode(stdout).trim() || new TextDecoder().decode(stderr);
}

Deno.test("the console is built once for its sources, and a second start needs neither a build nor a network", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-console-" });
  try {
    clone(root);
    const built = await consoleDirectory(root), before = timesOf(built);
    assert.equal(await startAgain(root), built);
    assert.deepEqual(timesOf(built), before);
    const sizes = filesBelow(built).filter((path) => !/\.(?:js|css)$/.test(path)).map((path) =>
      Deno.statSync(join(built, path)).size
    );
    const sum = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(sum > 50_000 && sum < SIZE_BYTES_MAX, `${sum} bytes compressed`);
    Deno.writeTextFileSync(join(root, "src/console/styles/colours.css"), "\n.changed { color: red; }\n", {
      append: true,
    });
    const changed = await consoleDirectory(root);
    assert.notEqual(changed, built);
    assert.ok(filesBelow(changed).some((path) => Deno.readTextFileSync(join(changed, path)).includes(".changed{")));
    // A change may be undone.
    assert.deepEqual(timesOf(built), before);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
