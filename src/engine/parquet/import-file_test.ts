import assert from "node:assert/strict";
import { join } from "node:path";
import { openImportFile, OutsideError } from "./import-file.ts";

function withDirectories(use: (inside: string, outside: string) => void): void {
  const directory = Deno.makeTempDirSync();
  const inside = join(directory, "import"), outside = join(directory, "outside");
  try {
    for (const each of [inside, outside]) Deno.mkdirSync(join(each, "deep"), { recursive: true });
    Deno.writeTextFileSync(join(inside, "deep", "file"), "inside");
    Deno.writeTextFileSync(join(outside, "file"), "outside");
    use(inside, outside);
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
}

function read(path: string, root: string): string {
  using file = openImportFile(path, root);
  const bytes = new Uint8Array(100);
  return new TextDecoder().decode(bytes.subarray(0, file.readSync(bytes) ?? 0));
}

Deno.test("openImportFile() follows links that stay in the directory, and a directory that is a link itself", () =>
  withDirectories((inside, outside) => {
    Deno.symlinkSync(join(inside, "deep", "file"), join(inside, "link"));
    Deno.symlinkSync("deep", join(inside, "deeper"));
    Deno.symlinkSync(inside, join(outside, "root"));
    for (const path of ["deep/file", "link", "deeper/file"]) assert.equal(read(join(inside, path), inside), "inside");
    assert.equal(read(join(outside, "root", "link"), join(outside, "root")), "inside");
  }));

const links: [title: string, make: (inside: string, outside: string) => string][] = [
  ["a link to a file", (inside, outside) => {
    Deno.symlinkSync(join(outside, "file"), join(inside, "link"));
    return "link";
  }],
  ["a relative link", (inside) => {
    Deno.symlinkSync("../../outside/file", join(inside, "deep", "link"));
    return "deep/link";
  }],
  ["a link to a directory", (inside, outside) => {
    Deno.symlinkSync(outside, join(inside, "link"));
    return "link/file";
  }],
  ["a link to a link", (inside, outside) => {
    Deno.symlinkSync(outside, join(inside, "first"));
    Deno.symlinkSync(join(inside, "first"), join(inside, "second"));
    return "second/file";
  }],
];
for (const [title, make] of links) {
  Deno.test(`openImportFile() refuses ${title} out of the directory`, () =>
    withDirectories((inside, outside) => {
      const path = join(inside, make(inside, outside));
      assert.throws(() => openImportFile(path, inside), OutsideError);
    }));
}

Deno.test(
  "openImportFile() refuses directories and pipes without waiting",
  { ignore: Deno.build.os === "windows" },
  () =>
    withDirectories((inside) => {
      const pipe = join(inside, "pipe");
      assert.ok(new Deno.Command("mkfifo", { args: [pipe] }).outputSync().success);
      for (const path of [pipe, join(inside, "deep")]) assert.throws(() => openImportFile(path, inside), /not a file/);
    }),
);

Deno.test("openImportFile() never opens a file outside while links are being replaced", () =>
  withDirectories((inside, outside) => {
    const path = join(inside, "link");
    Deno.symlinkSync(join(inside, "deep"), path);
    Deno.symlinkSync(outside, join(inside, "out"));
    const exchanges = new Worker(new URL("./testing/exchange-links.ts", import.meta.url), { type: "module" });
    const state = new Int32Array(new SharedArrayBuffer(4)); // 1: stop; 2: has stopped
    exchanges.postMessage([join(inside, "deep"), outside, path, state]);
    try {
      for (const until = Date.now() + 500; Date.now() < until;) {
        let text = "inside";
        try {
          text = read(join(path, "file"), inside);
        } catch (error) {
          if (!(error instanceof OutsideError)) throw error;
        }
        assert.equal(text, "inside");
      }
    } finally {
      // A link created later would prevent the removal of the directory.
      Atomics.store(state, 0, 1);
      Atomics.wait(state, 0, 1, 5_000);
      exchanges.terminate();
    }
  }));
