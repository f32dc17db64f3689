import assert from "node:assert/strict";
import { TurnGroups } from "./turn-groups.ts";

/** Notes what is done, and refuses `refused`. */
function noted(refused?: number) {
  const done: string[] = [];
  const work = (items: readonly number[]) => {
    done.push(items.join(" "));
    return refused !== undefined && items.includes(refused)
      ? Promise.reject(new Error(`refused ${items}`))
      : Promise.resolve();
  };
  const groups = new TurnGroups<number>(work), alone = (item: number) => work([item]);
  return { done, run: (key: string, item: number) => groups.run(key, item, alone) };
}

Deno.test("work of the same key that is asked for in one turn is done together", async () => {
  const { done, run } = noted();
  await Promise.all([run("a", 1), run("b", 2), run("a", 3), run("a", 4)]);
  await run("a", 5);
  assert.deepEqual(done, ["1 3 4", "2", "5"]);
});

Deno.test("work that is refused does not make that of others fail", async () => {
  const { done, run } = noted(13);
  const ends = await Promise.allSettled([run("a", 1), run("a", 13), run("a", 2)]);
  assert.deepEqual(ends.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
  assert.deepEqual(done, ["1 13 2", "1", "13", "2"]);
});

Deno.test("work that is refused alone is not tried again", async () => {
  const { done, run } = noted(13);
  await assert.rejects(run("a", 13), { message: "refused 13" });
  assert.deepEqual(done, ["13"]);
});
