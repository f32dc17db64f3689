import assert from "node:assert/strict";
import { join } from "node:path";
import type { FilesNode } from "../../sql/plan.ts";
import { operatorOf, rowsOf, testContext } from "../testing.ts";

const columns = ["path:VARCHAR", "diskSize:LONG", "diskSizeHuman:STRING", "modifiedTime:DATE"].map((column) => {
  const [name, type] = column.split(":") as [string, string];
  return { name, type };
});
const node = (roots: string[], path?: string): FilesNode => ({
  node: "files",
  roots,
  path,
  hiddenPrefix: ".hidden-",
  at: 6,
  columns,
  timestamp: -1,
  order: "none",
});

function withFiles(paths: string[], use: (root: string) => void): void {
  const root = Deno.realPathSync(Deno.makeTempDirSync());
  try {
    for (const path of paths) {
      Deno.mkdirSync(join(root, path, ".."), { recursive: true });
      Deno.writeTextFileSync(join(root, path), path);
    }
    use(root);
  } finally {
    Deno.removeSync(root, { recursive: true });
  }
}

const pathsOf = (plan: FilesNode, context = testContext()) => rowsOf(plan, context).map(([path]) => path);

Deno.test("files are in the order of their paths, through all directories", () => {
  const paths = ["a.b/c", "a.b/.hidden-1", "a/b", "a-/b", "a0", "é/ü", "b/c/d/e", "b/c-"];
  withFiles(paths, (root) => {
    const listed = pathsOf(node([root]));
    assert.deepEqual(listed, paths.filter((path) => !path.includes(".hidden-")).sort());
    assert.deepEqual(pathsOf(node([root], "b")), ["c-", "c/d/e"]);
    assert.deepEqual(pathsOf(node(["/nowhere", root], join(root, "a"))), ["b"]);
  });
});

Deno.test("there are as many batches as the files need, and their memory is freed", () => {
  const paths = Array.from({ length: 5_000 }, (_, n) => `${n}`);
  withFiles(paths, (root) => {
    const context = testContext();
    assert.deepEqual(pathsOf(node([root]), context), paths.toSorted());
    assert.equal(context.memory.usedBytes, 0);
    const left = operatorOf(node([root]), context);
    assert.equal(left.next()?.rowCount, 4_096);
    left.close();
    assert.equal(context.memory.usedBytes, 0);
  });
});

Deno.test("a cancellation ends the list", () =>
  withFiles(["a", "b", "c"], (root) => {
    let polls = 0;
    const poll = () => {
      if (++polls === 3) throw new Error("cancelled");
    };
    assert.throws(() => pathsOf(node([root]), testContext(undefined, { poll })), /cancelled/);
  }));

Deno.test("files that vanish while they are listed, and roots that do not exist, have no rows", () =>
  withFiles(["a", "b", "c/d"], (root) => {
    let polls = 0;
    const poll = () => {
      if (++polls === 2) { for (const name of ["a", "c"]) Deno.removeSync(join(root, name), { recursive: true }); }
    };
    assert.deepEqual(pathsOf(node([root]), testContext(undefined, { poll })), ["b"]);
    assert.deepEqual(pathsOf(node([join(root, "none")])), []);
  }));

Deno.test("links must not lead out of the roots", () =>
  withFiles(["in/a", "out/b"], (root) => {
    Deno.symlinkSync(join(root, "out"), join(root, "in", "link"));
    Deno.symlinkSync(join(root, "in"), join(root, "link"));
    const roots = [join(root, "link"), join(root, "none")];
    assert.deepEqual(pathsOf(node(roots, ".")), ["a"]);
    for (const path of ["link", "..", "a", "none", join(root, "out")]) {
      const message = `${path} is not a directory in the import or export directory`;
      assert.throws(() => pathsOf(node(roots, path)), { message, position: 6 }, path);
    }
  }));
