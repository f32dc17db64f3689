/** Copies of a database during writes contain everything that was acknowledged before the copy began. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { startServer, type TestServer } from "./server.ts";

const WRITERS = 3;

/** Writes lines until stopped. The first `acknowledged[w]` rows of writer `w` are acknowledged. */
function writeOn(server: TestServer): { acknowledged: number[]; begun(): Promise<void>; stop(): Promise<void> } {
  const acknowledged = new Array<number>(WRITERS).fill(0);
  let stopped = false;
  const writers = acknowledged.map(async (_, w) => {
    while (!stopped) {
      const from = acknowledged[w];
      // Each batch writes to two tables in one request; the second one gets late rows.
      const lines = Array.from({ length: 50 }, (_, k) => {
        const n = from + k;
        const late = 1_700_000_000_000_000_000n + BigInt((n * 7919) % 100_000) * 1_000_000_000n;
        return `w${w},tag=s${n % 20} n=${n}i,text="row ${n}" ${
          1_700_000_000_000_000_000n + BigInt(n) * 60_000_000_000n
        }\n` +
          `late,tag=w${w} n=${n}i ${late}\n`;
      });
      const reply = await fetch(`${server.http}/write`, { method: "POST", body: lines.join("") });
      await reply.body?.cancel();
      assert.equal(reply.status, 204);
      acknowledged[w] = from + 50;
    }
  });
  return {
    acknowledged,
    /** Resolves when each writer has acknowledged rows. */
    async begun() {
      while (acknowledged.some((count) => count === 0)) await pause(100);
    },
    async stop() {
      stopped = true;
      await Promise.all(writers);
    },
  };
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** Each writer's rows are contiguous from the first one to at least the last acknowledged one, without duplicates. */
async function checkCopy(root: string, acknowledged: number[]): Promise<void> {
  await using copy = await startServer({ root });
  for (const [w, least] of acknowledged.entries()) {
    for (const table of [`w${w}`, `(late where tag = 'w${w}')`]) {
      const { dataset, error } = await copy.exec(
        `select count() c, count_distinct(n) d, min(n) low, max(n) high from ${table}`,
      );
      assert.equal(error, undefined);
      const [count, distinct, low, high] = dataset![0] as number[];
      assert.ok(count >= least, `${table}: ${count} rows, ${least} were acknowledged`);
      assert.deepEqual([distinct, low, high], [count, 0, count - 1], table);
    }
    const { dataset } = await copy.exec(`select n, text, tag from w${w} where n = ${least - 1}`);
    assert.deepEqual(dataset, [[least - 1, `row ${least - 1}`, `s${(least - 1) % 20}`]]);
  }
  assert.doesNotMatch(copy.output(), / [CE] |is unusable|damaged/, "it opens clean");
  const { ddl, error } = await copy.exec("create table more (n long)");
  assert.deepEqual([ddl, error], ["OK", undefined]);
}

const BUSY = { SVC_CAIRO_CHECKPOINT_LOG_SIZE: "1m", SVC_CAIRO_CHECKPOINT_INTERVAL: "300ms" };

Deno.test("BACKUP DATABASE during writes: a start on the backup has every row acknowledged before", async () => {
  const server = await startServer({ env: BUSY, keepRoot: true });
  const writing = writeOn(server);
  await pause(1500);
  await writing.begun();
  const before = [...writing.acknowledged];
  const backup = await server.exec("backup database to 'nightly'");
  assert.deepEqual([backup.ddl, backup.error], ["OK", undefined]);
  const again = await server.exec("backup database to 'nightly'");
  assert.match(again.error!, /a backup called nightly already exists/);
  assert.equal(again.position, "backup database to ".length);
  assert.equal((await server.exec("backup database to '../x'")).position, "backup database to ".length);
  assert.match((await server.exec("backup table w0")).error!, /not supported/);
  await pause(300);
  await writing.stop();
  assert.equal(await server.stop(), 0);
  const [entry, ...others] = [...Deno.readDirSync(join(server.root, "backup"))];
  assert.deepEqual([entry.name, others.length], ["nightly", 0]);
  await checkCopy(join(server.root, "backup", "nightly"), before);
  await Deno.remove(server.root, { recursive: true });
});

Deno.test("CHECKPOINT CREATE holds the files for a plain copy until CHECKPOINT RELEASE", async () => {
  const server = await startServer({ env: BUSY, keepRoot: true });
  const writing = writeOn(server);
  await pause(1000);
  await writing.begun();
  assert.deepEqual((await server.exec("select in_progress from checkpoint_status()")).dataset, [[false]]);
  assert.equal((await server.exec("checkpoint create")).ddl, "OK");
  const second = await server.exec("checkpoint create");
  assert.match(second.error!, /one is already open/);
  assert.equal(second.position, 0);
  assert.deepEqual((await server.exec("select in_progress from checkpoint_status()")).dataset, [[true]]);
  // Checkpoints would be due before and during the copy, which is made file by file with pauses.
  await server.exec("create table dropped as (select x from long_sequence(1000))");
  await server.exec("drop table dropped");
  // This many rows go directly into segments; the log only names them, and that must wait for the release.
  let isLoaded = false;
  const loading = server.exec("create table loaded as (select x, x * 2 y from long_sequence(2000000))").then(
    (reply) => {
      isLoaded = true;
      return reply;
    },
  );
  await pause(1500);
  const before = [...writing.acknowledged];
  const copied = join(server.root, "copy");
  await copySlowly(join(server.root, "db"), join(copied, "db"));
  assert.equal(isLoaded, false);
  assert.equal((await server.exec("checkpoint release")).ddl, "OK");
  assert.equal((await loading).error, undefined);
  assert.equal((await server.exec("checkpoint release")).ddl, "OK");
  await pause(700);
  await writing.stop();
  await checkCopy(copied, before);
  assert.equal(await server.stop(), 0);
  await checkCopy(server.root, writing.acknowledged);
  await Deno.remove(server.root, { recursive: true });
});

async function copySlowly(from: string, to: string): Promise<void> {
  Deno.mkdirSync(to, { recursive: true });
  for (const { name, isDirectory } of [...Deno.readDirSync(from)]) {
    if (isDirectory) await copySlowly(join(from, name), join(to, name));
    else if (name !== "lock") Deno.copyFileSync(join(from, name), join(to, name));
    await pause(50);
  }
}
