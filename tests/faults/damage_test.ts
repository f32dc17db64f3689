import assert from "node:assert/strict";
import { CorruptFileError, DiskFullError, SqlError } from "../../src/errors.ts";
import { FaultyFiles } from "../../src/storage/faulty-files.ts";
import { FULL } from "../../src/testing.ts";
import {
  ACCESS,
  append,
  checkpoint,
  create,
  History,
  Opened,
  randomOf,
  run,
  script,
  someRows,
  testHeap,
} from "./harness.ts";

/** Number of flips in each file. */
const FLIPS = Number(Deno.env.get("SUNDIAL_FLIPS") ?? 10);

const open = (files: FaultyFiles, seed = 1) => new Opened(files, testHeap(), randomOf(seed));

Deno.test("a failed sync makes the database read-only, and loses nothing that was acknowledged", () => {
  const history = new History(script(3));
  const whole = new FaultyFiles({}, randomOf(1));
  history.play(open(whole));
  for (let failSyncAt = 1; failSyncAt <= whole.syncs; failSyncAt += FULL ? 1 : 3) {
    const files = new FaultyFiles({ failSyncAt }, randomOf(failSyncAt));
    let done = 0;
    try {
      const db = open(files);
      for (; done < history.steps.length; done++) {
        const { error } = run(db, history.steps[done]);
        if (error === undefined) continue;
        assert.ok(db.store.seal.isSet, `sync ${failSyncAt}: ${error}`);
        assert.ok(db.logged.some((line) => line.startsWith("CRITICAL")));
        assert.ok(run(db, create("more", { n: "LONG" })).error instanceof SqlError, "nothing can be written after it");
        break;
      }
      assert.ok(history.check(db, done, true) >= done, "reads go on");
    } catch (error) {
      if ((error as Error).message !== "EIO: the sync failed") throw new Error(`sync ${failSyncAt}`, { cause: error });
    }
    try {
      history.check(open(files.afterPowerCut()), done);
    } catch (error) {
      throw new Error(`sync ${failSyncAt}, after ${done} steps`, { cause: error });
    }
  }
});

Deno.test("a full disk refuses writes but not reads, and writes resume when there is space", () => {
  const history = new History(script(4));
  const whole = new FaultyFiles({}, randomOf(1));
  history.play(open(whole));
  for (let k = 1; k <= 60; k += FULL ? 1 : 2) {
    const files = new FaultyFiles({ capacityBytes: Math.floor((whole.usedBytes() * k) / 50) }, randomOf(k));
    let done = 0;
    let db: Opened<FaultyFiles>;
    try {
      db = open(files);
    } catch (error) {
      assert.ok(error instanceof DiskFullError);
      db = open(Object.assign(files.afterKill(), {}));
    }
    for (; done < history.steps.length; done++) {
      const { error } = run(db, history.steps[done]);
      if (error === undefined) continue;
      assert.ok(error instanceof DiskFullError, `${error}`);
      assert.equal(history.check(db, done, true), done, "what was refused is not there");
      db.files.faults.capacityBytes! += 60_000;
      assert.equal(run(db, history.steps[done]).error, undefined, `capacity ${k}, step ${done}`);
    }
    db.store.maintain();
    history.check(db, done);
    history.check(open(db.files.afterPowerCut()), done);
  }
});

Deno.test("a flipped bit in any file is reported or has no effect; other tables stay usable", () => {
  const script2 = script(2);
  const steps = [
    ...script2.slice(0, script2.findIndex(({ title }) => title === "truncate a")),
    checkpoint,
    append({ a: someRows(randomOf(9), 20, 2).map(({ 2: _, ...row }) => row), d: someRows(randomOf(8), 5, 2) }),
  ];
  const history = new History(steps);
  const whole = new FaultyFiles({}, randomOf(1));
  history.play(open(whole));
  const random = randomOf(5);
  const named = new Set<string>();
  for (const { path, sizeBytes } of whole.all()) {
    for (let k = 0; k < FLIPS && sizeBytes > 0; k++) {
      const files = whole.copy();
      const bit = Math.floor(random() * sizeBytes * 8);
      files.flipBit(path, bit);
      const where = `bit ${bit} of ${path}`;
      let db: Opened;
      try {
        db = open(files);
      } catch (error) {
        assert.ok(error instanceof CorruptFileError && error.path === path, `${where}: ${error}`);
        named.add(path);
        continue;
      }
      let bad = 0;
      for (const snapshot of db.catalogue.tables()) {
        const { name } = snapshot.schema;
        try {
          const { columns, rows } = history.models.at(-1)!.get(name)!;
          assert.deepEqual(db.rows(snapshot), rows.map((row) => columns.map(({ id }) => row[id])), where);
        } catch (error) {
          assert.ok(error instanceof CorruptFileError, `${where}, table ${name}: ${error}`);
          assert.equal(error.path, path, where);
          named.add(path);
          bad++;
        }
      }
      const expected = new Map(history.models.at(-1)!);
      const records = expected.get(ACCESS)!.rows.map(({ 0: key, 1: text }) => [key, text]);
      expected.delete(ACCESS);
      assert.equal(db.catalogue.tables().length, expected.size, where);
      assert.deepEqual([...db.catalogue.access.records].sort(), records.sort(), where);
      assert.ok(bad <= 1, `${where}: other tables go on`);
    }
  }
  assert.ok(named.size >= 4, [...named].join());
});
