import assert from "node:assert/strict";
import { join } from "node:path";
import { outdated } from "../../scripts/docs.ts";
import { openRoot, runningPid } from "./mod.ts";

Deno.test("openRoot() creates the root once, keeps the user's files, and allows one process", () => {
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

Deno.test("openRoot() makes a new root private, and keeps the mode of an existing one", {
  ignore: Deno.build.os === "windows",
}, () => {
  const directory = Deno.makeTempDirSync(), path = join(directory, "root");
  const mode = (...names: string[]) => Deno.statSync(join(path, ...names)).mode! & 0o777;
  const umask = Deno.umask(0o022);
  try {
    openRoot(path).release();
    assert.deepEqual(["", "conf", "db", "import", "log"].map((name) => mode(name)), [
      0o700,
      0o700,
      0o700,
      0o700,
      0o755,
    ]);
    assert.deepEqual(["server.conf", "log.conf"].map((name) => mode("conf", name)), [0o600, 0o600]);
    assert.deepEqual([mode("sundial.lock"), mode("sundial.pid")], [0o600, 0o600]);
    Deno.chmodSync(path, 0o750);
    openRoot(path).release();
    assert.equal(mode(), 0o750);
  } finally {
    Deno.umask(umask);
    Deno.removeSync(directory, { recursive: true });
  }
});

Deno.test("a root that cannot be created is a ConfigError", () => {
  const file = Deno.makeTempFileSync();
  assert.throws(() => openRoot(join(file, "below")), { name: "ConfigError", key: "root" });
});

Deno.test("generated files are up to date: deno task docs", () => assert.deepEqual(outdated(), []));
