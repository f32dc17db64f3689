import assert from "node:assert/strict";
import { Died, FaultyFiles } from "../../src/storage/faulty-files.ts";
import {
  addColumn,
  append,
  checkpoint,
  create,
  History,
  Opened,
  randomOf,
  run,
  script,
  testHeap,
  unlessDead,
} from "./harness.ts";

const CUTS = Number(Deno.env.get("SUNDIAL_POWER_CUTS") ?? 60);
/** Number of points, evenly spread; `all` for all. */
const POINTS = Deno.env.get("SUNDIAL_DEATHS") ?? "80";

/** Opens the database; undefined if the process dies meanwhile. */
function open(files: FaultyFiles, seed: number): Opened | undefined {
  // Some databases make checkpoints by themselves, one table between two commands, and flush segments ahead of them.
  const more = seed % 2 === 0 ? {} : { checkpointLogBytes: 4_000 + (seed % 5) * 3_000 };
  const db = unlessDead(() => new Opened(files, testHeap(), randomOf(seed), more));
  return files.died ? undefined : db;
}

/** Runs steps until the process dies. Returns the number of acknowledged steps. */
function live(files: FaultyFiles, history: History, seed: number): number {
  const db = open(files, seed);
  return db === undefined ? 0 : history.play(db);
}

Deno.test("a script without faults equals the model, also after reopening", () => {
  const history = new History(script(1));
  const files = new FaultyFiles({}, randomOf(1));
  const db = open(files, 1)!;
  for (let k = 0; k < history.steps.length; k++) {
    const { error } = run(db, history.steps[k]);
    assert.equal(error, undefined, history.steps[k].title);
    assert.equal(history.check(db, k + 1), k + 1);
  }
  assert.equal(history.check(open(files.afterKill(), 1)!, history.steps.length), history.steps.length);
});

for (const [how, seed] of [["commanded", 2], ["of their own", 3]] as const) {
  Deno.test(`killed at I/O points (${POINTS}), with checkpoints ${how}, nothing that was acknowledged is lost`, () => {
    const history = new History(script(seed));
    const whole = new FaultyFiles({}, randomOf(seed));
    live(whole, history, seed);
    const step = POINTS === "all" ? 1 : Math.max(1, Math.floor(whole.points / Number(POINTS)));
    for (let point = 1; point <= whole.points; point += step) {
      const files = new FaultyFiles({ dieAt: point }, randomOf(point));
      const done = live(files, history, seed);
      try {
        const reopened = open(files.afterKill(), seed);
        const count = history.check(reopened!, done);
        if (point % (10 * step) === 1) assert.equal(history.play(reopened!, count), history.steps.length);
      } catch (error) {
        throw new Error(`killed at I/O point ${point} after ${done} steps`, { cause: error });
      }
    }
  });
}

Deno.test("symbols of a column that is added later survive a power cut behind a checkpoint", () => {
  const row = (day: number, symbols: Record<number, string> = {}) => ({ 0: BigInt(day) * 86_400_000_000n, ...symbols });
  const history = new History([
    create("t", { ts: "TIMESTAMP" }, "ts"),
    append({ t: [row(1)] }),
    checkpoint,
    append({ t: [row(2)] }),
    checkpoint,
    addColumn("t", "s", "SYMBOL"),
    append({ t: [row(3, { 1: "first" })] }),
    checkpoint,
  ]);
  for (let seed = 1; seed <= 20; seed++) {
    const files = new FaultyFiles({}, randomOf(seed));
    assert.equal(live(files, history, 2), history.steps.length);
    assert.equal(history.check(open(files.afterPowerCut(), 2)!, history.steps.length), history.steps.length);
  }
});

Deno.test(`after ${CUTS} power cuts at random, also during recovery, nothing that was acknowledged is lost`, () => {
  const whole = new FaultyFiles({}, randomOf(1));
  live(whole, new History(script(1)), 1);
  const { points } = whole;
  for (let seed = 1; seed <= CUTS; seed++) {
    const history = new History(script(1 + seed % 4));
    const random = randomOf(seed);
    let files = new FaultyFiles({ dieAt: 1 + Math.floor(random() * points), shortWrites: seed % 3 === 0 }, random);
    try {
      let done = live(files, history, seed);
      for (let round = 0; round < 3; round++) {
        const faults = { dieAt: 1 + Math.floor(random() * 40) };
        files = random() < 0.3 ? files.afterKill(faults) : files.afterPowerCut(faults);
        // Check a copy, so that in some runs no table is open before the first step.
        const count = history.check(open(files.copy(), seed)!, done);
        const db = open(files, seed);
        // A staged change that was not acknowledged is found in a manifest, which is durable once its table was opened.
        const reads = round % 2 === 0 || count > done;
        if (db === undefined || (reads && !history.isReadable(db, count))) continue;
        files.faults.dieAt = files.points + 1 + Math.floor(random() * 100);
        done = history.play(db, count);
      }
      history.check(open(files.afterPowerCut(), seed)!, done);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
});

Deno.test("without syncs at commit, a power cut undoes whole commits at the end, and later writes are kept", () => {
  for (let seed = 1; seed <= CUTS / 2; seed++) {
    const history = new History(script(1 + seed % 4));
    const random = randomOf(seed);
    const more = { commitMode: "nosync", checkpointLogBytes: 4_000 + (seed % 5) * 3_000 } as const;
    const start = (files: FaultyFiles) => new Opened(files, testHeap(), random, more);
    try {
      const files = new FaultyFiles({}, random);
      let done = 0;
      try {
        const db = start(files);
        files.faults.dieAt = files.points + 1 + Math.floor(random() * 500);
        done = history.play(db);
      } catch (error) {
        if (!(error instanceof Died)) throw error;
      }
      const after = files.afterPowerCut();
      const db = start(after);
      const count = history.find(db, done);
      after.faults.dieAt = after.points + 1 + Math.floor(random() * 300);
      const again = history.play(db, count);
      history.check(start(after.afterKill()), again);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
});
