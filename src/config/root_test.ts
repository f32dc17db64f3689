import assert from "node:assert/strict";
import { join } from "node:path";
import { outdated } from "../../scripts/docs.ts";
import { openRoot, runningPid } from "./mod.ts";

Deno.test("openRoot() makes the root once, keeps what the user wrote, and lets one process in", () => {
  const path = join(Deno.makeTempDirSync(), "root");
  assert.equal(runningPid(path), undefined);
  const root = openRoot(path);
  assert.ok(root.isNew);
  assert.equal(runningPid(path), Deno.pid);
  assert.throws(() => openRoot(path), {
    name: "ConfigError",
    key: "root",
    message: new RegExp(`in use by another process \\(${Deno.pid}\\)`),
  });
  root.release();
  assert.equal(runningPid(path), undefined);
  const conf = join(path, "conf", "server.conf");
  Deno.writeTextFileSync(conf, "# mine\n");
  const again = openRoot(path);
  assert.ok(!again.isNew);
  assert.equal(Deno.readTextFileSync(conf), "# mine\n");
  again.release();
  const trades = join(path, "import", "trades.parquet");
  Deno.writeTextFileSync(trades, "mine");
  openRoot(path, { refresh: true }).release();
  assert.equal(Deno.readTextFileSync(conf), "# mine\n", "-f leaves the configuration alone");
  assert.equal(Deno.readTextFileSync(`${trades}.bak`), "mine");
  assert.ok(Deno.statSync(trades).size > 1000);
  Deno.removeSync(path, { recursive: true });
});

Deno.test("a root that cannot be made is a ConfigError", () => {
  const file = Deno.makeTempFileSync();
  assert.throws(() => openRoot(join(file, "below")), { name: "ConfigError", key: "root" });
});

Deno.test("generated files are up to date: deno task docs", () => assert.deepEqual(outdated(), []));
