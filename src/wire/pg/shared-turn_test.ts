import assert from "node:assert/strict";
import { SharedTurn } from "./shared-turn.ts";

/** Connections that work until a turn is due, by the names of those that work in each turn, of some ms each. */
async function turnsOf(works: Record<string, number>): Promise<string[]> {
  let nowMs = 0;
  const turns: string[] = [""], begins: (() => void)[] = [];
  const turn = new SharedTurn(() => nowMs, (begin) => begins.push(begin));
  const working = Object.entries(works).map(async ([name, ms]) => {
    for (let sinceMs = nowMs; ms > 0; ms--) {
      nowMs++;
      turns[turns.length - 1] += name;
      if (turn.isDue(sinceMs)) {
        await turn.wait();
        sinceMs = nowMs;
      }
    }
  });
  for (let isIdle = false; !isIdle;) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    const begin = begins.shift();
    isIdle = begin === undefined;
    if (!isIdle) turns.push("");
    begin?.();
  }
  await Promise.all(working);
  return turns;
}

Deno.test("SharedTurn: a connection with much to do works for some ms in a turn", async () => {
  assert.deepEqual(await turnsOf({ a: 20 }), ["aaaaaaa", "aaaaaa", "aaaaaa", "a"]);
});

Deno.test("SharedTurn: many connections together work no longer in a turn than one, but for their first message", async () => {
  const turns = await turnsOf({ a: 10, b: 10, c: 10, d: 1 });
  assert.equal(turns.flatMap((names) => [...names]).length, 31);
  for (const names of turns.slice(1)) assert.ok(names.length <= 6, names);
});

Deno.test("SharedTurn: one with less to do does not wait for all that others have to do", async () => {
  const turns = await turnsOf({ a: 100, b: 100, c: 5 });
  assert.ok(turns.findLastIndex((names) => names.includes("c")) < 5, turns.join());
});
