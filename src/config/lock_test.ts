import assert from "node:assert/strict";
import { join } from "node:path";
import { askToStop, lockRoot, onAskedToStop, runningServer } from "./lock.ts";

Deno.test("lockRoot() names the process that holds the root, and a new server ignores an old request to stop", async () => {
  const root = Deno.makeTempDirSync();
  assert.equal(runningServer(root), undefined);
  askToStop(root);
  const release = lockRoot(root, "mine");
  assert.deepEqual(runningServer(root), { pid: Deno.pid, tag: "mine" });
  let asked = 0;
  const end = onAskedToStop(root, () => asked++);
  await new Promise((done) => setTimeout(done, 500));
  assert.equal(asked, 0);
  end();
  release();
  assert.equal(runningServer(root), undefined);
  Deno.removeSync(root, { recursive: true });
});

Deno.test("onAskedToStop() reacts to askToStop() once", async () => {
  const root = Deno.makeTempDirSync();
  const heard = Promise.withResolvers<void>();
  const keepAlive = setInterval(() => {}, 1000);
  onAskedToStop(root, heard.resolve);
  askToStop(root);
  await heard.promise;
  clearInterval(keepAlive);
  assert.throws(() => Deno.statSync(join(root, "sundial.stop")), Deno.errors.NotFound);
  Deno.removeSync(root, { recursive: true });
});
