import assert from "node:assert/strict";
import { join } from "node:path";
import { configOf } from "../../command/testing.ts";
import { DiskFullError } from "../../errors.ts";
import { Uploads, UploadTooLargeError } from "./uploads.ts";

const ANN = { name: "ann", groups: [], id: "1" }, BOB = { name: "bob", groups: [], id: "2" };

async function* body(...sizes: number[]): AsyncGenerator<Uint8Array> {
  for (const size of sizes) yield new Uint8Array(size);
}

async function inRoot(
  test: (uploads: Uploads, names: () => string[], clock: { nowMs: number }) => Promise<void>,
): Promise<void> {
  const root = await Deno.makeTempDir({ prefix: "sundial-uploads-" });
  const directory = join(root, "import", ".sundial-uploads"), clock = { nowMs: 0 };
  await Deno.mkdir(directory, { recursive: true });
  await Deno.writeTextFile(join(directory, "left by a killed process"), "");
  const names = () => {
    try {
      return [...Deno.readDirSync(directory)].map(({ name }) => name);
    } catch {
      return [];
    }
  };
  const failures: unknown[] = [];
  const config = configOf({ "http.uploads.size.max": "5000" }, root);
  const uploads = new Uploads(config, (error) => failures.push(error), () => clock.nowMs);
  try {
    await test(uploads, names, clock);
  } finally {
    await uploads.close();
    assert.deepEqual(names(), []);
    assert.deepEqual(failures, []);
    await Deno.remove(root, { recursive: true });
  }
}

Deno.test("an uploaded file is stored completely, and removed only by its owner", () =>
  inRoot(async (uploads, names) => {
    const { name, sizeBytes } = await uploads.store(body(1000, 2000), ANN);
    assert.equal(sizeBytes, 3000);
    assert.deepEqual(names().map((file) => `.sundial-uploads/${file}`), [name]);
    assert.equal(await uploads.remove(name, BOB), false);
    assert.equal(await uploads.remove("../conf/server.conf", ANN), false);
    assert.equal(names().length, 1);
    assert.equal(await uploads.remove(name, ANN), true);
    assert.deepEqual(names(), []);
  }));

Deno.test("a file that is too large, or whose disk is full, leaves nothing", () =>
  inRoot(async (uploads, names) => {
    await assert.rejects(uploads.store(body(3000, 3000), ANN), UploadTooLargeError);
    const { open } = Deno;
    Deno.open = () => Promise.reject(Object.assign(new Error("no space left"), { code: "ENOSPC" }));
    try {
      await assert.rejects(uploads.store(body(10), ANN), DiskFullError);
    } finally {
      Deno.open = open;
    }
    assert.deepEqual(names(), []);
  }));

Deno.test("the files of one user are limited in number and time", () =>
  inRoot(async (uploads, names, clock) => {
    const { name } = await uploads.store(body(1), ANN);
    for (let k = 0; k < 3; k++) await uploads.store(body(1), ANN);
    assert.equal(names().length, 3);
    assert.equal(await uploads.remove(name, ANN), false);
    clock.nowMs = 3_600_001;
    uploads.removeOld();
    for (let k = 0; k < 50 && names().length > 0; k++) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(names(), []);
  }));
