import assert from "node:assert/strict";
import { BusyWait } from "./busy-wait.ts";

/** After which of this many pieces of work a thread looks. */
function looks(pieces: number, hasCome: (look: number) => boolean, micros = 1): number[] {
  const wait = new BusyWait(micros);
  const after: number[] = [];
  for (let piece = 0; piece < pieces; piece++) {
    if (!wait.isDue()) continue;
    const look = after.push(piece) - 1;
    assert.equal(wait.look(() => hasCome(look)), hasCome(look));
  }
  return after;
}

Deno.test("a thread looks after each piece of work while the next one comes at once", () => {
  assert.deepEqual(looks(5, () => true), [0, 1, 2, 3, 4]);
});

Deno.test("after looks in vain more and more pieces pass, and fewer after each one that comes", () => {
  assert.deepEqual(looks(400, () => false), [0, 2, 6, 14, 30, 62, 126, 190, 254, 318, 382]);
  assert.deepEqual(looks(12, (look) => look >= 2), [0, 2, 6, 8, 9, 10, 11]);
  // One in three comes.
  assert.ok(looks(10_000, (look) => look % 3 === 0).length < 400);
});

Deno.test("it never looks if the time for it is 0", () => {
  assert.deepEqual(looks(5, () => true, 0), []);
});

Deno.test("a look of another one counts", () => {
  const wait = new BusyWait(1);
  wait.ended(false);
  assert.deepEqual([wait.isDue(), wait.isDue()], [false, true]);
  wait.ended(true);
  assert.equal(wait.isDue(), true);
});
