import assert from "node:assert/strict";
import { Turns } from "./turns.ts";

/** A statement takes `costMs`. `events` are called when the event loop has its turn. */
function fixture(costMs: number) {
  let nowMs = 0;
  const events: (() => void)[] = [], ran: number[] = [];
  const turns = new Turns({ nowMs: () => nowMs, afterEvents: (callback) => void events.push(callback) });
  const work = (k: number) => () => {
    nowMs += costMs;
    ran.push(k);
    return k;
  };
  return { events, ran, turns, work };
}

Deno.test("Turns gives the event loop its turn after some milliseconds of statements, and keeps their order", async () => {
  const { events, ran, turns, work } = fixture(1);
  const answers = Array.from({ length: 10 }, (_, k) => turns.run(work(k)));
  assert.deepEqual([ran.length, events.length], [5, 1]);
  assert.deepEqual(answers.slice(0, 5), [0, 1, 2, 3, 4]);
  events.shift()!();
  assert.deepEqual([ran.length, events.length], [10, 1]);
  // A later statement does not overtake those that wait.
  answers.push(turns.run(work(10)));
  events.shift()!();
  assert.equal(events.length, 0);
  assert.deepEqual(ran, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  assert.deepEqual(await Promise.all(answers), ran);
  assert.equal(turns.run(work(11)), 11);
});

Deno.test("Turns counts what statements cost beside their run", () => {
  const { events, ran, turns, work } = fixture(0);
  for (let k = 0; k < 1000; k++) void turns.run(work(k));
  assert.equal(events.length, 1);
  assert.ok(ran.length > 10 && ran.length < 200);
});

Deno.test("Turns passes failures on, and does not run what is no longer wanted", async () => {
  const { events, ran, turns, work } = fixture(6);
  const failing = () => {
    throw new Error("broken");
  };
  assert.throws(() => turns.run(failing), /broken/);
  assert.equal(turns.run(work(0)), 0);
  const late = turns.run(failing),
    left = turns.run(work(1), { signal: AbortSignal.abort() }),
    next = turns.run(work(2));
  const settled = Promise.allSettled([late, left, next]);
  while (events.length > 0) events.shift()!();
  assert.deepEqual((await settled).map(({ status }) => status), ["rejected", "rejected", "fulfilled"]);
  assert.deepEqual(ran, [0, 2]);
});
