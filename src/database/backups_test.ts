import assert from "node:assert/strict";
import { join } from "node:path";
import type { StorageWriter } from "../storage/mod.ts";
import { Backups } from "./backups.ts";

Deno.test("released() waits for a backup that is being made, and for one that has failed", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  let hold = Promise.withResolvers<void>();
  const writer = { hold: () => hold.promise, release: () => Promise.resolve() } as StorageWriter;
  const backups = new Backups(writer, { root, backupRoot: join(root, "backup"), log: () => {} }, () => 0n);
  for (const failure of [undefined, "no disk"]) {
    hold = Promise.withResolvers();
    const made = backups.backup(`called-${failure === undefined}`, 0).then(() => undefined, ({ message }) => message);
    while (!backups.isCopying) await new Promise((done) => setTimeout(done, 1));
    let isReleased = false;
    const released = backups.released().then(() => isReleased = true);
    await new Promise((done) => setTimeout(done, 5));
    assert.equal(isReleased, false);
    if (failure === undefined) hold.resolve();
    else hold.reject(new Error(failure));
    await released;
    const message = await made;
    if (failure !== undefined) assert.equal(message, failure);
  }
  await Deno.remove(root, { recursive: true });
});

Deno.test("backup() fails if it cannot tell whether its name is taken", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" }), backupRoot = join(root, "backup");
  await Deno.mkdir(backupRoot);
  await Deno.symlink("circle", join(backupRoot, "circle"));
  let isHeld = false;
  const hold = () => {
    isHeld = true;
    return Promise.reject(new Error("held"));
  };
  const writer: Pick<StorageWriter, "hold"> = { hold };
  const backups = new Backups(writer as StorageWriter, { root, backupRoot, log: () => {} }, () => 0n);
  await assert.rejects(backups.backup("circle", 0), /symbolic links/);
  assert.equal(isHeld, false);
  await Deno.remove(root, { recursive: true });
});
